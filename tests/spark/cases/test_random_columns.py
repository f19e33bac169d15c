"""Random Parquet and ORC files with random queries. `MILLSTREAM_SEED=N` repeats a run; the seed is in the test's name."""

from random import Random

import parquet_edits
import pytest

DIRECTORIES = 6
EDITED = 40


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_random_columns(stock, ours, data, seed, format_name):
    for number in range(DIRECTORIES):
        arguments = {
            "path": str(data / f"columns-{format_name}-{seed}-{number}"),
            "format_name": format_name,
            "seed": seed + 1_000_003 * number,
        }
        assert stock.call("column_calls:write", **arguments) > 0
        for session in (stock, ours):
            session.ask("column_calls:read", **arguments)
        expected, actual = stock.answer(), ours.answer()
        assert "crash" not in expected
        assert actual == expected, f"MILLSTREAM_SEED={seed}: directory {number}"


def test_files_with_wrong_metadata(stock, ours, data, seed):
    """A file that stock Spark reads has the same rows; one that it drops or refuses is dropped or refused."""
    rng = Random(seed)
    sources = [
        file
        for directory in ("same", "pages", "schemas")
        for file in sorted((data / "columnar" / "parquet" / directory).iterdir())
    ]
    path = data / f"edited-{seed}"
    path.mkdir()
    good = sources[0].read_bytes()
    (path / "000 good").write_bytes(good)
    for number in range(1, EDITED):
        what, content = parquet_edits.edited(rng.choice(sources[:8] * 3 + sources).read_bytes(), rng)
        (path / f"{number:03} {what}").write_bytes(content)
        (path / f"{number:03} {what}, good").write_bytes(good)
    for session in (stock, ours):
        session.ask("column_calls:read_edited", path=str(path))
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected, expected
    assert "crash" not in actual, actual
    assert len([name for name in expected["rows"] if "good" in name]) > EDITED // 2
    differing = [
        name
        for name in sorted({*expected["rows"], *actual["rows"]})
        if expected["rows"].get(name) != actual["rows"].get(name)
    ]
    assert not differing, (
        f"MILLSTREAM_SEED={seed}: {differing[0]}: {expected['rows'].get(differing[0])} {actual['rows'].get(differing[0])} of {differing}"
    )
    assert actual["refused"] == expected["refused"], f"MILLSTREAM_SEED={seed}"


TYPES = ["a", "b", "c", "e", "f", "g", "h"]


@pytest.mark.parametrize(
    ("directory", "columns", "conf", "decoded"),
    [
        ("same", TYPES, {}, 7),
        ("same", [*TYPES, "i"], {}, 7),
        ("same", [*TYPES, "d"], {}, 0),
        ("same", [], {}, 7),
        ("codecs", ["a", "b"], {}, 5),
        ("partitions", ["a", "b", "k", "l"], {}, 5),
        ("partitions", ["k"], {}, 5),
        ("schemas", ["a"], {}, 11),
        ("nested", ["a"], {}, 2),
        ("nested", ["a", "s"], {}, 0),
        ("dates", ["a", "e"], {}, 5),
        ("pages", ["a"], {}, 9),
        ("large", ["a"], {}, 2),
        ("same", TYPES, {"spark.sql.parquet.enableVectorizedReader": "false"}, 0),
        ("same", TYPES, {"spark.sql.caseSensitive": "true"}, 7),
        ("same", TYPES, {"parquet.page.verify-checksum.enabled": "true"}, 0),
        ("same", TYPES, {"spark.sql.columnVector.offheap.enabled": "true"}, 7),
        ("field-ids", ["a", "b"], {}, 0),
    ],
)
def test_which_files_are_decoded_natively(ours, data, directory, columns, conf, decoded):
    got = ours.call(
        "column_calls:decoded_files", path=str(data / "columnar" / "parquet" / directory), columns=columns, conf=conf
    )
    assert "crash" not in got, got["crash"]
    assert got["decoded"] == decoded, got
