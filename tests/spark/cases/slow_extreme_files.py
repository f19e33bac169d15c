"""Lines of more than 100 MB, and 200,000 empty text files, compared with stock Spark. Run with `make test-group
GROUP=reads-extreme`.
"""

import gzip
import random

import pytest
from sessions import Session

LONG = 120_000_000
# Enough for each format. In a larger one, the peak would be that of garbage that nothing has made the JVM collect.
HEAP = "2g"
# Five times the line.
MORE_KB = 5 * LONG // 1000
EMPTY, EACH = 200_000, 1000
FEW_TASKS = 300
# json limits strings to less by default.
JSON_OPTIONS = {"default": {}, "long-strings": {"maxStringLen": str(2 * LONG)}, "failfast": {"mode": "FAILFAST"}}
LONG_LINES = [(name, "default") for name in ("text", "text.gz", "random.gz", "csv", "csv.gz")] + [
    (name, options) for name in ("json", "json.gz") for options in JSON_OPTIONS
]


@pytest.fixture(scope="module")
def sessions(top):
    found = {
        name: Session(top / f"{name}-extreme", millstream=name == "ours", conf={"spark.driver.memory": HEAP})
        for name in ("stock", "ours")
    }
    yield found
    for session in found.values():
        session.close()


def both(sessions, call, **arguments):
    """One after the other: each may need most of the memory."""
    return [sessions[name].call(call, **arguments) for name in ("stock", "ours")]


CONTENTS = {
    "text": (b"short\n", b"x" * LONG, b"\nend\n"),
    "csv": (b"1,short\n2,", b"x" * LONG, b"\n3,end\n"),
    "json": (b'{"a":1,"b":"short"}\n{"a":2,"b":"', b"x" * LONG, b'"}\n{"a":3,"b":"end"}\n'),
}


@pytest.fixture(scope="module")
def long_lines(top):
    """A file of each format, plain and compressed, and one with text that hardly compresses."""
    directory = top / "long"
    for name, content in CONTENTS.items():
        for ending, pack in {"": lambda data: data, ".gz": lambda data: gzip.compress(data, 1, mtime=0)}.items():
            path = directory / f"{name}{ending}"
            path.mkdir(parents=True)
            (path / f"a.{name}{ending}").write_bytes(pack(b"".join(content)))
    (directory / "random.gz").mkdir()
    text = random.Random(1).randbytes(LONG // 2).hex().encode()
    (directory / "random.gz/a.txt.gz").write_bytes(gzip.compress(b"short\n" + text + b"\nend\n", 1, mtime=0))
    return directory


@pytest.mark.parametrize("name, options", LONG_LINES)
def test_long_lines(sessions, long_lines, name, options):
    """Their rows, or the error of stock Spark, with about as much memory."""
    format_name = "text" if name.startswith("random") else name.partition(".")[0]
    expected, actual = both(
        sessions,
        "extreme_calls:long_lines",
        path=str(long_lines / name),
        format_name=format_name,
        options=JSON_OPTIONS[options],
    )
    assert "crash" not in expected and "crash" not in actual, (expected, actual)
    peak_kb = {"stock": expected.pop("peak kb"), "ours": actual.pop("peak kb")}
    print(name, options, peak_kb)
    assert actual == expected
    if format_name != "json" or options == "long-strings":
        assert expected["longest"] == LONG and expected["short"] == ["end", "short"]
    assert peak_kb["ours"] < peak_kb["stock"] + MORE_KB, peak_kb


@pytest.fixture(scope="module")
def empty_files(top):
    directory = top / "empty"
    for i in range(EMPTY):
        if i % EACH == 0:
            (directory / f"{i // EACH:03d}").mkdir(parents=True)
        (directory / f"{i // EACH:03d}/{i:06d}").touch()
    return directory


def test_many_empty_files(sessions, empty_files):
    expected, actual = both(sessions, "extreme_calls:many_files", path=str(empty_files), format_name="text", options={})
    assert "crash" not in expected and "crash" not in actual, (expected, actual)
    assert actual.pop("tasks") <= max(FEW_TASKS, expected.pop("tasks"))
    assert actual == expected and expected["rows"] == []
