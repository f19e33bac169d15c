"""Compressed text on S3 and HDFS: the rows are the same as with stock Spark, or in the text itself, and tasks share
large files by an index that is kept there, whatever happens to objects and requests.

Run with `make test-group GROUP=compressed-remote`.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from compressed_calls import FORMS
from compressed_files import (
    Corpus,
    command,
    csv_text,
    deflated,
    json_text,
    log_lines,
    lz4,
    member,
    variants_of,
    wide_lines,
    zstd,
)
from remote_places import KINDS
from test_compressed import CODECS, READ_BY_STOCK, by_hadoop, check, is_read_by_stock

MEGABYTE = 1 << 20
LINES = 16_000
PIECES = {"spark.millstream.index.minSize": "0", "spark.sql.files.maxPartitionBytes": str(4 * MEGABYTE)}
READ_FORMS = (
    "text",
    "by file",
    "count",
    "contains",
    "count of contains",
    "sql",
    "whole",
    "table",
    "text file",
    "text file of 7",
    "csv",
    "json",
)
FEW = ("crlf", "log")
HDFS = pytest.mark.parametrize("place", ["hdfs"], indirect=True, scope="module")
S3 = pytest.mark.parametrize("place", ["s3"], indirect=True, scope="module")
numbers = itertools.count()


@pytest.fixture(scope="module", params=KINDS)
def place(request, places):
    return places[request.param]


@pytest.fixture(autouse=True)
def no_faults(place):
    yield
    if place.kind == "s3":
        place.bed.inject()
        place.bed.set_delay(0)


def upload(place, source, target):
    assert place.stock.call("compressed_calls:upload", source=str(source), target=target) > 0


# --- Rows


@pytest.fixture(scope="module")
def trees(place, tmp_path_factory):
    """The trees of a codec's corpus on the file system: the URLs of the plain and of the compressed one."""
    made = {}

    def trees(codec):
        if codec not in made:
            corpus, rng = Corpus(codec, tmp_path_factory.mktemp(codec)), Random(f"17 {codec}")
            texts = {
                "crlf": b"an o\r\nb\r\n\r\nc",
                "empty": b"",
                "mark": "\ufeffan o\ny\n".encode(),
                "log": log_lines(rng, 3000),
            }
            for variant, compress in variants_of(codec).items():
                for name, text in texts.items():
                    for directory in ("text", "few", f"table/k={name}") if name in FEW else ("text",):
                        corpus.add(f"{directory}/{variant}-{name}", text, compress(text, rng))
                for name, form in (("csv", csv_text), ("json", json_text)):
                    text = form(rng, 100)
                    corpus.add(f"{name}/{variant}", text, compress(text, rng))
            by_hadoop(place.stock, codec, corpus.of_hadoop())
            root = f"{place.url}/compressed/{codec}"
            upload(place, corpus.root, root)
            made[codec] = f"{root}/plain", f"{root}/compressed"
        return made[codec]

    return trees


@pytest.mark.parametrize(("codec", "form"), [(codec, form) for codec in CODECS for form in READ_FORMS])
def test_rows_are_those_of_stock_spark(place, trees, codec, form):
    """Those of the plain files, if stock Spark does not read the compressed ones."""
    assert form in FORMS
    plain, compressed = trees(codec)
    by_stock = compressed if is_read_by_stock(codec, form) else plain
    place.stock.ask("compressed_calls:read", form=form, path=by_stock)
    place.ours.ask("compressed_calls:read", form=form, path=compressed)
    check(form, place.stock.answer(), place.ours.answer(), is_plain=by_stock == plain)


@S3
@pytest.mark.parametrize("codec", READ_BY_STOCK)
@pytest.mark.parametrize("form", ["by file", "text file", "csv"])
def test_rows_by_s3as_own_client(place, trees, codec, form):
    _, compressed = trees(codec)
    expected = place.ours.call("compressed_calls:read", form=form, path=compressed)
    assert place.by_client.call("compressed_calls:read", form=form, path=compressed) == expected


