"""Large compressed files are divided among tasks by an index, which is never trusted more than the file.

Run with `make test-group GROUP=compressed`. MILLSTREAM_SEED=N repeats the random files and splits.
"""

import itertools
import os
import re
import shutil
import statistics
import subprocess
import zlib
from pathlib import Path
from random import Random

import pytest
from compressed_files import (
    ENDINGS,
    Corpus,
    bgzf,
    command,
    deflated,
    lz4,
    member,
    pzstd,
    random_text,
    seekable,
    texts,
    variants_of,
    wide_lines,
    zstd,
)
from sessions import Session
from slow_reads import GIGABYTE, write_long_line
from test_compressed import by_hadoop, is_read_by_stock, true_lines

MEGABYTE = 1 << 20
ALL_SIZES = {"spark.millstream.index.minSize": "0"}
PIECES = {"spark.sql.files.maxPartitionBytes": str(16 * MEGABYTE)}
LINES = 200_000
ROUNDS = 6


@pytest.fixture(scope="module")
def text():
    """200 MB."""
    return wide_lines(Random(1), LINES)


@pytest.fixture(scope="module")
def large(text, stock, tmp_path_factory):
    """The text as a .gz from the gzip command, another one of the same size, and their lines."""
    top = tmp_path_factory.mktemp("large")
    other = wide_lines(Random(2), LINES)
    bodies = [deflated(content, level=1, every=MEGABYTE) for content in (text, other)]
    longest = max(map(len, bodies))
    found = {}
    for name, content, body in (("first", text, bodies[0]), ("second", other, bodies[1])):
        # Headers fill up what one body has fewer.
        path = top / f"{name}.gz"
        path.write_bytes(member(content, body, comment=b"x" * (longest - len(body) + 1)))
        plain = top / f"{name}.txt"
        plain.write_bytes(content)
        found[name] = path, stock.call("compressed_calls:divided", path=str(plain), conf={})["digest"]
        plain.unlink()
    assert found["first"][0].stat().st_size == found["second"][0].stat().st_size > 4 * MEGABYTE
    return found


@pytest.fixture
def file(large, tmp_path):
    """A new directory with the large file, which no session has seen."""
    (tmp_path / "data").mkdir()
    return Path(shutil.copy2(large["first"][0], tmp_path / "data" / "large.gz"))


def divided(session, path, conf=PIECES):
    got = session.call("compressed_calls:divided", path=str(path), conf=conf)
    assert not {"error", "crash"} & got.keys(), got
    return got


def files_in(directory):
    """All but the checksums that Hadoop writes next to its files."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.suffix != ".crc")


def indexes_beside(file):
    return [path for path in files_in(file.parent / "_millstream") if path.name.startswith(f".{file.name}.")]


def is_balanced(got):
    return (
        got["partitions"] > 1
        and len(got["rows"]) == got["partitions"]
        and max(got["rows"]) < 1.5 * statistics.median(got["rows"])
    )


def check_divided(session, path, digest, conf=PIECES):
    """Two reads; the second one has an index in any case."""
    assert divided(session, path, conf)["digest"] == digest
    got = divided(session, path, conf)
    assert got["digest"] == digest
    assert is_balanced(got), got


def test_tasks_share_a_gzip_file_equally(ours, large, file):
    check_divided(ours, file, large["first"][1])


def blocks_of(text):
    """Of 4 MB each, as parallel compressors take them."""
    return [text[start : start + 4 * MEGABYTE] for start in range(0, len(text), 4 * MEGABYTE)]


def frames(compress):
    return lambda text, rng: b"".join(compress(block, rng) for block in blocks_of(text))


DIVISIBLE = {
    "gzip -1": ("gz", command("gzip", "-1")),
    "gzip members": ("gz", frames(command("gzip"))),
    "bgzf": ("gz", bgzf),
    "zstd frames": ("zst", frames(zstd)),
    "seekable zstd": ("zst", seekable),
    "pzstd": ("zst", frames(pzstd)),
    "lz4": ("lz4", lz4),
    "lz4 frames": ("lz4", frames(command("lz4", "-qzc", "-BD"))),
    "lz4 legacy": ("lz4", command("lz4", "-qzcl")),
    "bzip2": ("bz2", command("bzip2", "-9")),
    "bzip2 streams": ("bz2", frames(command("bzip2", "-1"))),
}


@pytest.mark.parametrize("form", DIVISIBLE)
def test_tasks_share_what_can_be_divided(stock, roomy, tmp_path, text, form):
    ending, compress = DIVISIBLE[form]
    some = text[: 64 * MEGABYTE].rpartition(b"\n")[0]
    (tmp_path / "plain").write_bytes(some)
    (tmp_path / f"file.{ending}").write_bytes(compress(some, Random(3)))
    digest = stock.call("compressed_calls:divided", path=str(tmp_path / "plain"), conf={})["digest"]
    check_divided(
        roomy["ours"],
        tmp_path / f"file.{ending}",
        digest,
        ALL_SIZES | {"spark.sql.files.maxPartitionBytes": str(8 * MEGABYTE)},
    )


def told_of(session, file, pattern):
    """The lines of the session's log that name the file."""
    return [
        line
        for line in session.log.read_text(errors="replace").splitlines()
        if file.name in line and re.search(pattern, line)
    ]


