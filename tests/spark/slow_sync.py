"""`millstream.sync` between local directories, HDFS and S3, whatever happens to executors, drivers, requests and files meanwhile.

Run with `make test-group GROUP=sync-spark`.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest
import sync_trees
from clusters import SPECULATION, two_hosts, wait_for
from sessions import Session
from slow_compact import environment

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "testbed"))
from latency_mount import LatencyMount  # noqa: E402

TOOL = Path(os.environ.get("MILLSTREAM_PSYNC", ROOT / "target/release/psync"))


def allowed_in(kind: str):
    """Which names a file system can have, and Hadoop's class for it can express."""
    if kind == "hdfs":
        return lambda name: ":" not in name
    # XML cannot express control characters, and S3A takes them, and characters of two UTF-16 units, for others.
    return lambda name: all(" " <= char <= "\uffff" and char not in "\x7f\u0085\u2028" for char in name) and ":" not in name and "\\" not in name


class Remote:
    def __init__(self, place):
        self.place, self.kind, self.session = place, place.kind, place.ours
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"{self.place.url}/sync{os.getpid()}-{self.count}/tree ü"

    def sync(self, source, destination, **options):
        found = self.session.call("sync_calls:sync", src=str(source), dst=str(destination), **options)
        assert "crash" not in found, found["crash"]
        return found

    def contents(self, url: str) -> dict[str, str]:
        return {name: about[3] if about[0] == "file" else "directory" for name, about in self.walk(url).items()}

    def walk(self, url: str):
        found = self.session.call("sync_calls:walk", url=url)
        assert "crash" not in found, found["crash"]
        return found


@pytest.fixture(scope="module", params=["hdfs", "s3"])
def remote(request, places):
    return Remote(places[request.param])


@pytest.fixture
def local(tmp_path):
    tmp_path.chmod(0o755)
    return tmp_path


def nothing_happens(done) -> bool:
    return [done[key] for key in ("created", "copied_files", "amended", "deleted", "errors", "exit_code")] == [0] * 6


def test_local_trees_to_a_store_and_back(remote, local, seed):
    source, there, back = local / "source", remote.new(), local / "back"
    sync_trees.make(source, seed, allowed=allowed_in(remote.kind), links=False)
    (source / "large").write_bytes(random.Random(seed).randbytes(9 << 20))
    done = remote.sync(source, there, delete=True, verify=True)
    assert done["problems"] == [] and done["exit_code"] == 0, done
    assert remote.contents(there) == sync_trees.contents(source)
    again = remote.sync(source, there, delete=True)
    assert nothing_happens(again), again
    returned = remote.sync(there, back)
    assert returned["problems"] == [], returned
    assert sync_trees.contents(back) == sync_trees.contents(source)
    # Milliseconds are what HDFS has; S3 has no times of directories.
    assert {name: about[4] for name, about in sync_trees.snapshot(back, unit_ns=10**6).items() if about[5]} == \
        {name: about[4] for name, about in sync_trees.snapshot(source, unit_ns=10**6).items() if about[5]}
    again = remote.sync(there, back, delete=True)
    assert nothing_happens(again), again


def test_mutated_copies_are_repaired(remote, local, seed):
    source, there, other = local / "source", remote.new(), local / "other"
    sync_trees.make(source, seed, allowed=allowed_in(remote.kind), links=False)
    sync_trees.make(other, seed + 1, files=60, allowed=allowed_in(remote.kind), links=False)
    # What both have is of one kind or of another.
    for number, path in enumerate(sorted(source.rglob("*"))[:20]):
        place = other / path.relative_to(source)
        if not place.parent.is_dir() or place.exists():
            continue
        if number % 2:
            place.mkdir()
            (place / "inside").write_text("x")
        else:
            place.write_text("x")
    assert remote.sync(other, there)["errors"] == 0
    assert remote.contents(there) == sync_trees.contents(other)
    done = remote.sync(source, there, delete=True)
    assert done["problems"] == [], done
    assert remote.contents(there) == sync_trees.contents(source)
    assert nothing_happens(remote.sync(source, there, delete=True))