# --- Indexes


@pytest.fixture(scope="module")
def large(place, tmp_path_factory):
    """Two .gz files of the same size with other text, 16 MB each, and digests of their lines."""
    top, bodies, found = tmp_path_factory.mktemp("large"), {}, {}
    for number, name in enumerate(("first", "second")):
        text = wide_lines(Random(number), LINES)
        (top / f"{name}.txt").write_bytes(text)
        bodies[name] = text, deflated(text, level=1, every=MEGABYTE)
    longest = max(len(body) for _, body in bodies.values())
    for name, (text, body) in bodies.items():
        (top / f"{name}.gz").write_bytes(member(text, body, comment=b"x" * (longest - len(body) + 1)))
        digest = place.stock.call("compressed_calls:divided", path=f"file:{top}/{name}.txt", conf={})["digest"]
        found[name] = top / f"{name}.gz", digest
    assert len({path.stat().st_size for path, _ in found.values()}) == 1
    return found


@pytest.fixture(scope="module")
def second(place):
    """Another session, whose driver has no index in memory."""
    return place.session("second", millstream=True)


@pytest.fixture
def directory(place):
    """A directory that no session has seen."""
    return f"{place.url}/large/{next(numbers)}"


@pytest.fixture
def file(place, large, directory):
    upload(place, large["first"][0], f"{directory}/large.gz")
    return f"{directory}/large.gz"


def divided(session, path, conf=PIECES):
    got = session.call("compressed_calls:divided", path=path, conf=conf)
    assert not {"error", "crash"} & got.keys(), got
    return got


def check_divided(session, path, digest, conf=PIECES):
    """Two reads; the second one has an index in any case."""
    assert divided(session, path, conf)["digest"] == digest
    got = divided(session, path, conf)
    assert got["digest"] == digest
    assert got["partitions"] > 1 and len(got["rows"]) > 1, got


def stored(place, directory):
    """All files below a directory, with the metadata that a rewrite changes."""
    return place.stock.call("compressed_calls:stored", path=directory)


def indexes(place, directory):
    return {path: status for path, status in stored(place, directory).items() if path.endswith(".gzidx")}


def blocks(text):
    return [text[start : start + 2 * MEGABYTE] for start in range(0, len(text), 2 * MEGABYTE)]


def frames(compress):
    return lambda text, rng: b"".join(compress(block, rng) for block in blocks(text))


DIVISIBLE = {
    "gz": command("gzip", "-1"),
    "zst": frames(zstd),
    "lz4": lz4,
    "bz2": command("bzip2", "-9"),
    "snappy": None,
}


@pytest.mark.parametrize("ending", DIVISIBLE)
def test_tasks_share_what_can_be_divided(place, second, directory, tmp_path, ending):
    text = wide_lines(Random(3), 2 * LINES)
    plain, packed = tmp_path / "plain.txt", tmp_path / f"file.{ending}"
    plain.write_bytes(text)
    if DIVISIBLE[ending]:
        packed.write_bytes(DIVISIBLE[ending](text, Random(3)))
    else:
        by_hadoop(place.stock, ending, {str(plain): str(packed)})
    upload(place, packed, f"{directory}/{packed.name}")
    digest = place.stock.call("compressed_calls:divided", path=f"file:{plain}", conf={})["digest"]
    check_divided(place.ours, f"{directory}/{packed.name}", digest)
    made = stored(place, directory)
    assert len(indexes(place, directory)) == (0 if ending == "bz2" else 1)
    check_divided(second, f"{directory}/{packed.name}", digest)
    assert stored(place, directory) == made, "the other session made it again"


