"""Indexes that `millstream index` makes are those that Spark looks for, whoever makes them first."""

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from compressed_files import command, wide_lines
from sessions import without_root_powers

MEGABYTE = 1 << 20
DIVIDES = {"spark.millstream.index.minSize": "0", "spark.sql.files.maxPartitionBytes": str(8 * MEGABYTE)}
NAMES = ["data", "a directory", "é+%20,=&"]


@pytest.fixture(scope="module")
def content():
    """40 MB, compressed."""
    return command("gzip", "-1")(wide_lines(Random(1), 40_000), Random(1))


@pytest.fixture
def file(content, tmp_path, request):
    directory = tmp_path / getattr(request, "param", "data")
    directory.mkdir()
    path = directory / "large file.gz"
    path.write_bytes(content)
    return path


def index(*arguments, cwd=None):
    """Runs `millstream index` in the environment of these tests."""
    folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SPARK_HOME": "",
        "PYSPARK_PYTHON": sys.executable,
    }
    line = [*without_root_powers(), folder / "millstream", "index", *map(str, arguments)]
    return subprocess.run(line, env=environment, cwd=cwd, capture_output=True, text=True)


def by_spark(*arguments):
    return index(
        "--spark",
        "--master=local[2]",
        "--conf=spark.ui.enabled=false",
        "--conf=spark.ui.showConsoleProgress=false",
        *arguments,
    )


