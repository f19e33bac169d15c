"""`millstream.sync` between local directories, HDFS and S3: what is copied, kept and refused.

Run with `make test-group GROUP=sync-spark`.
"""

import http.server
import os
import random
import subprocess
import threading
import urllib.parse
from pathlib import Path

import bucket_bed
import pyspark
import pytest
import sync_trees
from bed_jars import s3a_jars
from latency_mount import LatencyMount
from sessions import Session
from sync_stores import Remote, allowed_in


@pytest.fixture(scope="module", params=["hdfs", "s3"])
def remote(request, places):
    return Remote(places[request.param])


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
    # HDFS stores milliseconds; S3 has no times of directories.
    assert {name: about[4] for name, about in sync_trees.snapshot(back, unit_ns=10**6).items() if about[5]} == {
        name: about[4] for name, about in sync_trees.snapshot(source, unit_ns=10**6).items() if about[5]
    }
    again = remote.sync(there, back, delete=True)
    assert nothing_happens(again), again


def test_mutated_copies_are_repaired(remote, local, seed):
    source, there, other = local / "source", remote.new(), local / "other"
    sync_trees.make(source, seed, allowed=allowed_in(remote.kind), links=False)
    sync_trees.make(other, seed + 1, files=60, allowed=allowed_in(remote.kind), links=False)
    # Common entries have the same kind or different kinds.
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
    assert {name: about[1:3] for name, about in found.items()} == {
        name: [about[1] & 0o1777, about[4]] for name, about in here.items() if name != "."
    }
    some = next(path for path in sorted(source.rglob("*")) if path.is_file())
    some.chmod(0o600 if some.stat().st_mode & 0o777 != 0o600 else 0o644)
    done = remote.sync(source, there)
    assert (done["copied_files"], done["amended"]) == (0, 1), done


def test_lists_and_extended_attributes_of_hdfs(places, local):
    remote, source = Remote(places["hdfs"]), local / "source"
    (source / "d").mkdir(parents=True)
    (source / "d/f").write_text("1")
    (source / "g").write_text("2")
    one, other = remote.new(), remote.new()

    def extend(url, **wanted):
        remote.session.call("sync_calls:extend", url=url, **wanted)

    def extended(url):
        return {path: remote.session.call("sync_calls:extended", url=f"{url}/{path}") for path in ("", "d", "d/f", "g")}

    remote.sync(source, one)
    extend(f"{one}/d", acl="user:alice:r-x,default:user:bob:rwx", xattrs={"user.a": "1"})
    extend(f"{one}/d/f", acl="group:staff:r--", xattrs={"user.a": "1", "user.empty": ""})
    extend(one, xattrs={"trusted.root": "x"})
    wanted = extended(one)
    assert len(wanted["d"]["acl"]) > len(wanted["g"]["acl"]) == 0 and len(wanted["d/f"]["xattrs"]) == 2
    assert remote.sync(one, other)["problems"] == [] and all(not found["xattrs"] for found in extended(other).values())
    both = {"acls": True, "xattrs": True}
    done = remote.sync(one, other, **both)
    assert (done["problems"], done["copied_files"], done["amended"]) == ([], 0, 3), done
    assert extended(other) == wanted
    assert nothing_happens(remote.sync(one, other, delete=True, **both))
    extend(f"{other}/g", acl="user:mallory:rwx", xattrs={"user.surplus": "1"})
    extend(f"{one}/d/f", xattrs={"user.a": "2"})
    extend(f"{one}/d", acl="")
    assert remote.sync(one, other, **both)["amended"] == 3 and extended(other) == extended(one)
    third = remote.new()
    assert remote.sync(one, third, **both)["problems"] == [] and extended(third) == extended(one)
    assert remote.sync(one, local / "here", **both)["error"].endswith("support different kinds; omit the option")


def test_names_that_are_not_utf8_are_errors_in_a_store_and_are_deleted_here(remote, local):
    source, there, back = local / "source", remote.new(), local / "back"
    source.mkdir()
    (source / "a").write_text("1")
    Path(os.fsdecode(os.fsencode(source) + b"/bad\xff")).write_text("x")
    done = remote.sync(source, there)
    message = f"its name is not valid UTF-8, which {'s3a' if remote.kind == 's3' else 'hdfs'}: cannot represent"
    assert [(problem["path"], problem["message"]) for problem in done["problems"]] == [
        ("bad\\xff", f"IO: {message}")
    ], done
    assert done["copied_files"] == 1 and remote.contents(there).keys() == {"a"}
    assert remote.sync(source, back)["copied_files"] == 2
    assert remote.sync(there, back, delete=True)["deleted"] == 1
    assert os.listdir(back) == ["a"]


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


