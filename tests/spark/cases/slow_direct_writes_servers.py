"""Direct writes to S3 and HDFS through Spark: they write the same as stock Spark, and are exact whichever request fails
and whichever driver dies.

Run with `make test-group GROUP=writes-servers`; the servers are those of testbed/s3 and testbed/hdfs.
"""

import os
import signal
import time
from itertools import count

import pyspark
import pytest
from bed_jars import s3a_jars
from clusters import SPECULATION, two_hosts
from faults import settle
from hdfs_bed import HdfsBed
from s3_bed import BUCKET, S3Bed
from sessions import Session
from test_direct_writes import HIVE, KINDS, PARTITIONED, ROWS, WRITER, compared, creation

PARTITIONS = 6
PATIENCE_S = 300
OLD, NEW = [["old", PARTITIONS]], [["new", PARTITIONS]]
DIRECTORIES = count()


class S3:
    """The root for tables on S3, and how to end a driver there."""

    def __init__(self, bed):
        self.bed = bed
        self.root = f"s3a://{BUCKET}"

    def end_at(self, step, path, end):
        """Kills a running driver when a request arrives, before the server receives it or after it has executed it."""
        operation, part, skip, after = step
        where = "" if operation == "DeleteObjects" else f"{path.removeprefix('s3a:/')}/"
        self.bed.inject(
            {
                "operation": operation,
                "path": where if not part else part,
                "skip": skip,
                "count": 1,
                "do": "hold",
                "after": after,
            }
        )
        deadline = time.monotonic() + PATIENCE_S
        while not self.bed.held():
            assert time.monotonic() < deadline, step
            time.sleep(0.02)
        end()
        while self.bed.held():
            time.sleep(0.02)
        self.bed.inject()


class Hdfs:
    def __init__(self, bed):
        self.bed = bed
        self.root = bed.url

    def end_at(self, step, path, end):
        done = []
        self.bed.at_call(*step, lambda: done.append(end()))
        deadline = time.monotonic() + PATIENCE_S
        while not done:
            assert time.monotonic() < deadline, step
            time.sleep(0.02)


@pytest.fixture(scope="module")
def places():
    with S3Bed() as s3, HdfsBed() as hdfs:
        yield {"s3": S3(s3), "hdfs": Hdfs(hdfs)}


@pytest.fixture(scope="module")
def conf(places):
    return {
        "spark.millstream.write.enabled": "true",
        **places["s3"].bed.spark_conf(),
        "spark.driver.extraClassPath": ":".join(map(str, s3a_jars(pyspark.__version__))),
        "spark.hadoop.fs.millstream.write.lease.ms": "3000",
        # Retries after faults are quick, and sufficient in number.
        "spark.hadoop.fs.s3a.retry.interval": "50ms",
        "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
    }


@pytest.fixture(scope="module")
def ours(conf, tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("ours") / "home", millstream=True, conf={**conf, **HIVE})
    yield session
    session.close()


@pytest.fixture(scope="module")
def both(ours, conf, tmp_path_factory):
    stock = Session(tmp_path_factory.mktemp("stock") / "home", millstream=False, conf={**conf, **HIVE})
    yield {"stock": stock, "ours": ours}
    stock.close()


@pytest.fixture(params=["s3", "hdfs"])
def place(request, places):
    return places[request.param]


@pytest.fixture
def path(place):
    return f"{place.root}/{next(DIRECTORIES)}/table"


def same(both, place, **arguments):
    """As in test_direct_writes, with tables and directories below a root; nothing unfinished is left there."""
    for name, session in both.items():
        session.ask(
            "write_calls:run",
            home=f"{place.root}/{name}/home",
            database=f"{place.root}/{name}/warehouse/d.db",
            **arguments,
        )
    answer = compared({name: session.answer() for name, session in both.items()})
    assert both["ours"].call("server_calls:left_over", path=f"{place.root}/ours") == []
    return answer


@pytest.mark.parametrize("kind", KINDS)
def test_partitioned_tables(both, place, kind):
    answer = same(
        both,
        place,
        statements=[
            creation(kind),
            *PARTITIONED["dynamic"][:2],
            "insert into t partition(k='1') select 11, 'y'",
            "insert overwrite t partition(k='2') select 12, 'z'",
            "insert overwrite t partition(k) select 13, 'z', k from (values ('sp ace'), (null), ('a/b')) v(k)",
        ],
    )
    assert answer["errors"] == [None] * 6


def test_tables_without_partitions(both, place):
    statements = []
    for kind, stored in KINDS.items():
        where = f"location '{{home}}/{kind}'" if kind == "text" else ""
        statements += [
            f"create table {kind} (a int) {stored} {where}",
            f"insert into {kind} select id from range(10)",
            f"insert overwrite {kind} select 12",
        ]
    assert same(both, place, tables=tuple(KINDS), statements=statements)["errors"] == [None] * 9


