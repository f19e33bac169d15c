"""Compressed text compared with stock Spark: the rows, and the handling of damaged files."""

import bz2
import gzip
import hashlib
from random import Random

import pyspark
import pytest
from compressed_calls import FORMS, LINES_BY_SPARK, SHORTENED_FORMS, base_name
from compressed_files import (
    ENDINGS,
    HADOOP,
    USUAL,
    Corpus,
    build,
    damages_of,
    lines_of,
    log_lines,
    meant,
    mix,
    variants_of,
)

SEED = 17
CODECS = list(ENDINGS)
RDD_FORMS = ("text file", "text file of 7", "many by text file")
MIXED_FORMS = ("text", "by file", "count", "contains", "whole", "read_text")


def asked(roomy, call, **arguments):
    """The answers of both sessions, which run concurrently."""
    for session in roomy.values():
        session.ask(call, **arguments)
    answers = [session.answer() for session in roomy.values()]
    assert not any("crash" in answer for answer in answers), answers
    return answers


@pytest.fixture(scope="module")
def corpora(roomy, tmp_path_factory):
    """The corpus of each codec, and `mixed`; each is made when a test first uses it."""
    made = {}

    def corpus(codec):
        if codec not in made:
            made[codec] = Corpus(codec, tmp_path_factory.mktemp(codec))
            if codec == "mixed":
                mix([corpus(each) for each in CODECS], made[codec])
            else:
                build(made[codec], SEED)
                by_hadoop(roomy["stock"], codec, made[codec].of_hadoop())
        return made[codec]

    return corpus


def by_hadoop(stock, codec, files):
    if files:
        assert stock.call("compressed_calls:encode", codec=HADOOP[codec], files=files) is None


# Stock Spark returns no rows of LZ4 frames, without an error, and has no codec for Zstandard before 4.3.
READ_BY_STOCK = [codec for codec in CODECS if codec != "lz4" and (codec != "zst" or pyspark.__version__ >= "4.3")]


def is_read_by_stock(codec, form):
    """RDDs have no codec for Zstandard either."""
    return codec in READ_BY_STOCK and not (codec == "zst" and form in RDD_FORMS)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_stock_spark(roomy, corpora, codec, form):
    """Those of the plain files, if stock Spark does not read the compressed ones."""
    corpus, stock_path = corpora(codec), corpora(codec).compressed
    if not is_read_by_stock(codec, form):
        stock_path = corpus.plain
    roomy["stock"].ask("compressed_calls:read", form=form, path=str(stock_path))
    roomy["ours"].ask("compressed_calls:read", form=form, path=str(corpus.compressed))
    check(form, roomy["stock"].answer(), roomy["ours"].answer(), is_plain=stock_path == corpus.plain)


@pytest.mark.parametrize("form", MIXED_FORMS)
def test_rows_of_plain_and_compressed_files_in_a_directory(roomy, corpora, form):
    corpus = corpora("mixed")
    roomy["stock"].ask("compressed_calls:read", form=form, path=str(corpus.plain))
    roomy["ours"].ask("compressed_calls:read", form=form, path=str(corpus.compressed))
    check(form, roomy["stock"].answer(), roomy["ours"].answer(), is_plain=True)


def check(form, expected, actual, is_plain):
    for answer in (expected, actual):
        assert not (isinstance(answer, dict) and {"crash", "error"} & answer.keys()), answer
    assert expected
    if form == "whole" and is_plain:
        # An empty text is a row if its file is not empty.
        expected, actual = (
            {name: rows for name, rows in answer.items() if rows != [""]} for answer in (expected, actual)
        )
    assert actual == expected


@pytest.mark.parametrize("codec", READ_BY_STOCK)
def test_stock_spark_and_the_rules_of_lines_agree(roomy, corpora, codec):
    corpus = corpora(codec)
    expected = true_lines(corpus.plain / "text")
    assert roomy["stock"].call("compressed_calls:read", form="by file", path=str(corpus.compressed)) == expected


@pytest.mark.parametrize("codec", CODECS)
def test_lines_are_in_their_order(roomy, corpora, codec):
    """Here the lines are split in Python."""
    corpus = corpora(codec)
    assert roomy["ours"].call("compressed_calls:read", form="by file", path=str(corpus.compressed)) == true_lines(
        corpus.plain / "text"
    )


def true_lines(directory):
    """As `by_file` describes them."""
    files = {
        base_name(file.name): [described(line) for line in lines_of(file.read_bytes())] for file in directory.iterdir()
    }
    return {name: lines for name, lines in files.items() if lines}