@pytest.fixture
def logging(top, tmp_path):
    """A session that logs Millstream's messages."""
    session = Session(tmp_path / "logging", millstream=True)
    session.call("remote_calls:log_level", levels={"org.apache.spark.sql.execution.datasources.millstream": "INFO"})
    yield session
    session.close()


def test_a_file_that_cannot_be_divided_is_told(logging, tmp_path, text):
    path = tmp_path / "single.zst"
    path.write_bytes(zstd(text[: 64 * MEGABYTE], Random(3)))
    got = divided(logging, path, ALL_SIZES | PIECES)
    assert got["partitions"] == 1
    assert told_of(logging, path, "recompress|rewrite it with"), "nothing says why one task reads it, and what to do"


def test_without_indexes_one_task_reads_a_file_and_the_log_says_so(logging, large, file):
    got = divided(logging, file, PIECES | {"spark.millstream.index.enabled": "false"})
    assert (got["partitions"], got["digest"]) == (1, large["first"][1])
    assert not indexes_beside(file)
    assert told_of(logging, file, "spark.millstream.index.enabled"), "nothing says why one task reads it"


def test_an_index_is_kept_beside_the_file_and_serves_other_sessions(ours, text, large, file, tmp_path):
    check_divided(ours, file, large["first"][1])
    (index,) = indexes_beside(file)
    assert files_in(file.parent) == [index, file], "nothing else is left"
    assert index.stat().st_size < len(text) // 1000
    made = index.stat().st_mtime_ns, index.stat().st_ino
    other = Session(tmp_path / "other", millstream=True)
    try:
        got = divided(other, file)
    finally:
        other.close()
    assert is_balanced(got) and got["digest"] == large["first"][1]
    assert (index.stat().st_mtime_ns, index.stat().st_ino) == made, "it was made again"


def test_who_counts_lines_makes_the_index_and_only_who_may_read_the_file_may_read_it(ours, text, large, file):
    file.chmod(0o600)
    for _ in range(2):
        assert ours.call("compressed_calls:counted", path=str(file)) == LINES
    (index,) = indexes_beside(file)
    assert index.stat().st_mode & 0o777 == 0o600
    check_divided(ours, file, large["first"][1])
    assert indexes_beside(file) == [index]


def test_the_group_of_a_file_may_read_the_index_and_no_other(ours, large, file):
    group = 12345 if os.geteuid() == 0 else os.getgroups()[-1]
    os.chown(file, -1, group)
    file.chmod(0o640)
    check_divided(ours, file, large["first"][1])
    (index,) = indexes_beside(file)
    assert (index.stat().st_gid, index.stat().st_mode & 0o777) == (group, 0o640)


@pytest.mark.parametrize("of", ["directory", "file"])
def test_access_control_lists_open_no_index(ours, large, file, of):
    """The default one of the directory applies to the index, but not to the file, which was there before."""
    file.chmod(0o640)
    entry = ["-d", "-m", "u:12345:r", file.parent] if of == "directory" else ["-m", "u:12345:r", file]
    subprocess.run(["setfacl", *entry], check=True)
    check_divided(ours, file, large["first"][1])
    (index,) = indexes_beside(file)
    assert index.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("directory", ["", "indexes"])