def test_directories_and_writers(both, place):
    answer = same(
        both,
        place,
        tables=("t", "u"),
        code=WRITER,
        statements=[
            f"insert overwrite directory '{{home}}/text' {ROWS}",
            "insert overwrite directory '{home}/text' select 1",
            "insert overwrite directory '{home}/orc' stored as orc select 1 a",
            "insert overwrite directory '{home}/json' using json select 2 b",
        ],
    )
    assert "PATH_ALREADY_EXISTS" in answer["errors"].pop()
    assert answer["errors"] == [None] * 4


def test_new_partitions_inherit_permissions_on_hdfs(both, places):
    statements = [
        "create external table t (a int) partitioned by (y int, k string) stored as textfile location '{home}/t'"
    ]
    code = """
path, file_system = server_calls.hadoop_path(spark, home + "/t")
file_system.mkdirs(path)
file_system.setPermission(path, spark._jvm.org.apache.hadoop.fs.permission.FsPermission("770"))
spark.sql("insert into t partition(y, k) select id, id % 2, id % 3 from range(9)")
path, file_system = server_calls.hadoop_path(spark, f"{home}/t/y=1")
file_system.setPermission(path, spark._jvm.org.apache.hadoop.fs.permission.FsPermission("750"))
spark.sql("insert overwrite t partition(y, k) select 1, y, k from values (1, '7'), (2, '8') v(y, k)")
spark.sql("insert into t partition(y=3, k='9') select 1")
"""
    same(both, places["hdfs"], statements=statements, code="import server_calls" + code)
    ours, stock = (
        both[name].call("server_calls:permissions", path=f"{places['hdfs'].root}/{name}/home")
        for name in ("ours", "stock")
    )
    assert {name: mode for name, mode in ours.items() if mode != "rwxrwx---"} == {
        "t/y=1": "rwxr-x---",
        "t/y=1/k=7": "rwxr-x---",
    }
    assert len(ours) == 14
    # Stock creates directories of one statement with a new parent concurrently: one may inherit the parent's
    # permissions before the parent has inherited its own.
    racing = {f"t/y={id % 2}/k={id % 3}" for id in range(9)}
    assert {name: ours[name] for name in ours.keys() - racing} == {
        name: stock[name] for name in stock.keys() - racing
    } and ours.keys() == stock.keys()


def test_requests_are_shown(ours, place, path):
    for value in ("old", "new"):
        ours.call("write_calls:fill", path=path, value=value, partitions=PARTITIONS, mode="overwrite")
    shown = ours.call("write_calls:metrics_of_last_write")
    assert int(shown["requests by the driver"]) >= 2 * PARTITIONS
    assert shown.get("upload requests by tasks") == (str(2 * PARTITIONS) if path.startswith("s3a:") else None)


def test_a_long_commit_logs_its_progress(ours, places):
    place = places["s3"]
    path = f"{place.root}/{next(DIRECTORIES)}/table"
    ours.call("server_calls:log_at_info", logger="org.apache.spark.sql.execution.datasources.millstream.write")
    ours.ask("write_calls:fill", path=path, value="new", partitions=PARTITIONS, mode="append")
    place.end_at(("CompleteMultipartUpload", "", 2, False), path, lambda: (time.sleep(11), place.bed.inject()))
    answer, log = ours.answer(), ours.log.read_text()
    assert isinstance(answer, int), answer
    assert (
        f"CommitLog: Direct write of {path}: publish, " in log
        and f"DirectWrite: Direct write of {path}: {PARTITIONS} files" in log
    )


# Requests of an overwriting job at which its driver dies: operation, part of the path, number of requests before,
# whether it is executed; and the resulting table.
S3_STEPS = [
    (("PutObject", ".begin", 0, True), OLD),
    (("CreateMultipartUpload", "", 2, True), OLD),
    (("UploadPart", "", 3, False), OLD),
    (("PutObject", "lock-", 0, True), OLD),
    (("PutObject", ".commit", 0, False), OLD),
    (("PutObject", ".commit", 0, True), NEW),
    (("CompleteMultipartUpload", "", 0, False), NEW),
    (("CompleteMultipartUpload", "", 3, True), NEW),
    (("PutObject", ".published", 0, False), NEW),
    (("PutObject", "done-", 0, True), NEW),
    (("DeleteObjects", "", 0, False), NEW),
    (("DeleteObjects", "", 0, True), NEW),
    (("DeleteObjects", "", 1, False), NEW),
]
# The same for calls of the name node's protocol. Renames: of the begin entry, the commit lock, the commit record, then
# files.
HDFS_STEPS = [
    (("rename", 0), OLD),
    (("create", 4), OLD),
    (("rename", 1), OLD),
    (("rename", 2), OLD),
    (("rename", 3), NEW),
    (("rename", 6), NEW),
    (("delete", 0), NEW),
    (("delete", 4), NEW),
    (("delete", PARTITIONS), NEW),
]
STEPS = [("s3", *step) for step in S3_STEPS] + [("hdfs", *step) for step in HDFS_STEPS]