def test_attributes_on_hdfs(places, local, seed):
    remote, source = Remote(places["hdfs"]), local / "source"
    there = remote.new()
    sync_trees.make(source, seed, allowed=allowed_in("hdfs"), links=False)
    remote.sync(source, there)
    here = sync_trees.snapshot(source, unit_ns=10**6)
    found = remote.walk(there)
    assert {name: about[1:3] for name, about in found.items()} == {name: [about[1] & 0o1777, about[4]] for name, about in here.items() if name != "."}
    some = next(path for path in sorted(source.rglob("*")) if path.is_file())
    some.chmod(0o600 if some.stat().st_mode & 0o777 != 0o600 else 0o644)
    done = remote.sync(source, there)
    assert (done["copied_files"], done["amended"]) == (0, 1), done


def test_between_two_trees_of_a_store(remote, local, seed):
    source, one, other = local / "source", remote.new(), remote.new()
    sync_trees.make(source, seed, allowed=allowed_in(remote.kind), links=False)
    remote.sync(source, one)
    done = remote.sync(one, other, verify=True)
    assert done["problems"] == [], done
    assert remote.contents(other) == sync_trees.contents(source)
    assert nothing_happens(remote.sync(one, other, delete=True))
    # Its time came along.
    assert nothing_happens(remote.sync(source, other, delete=True))


def test_from_one_store_to_the_other(places, local):
    hdfs, s3 = Remote(places["hdfs"]), Remote(places["s3"])
    source = local / "source"
    sync_trees.make(source, 5, allowed=lambda name: allowed_in("s3")(name) and allowed_in("hdfs")(name), links=False)
    here, there = hdfs.new(), s3.new()
    hdfs.sync(source, here)
    # The session of S3 knows HDFS as well.
    assert s3.sync(here, there)["problems"] == []
    assert s3.contents(there) == sync_trees.contents(source)
    assert nothing_happens(s3.sync(here, there, delete=True))


def test_changes_that_keep_the_size_are_found(remote, local):
    source, there = local / "source", remote.new()
    source.mkdir()
    (source / "a").write_text("one")
    (source / "b").write_text("one")
    os.utime(source / "b", (1_000_000_000, 1_000_000_000))
    remote.sync(source, there)
    (source / "a").write_text("two")
    (source / "b").write_text("two")
    # It is older than its copy, as after mv.
    os.utime(source / "b", (1_100_000_000, 1_100_000_000))
    assert remote.sync(source, there)["copied_files"] == 2
    assert remote.contents(there) == sync_trees.contents(source)
    os.utime(source / "a", (1_200_000_000, 1_200_000_000))
    # Equal contents are found without a copy; S3 keeps the time that it has.
    assert remote.sync(source, there, checksum=True)["copied_files"] == 0


def test_objects_carry_time_and_checksum(places, local):
    s3, source = Remote(places["s3"]), local / "source"
    source.mkdir()
    (source / "a").write_text("1")
    os.utime(source / "a", ns=(1_500_000_000_123_456_789, 1_500_000_000_123_456_789))
    there = s3.new()
    s3.sync(source, there)
    found = s3.session.call("sync_calls:metadata", url=f"{there}/a")
    assert found == {"header.millstream-mtime": "1500000000.123456789", "header.millstream-checksum": "crc32c:90f599e3"}


def test_symbolic_links_are_errors_where_there_are_none(remote, local):
    source, there = local / "source", remote.new()
    source.mkdir()
    (source / "a").write_text("1")
    (source / "l").symlink_to("a")
    done = remote.sync(source, there)
    assert done["exit_code"] == 23 and done["problems"][0]["path"] == "l" and "has no symbolic links" in done["problems"][0]["message"], done
    assert remote.sync(source, there, links=False)["notices"] == ["skipping non-regular file: l"]


def test_an_empty_source_deletes_nothing(remote, local):
    source, there = local / "source", remote.new()
    (source / "empty").mkdir(parents=True)
    (source / "a").write_text("1")
    remote.sync(source, there)
    assert remote.contents(there).keys() == {"a", "empty"}
    nothing = local / "nothing"
    nothing.mkdir()
    done = remote.sync(nothing, there, delete=True)
    assert done["deleted"] == 0 and "the source is empty" in done["notices"][0]
    assert remote.contents(there).keys() == {"a", "empty"}
    missing = remote.sync(remote.new(), local / "back", delete=True)
    assert "there is no such directory" in missing["error"] and not (local / "back").exists()
