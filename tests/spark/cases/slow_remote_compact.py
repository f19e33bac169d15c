"""`millstream compact` from and to S3 and HDFS: the lines and rows of the source, directory by directory, whatever
happens to requests, objects and drivers.

Run with `make test-group GROUP=remote`.
"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pyspark
import pytest
from bed_jars import s3a_jars
from clusters import SPECULATION, executors_of, two_hosts, wait_for
from hdfs_bed import LESS_DELAY, HdfsBed
from s3_bed import BUCKET, S3Bed
from sessions import Session
from slow_compact import command, environment, make_tree
from slow_compact import lines as lines_of_local

LEASE_S = 8
SMALL = 40
LINES = {
    "crlf.txt": "a\r\nb\r\n\r\nc",
    "empty.txt": "",
    "mark.txt": "\ufeffx\ny\n",
    "sp ace %é.txt": "z\n",
    "alone.csv": "1,2\n",
    "_hidden.txt": "no\n",
    ".dot": "no\n",
    "_SUCCESS": "",
    **{f"k={n % 3}/f{n:03d}.txt": f"{n}.1\n{n}.2" + "\n" * (n % 2) for n in range(SMALL)},
    **{f"k=1/j=é 1/f{n}.json": f'{{"n": {n}}}\n' for n in range(5)},
    "big/large.txt": "".join(f"line {n} {'x' * 100}\n" for n in range(200_000)),
    "big/small.txt": "s\n",
    "big/tiny.txt": "t",
}


class Place:
    """A file system with a stock session and one with Millstream."""

    def __init__(self, bed, url: str, conf: dict[str, str], classpath: list[Path], homes):
        self.bed, self.url, self.homes = bed, url, homes
        self.conf = {**conf, "spark.hadoop.fs.millstream.write.lease.ms": str(LEASE_S * 1000)}
        self.classpath = classpath
        for_sessions = {**self.conf, "spark.driver.extraClassPath": ":".join(map(str, classpath))}
        self.stock, self.ours = (
            Session(homes(name) / "home", millstream=name == "ours", conf=for_sessions) for name in ("stock", "ours")
        )
        self.count = 0

    def new(self, files: dict[str, str] | None = None) -> str:
        """A path that does not exist yet, or that has these files."""
        self.count += 1
        path = f"{self.url}/d{self.count}/tree"
        if files:
            self.stock.call("remote_calls:put", root=path, files=files)
        return path

    def lines(self, path: str):
        return self.stock.call("compact_calls:lines", path=path)

    def compact(self, src: str, dst: str, **options):
        return self.ours.call("compact_calls:compact", src=src, dst=dst, **options)

    def command(self, *arguments) -> list[str]:
        """The shell command, given the jars that the file system needs as users give them."""
        settings = {**self.conf, "spark.driver.extraClassPath": ":".join(map(str, self.classpath))}
        return command(*(f"--conf={key}={value}" for key, value in settings.items()), *arguments)

    def close(self):
        self.stock.close()
        self.ours.close()


@pytest.fixture(scope="module", params=["s3", "hdfs"])
def place(request, tmp_path_factory):
    if request.param == "s3":
        with S3Bed() as bed:
            found = Place(
                bed, f"s3a://{BUCKET}", bed.spark_conf(), s3a_jars(pyspark.__version__), tmp_path_factory.mktemp
            )
            yield found
            found.close()
    else:
        with HdfsBed() as bed:
            found = Place(bed, bed.url, LESS_DELAY, [], tmp_path_factory.mktemp)
            yield found
            found.close()


# S3 alone has versions, and requests that can be counted.
ON_S3 = pytest.mark.parametrize("place", ["s3"], indirect=True, scope="module")
ON_HDFS = pytest.mark.parametrize("place", ["hdfs"], indirect=True, scope="module")


@pytest.fixture
def s3(place):
    yield place
    place.bed.inject()


def test_lines_of_each_directory_are_those_of_the_source(place):
    source, target = place.new(LINES), place.new()
    expected = place.lines(source)
    dry = place.compact(source, target, dry_run=True, header=False)
    assert dry["left"] == [] and place.stock.call("remote_calls:missing", path=target)
    done = place.compact(source, target, header=False)
    assert done["left"] == [] and done["destination"] == target
    assert place.lines(target) == expected
    assert {key: done[key] for key in ("files", "bytes", "outputs", "kept", "merged")} == {
        key: dry[key] for key in ("files", "bytes", "outputs", "kept", "merged")
    }
    assert done["files"] == len(LINES) - 3 and done["outputs"] < 15
    again = place.compact(target, place.new(), header=False)
    assert (again["outputs"], again["kept"]) == (done["outputs"], done["outputs"])


def test_small_outputs_keep_the_order_of_names(place):
    source, target = place.new({f"f{n:03d}": f"{n}\n" for n in range(100)}), place.new()
    done = place.compact(source, target, target_size=40)
    assert done["outputs"] > 5
    contents = [bytes.fromhex(content).decode() for _, content in place.stock.call("compact_calls:files", path=target)]
    assert "".join(contents) == "".join(f"{n}\n" for n in range(100))


@pytest.mark.parametrize(
    "format, options, compaction",
    [
        ("csv", {"header": True}, {"header": True}),
        ("json", {}, {}),
        ("parquet", {}, {}),
        ("text", {"compression": "gzip"}, {}),
        ("text", {"compression": "bzip2"}, {"codec": "gzip"}),
        ("parquet", {}, {"codec": "gzip"}),
        ("text", {}, {"format": "parquet"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_rows_of_formats_are_those_of_the_source(place, format, options, compaction):
    source, target = place.new(), place.new()
    expressions = ["concat('line ', id) value"] if format == "text" else ["id", "concat('name ', id) name"]
    for k in range(2):
        place.stock.call(
            "compact_calls:write",
            path=f"{source}/k={k}",
            format=format,
            expressions=expressions,
            files=8,
            options=options,
        )
    done = place.compact(source, target, **compaction)
    assert done["left"] == [] and done["outputs"] == 2
    read = {"header": True} if "header" in options else None
    for k in range(2):
        expected = place.stock.call("compact_calls:rows", path=f"{source}/k={k}", format=format, options=read)
        assert (
            place.stock.call(
                "compact_calls:rows", path=f"{target}/k={k}", format=compaction.get("format", format), options=read
            )
            == expected
        )


def test_what_cannot_be_merged_is_left_or_copied(place):
    binary = {f"nul/{n}": f"\0{n}" for n in range(3)}
    source = place.new({"a.orc": "ORC", "b.avro": "Obj", "one.txt": "1\n", "two.txt": "2\n", **binary})
    left = place.compact(source, place.new())
    assert {group["reason"].rpartition(": ")[2] for group in left["left"]} == {
        "ORC files are not merged",
        "Avro files are not merged",
        "has a NUL byte near its beginning, so it is not a text file",
    }
    assert {group["directory"] for group in left["left"]} == {source, f"{source}/nul"}
    target = place.new()
    copied = place.compact(source, target, copy_left=True)
    assert copied["left"] == [] and sum(group["files"] for group in copied["copied"]) == 5
    found = dict(place.stock.call("compact_calls:files", path=target))
    assert {
        f"/{name}": text.encode().hex() for name, text in {"a.orc": "ORC", "b.avro": "Obj", **binary}.items()
    }.items() <= found.items()


def test_headers_that_differ_are_left(place):
    source = place.new({"a.csv": "x,y\n1,2\n", "b.csv": "x,z\n3,4\n"})
    dry, done = (place.compact(source, place.new(), header=True, dry_run=dry) for dry in (True, False))
    assert [group["reason"] for group in done["left"]] == [group["reason"] for group in dry["left"]]
    assert "header line differs" in done["left"][0]["reason"]


def test_refusals_name_the_path_and_the_way_out(place):
    source, full = place.new({"a": "1\n", "b": "2\n"}), place.new({"x": "y\n"})
    for arguments, words in (
        ({"dst": full}, ["not empty", full]),
        ({"dst": source}, ["is the source itself"]),
        ({"dst": f"{source}/in"}, ["is inside the source"]),
        ({"in_place": True}, [source, "new tree", "INSERT OVERWRITE"]),
        ({"src": f"{source}/none", "dst": place.new()}, ["there is no such directory"]),
        ({"src": f"{source}/a", "dst": place.new()}, ["not a directory"]),
        ({"dst": "gs://bucket/x"}, ["gs"]),
    ):
        for dry_run in (False, True):
            said = place.ours.call("compact_calls:compact", **{"src": source, "dry_run": dry_run, **arguments})
            assert all(word in said.get("error", "") for word in words), said
    for log in ("_delta_log/0.json", ".hoodie/x", "_spark_metadata/0", "metadata/version-hint.text"):
        table = place.new({"sub/a": "1\n", f"sub/{log}": "{}"})
        assert "use the table's own compaction" in place.compact(table, place.new())["error"]
    for log, part in (
        ("_delta_log/0.json", "k=1"),
        ("metadata/0-1.metadata.json", "data/k=1"),
        ("_spark_metadata/0", "k=1"),
        (".hoodie/x", "data"),
        ("snapshot/snapshot-1 manifest/manifest-1", "k=1/bucket-0"),
        ("offsets/0 commits/0", "sources/0"),
    ):
        table = place.new({f"{part}/a.txt": "1\n", f"{part}/b.txt": "2\n", **{name: "{}" for name in log.split()}})
        assert "whose log" in place.compact(f"{table}/{part}", place.new())["error"], log
    plain = place.new({"_unknown/x": "", "a.txt": "1\n", "b.txt": "2\n"})
    assert place.compact(plain, place.new())["outputs"] == 1, "a tree that is only read is warned of"
    begun = place.new({"a": "1\n", ".direct-writes/_00000000-0000-0000-0000-000000000000.begin": "x\n"})
    assert "direct writes has not ended" in place.compact(begun, place.new())["error"]


def test_local_files_to_a_remote_tree_and_back(place, tmp_path):
    source, there, back = tmp_path / "source", place.new(), tmp_path / "back"
    tmp_path.chmod(0o777)
    make_tree(source, 300)
    done = place.compact(str(source), there)
    assert done["left"] == [] and place.lines(there) == place.lines(str(source))
    returned = place.ours.call("compact_calls:compact", src=there, dst=str(back), target_size=500)
    assert returned["left"] == [] and returned["outputs"] == 6
    assert lines_of_local(back) == lines_of_local(source)


@ON_S3
def test_one_request_for_each_small_object(s3):
    source, target = s3.new({f"f{n:03d}": f"{n}\n" for n in range(200)}), s3.new()
    s3.bed.reset_statistics()
    s3.compact(source, target)
    requests = s3.bed.statistics().by_kind
    # The journal and the marker are read a few times.
    assert 200 <= requests["GetObject"] <= 210
    assert requests["UploadPart"] == requests["CompleteMultipartUpload"] == 1


@ON_S3
@pytest.mark.parametrize(
    "operation", ["GetObject", "UploadPart", "CreateMultipartUpload", "CompleteMultipartUpload", "PutObject"]
)
@pytest.mark.parametrize(
    "fault",
    [
        {"do": "truncate", "bytes": 1, "count": 3},
        {"do": "drop", "count": 2},
        {"do": "drop", "count": 2, "after": True},
        {"do": "answer", "status": 503, "code": "SlowDown", "count": 3},
        {"do": "answer", "status": 500, "code": "InternalError", "count": 3},
    ],
    ids=lambda fault: f"{fault['do']}-{fault.get('status', 'after' if fault.get('after') else '')}",
)
def test_requests_that_fail_lose_no_line(s3, operation, fault):
    files = {f"k={n % 4}/f{n:03d}": f"{n}\n" for n in range(40)}
    source, target = s3.new(files), s3.new()
    s3.bed.inject({"operation": operation, **fault})
    done = s3.compact(source, target)
    s3.bed.inject()
    assert done["left"] == [], done
    assert s3.lines(target) == s3.lines(source)


def while_held(place, skip: int, source: str, target: str, action):
    """Compacts; does something when the GET after `skip` others of an object called held.txt arrives, which then
    continues.
    """
    place.bed.inject({"operation": "GetObject", "path": "held.txt", "do": "hold", "skip": skip, "count": 1})
    place.ours.ask("compact_calls:compact", src=source, dst=target)
    while place.bed.held() == 0:
        time.sleep(0.02)
    action()
    place.bed.inject()
    return place.ours.answer()


REPLACED, LARGE = "new 1\nnew 2\nnew 3\n", "".join(f"old {n} {'x' * 1000}\n" for n in range(30_000))


@ON_S3
@pytest.mark.parametrize(
    "skip, text", [(0, "old 1\nold 2\n"), (0, LARGE), (2, LARGE)], ids=["small", "large", "large-partly-read"]
)
@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_an_object_that_changes_while_it_is_read_is_left(s3, change, skip, text):
    source, target = s3.new({"a/held.txt": text, "a/other.txt": "same\n", "b/x": "1\n", "b/y": "2\n"}), s3.new()

    def act():
        if change == "replaced":
            s3.stock.call("remote_calls:put", root=source, files={"a/held.txt": REPLACED})
        else:
            Path(s3.bed.data, source.removeprefix("s3a://"), "a/held.txt").unlink()

    done = while_held(s3, skip, source, target, act)
    assert [(group["directory"], group["files"]) for group in done["left"]] == [(f"{source}/a", 2)]
    reason = done["left"][0]["reason"]
    assert reason.startswith(f"{source}/a/held.txt: ")
    # Whether another part has been read by then is random.
    assert " changed" in reason or ((change, skip) == ("deleted", 0) and "No such file" in reason)
    assert s3.lines(target) == [["/b", "1"], ["/b", "2"]]


# Where the driver dies: an operation of S3, or a call to the name node, how many of them pass, and whether the
# compaction is committed then.
DEATHS_S3 = [
    ("GetObject", 30, False),
    ("CreateMultipartUpload", 3, False),
    ("UploadPart", 5, False),
    ("CompleteMultipartUpload", 0, True),
    ("CompleteMultipartUpload", 7, True),
]
DEATHS_HDFS = [
    ("create", 4, False),
    ("addBlock", 6, False),
    ("complete", 10, False),
    ("rename", 2, False),
    ("rename", 3, True),
    ("rename", 8, True),
]


@ON_S3
@pytest.mark.parametrize("operation, skip, is_committed", DEATHS_S3, ids=lambda value: str(value))
def test_killed_driver_on_s3(s3, operation, skip, is_committed):
    def await_death(process):
        s3.bed.inject({"operation": operation, "path": TREE, "do": "hold", "skip": skip, "count": 1})
        while s3.bed.held() == 0:
            assert process.poll() is None, "the request was not made"
            time.sleep(0.005)
        kill(process)
        s3.bed.inject()

    dies(s3, await_death, is_committed)


@ON_HDFS
@pytest.mark.parametrize("method, skip, is_committed", DEATHS_HDFS, ids=lambda value: str(value))
def test_killed_driver_on_hdfs(place, method, skip, is_committed):
    def await_death(process):
        place.bed.at_call(method, skip, lambda: kill(process))
        process.wait()

    dies(place, await_death, is_committed)


TREE, JOB = "tree", "00000000-0000-0000-0000-000000000000"


def ended(kind: str, outcome: str = "COMPLETE") -> dict[str, str]:
    """The journal of a table whose last statement with direct writes has ended."""
    return {f".direct-writes/_done-1-{kind}-{JOB}": f"{outcome}\n"}


def test_names_that_spark_ignores_are_no_data(place):
    # S3 leaves a tree with a directory that is named like a Parquet summary to Hadoop's listing.
    source, target = (
        place.new(
            {
                "a": "1\n",
                "b": "2\n",
                "_metadata/x": "3\n",
                "c._COPYING_": "no\n",
                "d._COPYING_/e": "no\n",
                "_d/e": "no\n",
            }
        ),
        place.new(),
    )
    done = place.compact(source, target)
    assert (done["left"], done["files"]) == ([], 3), done
    assert place.lines(target) == place.lines(source) == [["", "1"], ["", "2"], ["/_metadata", "3"]]


def test_an_empty_source_leaves_at_most_an_empty_destination(place):
    source, target = place.new({"_SUCCESS": ""}), place.new()
    done = place.compact(source, target)
    assert (done["left"], done["files"], done["outputs"]) == ([], 0, 0), done
    assert place.url.startswith("s3a:") or place.stock.call("remote_calls:missing", path=target)
    assert hidden_in(place, target) == []


@ON_S3
def test_credentials_for_the_tree_alone_suffice(s3):
    source, target = s3.new({"a": "1\n", "b": "2\n"}), s3.new()
    above = [source.removeprefix(f"s3a://{BUCKET}/").removesuffix(f"/{TREE}") + "/", ""]
    denied = {"do": "answer", "status": 403, "code": "AccessDenied"}
    s3.bed.inject(*({"path": f"/{BUCKET}/{prefix}.direct-writes", **denied} for prefix in above))
    done = s3.compact(source, target)
    assert s3.bed.struck >= 2 and done["left"] == [], done
    assert s3.lines(target) == [["", "1"], ["", "2"]]


def test_a_committed_compaction_is_reported_only_if_all_of_it_is_there(place):
    source = place.new({"a": "1\n", "b": "2\n"})
    mark = {".millstream-compact": f'{JOB}\n[]\n["part-1.txt","k=1/part-2.txt"]'}
    one, both = {"part-1.txt": "1\n"}, {"part-1.txt": "1\n", "k=1/part-2.txt": "2\n"}
    for files, words in (
        ({**one, **ended("into")}, ["1 of its 2 outputs are missing (k=1/part-2.txt)", "remove the directory"]),
        ({**both, "other": "x\n", **ended("into")}, ["1 files there are not its outputs (other)"]),
        ({**both, **ended("over", "LOST\nsome files")}, ["ended as LOST: some files"]),
        (both, ["not empty"]),
    ):
        said = place.compact(source, place.new({**mark, **files}))
        assert all(word in said.get("error", "") for word in words), said
    whole = place.new({**mark, **both, **ended("into")})
    assert place.compact(source, whole)["recovered"] == 2
    assert "not empty" in place.compact(source, whole)["error"]


def hidden_in(place, target: str) -> list[str]:
    return (
        []
        if place.stock.call("remote_calls:missing", path=target)
        else place.stock.call("remote_calls:hidden", path=target)
    )


@ON_S3
@pytest.mark.parametrize("where", ["", "/..", "/../.."])
def test_a_statement_that_overwrites_the_source_meanwhile_is_a_conflict(s3, where):
    source, target = s3.new({"held.txt": "1\n", "b": "2\n"}), s3.new()
    table = {"": source, "/..": source.rpartition("/")[0], "/../..": s3.url}[where]
    try:
        said = while_held(
            s3, 0, source, target, lambda: s3.stock.call("remote_calls:put", root=table, files=ended("over"))
        )
        assert f"another statement has overwritten {table}" in said["error"].replace(f"{s3.url}/ ", f"{s3.url} "), said
        assert hidden_in(s3, target) == []
        again = s3.compact(source, target)
        assert again["left"] == [] and s3.lines(target) == [["", "1"], ["", "2"]]
    finally:
        for name in ended("over"):
            Path(s3.bed.data, table.removeprefix("s3a://"), name).unlink()


@ON_S3
def test_a_statement_that_writes_while_the_source_is_listed_is_a_conflict(s3):
    source, target = s3.new({"a": "1\n", "b": "2\n"}), s3.new()
    # Only Millstream's listing of a tree asks for encoded keys.
    s3.bed.inject({"operation": "ListObjectsV2", "query": "encoding-type=url", "do": "hold", "count": 1})
    s3.ours.ask("compact_calls:compact", src=source, dst=target)
    deadline = time.monotonic() + 60
    while s3.bed.held() == 0:
        assert time.monotonic() < deadline, "the source was not listed"
        time.sleep(0.02)
    s3.stock.call("remote_calls:put", root=source, files=ended("into"))
    s3.bed.inject()
    assert "changed it while it was being listed" in s3.ours.answer()["error"]
    assert hidden_in(s3, target) == []
    assert s3.compact(source, target)["left"] == []


@ON_S3
def test_a_time_that_s3_states_less_exactly_is_no_change(s3):
    source, target = s3.new({"refused.txt": "1\n", "b": "2\n"}), s3.new()
    # Native code and the client are refused, so that S3A's own stream reads it.
    s3.bed.inject(
        {
            "operation": "GetObject",
            "path": "refused.txt",
            "do": "answer",
            "status": 403,
            "code": "AccessDenied",
            "count": 2,
        }
    )
    done = s3.compact(source, target)
    assert s3.bed.struck == 2 and done["left"] == [], done
    assert s3.lines(target) == [["", "1"], ["", "2"]]


@ON_S3
def test_a_task_that_cannot_write_is_repeated(s3):
    source, target = s3.new({f"k={n % 3}/f{n}": f"{n}\n" for n in range(9)}), s3.new()
    # S3A does not repeat such a request by itself.
    s3.bed.inject(
        {"operation": "UploadPart", "path": TREE, "do": "answer", "status": 403, "code": "AccessDenied", "count": 2}
    )
    run = s3.command("--master=local[2,4]", source, target, "--json")
    done = subprocess.run(run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert s3.bed.struck == 2 and done.returncode == 0, done.stderr
    assert s3.lines(target) == s3.lines(source)
    assert s3.stock.call("remote_calls:hidden", path=target) == [".direct-writes"]


@ON_S3
def test_contents_that_cannot_be_merged_are_not_read_again(s3):
    source, target = s3.new({"a": "\0", "b": "1\n"}), s3.new()
    s3.bed.reset_statistics()
    run = s3.command("--master=local[2,4]", source, target, "--json")
    done = subprocess.run(run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "has a NUL byte" in done.stdout, (done.stdout, done.stderr)
    assert s3.bed.statistics().by_kind["GetObject"] <= 10


@ON_S3
def test_a_driver_that_sleeps_past_its_lease_leaves_the_next_one_alone(s3):
    source, target = s3.new({"a": "1\n", "b": "2\n"}), s3.new()
    # Its outputs are made: it looks for the source's journal for the last time, before it marks the destination.
    journal = f"/{source.removeprefix('s3a://')}/.direct-writes"
    s3.bed.inject({"operation": "HeadObject", "path": journal, "do": "hold", "skip": 3, "count": 1})
    run = s3.command(source, target, "--json")
    process = subprocess.Popen(
        run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while s3.bed.held() == 0:
        assert process.poll() is None, "the request was not made"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGSTOP)
    try:
        s3.bed.inject()
        time.sleep(LEASE_S + 1)
        assert s3.compact(source, target)["left"] == []
    finally:
        os.killpg(process.pid, signal.SIGCONT)
    said = process.communicate()[1]
    assert process.returncode == 1 and "another compaction to it has begun" in said, said
    assert s3.lines(target) == [["", "1"], ["", "2"]]
    assert s3.stock.call("remote_calls:hidden", path=target) == [".direct-writes"]


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def dies(place, await_death, is_committed: bool):
    """A reader of the destination sees nothing before the commit, then whole outputs; the same command completes it."""
    files = {f"k={n % 10}/f{n:03d}": f"{n}\n" for n in range(60)}
    source, target = place.new({**files, "alone/kept.txt": "k\n", "left.orc": "ORC"}), place.new()
    expected = [line for line in place.lines(source) if line[0]]
    run = place.command(source, target, "--json")
    process = subprocess.Popen(
        run, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    await_death(process)
    assert process.returncode == -signal.SIGKILL, process.communicate()
    if not is_committed:
        refused = place.compact(source, target)
        assert "may still be writing to it" in refused["error"], refused
    seen = [] if place.stock.call("remote_calls:missing", path=target) else place.lines(target)
    assert len(seen) < len(expected) and set(map(tuple, seen)) <= set(map(tuple, expected))
    assert is_committed or not seen
    directories = {directory for directory, _ in seen}
    assert seen == [line for line in expected if line[0] in directories]
    time.sleep(LEASE_S + 1)
    done = place.compact(source, target)
    assert (done["recovered"], done["outputs"]) == ((11, 0) if is_committed else (0, 11)), done
    assert [group["reason"] for group in done["left"]] == ["ORC files are not merged"]
    assert place.lines(target) == expected
    assert "not empty" in place.compact(source, target)["error"]
    assert place.stock.call("remote_calls:hidden", path=target) in ([], [".direct-writes"])


@pytest.fixture(scope="module")
def cluster(place, tmp_path_factory):
    top = tmp_path_factory.mktemp("cluster")
    jars = ":".join(map(str, place.classpath))
    executors = {"spark.driver.extraClassPath": jars, "spark.executor.extraClassPath": jars}
    with two_hosts(top) as master:
        session = Session(
            top / "home", millstream=True, conf={**place.conf, **SPECULATION, **executors, "spark.master": master}
        )
        yield session
        session.close()


@ON_S3
@pytest.mark.parametrize("fault", ["killed", "slow"])
def test_a_compaction_survives_executors_that_stop(s3, cluster, fault):
    """All executors are killed during an upload; or one upload hangs until a speculative attempt has written the same
    output.
    """
    source, target = s3.new({f"k={n % 12}/f{n:03d}": f"{n}\n" for n in range(120)}), s3.new()
    expected = s3.lines(source)
    application = cluster.call("fault_calls:application")
    s3.bed.inject({"operation": "UploadPart", "do": "hold", "count": 1})
    cluster.ask("compact_calls:compact", src=source, dst=target)
    wait_for(lambda: s3.bed.held() == 1, "no upload begins")
    if fault == "killed":
        executors = executors_of(application)
        assert executors
        for pid in executors:
            os.kill(pid, signal.SIGKILL)
        s3.bed.inject()
    done = cluster.answer()
    assert (done.get("left"), done.get("outputs")) == ([], 12), done
    assert s3.lines(target) == expected
    if fault == "slow":
        assert s3.bed.struck == 1
        s3.bed.inject()
    wait_for(lambda: cluster.call("fault_calls:running_tasks") == 0, "a task does not end")
    assert s3.lines(target) == expected
    assert s3.stock.call("remote_calls:hidden", path=target) == [".direct-writes"]


def test_the_shell_command(place):
    source, target = place.new({"a": "1\n", "b": "2\n", "c.orc": "ORC"}), place.new()
    done = subprocess.run(
        place.command(source, target), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert (
        done.returncode == 1 and f"missing from {target}: 1 files in {source}: ORC files are not merged" in done.stderr
    ), done.stderr
    assert place.lines(target) == [["", "1"], ["", "2"]]
    refused = subprocess.run(place.command("--in-place", source), env=environment(), stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and refused.stderr.splitlines()[-1].startswith(f"millstream: {source}: "), (
        refused.stderr
    )