def test_the_server_copies_within_s3(places, local):
    s3, source = Remote(places["s3"]), local / "source"
    sync_trees.many_files(source, 40, 4)
    (source / "large").write_bytes(random.Random(1).randbytes(9 << 20))
    one, other = s3.new(), s3.new()
    s3.sync(source, one)
    s3.place.bed.reset_statistics()
    assert s3.sync(one, other)["copied_files"] == 41
    made = s3.place.bed.statistics().by_kind
    # Some more are renames in the run's working directory.
    assert made["CopyObject"] >= 41, made
    assert s3.contents(other) == sync_trees.contents(source)
    assert nothing_happens(s3.sync(source, other, delete=True))
    assert s3.session.call("sync_calls:metadata", url=f"{other}/d0/f0").keys() == {
        "header.millstream-mtime",
        "header.millstream-checksum",
    }


@pytest.mark.parametrize("kind", ["s3", "hdfs"])
def test_only_what_is_listed_goes_to_a_store_and_back(places, local, kind):
    remote, source = Remote(places[kind]), local / "source"
    sync_trees.many_files(source, 40, 4)
    (source / "d1/below").mkdir()
    (source / "d1/below/f").write_text("1")
    (local / "list").write_text("d0/f4\nd1/\nd3\n")
    there = remote.new()
    expected = {"d0", "d0/f4", "d1", "d1/below", "d3", *(f"d1/f{number}" for number in range(1, 40, 4))}
    for to, found in (there, remote.contents), (local / "back", sync_trees.contents):
        origin = source if to == there else there
        done = remote.sync(origin, to, files_from=str(local / "list"))
        assert done["exit_code"] == 0 and found(to).keys() == expected, done
    remote.session.call("remote_calls:put", root=there, files={"d1/surplus/deep": "x", "d2/kept": "y"})
    done = remote.sync(source, there, files_from=str(local / "list"), delete=True)
    assert done["exit_code"] == 0 and remote.contents(there).keys() == expected | {"d2", "d2/kept"}, done
    assert nothing_happens(remote.sync(source, there, files_from=str(local / "list"), delete=True))


def test_a_file_or_an_object_is_one_request(places, local):
    s3, source, back = Remote(places["s3"]), local / "source", local / "back"
    sync_trees.many_files(source, 40, 4)
    (source / "large").write_bytes(random.Random(2).randbytes(9 << 20))
    there, checkpoint = s3.new(), local / "checkpoint"
    s3.place.bed.reset_statistics()
    assert s3.sync(source, there)["copied_files"] == 41
    made = s3.place.bed.statistics().by_kind
    # A large file is left to S3A; the mark in the destination is an object, too.
    assert made["PutObject"] in range(41, 44) and made["HeadObject"] < 10 and made["ListObjectsV2"] < 10, made
    s3.place.bed.reset_statistics()
    assert s3.sync(there, back, checkpoint=str(checkpoint))["copied_files"] == 41
    made = s3.place.bed.statistics().by_kind
    # One of them is empty.
    assert made["GetObject"] == 40 and made["HeadObject"] < 10, made
    assert sync_trees.contents(back) == sync_trees.contents(source)
    assert [(back / name).stat().st_mtime_ns for name in ("large", "d0/f0")] == [
        (source / name).stat().st_mtime_ns for name in ("large", "d0/f0")
    ]
    # By the engine and by the JVM alike.
    found = {
        path: checksum
        for path, (_, _, checksum) in s3.session.call("sync_calls:manifest", checkpoint=str(checkpoint)).items()
    }
    by_client = Remote(places["s3"])
    by_client.session = places["s3"].by_client
    again, slow = local / "again", local / "slow"
    assert by_client.sync(there, again, checkpoint=str(slow))["copied_files"] == 41
    assert {
        path: checksum
        for path, (_, _, checksum) in s3.session.call("sync_calls:manifest", checkpoint=str(slow)).items()
    } == found
    assert {name: about for name, about in sync_trees.snapshot(again).items() if about[5]} == {
        name: about for name, about in sync_trees.snapshot(back).items() if about[5]
    }


