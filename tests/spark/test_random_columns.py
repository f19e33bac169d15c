"""Random Parquet and ORC files with random queries. `MILLSTREAM_SEED=N` repeats a run; the seed is in the test's name."""

import pytest

DIRECTORIES = 6


@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_random_columns(stock, ours, data, seed, format_name):
    for number in range(DIRECTORIES):
        arguments = {"path": str(data / f"columns-{format_name}-{seed}-{number}"), "format_name": format_name, "seed": seed + 1_000_003 * number}
        assert stock.call("column_calls:write", **arguments) > 0
        for session in (stock, ours):
            session.ask("column_calls:read", **arguments)
        expected, actual = stock.answer(), ours.answer()
        assert "crash" not in expected
        assert actual == expected, f"MILLSTREAM_SEED={seed}: directory {number}"


TYPES = ["a", "b", "c", "e", "f", "g", "h"]


@pytest.mark.parametrize(("directory", "columns", "conf", "decoded"), [
    ("same", TYPES, {}, 7), ("same", [*TYPES, "i"], {}, 7), ("same", [*TYPES, "d"], {}, 0), ("same", [], {}, 7), ("codecs", ["a", "b"], {}, 5),
    ("partitions", ["a", "b", "k", "l"], {}, 5), ("partitions", ["k"], {}, 5), ("schemas", ["a"], {}, 11), ("nested", ["a"], {}, 2), ("nested", ["a", "s"], {}, 0),
    ("dates", ["a", "e"], {}, 5), ("pages", ["a"], {}, 9), ("large", ["a"], {}, 2), ("same", TYPES, {"spark.sql.parquet.enableVectorizedReader": "false"}, 0),
    ("same", TYPES, {"spark.sql.caseSensitive": "true"}, 7), ("same", TYPES, {"parquet.page.verify-checksum.enabled": "true"}, 0),
    ("same", TYPES, {"spark.sql.columnVector.offheap.enabled": "true"}, 7), ("field-ids", ["a", "b"], {}, 0),
])
def test_which_files_are_decoded_natively(ours, data, directory, columns, conf, decoded):
    got = ours.call("column_calls:decoded_files", path=str(data / "columnar" / "parquet" / directory), columns=columns, conf=conf)
    assert "crash" not in got, got["crash"]
    assert got["decoded"] == decoded, got