def described(line):
    """As compressed_calls.LINE."""
    return hashlib.md5(line).hexdigest() if len(line) > 64 else line.hex().upper()


@pytest.mark.parametrize("codec", HADOOP)
def test_files_that_spark_has_written(roomy, tmp_path, codec):
    assert (
        roomy["stock"].call("compressed_calls:save_lines", path=str(tmp_path), codec=HADOOP[codec], count=30_000)
        is None
    )
    expected, actual = asked(roomy, "compressed_calls:lines_below", path=str(tmp_path))
    assert [len(lines) for lines in expected] == [60_000, 60_000]
    assert actual == expected


@pytest.fixture(scope="module")
def whole(roomy, tmp_path_factory):
    """A file of each codec that is not damaged, and its text."""
    made = {}

    def whole(codec):
        if codec not in made:
            rng = Random(f"{SEED} {codec}")
            plain, compressed = (tmp_path_factory.mktemp(codec) / name for name in ("plain", "compressed"))
            plain.write_bytes(text := log_lines(rng, 6000))
            if content := variants_of(codec)[USUAL[codec]](text, rng):
                compressed.write_bytes(content)
            else:
                by_hadoop(roomy["stock"], codec, {str(plain): str(compressed)})
            made[codec] = compressed.read_bytes(), text
        return made[codec]

    return whole


# Hadoop does not check the data around the blocks of these, and reads no LZ4 frames.
LENIENT = ("bz2", "snappy", "hadoop-lz4", "lz4")


@pytest.mark.parametrize(("codec", "damage"), [(codec, damage) for codec in CODECS for damage in damages_of(codec)])
def test_no_wrong_row_of_a_damaged_file(roomy, whole, tmp_path, codec, damage):
    """
    Millstream returns the rows of stock Spark, and an error where that returns an error. It may also refuse a file
    whose damage stock Spark does not notice. Of LZ4 frames, which stock Spark does not read, it returns the true rows
    or an error. Zeros after a gzip member are padding. If damage is ignored, it returns no fewer rows than stock Spark.
    """
    file, text = whole(codec)
    corpus = Corpus(codec, tmp_path)
    corpus.add("beside/good", text, file)
    for directory in ("alone", "beside"):
        corpus.add(f"{directory}/damaged", meant(damage, text), damages_of(codec)[damage](file, Random(damage)))
    roomy["ours"].ask("compressed_calls:read_damaged", path=str(corpus.compressed))
    true, true_files = roomy["stock"].call("compressed_calls:read_damaged", path=str(corpus.plain))
    given, given_files = true, {}
    if codec in READ_BY_STOCK:
        given, given_files = roomy["stock"].call("compressed_calls:read_damaged", path=str(corpus.compressed))
    answer = roomy["ours"].answer()
    assert "crash" not in answer, answer
    actual, actual_files = answer
    if codec == "gz" and damage in ("a zero after it", "zeros after it"):
        given = true
    may_fail = damage != "empty" and (codec in LENIENT or codec not in READ_BY_STOCK or given["text"] != true["text"])
    for form, rows in actual.items():
        if is_error(rows):
            assert may_fail, f"{form}: {rows}"
            assert f"damaged.{ENDINGS[codec]}" in rows["message"] + rows["cause"], f"{form}: {rows}"
        else:
            # Zeros are blocks of Hadoop without data.
            is_nothing = (codec, damage) == ("lz4", "zeros") and not (
                rows["rows"] if isinstance(rows, dict) and rows else rows
            )
            assert is_nothing or rows == (given if is_read_by_stock(codec, form) else true)[form], form
    assert not is_error(actual_files), actual_files
    assert actual_files["good"] == true_files["good"]
    some, given_some, all_lines = (
        actual_files.get("damaged", []),
        given_files.get("damaged", []),
        true_files["good"] * 2,
    )
    is_all_of_stock = some[: len(given_some)] == given_some
    assert is_all_of_stock or (codec in LENIENT and some == all_lines[: len(some)]), (
        f"with ignoreCorruptFiles: {len(some)}, stock {len(given_some)}"
    )