def test_a_name_that_looks_like_a_uri(ours, large, file, tmp_path, directory):
    named = file.rename(file.with_name("log-2026-01-01T00:00:00.gz"))
    conf = PIECES | ({"spark.millstream.index.directory": str(tmp_path / directory)} if directory else {})
    check_divided(ours, named, large["first"][1], conf)
    assert len(files_in(tmp_path / directory if directory else named.parent / "_millstream")) == 1


def test_an_index_is_kept_in_the_directory_that_is_set(ours, large, file, tmp_path):
    (tmp_path / "indexes").mkdir()
    file.parent.chmod(0o555)
    try:
        check_divided(
            ours, file, large["first"][1], PIECES | {"spark.millstream.index.directory": str(tmp_path / "indexes")}
        )
    finally:
        file.parent.chmod(0o755)
    assert files_in(tmp_path / "indexes")
    assert not indexes_beside(file)


def test_files_of_one_name_have_indexes_of_their_own(ours, large, tmp_path):
    conf = PIECES | {"spark.millstream.index.directory": str(tmp_path / "indexes")}
    paths = []
    for name, (path, _) in large.items():
        (tmp_path / name).mkdir()
        paths.append(Path(shutil.copy2(path, tmp_path / name / "same.gz")))
        os.utime(paths[-1], ns=(10**18, 10**18))
    for _ in range(2):
        assert [divided(ours, path, conf)["digest"] for path in paths] == [digest for _, digest in large.values()]


def test_a_directory_that_cannot_be_written_to(ours, large, file):
    file.parent.chmod(0o555)
    try:
        for _ in range(2):
            assert divided(ours, file)["digest"] == large["first"][1]
    finally:
        file.parent.chmod(0o755)
    assert not indexes_beside(file)


def test_counts_where_no_index_can_be_written(ours, file):
    """One task makes the first count. Its index is lost, so the driver gets one for the next."""
    file.parent.chmod(0o555)
    try:
        counts = [ours.call("compressed_calls:counted_by", path=str(file), conf=PIECES) for _ in range(3)]
    finally:
        file.parent.chmod(0o755)
    assert [lines for lines, _ in counts] == [LINES] * 3
    assert counts[0][1] == 1 and counts[1][1] == counts[2][1] > 1, counts


def test_a_query_does_not_fail_with_the_job_that_makes_indexes(tmp_path):
    """No index can be written, so its task returns it, and it is too large for this driver."""
    path = tmp_path / "data" / "large.gz"
    path.parent.mkdir()
    rng = Random(6)
    path.write_bytes(
        command("gzip", "-1")(b"".join(rng.randbytes(500).hex().encode() + b"\n" for _ in range(48_000)), rng)
    )
    session = Session(tmp_path / "small", millstream=True, conf={"spark.driver.maxResultSize": "16k"})
    path.parent.chmod(0o555)
    try:
        got = divided(session, path, ALL_SIZES | {"spark.sql.files.maxPartitionBytes": str(8 * MEGABYTE)})
    finally:
        path.parent.chmod(0o755)
        session.close()
    assert (got["partitions"], got["rows"]) == (1, [48_000]), got
    assert "Not all indexes of compressed files could be made" in session.log.read_text(errors="replace")


def test_indexes_are_invisible(roomy, large, file):
    stock, ours = roomy["stock"], roomy["ours"]
    (file.parent / "beside.txt").write_text("a line\n")
    before = ours.call("compressed_calls:visible", path=str(file.parent))
    check_divided(ours, file, large["first"][1])
    assert indexes_beside(file)
    for session in (stock, ours):
        assert session.call("compressed_calls:visible", path=str(file.parent)) == before


DIFFERENCES_NS = {"later": 3 * 10**17, "earlier": -3 * 10**17, "a second later": 10**9, "a millisecond later": 10**6}