@pytest.mark.parametrize(
    "where, step, expected", STEPS, ids=[f"{where}-{'-'.join(map(str, step))}" for where, step, _ in STEPS]
)
def test_a_driver_killed_at_a_step(ours, conf, places, tmp_path, where, step, expected):
    place = places[where]
    path = f"{place.root}/{next(DIRECTORIES)}/table"
    ours.call("write_calls:fill", path=path, value="old", partitions=PARTITIONS, mode="append")
    victim = Session(tmp_path / "home", millstream=True, conf=conf)
    pid = victim.call("write_calls:driver")
    victim.ask("write_calls:fill", path=path, value="new", partitions=PARTITIONS, mode="overwrite")
    try:
        place.end_at(step, path, lambda: os.kill(pid, signal.SIGKILL))
    finally:
        victim.process.kill()
        victim.process.wait()
    settle(ours, path)
    assert ours.call("write_calls:values", path=path) == expected
    assert ours.call("server_calls:left_over", path=path) == []


FAULTS = {
    "busy": {"every": 7, "do": "answer", "status": 503, "code": "SlowDown"},
    "connection cut": {"every": 9, "do": "drop"},
    "answers cut": {"every": 9, "do": "drop", "after": True},
    "server fails": {"every": 8, "do": "answer", "status": 500, "code": "InternalError", "after": True},
    "completed already": {
        "operation": "CompleteMultipartUpload",
        "every": 2,
        "do": "answer",
        "status": 404,
        "code": "NoSuchUpload",
        "after": True,
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_requests_that_fail_occasionally(ours, places, fault):
    place = places["s3"]
    path = f"{place.root}/{next(DIRECTORIES)}/table"
    ours.call("write_calls:fill", path=path, value="old", partitions=PARTITIONS, mode="append")
    place.bed.inject(FAULTS[fault])
    try:
        answer = ours.call("write_calls:fill", path=path, value="new", partitions=PARTITIONS, mode="overwrite")
        assert place.bed.struck > 0
    finally:
        place.bed.inject()
    assert isinstance(answer, int), answer
    assert ours.call("write_calls:values", path=path) == NEW
    assert ours.call("server_calls:left_over", path=path) == []


def test_an_upload_that_is_gone_is_an_error_and_nothing_is_deleted(ours, places):
    place = places["s3"]
    path = f"{place.root}/{next(DIRECTORIES)}/table"
    ours.call("write_calls:fill", path=path, value="old", partitions=PARTITIONS, mode="append")
    place.bed.inject(
        {
            "operation": "CompleteMultipartUpload",
            "skip": 2,
            "count": 1,
            "do": "answer",
            "status": 404,
            "code": "NoSuchUpload",
        }
    )
    answer = ours.call("write_calls:fill", path=path, value="new", partitions=PARTITIONS, mode="overwrite")
    place.bed.inject()
    # The driver revokes its commit, and the statement can be run again.
    assert "nothing is written, and the table is unchanged" in answer["crash"], answer
    assert ours.call("write_calls:values", path=path) == OLD
    assert isinstance(
        ours.call("write_calls:fill", path=path, value="new", partitions=PARTITIONS, mode="overwrite"), int
    )
    assert ours.call("write_calls:values", path=path) == NEW
    assert ours.call("server_calls:left_over", path=path) == []


@pytest.fixture(scope="module")
def cluster(conf, tmp_path_factory):
    top = tmp_path_factory.mktemp("cluster")
    executors = {"spark.executor.extraClassPath": conf["spark.driver.extraClassPath"]}
    with two_hosts(top) as master:
        session = Session(
            top / "home", millstream=True, conf={**conf, **SPECULATION, **executors, "spark.master": master}
        )
        yield session
        session.close()


@pytest.mark.parametrize("trouble", ["fails", "dies", "is slow"])
def test_failed_and_speculative_attempts_leave_nothing(cluster, path, tmp_path, trouble):
    cluster.call("write_calls:fill", path=path, value="old", partitions=PARTITIONS, mode="append")
    answer = cluster.call("server_calls:overwrite", path=path, tasks=4, marks=str(tmp_path), trouble=trouble)
    (tmp_path / "go").touch()
    assert answer.get("error", answer) is None, answer
    assert answer["twins"] > 0 or trouble != "is slow"
    settle(cluster, path)
    assert cluster.call("write_calls:values", path=path) == [[f"new{task}", PARTITIONS] for task in range(4)]
    assert cluster.call("server_calls:left_over", path=path) == []
