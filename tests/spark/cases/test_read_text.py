"""`millstream.read_text` and `pure_read_text` against the text source of stock Spark."""

import random

import pytest

TREES = [
    "layouts/text/flat",
    "layouts/text/nested",
    "layouts/text/hive",
    "layouts/text/flat/part-1",
    "layouts/text/empties",
    "layouts/text/nothing",
    "hidden",
    "links",
    "endings",
    "compressed",
    "names/4",
    "names/32",
    "directories",
    "sizes",
    "siblings",
    "checksums/good",
]


@pytest.mark.parametrize("tree", TREES)
def test_lines_are_those_of_stock_spark(stock, ours, data, tree):
    stock.ask("session_calls:stock_lines", path=str(data / tree))
    ours.ask("session_calls:read_text_lines", path=str(data / tree))
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected
    assert actual == expected


@pytest.mark.parametrize("tree", ["layouts/text/nested", "endings", "compressed", "sizes"])
def test_the_rdd_has_the_lines_of_text_file(stock, ours, data, tree):
    expected = stock.call("session_calls:stock_lines", path=str(data / tree))["lines"]
    for start in ("context", "session"):
        assert ours.call("text_calls:pure_lines", path=str(data / tree), start=start) == expected


def test_lines_reach_python_whole(stock, ours, data):
    """Lines are sent in pieces, which a long line exceeds; invalid UTF-8 is replaced byte by byte, as in Java."""
    tree = data / "pieces"
    tree.mkdir()
    (tree / "long").write_bytes(b"x" * 700_000 + b"\n\n" + b"y" * 300_000 + b"\n" + b"z\n" * 200_000)
    (tree / "bytes").write_bytes(
        b"".join(bytes([128 + n, 225 - n % 30, 97, n % 64 + 128]) + b"\r\n" for n in range(100))
    )
    (tree / "empty").write_bytes(b"")
    (tree / "blank").write_bytes(b"\n")
    expected = stock.call("session_calls:stock_lines", path=str(tree))["lines"]
    assert len(expected) == 200_104
    assert ours.call("text_calls:pure_lines", path=str(tree), start="context") == expected


def test_the_rdd_has_few_partitions_unless_requested(ours, data):
    """Each partition is a Python task, and 48 small files do not need many."""
    for partitions, expected in ((None, 8), (20, 20)):
        got = ours.call(
            "text_calls:pure_partition_count", path=str(data / "siblings"), partitions=partitions, most_bytes="100000"
        )
        assert got == expected


@pytest.mark.parametrize("partitions", [1, 2, 7, 1000])
def test_partitions_do_not_exceed_the_requested_number(ours, data, partitions):
    got = ours.call("text_calls:partition_count", path=str(data / "siblings"), partitions=partitions)
    assert got == min(partitions, 48)


def test_small_files_share_partitions(ours, data):
    assert ours.call("text_calls:partition_count", path=str(data / "siblings"), partitions=None) == 2


def test_the_requested_number_of_partitions_also_holds_for_large_files(stock, ours, data):
    path = str(data / "sizes")
    for partitions in (1, 2):
        got = ours.call("text_calls:with_small_partitions", path=path, partitions=partitions)
        assert got == {"partitions": partitions, "lines": stock.call("session_calls:stock_lines", path=path)["lines"]}


def test_a_file_larger_than_a_partition_is_split(stock, ours, data):
    """With partitions of 100 KB, Spark splits each of the three files of some 230 KB."""
    path = str(data / "sizes")
    got = ours.call("text_calls:with_small_partitions", path=path)
    assert got["partitions"] > 3
    assert got["lines"] == stock.call("session_calls:stock_lines", path=path)["lines"]


def test_large_files_of_any_name(stock, ours, data):
    """Spark reads them, but would interpret some of these names as patterns or escapes."""
    tree = data / "large-names"
    names = [
        "[ab]",
        "a",
        "{a,b}",
        "star*",
        "starred",
        "what?",
        "whats",
        "two words",
        "100%",
        "%20",
        "a%2Fb",
        "back\\slash",
        "[x",
        "k=1",
        "é",
    ]
    for number, name in enumerate(names):
        (tree / f"d{name}").mkdir(parents=True)
        (tree / f"d{name}" / name).write_text("".join(f"{number} {line}\n" for line in range(20_000)))
        (tree / f"d{name}" / f"small{name}").write_text(f"small {number}\n")
    expected = stock.call("session_calls:stock_lines", path=str(tree))["lines"]
    assert len(expected) == len(names) * 20_001
    got = ours.call("text_calls:with_small_partitions", path=str(tree))
    assert got["lines"] == expected
    assert got["partitions"] > len(names)


@pytest.mark.parametrize(
    "tree", ["layouts/text/nested", "layouts/text/hive", "directories", "compressed", "checksums/good"]
)
def test_input_file_name_is_that_of_stock_spark(stock, ours, data, tree):
    for session in (stock, ours):
        session.ask("text_calls:input_files", path=str(data / tree), ours=session is ours)
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected
    assert actual == expected


@pytest.mark.parametrize("tree", ["layouts/text/nested", "endings", "compressed", "sizes"])
def test_input_metrics_are_those_of_stock_spark(stock, ours, data, tree):
    for session in (stock, ours):
        session.ask("text_calls:read_metrics", path=str(data / tree), ours=session is ours)
    expected, actual = stock.answer(), ours.answer()
    assert expected["bytes"] == sum(file.stat().st_size for file in (data / tree).rglob("*") if file.is_file())
    assert actual == expected


@pytest.mark.parametrize("path", ["nowhere", "forbidden/directory", "forbidden/file", "checksums"])
def test_errors_are_those_of_spark(stock, ours, data, path):
    expected = stock.call("text_calls:error_of_stock", path=str(data / path))
    assert "message" in expected
    assert ours.call("text_calls:error_of_read_text", path=str(data / path)) == expected


@pytest.mark.parametrize("partitions", [0, -1])
def test_a_number_of_partitions_must_be_positive(ours, data, partitions):
    assert (
        ours.call("text_calls:refused", path=str(data / "siblings"), partitions=partitions)
        == f"ValueError: partitions must be positive: {partitions}"
    )


@pytest.mark.parametrize("partitions", [None, 3])
def test_without_the_jar_spark_reads_with_a_warning(stock, ours, data, partitions):
    path = str(data / "layouts" / "text" / "nested")
    got = stock.call("text_calls:warned_of", path=path, partitions=partitions)
    assert len(got["warnings"]) == 2 and all(
        "Millstream's jar is not in the session's JVM" in text for text in got["warnings"]
    )
    expected = ours.call("text_calls:warned_of", path=path, partitions=partitions)
    assert expected["warnings"] == []
    assert got["lines"] == got["rdd"] == expected["lines"] == expected["rdd"] != []


def test_random_contents(stock, ours, data, seed):
    """Files of random bytes, with line breaks of all kinds at random positions, also across the reader's buffers."""
    rng = random.Random(seed)
    tree = data / f"random-contents-{seed}"
    tree.mkdir()
    for number in range(30):
        pieces = [
            b"\n",
            b"\r",
            b"\r\n",
            b"\xef\xbb\xbf",
            "é".encode(),
            b"\xff",
            b"a" * rng.choice([1, 7, 65_530, 65_536, 131_071]),
        ]
        (tree / f"f{number}").write_bytes(b"".join(rng.choices(pieces, [5, 3, 5, 1, 5, 1, 5], k=rng.randrange(60))))
    stock.ask("session_calls:stock_lines", path=str(tree))
    ours.ask("session_calls:read_text_lines", path=str(tree))
    assert stock.answer() == ours.answer()