@pytest.mark.parametrize("difference", DIFFERENCES_NS)
def test_a_file_of_the_same_size_is_another_file(ours, large, file, difference):
    """Only the time differs. The first is replaced, and its successor overwritten in place."""
    check_divided(ours, file, large["first"][1])
    time_ns = file.stat().st_mtime_ns
    for name in ("second", "first"):
        if name == "second":
            file.unlink()
        file.write_bytes(large[name][0].read_bytes())
        time_ns += DIFFERENCES_NS[difference]
        os.utime(file, ns=(time_ns, time_ns))
        check_divided(ours, file, large[name][1])


def test_no_row_is_lost_for_an_index_where_damage_is_ignored(ours, large, file):
    """Another file of the same size and time is not mistaken for a damaged one."""
    check_divided(ours, file, large["first"][1])
    time_ns = file.stat().st_mtime_ns
    file.write_bytes(large["second"][0].read_bytes())
    os.utime(file, ns=(time_ns, time_ns))
    got = divided(ours, file, PIECES | {"spark.sql.files.ignoreCorruptFiles": "true"})
    assert (got["partitions"], got["digest"]) == (1, large["second"][1])


def test_a_file_of_another_size_is_another_file(stock, ours, large, file):
    check_divided(ours, file, large["first"][1])
    shorter = wide_lines(Random(4), 50_000)
    (file.parent.parent / "plain").write_bytes(shorter)
    expected = stock.call("compressed_calls:divided", path=str(file.parent.parent / "plain"), conf={})["digest"]
    time_ns = file.stat().st_mtime_ns
    file.write_bytes(member(shorter, deflated(shorter, every=MEGABYTE)))
    os.utime(file, ns=(time_ns, time_ns))
    for _ in range(2):
        assert divided(ours, file, PIECES | ALL_SIZES)["digest"] == expected


@pytest.mark.parametrize("ignores", ["true", "false"])
def test_a_file_that_is_replaced_after_it_was_listed(ours, large, file, tmp_path, ignores):
    """The rows are those of the new one, as in stock Spark, also if damaged files are ignored."""
    check_divided(ours, file, large["first"][1])
    other = Path(shutil.copy(large["second"][0], tmp_path / "other.gz"))
    conf = PIECES | {"spark.sql.files.ignoreCorruptFiles": ignores}
    assert ours.call("compressed_calls:read_replaced", path=str(file), other=str(other), conf=conf) == [
        large["first"][1],
        large["second"][1],
    ]


def flipped(content, at):
    return content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :]