def test_an_index_is_beside_the_file_and_serves_other_sessions(place, second, large, file, directory):
    check_divided(place.ours, file, large["first"][1])
    (index,) = indexes(place, directory)
    assert index.startswith(f"{directory}/_millstream/.large.gz.")
    made = stored(place, directory)
    assert set(made) == {file, index}, "nothing else is left"
    if place.kind == "s3":
        place.bed.reset_statistics()
    got = divided(second, file)
    assert got["partitions"] > 1 and got["digest"] == large["first"][1]
    assert stored(place, directory) == made, "it was made again"
    if place.kind == "s3":
        assert "PutObject" not in place.bed.statistics().by_kind


def test_who_counts_lines_makes_the_index(place, second, large, file, directory):
    for _ in range(2):
        assert place.ours.call("compressed_calls:counted", path=file, conf=PIECES) == LINES
    made = indexes(place, directory)
    assert len(made) == 1
    check_divided(second, file, large["first"][1])
    assert indexes(place, directory) == made


@pytest.mark.parametrize("where", ["there", "local"])
def test_an_index_is_kept_in_the_directory_that_is_set(place, large, file, directory, tmp_path, where):
    shelf = f"{directory}-indexes" if where == "there" else f"file:{tmp_path}/indexes"
    check_divided(place.ours, file, large["first"][1], PIECES | {"spark.millstream.index.directory": shelf})
    assert not indexes(place, directory)
    assert len(indexes(place, shelf)) == 1


def test_indexes_are_invisible(place, large, file, directory):
    place.stock.call("remote_calls:put", root=directory, files={"beside.txt": "a line\n"})
    before = place.ours.call("compressed_calls:visible", path=directory)
    check_divided(place.ours, file, large["first"][1])
    assert indexes(place, directory)
    for session in (place.stock, place.ours):
        assert session.call("compressed_calls:visible", path=directory) == before


def test_compaction_takes_no_index_for_data(place, large, file, directory):
    place.stock.call("remote_calls:put", root=directory, files={"beside.txt": "a line\n", "other.txt": "two\n"})
    check_divided(place.ours, file, large["first"][1])
    digest = divided(place.stock, directory, {})["digest"]
    made = place.ours.call("compact_calls:compact", src=directory, dst=f"{directory}-compact")
    assert "error" not in made, made
    compacted = place.stock.call("compressed_calls:divided", path=f"{directory}-compact", conf={})
    assert compacted["digest"] == digest
    assert not indexes(place, f"{directory}-compact")


# --- Objects that change


def test_a_file_of_the_same_size_is_another_file(place, second, large, file, directory):
    """The first is overwritten by another text of the same size, and that by the first."""
    check_divided(place.ours, file, large["first"][1])
    for name in ("second", "first", "second"):
        upload(place, large[name][0], file)
        for session in (place.ours, second):
            check_divided(session, file, large[name][1])
    assert 2 <= len(indexes(place, directory)) <= 4, (
        "one for each version, and S3 has the same one again for the same content"
    )


@pytest.mark.parametrize("ignores", ["false", "true"])
@pytest.mark.parametrize("name", ["second", "longer"])
def test_a_file_that_is_replaced_after_it_was_listed(place, large, file, tmp_path, name, ignores):
    """The rows come from the new one: versions are requested when a query is planned."""
    check_divided(place.ours, file, large["first"][1])
    source, digest = large["second"]
    if name == "longer":
        text = wide_lines(Random(9), LINES + 5000)
        source = tmp_path / "longer.gz"
        source.write_bytes(member(text, deflated(text, level=1, every=MEGABYTE)))
        (tmp_path / "longer.txt").write_bytes(text)
        digest = place.stock.call("compressed_calls:divided", path=f"file:{tmp_path}/longer.txt", conf={})["digest"]
    conf = PIECES | {"spark.sql.files.ignoreCorruptFiles": ignores}
    place.ours.call("compressed_calls:keep", name="replaced", path=file, conf=conf)
    upload(place, source, file)
    got = place.ours.call("compressed_calls:digest_of_kept", name="replaced", conf=conf)
    assert got == digest, got