@pytest.mark.parametrize("rest", ["zeros", "junk", "a wrong checksum"])
@pytest.mark.parametrize("codec", ["gz", "bz2", "zst", "lz4"])
@pytest.mark.parametrize("lines", [100, 60_000])
def test_lines_of_what_is_whole_are_rows_if_damage_is_ignored(ours, tmp_path, codec, rest, lines):
    """Members, frames and blocks before the damage, in a small file and in one of several pieces."""
    rng, compress = Random(SEED), variants_of(codec)[USUAL[codec]]
    text = log_lines(rng, lines)
    whole, other = compress(text, rng), compress(b"other\n" * 10, rng)
    after = {
        "zeros": bytes(3000),
        "junk": b"junk" * 50,
        "a wrong checksum": damages_of(codec)["wrong checksum"](other, rng),
    }[rest]
    (tmp_path / f"file.{codec}").write_bytes(whole + after)
    for form in ("text", "csv"):
        got = ours.call("compressed_calls:read_ignoring_damage", form=form, path=str(tmp_path))
        assert got[:lines] == [line.decode() for line in lines_of(text)][:lines] and len(got) in (lines, lines + 10), (
            form
        )


@pytest.mark.parametrize("part_bytes", [1500, 40_000, 1 << 20])
@pytest.mark.parametrize("damage", ["junk", "a wrong checksum"])
@pytest.mark.parametrize("form", ["text", "csv"])
def test_damage_in_a_bz2_takes_no_line_of_a_sound_block(ours, tmp_path, form, damage, part_bytes):
    """However many tasks read it, also the last line, which has no end."""
    streams = [
        [f"{stream} {number} {Random(f'{stream} {number}').randbytes(20).hex()}" for number in range(900)]
        for stream in range(4)
    ]
    expected = [line for stream in streams for line in stream]
    content = [bz2.compress("".join(f"{line}\n" for line in stream).encode()) for stream in streams]
    content[3] = bz2.compress("\n".join(streams[3]).encode())
    if damage == "junk":
        content[0] += b"junk" * 50
    else:
        # Of the block. Its lines are rows, since it can be decoded, but the next line might have begun in it.
        content[0] = damages_of("bz2")["wrong checksum of a block"](content[0], Random(SEED))
        expected.remove(streams[1][0])
    (tmp_path / "file.bz2").write_bytes(b"".join(content))
    conf = {
        "spark.millstream.index.minSize": "0",
        "spark.sql.files.maxPartitionBytes": str(part_bytes * 8),
        "spark.sql.files.openCostInBytes": "0",
        "spark.millstream.read.openCostInBytes": "0",
    }
    assert ours.call("compressed_calls:read_ignoring_damage", form=form, path=str(tmp_path), conf=conf) == expected


FAILURES = {"no gzip": "ignoreCorruptFiles", "cut off": "ignoreCorruptFiles", "missing": "ignoreMissingFiles"}
"""What becomes of the second of three files, and the option that ignores it."""


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("form", LINES_BY_SPARK)
def test_a_failure_is_ascribed_to_the_file_that_has_it(roomy, tmp_path, form, failure, ignores):
    """And takes no row of the files before and after it, which the same task reads."""
    values = {name: [f"{name}{number}" for number in range(3)] for name in "abc"}
    for name, lines in values.items():
        lines = ["value" if form == "csv with a header" else lines[0], *lines[1:]]
        content = gzip.compress(
            "".join(f'{{"value": "{line}"}}\n' if form == "json" else f"{line}\n" for line in lines).encode()
        )
        # Of one size, so that they keep their order.
        (tmp_path / f"{name}.gz").write_bytes(
            {"no gzip": b"x" * len(content), "cut off": content[:9]}.get(failure, content) if name == "b" else content
        )
    removed = str(tmp_path / "b.gz") if failure == "missing" else None
    options = {FAILURES[failure]: "true"} if ignores else {"ignoreCorruptFiles": "false"}
    got = roomy["ours"].call(
        "compressed_calls:read_in_one_task", form=form, path=str(tmp_path), removed=removed, options=options
    )
    if ignores:
        skipped = 1 if form == "csv with a header" else 0
        assert got == values["a"][skipped:] + values["c"][skipped:]
    else:
        assert is_error(got)
        text = got["message"] + got["cause"]
        assert "b.gz" in text and "a.gz" not in text, got