BAD_INDEXES = {
    "random bytes": lambda index: Random(5).randbytes(len(index)),
    "empty": lambda index: b"",
    "half": lambda index: index[: len(index) // 2],
    "without the last byte": lambda index: index[:-1],
    "longer": lambda index: index + b"\0",
    "twice": lambda index: index * 2,
    "ones": lambda index: index[:9] + b"\xff" * (len(index) - 9),
    "zeros": lambda index: index[:9] + bytes(len(index) - 9),
    **{
        f"a flipped bit at {part}": lambda index, part=part: flipped(index, int(len(index) * part))
        for part in (0, 0.01, 0.3, 0.7, 0.999)
    },
}


@pytest.fixture(scope="module")
def good_indexes(ours, large, tmp_path_factory):
    """The indexes of both large files."""
    indexes = {}
    for name, (path, digest) in large.items():
        copy = Path(shutil.copy2(path, tmp_path_factory.mktemp(name) / "large.gz"))
        check_divided(ours, copy, digest)
        (indexes[name],) = indexes_beside(copy)
    return indexes


@pytest.mark.parametrize("damage", BAD_INDEXES)
def test_an_index_that_is_damaged_is_not_used(ours, large, good_indexes, file, damage):
    """The file is a copy with the same time, so the index has the name that a session looks for; none has read this
    copy.
    """
    first = good_indexes["first"].read_bytes()
    bad = file.parent / "_millstream" / good_indexes["first"].name
    bad.parent.mkdir()
    bad.write_bytes(BAD_INDEXES[damage](first))
    for _ in range(2):
        assert divided(ours, file)["digest"] == large["first"][1]
    assert bad.read_bytes() == first, "it was made again"


def test_an_index_of_another_file_gives_no_row(ours, large, good_indexes, file):
    """It was copied to the name of this file's index."""
    bad = file.parent / "_millstream" / good_indexes["first"].name
    bad.parent.mkdir()
    shutil.copy2(good_indexes["second"], bad)
    got = ours.call("compressed_calls:divided", path=str(file), conf=PIECES)
    assert "must be removed" in got["cause"], got
    bad.unlink()
    assert divided(ours, file)["digest"] == large["first"][1], "it is removed"


STRANGER = 12345


@pytest.mark.parametrize("directory", ["", "indexes"])
def test_an_index_of_another_user_is_not_used(ours, large, good_indexes, file, tmp_path, directory):
    """Its rows could be fewer."""
    assert os.geteuid() == 0, "only root gives files away"
    good = good_indexes["first"].read_bytes()
    conf = PIECES | ({"spark.millstream.index.directory": str(tmp_path / directory)} if directory else {})
    check_divided(ours, Path(shutil.copy2(file, file.with_name("other.gz"))), large["first"][1], conf)
    (other,) = (tmp_path / directory).rglob("*.gzidx")
    planted = other.rename(other.with_name(other.name.replace("other.gz", "large.gz")))
    planted.write_bytes(good)
    os.chown(planted, STRANGER, -1)
    check_divided(ours, file, large["first"][1], conf)
    assert (planted.stat().st_uid, planted.read_bytes()) == (os.geteuid(), good), "it was made again"


def test_an_index_of_the_owner_of_the_file_is_used(ours, large, good_indexes, file):
    assert os.geteuid() == 0, "only root gives files away"
    index = file.parent / "_millstream" / good_indexes["first"].name
    index.parent.mkdir()
    shutil.copy(good_indexes["first"], index)
    for path in (file, index):
        os.chown(path, STRANGER, -1)
    check_divided(ours, file, large["first"][1])
    assert index.stat().st_uid == STRANGER


def test_no_index_behind_a_link_is_used_or_made(ours, large, good_indexes, file, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (file.parent / "_millstream").symlink_to(tmp_path / "elsewhere")
    check_divided(ours, file, large["first"][1])
    assert not list((tmp_path / "elsewhere").iterdir())


def test_an_index_is_found_by_its_name(ours, large, good_indexes, file):
    """Otherwise the indexes of the test above would not be looked at."""
    index = file.parent / "_millstream" / good_indexes["first"].name
    index.parent.mkdir()
    shutil.copy(good_indexes["first"], index)
    made = index.stat().st_mtime_ns
    assert is_balanced(divided(ours, file))
    assert indexes_beside(file) == [index] and index.stat().st_mtime_ns == made


@pytest.mark.parametrize("kind", ["a directory", "a link to nothing", "unreadable"])
def test_what_is_no_file_where_an_index_would_be(ours, large, good_indexes, file, kind):
    index = file.parent / "_millstream" / good_indexes["first"].name
    index.parent.mkdir()
    match kind:
        case "a directory":
            index.mkdir()
        case "a link to nothing":
            index.symlink_to("nowhere")
        case "unreadable":
            index.write_bytes(b"")
            index.chmod(0)
    for _ in range(2):
        assert divided(ours, file)["digest"] == large["first"][1]


def test_sessions_that_read_a_new_file_at_once(ours, large, file, tmp_path):
    others = [Session(tmp_path / f"other{number}", millstream=True) for number in range(2)]
    try:
        for session in (ours, *others):
            session.ask("compressed_calls:divided", path=str(file), conf=PIECES)
        answers = [session.answer() for session in (ours, *others)]
    finally:
        for session in others:
            session.close()
    assert [answer.get("digest") for answer in answers] == [large["first"][1]] * 3, answers
    (index,) = indexes_beside(file)
    assert files_in(file.parent) == [index, file]


@pytest.mark.parametrize("damage", ["corrupt", "truncated", "wrong checksum"])
def test_a_large_file_that_is_damaged_after_its_index_was_made(ours, large, file, damage):
    """Its size and time are as before, so the index is used; the checksums of the chunks detect it."""
    check_divided(ours, file, large["first"][1])
    before, content = file.stat(), bytearray(file.read_bytes())
    at = {"corrupt": len(content) // 2, "truncated": len(content) - 1, "wrong checksum": len(content) - 8}[damage]
    content[at] ^= 0x55
    with file.open("r+b") as out:
        out.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    got = ours.call("compressed_calls:divided", path=str(file), conf=PIECES)
    if damage == "corrupt":
        assert "error" in got and file.name in got["message"] + got["cause"], got
    else:
        assert got.get("digest") == large["first"][1] or file.name in got["message"] + got["cause"], got


@pytest.fixture
def session(tmp_path):
    session = Session(tmp_path / "session", millstream=True)
    yield session
    session.close()


def write_gzip(path, blocks):
    """One member."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    with path.open("wb") as out:
        out.writelines(map(compressor.compress, blocks))
        out.write(compressor.flush())


def test_more_than_4_gib_in_a_member(session, tmp_path):
    """The size at the end of a member is modulo 2**32."""
    path = tmp_path / "huge.gz"
    write_gzip(path, itertools.repeat((b"x" * 1023 + b"\n") * 1024, 5 * 1024))
    for _ in range(2):
        got = divided(session, path, {"spark.sql.files.maxPartitionBytes": str(256 * MEGABYTE)})
        assert sum(got["rows"]) == 5 * MEGABYTE
        assert got["digest"][0] == str(5 * MEGABYTE)
    assert is_balanced(got)


def test_a_line_of_a_gigabyte_is_read_with_a_gigabyte_of_heap(session, tmp_path):
    plain, path = tmp_path / "gigabyte", tmp_path / "gigabyte.gz"
    write_long_line(plain, GIGABYTE)
    with plain.open("rb") as content:
        write_gzip(path, iter(lambda: content.read(MEGABYTE), b""))
    plain.unlink()
    assert session.call("read_calls:long_line", path=str(path)) == {
        "count": 2,
        "longest": GIGABYTE,
        "found": 1,
        "filtered": "short",
    }


def random_file(rng, codec):
    """A text of a few bytes, or of several chunks of an index, and as a variant compresses it."""
    text = rng.choice(
        [
            lambda: random_text(rng, rng.randrange(3000)),
            lambda: rng.choice(list(texts(rng).values())),
            lambda: random_text(rng, rng.randrange(1, 200)) * rng.randrange(1, 30),
            lambda: wide_lines(rng, rng.randrange(20_000)),
        ]
    )()
    return text, rng.choice(list(variants_of(codec).values()))(text, rng)


@pytest.mark.parametrize("codec", ENDINGS)
def test_any_splits_give_the_lines(roomy, tmp_path, seed, codec):
    print("MILLSTREAM_SEED", seed)
    rng = Random(f"{seed} {codec}")
    for number in range(ROUNDS):
        check_splits(roomy, Corpus(codec, tmp_path / str(number)), rng)


def check_splits(roomy, corpus, rng):
    for number in range(rng.randrange(1, 8)):
        corpus.add(f"files/{number}", *random_file(rng, corpus.codec))
    by_hadoop(roomy["stock"], corpus.codec, corpus.of_hadoop())
    directories = {tree: tree / "files" for tree in (corpus.plain, corpus.compressed)}
    size = max(path.stat().st_size for path in directories[corpus.plain].iterdir())
    by_stock = directories[corpus.compressed if is_read_by_stock(corpus.codec, "text file") else corpus.plain]
    partitions = rng.randrange(1, 30)
    expected = roomy["stock"].call("compressed_calls:read_pieces", path=str(by_stock), conf={}, partitions=partitions)
    assert expected["by file"] == true_lines(directories[corpus.plain])
    for _ in range(3):
        conf = ALL_SIZES | {
            "spark.sql.files.maxPartitionBytes": str(size // rng.choice([1, 2, 3, 7, 40]) + rng.randrange(1, 100))
        }
        actual = roomy["ours"].call(
            "compressed_calls:read_pieces", path=str(directories[corpus.compressed]), conf=conf, partitions=partitions
        )
        assert actual == expected, f"{conf} {partitions}"
    shutil.rmtree(corpus.root)