def test_a_large_object_is_read_in_parts(places, local):
    s3, source, checkpoint = Remote(places["s3"]), local / "source", local / "checkpoint"
    source.mkdir()
    (source / "large").write_bytes(random.Random(4).randbytes(70 << 20))
    there = s3.new()
    assert s3.sync(source, there)["exit_code"] == 0
    s3.place.bed.reset_statistics()
    s3.place.bed.set_delay(50)
    try:
        # The first is cut off, the second is requested too early.
        s3.place.bed.inject(
            {"operation": "GetObject", "do": "drop", "count": 1},
            {"operation": "GetObject", "do": "answer", "status": 503, "code": "SlowDown", "count": 1},
        )
        assert s3.sync(there, local / "back", checkpoint=str(checkpoint))["exit_code"] == 0
    finally:
        s3.place.bed.inject()
        s3.place.bed.set_delay(0)
    statistics = s3.place.bed.statistics()
    assert statistics.by_kind["GetObject"] == 5 and statistics.max_in_flight >= 3, statistics
    assert sync_trees.contents(local / "back") == sync_trees.contents(source)
    assert (local / "back/large").stat().st_mtime_ns == (source / "large").stat().st_mtime_ns
    ((_, _, checksum),) = s3.session.call("sync_calls:manifest", checkpoint=str(checkpoint)).values()
    by_client, slow = Remote(places["s3"]), local / "slow"
    by_client.session = places["s3"].by_client
    assert by_client.sync(there, local / "again", checkpoint=str(slow))["exit_code"] == 0
    assert [found[2] for found in s3.session.call("sync_calls:manifest", checkpoint=str(slow)).values()] == [
        checksum
    ], "the JVM's checksum of all"


def test_a_large_file_of_a_mount_that_waits_is_read_by_several_threads(ours, local):
    (local / "source").mkdir()
    (local / "source/large").write_bytes(random.Random(5).randbytes(100 << 20) * 4)
    with LatencyMount(local / "source", delay_us=2000) as mount:
        done = ours.call("sync_calls:sync", src=mount.path.as_posix(), dst=str(local / "back"))
        assert done["exit_code"] == 0, done
    # The kernel reads ahead for one thread, too, by at most a few requests.
    assert mount.statistics.max_in_flight > 8, mount.statistics.max_in_flight
    assert sync_trees.contents(local / "back") == sync_trees.contents(local / "source")


def test_without_native_requests_the_same_is_copied(places, local):
    s3, source = Remote(places["s3"]), local / "source"
    sync_trees.many_files(source, 40, 4)
    s3.session = places["s3"].by_client
    there = s3.new()
    assert s3.sync(source, there)["copied_files"] == 40
    # It makes no difference which of them has written, and which looks.
    assert nothing_happens(Remote(places["s3"]).sync(source, there, delete=True))
    assert s3.session.call("sync_calls:metadata", url=f"{there}/d0/f0").keys() == {
        "header.millstream-mtime",
        "header.millstream-checksum",
    }
    assert s3.sync(there, local / "back")["copied_files"] == 40
    assert sync_trees.contents(local / "back") == sync_trees.contents(source)


def test_a_full_disk_is_an_error_of_each_object(places, local):
    s3, source, full = Remote(places["s3"]), local / "source", local / "full"
    source.mkdir()
    (source / "small").write_bytes(b"1")
    (source / "large").write_bytes(random.Random(3).randbytes(3 << 20))
    there = s3.new()
    s3.sync(source, there)
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", full], check=True)
    try:
        done = s3.sync(there, full / "d")
        assert [(problem["path"], problem["operation"]) for problem in done["problems"]] == [("large", "copy")], done
        assert "No space left" in done["problems"][0]["message"] and os.listdir(full / "d") == ["small"], done
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.parametrize(
    "answer",
    [{"status": 403, "code": "AccessDenied"}, {"status": 501, "code": "NotImplemented"}],
    ids=lambda answer: answer["code"],
)
def test_where_the_server_does_not_copy_executors_do(places, local, answer):
    s3, source = Remote(places["s3"]), local / "source"
    sync_trees.many_files(source, 20, 2)
    one, other = s3.new(), s3.new()
    s3.sync(source, one)
    try:
        s3.place.bed.inject({"operation": "CopyObject", "do": "answer", **answer, "count": 1000})
        done = s3.sync(one, other)
    finally:
        s3.place.bed.inject()
    assert (done["exit_code"], done["copied_files"]) == (0, 20), done
    assert s3.contents(other) == sync_trees.contents(source)


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


def test_a_name_node_with_two_names_is_one(places, local):
    hdfs, source = Remote(places["hdfs"]), local / "source"
    sync_trees.many_files(source, 20, 2)
    there = hdfs.new()
    hdfs.sync(source, there)
    hdfs.sync(source, f"{there}/in/side")
    before = hdfs.contents(there)
    other = there.replace(hdfs.place.url, hdfs.place.bed.direct_url)
    assert other != there
    assert "is inside the destination" in hdfs.sync(f"{other}/in/side", there, delete=True)["error"]
    assert "is the source" in hdfs.sync(other, there, delete=True)["error"]
    for exclude in ([], ["*.tmp"]):
        refused = hdfs.sync(other, f"{there}/in/side", delete=True, exclude=exclude)
        assert "the source contains the destination: in/side/.psync" in refused["error"], refused
    assert hdfs.contents(there) == before