def damaged(index, how):
    return {
        "half": index[: len(index) // 2],
        "another file's": index,
        "flipped": index[:50] + bytes([index[50] ^ 8]) + index[51:],
    }[how]


@pytest.mark.parametrize("how", ["half", "flipped", "another file's"])
def test_a_wrong_index_gives_no_wrong_row(place, second, large, file, directory, tmp_path, how):
    """It is made again if it is damaged; one of another file of the same size is an error that says what to do."""
    check_divided(place.ours, file, large["first"][1])
    (index,) = indexes(place, directory)
    source = index
    if how == "another file's":
        upload(place, large["second"][0], f"{directory}-other/large.gz")
        check_divided(place.ours, f"{directory}-other/large.gz", large["second"][1])
        (source,) = indexes(place, f"{directory}-other")
    place.stock.call("compressed_calls:download", path=source, target=str(tmp_path / "index"))
    (tmp_path / "wrong").write_bytes(damaged((tmp_path / "index").read_bytes(), how))
    upload(place, tmp_path / "wrong", index)
    got = second.call("compressed_calls:divided", path=file, conf=PIECES)
    if how == "another file's":
        assert "must be removed" in got["cause"], got
    else:
        assert got["digest"] == large["first"][1], got
        assert divided(second, file)["partitions"] > 1
        place.stock.call("compressed_calls:download", path=index, target=str(tmp_path / "replaced"))
        assert (tmp_path / "replaced").read_bytes() == (tmp_path / "index").read_bytes()


@HDFS
def test_an_index_of_another_user_is_not_used(place, second, large, file, directory):
    """Its rows could be fewer. That of the file's owner is used."""
    check_divided(place.ours, file, large["first"][1])
    (index,) = indexes(place, directory)
    own, _, _ = place.stock.call("compressed_calls:access", path=index)
    place.stock.call("compressed_calls:give", path=index, owner="mallory")
    check_divided(second, file, large["first"][1])
    assert place.stock.call("compressed_calls:access", path=index)[0] == own, "it was made again"
    for path in (file, index):
        place.stock.call("compressed_calls:give", path=path, owner="alice")
    third = place.session("third", millstream=True)
    check_divided(third, file, large["first"][1])
    assert place.stock.call("compressed_calls:access", path=index)[0] == "alice"


@HDFS
@pytest.mark.parametrize("of", ["directory", "file"])
def test_access_control_lists_open_no_index(place, large, file, directory, of):
    """The default one of the directory applies to the index, but not to the file, which was there before."""
    if of == "directory":
        place.stock.call("compressed_calls:admit", path=directory, user="mallory", scope="default")
    else:
        place.stock.call("compressed_calls:admit", path=file, user="mallory")
    check_divided(place.ours, file, large["first"][1])
    (index,) = indexes(place, directory)
    _, mode, entries = place.stock.call("compressed_calls:access", path=index)
    assert entries == []
    assert mode == ("rw-r--r--" if of == "directory" else "rw-------")


# --- Requests that fail

FAULTS = {
    "truncate": {"do": "truncate", "bytes": 70_000, "count": 2},
    "drop": {"do": "drop", "count": 2},
    "503": {"do": "answer", "status": 503, "code": "SlowDown", "count": 3},
    "500": {"do": "answer", "status": 500, "code": "InternalError", "count": 7},
    "a truncated one in two": {"do": "truncate", "bytes": 100_000, "every": 2, "count": 6},
}
PHASES = {
    "index is made": lambda session, file: None,
    "index is there": lambda session, file: divided(session, file),
}


@S3
@pytest.mark.parametrize("who", ["ours", "by_client"], ids=["native", "client"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("phase", PHASES)
def test_requests_that_fail_lose_no_row(place, large, file, phase, fault, who):
    session = getattr(place, who)
    PHASES[phase](session, file)
    place.bed.inject({"operation": "GetObject", "path": "large.gz", **FAULTS[fault]})
    assert divided(session, file)["digest"] == large["first"][1]
    assert place.bed.struck >= 1
    place.bed.inject()
    check_divided(session, file, large["first"][1])


@S3
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("form", ["text", "csv", "rdd"])
def test_requests_that_fail_lose_no_row_of_a_whole_read(place, directory, tmp_path, form, fault):
    """Of a file that no index divides, which several requests read."""
    read = {
        "text": "spark.read.text(root).selectExpr('hash(value)')",
        "csv": "spark.read.csv(root, schema='a string').selectExpr('hash(a)')",
        "rdd": "sc.textFile(root).map(hash)",
    }[form]
    file, _ = whole(place, directory, tmp_path)
    expected = place.stock.call("compressed_calls:hashed", path=f"file:{tmp_path}/whole.txt", code=read)
    place.bed.inject({"operation": "GetObject", "path": "whole.zst", **FAULTS[fault]})
    assert place.ours.call("compressed_calls:hashed", path=file, code=read) == expected
    assert 0 < place.bed.struck <= FAULTS[fault]["count"]


def whole(place, directory, tmp_path, megabytes=24):
    """A file of one frame and about so many compressed bytes, and the number of its lines."""
    rng = Random(6)
    text = b"".join(rng.randbytes(500).hex().encode() + b"\n" for _ in range(megabytes * 2000))
    (tmp_path / "whole.txt").write_bytes(text)
    (tmp_path / "whole.zst").write_bytes(zstd(text, rng))
    upload(place, tmp_path / "whole.zst", f"{directory}/whole.zst")
    return f"{directory}/whole.zst", megabytes * 2000


@S3
@pytest.mark.parametrize(
    "fault", [{"status": 403, "code": "ExpiredToken"}, {"status": 404, "code": "NoSuchKey"}], ids=["refused", "gone"]
)
@pytest.mark.parametrize("phase", PHASES)
def test_a_refusal_is_an_error_and_no_end_of_file(place, large, file, phase, fault):
    PHASES[phase](place.ours, file)
    place.bed.inject({"operation": "GetObject", "path": "large.gz", "do": "answer", **fault})
    got = place.ours.call("compressed_calls:divided", path=file, conf=PIECES)
    place.bed.inject()
    assert "error" in got and "large.gz" in got["message"] + got["cause"], got
    check_divided(place.ours, file, large["first"][1])


@S3
def test_an_index_that_cannot_be_read_or_written_costs_no_row(place, second, large, file, directory):
    place.bed.inject(
        {"operation": "PutObject", "path": "_millstream", "do": "answer", "status": 403, "code": "AccessDenied"}
    )
    check_divided(place.ours, file, large["first"][1])
    assert not indexes(place, directory)
    place.bed.inject(
        {"operation": "GetObject", "path": "_millstream", "do": "answer", "status": 403, "code": "AccessDenied"}
    )
    check_divided(second, file, large["first"][1])


# --- Requests in flight


@S3
@pytest.mark.parametrize("who", ["ours", "by_client"], ids=["native", "client"])
@pytest.mark.parametrize("form", ["text", "csv", "rdd"])
def test_a_whole_read_has_several_requests_in_flight(place, directory, tmp_path, form, who):
    """And makes one for each 8 MiB. A job decodes the file before, and finds that it is one frame: before the second
    count of lines.
    """
    read = {
        "text": "spark.read.text(root).selectExpr('count(*)')",
        "csv": "spark.read.csv(root, schema='a string').selectExpr('count(*)')",
        "rdd": "[sc.textFile(root).count()]",
    }[form]
    file, lines = whole(place, directory, tmp_path)
    size = (tmp_path / "whole.zst").stat().st_size
    place.bed.set_delay(200)
    for passes in (*([1] if form == "text" else []), 2, 1):
        place.bed.reset_statistics()
        got = getattr(place, who).call("compressed_calls:hashed", path=file, code=read)
        statistics = place.bed.statistics()
        assert str(lines) in str(got), got
        assert statistics.by_kind["GetObject"] == passes * -(-size // (8 * MEGABYTE)) > 2
        assert statistics.max_in_flight > 2


@S3
def test_the_job_that_makes_an_index_has_several_requests_in_flight(place, directory, tmp_path):
    rng = Random(7)
    text = b"".join(rng.randbytes(500).hex().encode() + b"\n" for _ in range(40_000))
    (tmp_path / "large.gz").write_bytes(command("gzip", "-1")(text, rng))
    upload(place, tmp_path / "large.gz", f"{directory}/large.gz")
    size = (tmp_path / "large.gz").stat().st_size
    place.bed.set_delay(200)
    place.bed.reset_statistics()
    outcome = place.ours.call("compressed_calls:indexed", path=directory)
    statistics = place.bed.statistics()
    assert outcome == ["make index"]
    # S3A looks for the index before.
    assert -(-size // (8 * MEGABYTE)) <= statistics.by_kind["GetObject"] <= -(-size // (8 * MEGABYTE)) + 1
    assert statistics.max_in_flight > 2


# --- Commands


def run(place, words, tmp_path):
    """Runs a command of `millstream` with the settings that reach the file system."""
    (tmp_path / "tmp").mkdir(exist_ok=True)
    settings = {
        **place.conf,
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={tmp_path}/tmp",
    }
    folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SPARK_HOME": "",
        "LC_ALL": "C.UTF-8",
        "PYSPARK_PYTHON": sys.executable,
    }
    line = [
        str(folder / "millstream"),
        words[0],
        "--master=local[2]",
        *(f"--conf={key}={value}" for key, value in settings.items()),
        *words[1:],
    ]
    return subprocess.run(line, env=environment, capture_output=True, text=True)


def records(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_millstream_index_makes_and_prunes_what_sessions_use(place, second, large, file, directory, tmp_path):
    result = run(place, ["index", "--spark", "--json", "--min-size=0", directory], tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    assert [(record["action"], record["path"]) for record in records(result)] == [("make index", file)]
    made = stored(place, directory)
    assert len(indexes(place, directory)) == 1
    got = divided(second, file)
    assert got["partitions"] > 1 and got["digest"] == large["first"][1]
    assert stored(place, directory) == made, "it was made again"
    upload(place, large["second"][0], file)
    check_divided(second, file, large["second"][1])
    result = run(place, ["index", "--spark", "--json", "--prune", directory], tmp_path)
    assert result.returncode == 0, result.stderr[-3000:]
    assert [(record["action"], record["reason"]) for record in records(result)] == [("remove", "the file has changed")]
    check_divided(second, file, large["second"][1])
    assert len(indexes(place, directory)) == 1


def check_formats(rows, lines):
    """Those of none and gz, of one round each, with right rows."""
    runs = {(row["format"], row["job"], row["engine"]) for row in rows}
    assert runs >= {(format, "read", engine) for format in ("none", "gz") for engine in ("stock", "millstream")}
    assert {(row["rows"], row["problem"]) for row in rows} == {(lines, None)}, rows


def test_formats_of_a_path_there(place, file, directory, tmp_path):
    """By the command, which also measures on the same file system; nothing is left there."""
    scratch = f"{directory}-scratch"
    place.stock.call("remote_calls:make_directory", path=scratch)
    result = run(
        place, ["formats", "--json", "--codecs=none,gz", "--rounds=1", f"--also={scratch}", directory], tmp_path
    )
    assert result.returncode == 0, result.stderr[-3000:]
    found = json.loads(result.stdout)
    assert found["sample"]["lines"] == LINES and found["sample"]["files"] == 1
    check_formats(found["rows"], LINES)
    assert {row["source"] for row in found["rows"]} == {"local", scratch}
    assert stored(place, scratch) == {}
    assert set(stored(place, directory)) == {file}
    assert not [path for path in (tmp_path / "tmp").iterdir() if path.name.startswith("millstream-formats-")]


def test_formats_in_a_session(place, file):
    done = place.ours.call("formats_calls:formats", path=file, codecs=["none", "gz"], rounds=1)
    assert "error" not in done, done
    check_formats(done["rows"], LINES)