def records(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def messages(result):
    """Without Spark's messages at its start."""
    return [line for line in result.stderr.splitlines() if line.startswith("millstream: ")]


def indexes_in(directory):
    """By name, the metadata that changes when an index is made again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.glob("*.gzidx")}


def check_divided(session, path, conf=()):
    got = session.call("compressed_calls:divided", path=str(path), conf={**DIVIDES, **dict(conf)})
    assert got.get("partitions", 0) > 1 and sum(got["rows"]) == 40_000 and len(got["rows"]) > 1, got


@pytest.mark.parametrize("file", NAMES, indirect=True)
def test_spark_finds_an_index_beside_the_file(ours, file):
    result = index("-v", file)
    assert result.returncode == 0, result.stderr
    made = indexes_in(file.parent / "_millstream")
    assert len(made) == 1
    check_divided(ours, file)
    assert indexes_in(file.parent / "_millstream") == made, "it was made again"


@pytest.mark.parametrize("file", NAMES, indirect=True)
def test_spark_finds_an_index_in_a_directory(ours, file, tmp_path):
    place = tmp_path / "indexes"
    result = index(f"--directory={place}", f"../{file.parent.name}/.//{file.name}", cwd=file.parent)
    assert result.returncode == 0, result.stderr
    made = indexes_in(place)
    assert len(made) == 1
    check_divided(ours, file, {"spark.millstream.index.directory": str(place)})
    assert indexes_in(place) == made, "it was made again"
    assert not (file.parent / "_millstream").exists()


def test_an_index_that_spark_has_made_is_kept(ours, file):
    assert ours.call("compressed_calls:divided", path=str(file), conf=DIVIDES)["partitions"] > 1
    made = indexes_in(file.parent / "_millstream")
    assert len(made) == 1
    (record,) = records(index("--json", file))
    assert (record["action"], record["lines"]) == ("keep index", 40_000)
    assert (index("--prune", file.parent).returncode, indexes_in(file.parent / "_millstream")) == (0, made)


def test_indexes_of_replaced_files_are_pruned_and_no_others(ours, file, content):
    assert ours.call("compressed_calls:divided", path=str(file), conf=DIVIDES)["partitions"] > 1
    (first,) = indexes_in(file.parent / "_millstream")
    file.write_bytes(content + content)
    os.utime(file, (1_600_000_000, 1_600_000_000))
    assert ours.call("compressed_calls:divided", path=str(file), conf=DIVIDES)["partitions"] > 1
    assert len(indexes_in(file.parent / "_millstream")) == 2
    (record,) = records(index("--prune", "--json", file.parent))
    assert (record["action"], record["reason"], Path(record["path"]).name) == ("remove", "the file has changed", first)
    assert len(indexes_in(file.parent / "_millstream")) == 1
    left = [path.name for path in (file.parent / "_millstream").iterdir() if first in path.name]
    assert not left, "Hadoop's checksums are removed, too"


def test_a_spark_job_makes_the_same_indexes(ours, file, tmp_path):
    (file.parent / "below").mkdir()
    damaged = file.parent / "below" / "damaged.gz"
    damaged.write_bytes(file.read_bytes()[:-100])
    result = by_spark("--json", "--dry-run", file.parent, "--min-size=1")
    assert result.returncode == 0, result.stderr
    assert sorted((record["action"], record["path"]) for record in records(result)) == sorted(
        ("would make index", f"file:{path}") for path in (file, damaged)
    )
    assert not (file.parent / "_millstream").exists()
    result = by_spark("--json", file.parent, tmp_path / "gone", "--min-size=1")
    assert result.returncode == 1
    made, wrong, gone = sorted(
        records(result), key=lambda record: ("error" in record, "no such" in record.get("error", ""))
    )
    assert (made["action"], made["path"], made["bytes"]) == ("make index", f"file:{file}", file.stat().st_size)
    assert "the file ends too early" in wrong["error"] and wrong["path"] == f"file:{damaged}"
    assert gone["error"] == "there is no such file or directory"
    assert len(messages(result)) == 2, result.stderr
    check_divided(ours, file)
    (by_job,) = (file.parent / "_millstream").glob("*.gzidx")
    bytes_of_job, name = by_job.read_bytes(), by_job.name
    by_job.unlink()
    assert index(file).returncode == 0
    (by_command,) = (file.parent / "_millstream").glob("*.gzidx")
    assert (by_command.name, by_command.read_bytes()) == (name, bytes_of_job)


def test_a_spark_job_passes_over_what_cannot_be_divided(file):
    (file.parent / "whole.zst").write_bytes(command("zstd", "-1")(wide_lines(Random(2), 40_000), Random(2)))
    result = by_spark("--json", "--min-size=0", file.parent)
    assert result.returncode == 0, result.stderr[-3000:]
    assert {Path(record["path"]).name: record["action"] for record in records(result)} == {
        file.name: "make index",
        "whole.zst": "skip",
    }
    result = by_spark(file.parent / "whole.zst")
    assert result.returncode == 1
    assert [line for line in messages(result) if "whole.zst': it cannot be split" in line]


@pytest.mark.parametrize("place", ["beside", "directory"])
def test_a_spark_job_prunes(file, tmp_path, place):
    where = [f"--directory={tmp_path / 'indexes'}"] if place == "directory" else []
    shelf = tmp_path / "indexes" if where else file.parent / "_millstream"
    other = file.parent / "other.gz"
    other.write_bytes(file.read_bytes())
    assert index(*where, file, other).returncode == 0
    abandoned = shelf / ".00000000-0000-0000-0000-000000000000"
    abandoned.write_bytes(b"x")
    os.utime(abandoned, (1_600_000_000, 1_600_000_000))
    other.unlink()
    before = set(shelf.iterdir())
    result = by_spark("--json", "--prune", "--dry-run", *where, file.parent)
    assert result.returncode == 0, result.stderr
    reasons = {Path(record["path"]).name: (record["action"], record["reason"]) for record in records(result)}
    assert len(reasons) == 2 and reasons[abandoned.name] == ("would remove", "it was never completed")
    assert set(shelf.iterdir()) == before
    result = by_spark("--prune", *where, file.parent)
    assert (result.returncode, messages(result)) == (0, [])
    assert [path.name for path in shelf.iterdir() if not path.name.endswith(".crc")] == [
        path.name for path in before if file.name in path.name
    ]


@pytest.mark.parametrize(("place", "mode"), [("beside", 0), ("directory", 0), ("directory", 0o444)])
def test_a_spark_job_passes_over_a_directory_that_it_may_not_read(file, tmp_path, place, mode):
    """It reports this, makes the other indexes, and removes none whose file it cannot see."""
    where = [f"--directory={tmp_path / 'indexes'}"] if place == "directory" else []
    locked, open_one = file.parent / "locked", file.parent / "open"
    for directory in (locked, open_one):
        directory.mkdir()
        (directory / "below.gz").write_bytes(file.read_bytes())
    (file.parent / "link.gz").symlink_to(locked / "below.gz")
    (open_one / "again").symlink_to(file.parent)
    assert index(*where, locked / "below.gz", file.parent / "link.gz").returncode == 0
    indexes = set(tmp_path.rglob("*.gzidx"))
    assert len(indexes) == 2
    locked.chmod(mode)
    try:
        made = by_spark("--json", *where, file.parent, "--min-size=1")
        pruned = by_spark("--json", "--prune", *where, file.parent)
    finally:
        locked.chmod(0o755)
    if mode == 0:
        # Otherwise it can be listed: Hadoop finds no files in it.
        assert made.returncode == 1, made.stderr
        assert f"file:{locked}" in {record["path"] for record in records(made) if "error" in record}, made.stdout
    assert {record["path"] for record in records(made) if record.get("action") == "make index"} >= {
        f"file:{file}",
        f"file:{open_one}/below.gz",
    }
    assert not [record for record in records(pruned) if record.get("action") == "remove"], pruned.stdout
    assert indexes <= set(tmp_path.rglob("*.gzidx"))


@pytest.mark.parametrize("where", ["beside", "directory"])
def test_patterns_find_no_index(stock, ours, file, where):
    """Issue 36: the pattern matches the hidden directory, and Spark read the indexes in it as if they were data."""
    top = file.parent
    (top / "below").mkdir()
    (top / "below/deeper.txt").write_text("a line\n")
    paths = [f"{top}/*", f"{top}/*/*"]
    expected = [stock.call("compressed_calls:counted", path=path) for path in paths]
    done = index("--min-size=0", *(["--directory", top / "indexes"] if where == "directory" else []), file)
    assert done.returncode == 0, done.stderr
    assert len(list(top.rglob("*.gzidx"))) == 1
    for session in (stock, ours):
        assert [session.call("compressed_calls:counted", path=path) for path in paths] == expected