@pytest.mark.parametrize("left", ["nothing", "a device", "whole members"])
@pytest.mark.parametrize("codec", ["gz", "bz2", "zst", "lz4"])
@pytest.mark.parametrize("form", SHORTENED_FORMS)
def test_a_file_that_became_shorter_is_an_error(ours, tmp_path, form, codec, left):
    """However well-formed the rest is. The lines of other files, and those before the cut, are rows with
    ignoreCorruptFiles.
    """
    rng, compress = Random(SEED), variants_of(codec)[USUAL[codec]]
    line = b'{"value": "7"}\n' if form == "json" else b"7\n"
    # The cut is within a line.
    members = [compress(line * 100 + line[:1], rng), compress(line[1:] + line * 50, rng)]
    at = {"nothing": 0, "a device": "/dev/null", "whole members": len(members[0])}[left]
    keys = (
        ["ignoreMissingFiles"] if form in ("text file", "whole") else ["ignoreMissingFiles", "ignoreCorruptFiles"]
    )  # an RDD has separate settings
    for conf in ({}, *({f"spark.sql.files.{key}": "true"} for key in keys)):
        for name in "abc":
            (tmp_path / f"{name}.{codec}").unlink(missing_ok=True)
            (tmp_path / f"{name}.{codec}").write_bytes(b"".join(members))
        got = ours.call(
            "compressed_calls:read_shortened",
            form=form,
            path=str(tmp_path),
            file=str(tmp_path / f"b.{codec}"),
            left=at,
            conf=conf,
        )
        if "spark.sql.files.ignoreCorruptFiles" in conf:
            assert got == 302 + (100 if left == "whole members" else 0), (conf, got)
        else:
            assert is_error(got) and f"b.{codec}" in got["message"] + got["cause"] and "shorter" in got["cause"], (
                conf,
                got,
            )


@pytest.mark.parametrize("ending", ["gz", "txt"])
@pytest.mark.parametrize("form", ["text", "count", "csv", "text file"])
def test_a_link_to_itself_is_a_missing_file(roomy, tmp_path, form, ending):
    """As in stock Spark."""
    for conf in ({}, {"spark.sql.files.ignoreMissingFiles": "true"}, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        answers = []
        for name, session in roomy.items():
            directory = tmp_path / f"{name}-{len(conf)}-{'Corrupt' in str(conf)}"
            directory.mkdir()
            files = [directory / f"{file}.{ending}" for file in "abc"]
            for file in files:
                file.write_bytes(gzip.compress(b"line\n" * 10) if ending == "gz" else b"line\n" * 10)
            got = session.call(
                "compressed_calls:read_shortened",
                form=form,
                path=str(directory),
                file=str(files[1]),
                left=str(files[1]),
                conf=conf,
            )
            answers.append((got.get("condition"), got["cause"].partition(":")[0]) if is_error(got) else got)
        assert answers[1] == answers[0] and (answers[0] == 20 or answers[0][1] == "java.io.FileNotFoundException"), conf


@pytest.mark.parametrize("form", ["text", "csv", "text file"])
def test_a_truncated_file_has_the_exception_of_stock_spark(roomy, tmp_path, form):
    directory = tmp_path / {"text": "text", "csv": "csv", "text file": "few"}[form]
    directory.mkdir()
    (directory / "file.gz").write_bytes(gzip.compress(b"line\n" * 100)[:-12])
    expected, actual = asked(roomy, "compressed_calls:read", form=form, path=str(tmp_path))
    assert is_error(expected) and is_error(actual)
    assert expected["cause"].partition(":")[0] == actual["cause"].partition(":")[0] == "java.io.EOFException"


def is_error(answer):
    return isinstance(answer, dict) and "error" in answer


@pytest.mark.parametrize("name", ["text.txt", "text.GZ", "text.gz.txt", "text", "text.gzip", "text.zstd"])
def test_the_ending_alone_tells_the_codec(roomy, tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(log_lines(Random(SEED), 100)))
    expected, actual = asked(roomy, "read_calls:rows_where", path=str(tmp_path), conditions=["true"])
    assert actual == expected


@pytest.mark.parametrize("codec", CODECS)
def test_missing_files_are_counted(roomy, whole, tmp_path, codec):
    file, text = whole(codec)
    paths = [tmp_path / f"{name}.{ENDINGS[codec]}" for name in ("kept", "removed")]
    for path in paths:
        path.write_bytes(file)
    got = roomy["ours"].call("read_calls:missing_files", path=str(tmp_path), removed=str(paths[1]))
    assert got == {"rows": len(lines_of(text)), "missing": 1}


@pytest.mark.parametrize("codec", READ_BY_STOCK)
def test_a_missing_file_fails_as_in_stock_spark(roomy, whole, tmp_path, codec):
    answers = []
    for session in roomy.values():
        path = tmp_path / f"file.{ENDINGS[codec]}"
        path.write_bytes(whole(codec)[0])
        answers.append(session.call("compressed_calls:read_removed", path=str(path)))
    assert is_error(answers[0])
    assert answers[1] == answers[0]
