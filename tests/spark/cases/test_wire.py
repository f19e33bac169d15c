"""The JVM and native code exchange data in the formats of testdata/; native tests read and write the same files."""

from pathlib import Path

VECTORS = Path(__file__).resolve().parents[3] / "testdata"


def vector(name):
    return (VECTORS / name).read_text().strip()


def test_row_predicate_is_the_shared_vector(ours):
    conditions = [
        "value is not null",
        "contains(value, 'c')",
        "startswith(value, 'é')",
        "not endswith(value, 'e')",
        "value = 'x' or value in ('y', 'z')",
        "value like 'a%b%'",
        "value rlike 'k[0-9]+'",
        "length(value) >= 258",
        "trim(value) = ''",
        "lower(value) = 'word'",
    ]
    got = ours.call("wire_calls:row_predicate", conditions=conditions)
    assert got == [vector("row-predicate.hex"), 9, 1]


def test_parquet_request_is_the_shared_vector(ours, tmp_path):
    columns = [
        ("truth", "true"),
        ("byte", "1y"),
        ("short", "1s"),
        ("int", "1"),
        ("long", "1l"),
        ("float", "1f"),
        ("double", "1d"),
        ("date", "date'2020-01-01'"),
        ("time", "timestamp'2020-01-01'"),
        ("clock", "timestamp_ntz'2020-01-01'"),
        ("é text", "'x'"),
        ("bytes", "x'00'"),
        ("price", "cast(1 as decimal(9, 2))"),
    ]
    options = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "LEGACY"}
    got = ours.call("wire_calls:parquet_request", path=str(tmp_path / "file"), columns=columns, options=options)
    assert got == vector("parquet-request.hex")


def test_decoded_columns_are_read_from_the_shared_vector(ours):
    got = ours.call(
        "wire_calls:parquet_columns",
        decoded=vector("parquet-columns.hex"),
        schema="a int, b string, c boolean",
        batch_rows=2,
    )
    assert got == [[1, "x", None], [None, "", True], [-2, "é", False]]


def test_names_of_indexes_are_those_of_the_shared_vector(ours):
    lines = [line.split("\t") for line in vector("index-names.tsv").splitlines()]
    assert ours.call("wire_calls:index_names", vector=lines) == lines