def test_owners_that_this_machine_does_not_know_are_left_alone(places, local):
    """HDFS gives files to the group `supergroup`."""
    hdfs, source, back = Remote(places["hdfs"]), local / "source", local / "back"
    sync_trees.many_files(source, 20, 2)
    there = hdfs.new()
    hdfs.sync(source, there, owner=False, group=False)
    done = hdfs.sync(there, back)
    assert (done["exit_code"], done["copied_files"]) == (0, 20), done
    assert nothing_happens(hdfs.sync(there, back, delete=True))


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
    assert (
        done["exit_code"] == 23
        and done["problems"][0]["path"] == "l"
        and "does not support symbolic links" in done["problems"][0]["message"]
    ), done
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


class Bucket(http.server.BaseHTTPRequestHandler):
    """A bucket whose keys no file system can have; versitygw keeps objects as files."""

    KEYS = ("a", "a/b", "c", "d/../e", "d/ok")

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = urllib.parse.parse_qs(url.query)
        if "list-type" in query:
            prefix, rest = query.get("prefix", [""])[0], "delimiter" in query
            keys = [key for key in self.KEYS if key.startswith(prefix)]
            below = sorted(
                {key[: key.index("/", len(prefix)) + 1] for key in keys if rest and "/" in key[len(prefix) :]}
            )
            objects = "".join(
                f'<Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>"{key[-1]}"</ETag><Size>1</Size></Contents>'
                for key in keys
                if not any(key.startswith(one) for one in below)
            )
            prefixes = "".join(f"<CommonPrefixes><Prefix>{one}</Prefix></CommonPrefixes>" for one in below)
            self.reply(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{objects}{prefixes}</ListBucketResult>")
        else:
            self.reply(200 if url.path.removeprefix("/both/") in self.KEYS else 404, "x")

    do_HEAD = do_GET

    def reply(self, status: int, body: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Length": len(body),
            "Content-Type": "application/xml",
            "ETag": f'"{self.path[-1]}"',
            "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
        }
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


def test_keys_that_are_no_paths_are_errors(local):
    target = local / "target"
    (target / "kept").mkdir(parents=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    conf = {
        "fs.s3a.endpoint": f"http://127.0.0.1:{server.server_port}",
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "a",
        "fs.s3a.secret.key": "b",
        "fs.s3a.connection.ssl.enabled": "false",
    }
    jars = ":".join(map(str, s3a_jars(pyspark.__version__)))
    settings = {f"spark.hadoop.{key}": value for key, value in conf.items()} | {"spark.driver.extraClassPath": jars}
    session = Session(local / "home", millstream=True, conf=settings)
    try:
        done = session.call("sync_calls:sync", src="s3a://both/", dst=str(target), delete=True)
    finally:
        session.close()
        server.shutdown()
    messages = {problem["path"]: problem["message"] for problem in done["problems"]}
    assert (
        messages.keys() == {"a", "a/b", "d"}
        and "both an object and a directory" in messages["a"]
        and "outside it" in messages["d"]
    ), done
    assert done["exit_code"] == 23 and done["deleted"] == 0 and (target / "kept").is_dir()
    assert (target / "c").read_text() == (target / "d/ok").read_text() == "x"
    assert not (target / "a").is_file()


def test_psync_on_spark_and_the_one_without_find_nothing_to_do_after_each_other(places, tmp_path):
    place = places["s3"]
    bucket = bucket_bed.Bucket(place.bed)
    source, other = tmp_path / "source", tmp_path / "other"
    sync_trees.many_files(source, 50, 5)
    (source / "large").write_bytes(os.urandom(10 << 20))
    (source / "d0/empty").mkdir()
    for number, by_spark in enumerate([True, False]):
        key = f"both{number}/{tmp_path.name}"
        url, s3a = f"s3://{bucket_bed.BUCKET}/{key}", f"{place.url}/{key}"
        if by_spark:
            assert sync_trees.sync(place.ours, source, s3a)["copied_files"] == 51
            assert bucket.psync("-ai", "--delete", f"{source}/", f"{url}/").stdout == b""
        else:
            bucket.psync("-a", f"{source}/", f"{url}/")
            done = sync_trees.sync(place.ours, source, s3a, delete=True)
            assert [done[what] for what in ("created", "copied_files", "amended", "deleted", "errors")] == [0] * 5, done
        bucket.psync("-a", f"{url}/", f"{other}{number}/")
        assert bucket_bed.files_of(tmp_path / f"other{number}") == bucket_bed.files_of(source)
