"""HDFS with Kerberos is read as by stock Spark, and tasks prefer the hosts that have most of their bytes.

Run with `make test-group GROUP=remote`.
"""

import gzip
import random

import pytest
from hdfs_bed import LESS_DELAY, HdfsBed
from sessions import Session

SMALL = 40
FILES = {
    "table/d=1/x.csv": "1,a\n2,b\n",
    "table/d=2/y.csv": "3,c\n",
    **{f"small/part-{i:05d}.txt": f"line {i}\nother {i}\n" for i in range(SMALL)},
}
READS = {
    "text": "spark.read.text(f'{root}/data/small')",
    "filter": "spark.read.text(f'{root}/data/small').filter(\"value rlike 'line .*7'\")",
    "inferred csv": "spark.read.csv(f'{root}/data/table', inferSchema=True).where('d < 3')",
    "parquet": "spark.read.parquet(f'{root}/data/parquet').where('id > 250 and k != 0')",
    "large": "spark.read.text(f'{root}/data/large').groupBy('value').count()",
    "rdd": "sc.textFile(f'{root}/data/small')",
    "missing": "spark.read.text(f'{root}/data/nowhere')",
    "not allowed": "spark.read.text(f'{root}/private')",
    "rdd not allowed": "sc.textFile(f'{root}/private')",
}
HOSTS = ("north", "east", "south", "west", "centre")
MOST_HOSTS = 3
MEGABYTE = 1 << 20
# As small as HDFS allows, and each on one host.
BLOCKS = {"spark.hadoop.dfs.blocksize": str(MEGABYTE), "spark.hadoop.dfs.replication": "1"}


class Kerberos:
    """Sessions of a user who has logged in with a keytab, and sessions without a login."""

    def __init__(self, bed, scratch):
        self.url = bed.url
        environment, option = bed.client()

        def session(name, **login):
            conf = {**LESS_DELAY, "spark.driver.extraJavaOptions": option, **login}
            return Session(scratch / name, millstream=name.endswith("ours"), conf=conf, environment=environment)

        self.stock, self.ours = (session(name, **bed.login()) for name in ("stock", "ours"))
        self.nobodies = [session(f"nobody-{name}") for name in ("stock", "ours")]
        self.stock.call("remote_calls:put", root=f"{self.url}/data", files=FILES)
        self.stock.call("remote_calls:write_parquet", path=f"{self.url}/data/parquet")
        self.stock.call("remote_calls:write_lines", path=f"{self.url}/data/large", files=1, lines=50_000)

    def close(self):
        for session in (self.stock, self.ours, *self.nobodies):
            session.close()


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory):
    with HdfsBed(kerberos=True) as bed:
        found = Kerberos(bed, tmp_path_factory.mktemp("kerberos"))
        yield found
        found.close()


def both(sessions, url, reads):
    for session in sessions:
        session.ask("remote_calls:read", root=url, reads=reads)
    return [session.answer() for session in sessions]


def test_a_user_with_a_keytab_reads_what_stock_reads(kerberos):
    expected, actual = both((kerberos.stock, kerberos.ours), kerberos.url, READS)
    assert actual == expected
    assert {name for name in READS if "error" in expected[name]} == {"missing", "not allowed", "rdd not allowed"}, (
        expected
    )
    assert "user=reader" in expected["not allowed"]["message"]
    plan = kerberos.ours.call("remote_calls:plan", path=f"{kerberos.url}/data/small")
    assert (plan["node"], plan["index"], plan["fileSystem"]) == (
        "NativeTextScan",
        "CompactFileIndex",
        "MillstreamDistributedFileSystem",
    )
    assert plan["metrics"]["filesOpened"] == SMALL


def test_without_a_ticket_the_error_is_that_of_stock(kerberos):
    expected, actual = both(kerberos.nobodies, kerberos.url, {name: READS[name] for name in ("text", "parquet", "rdd")})
    assert actual == expected
    assert all(
        "Client cannot authenticate via:[TOKEN, KERBEROS]" in answer["message"] for answer in expected.values()
    ), expected


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with HdfsBed(hosts=HOSTS) as bed:
        session = Session(tmp_path_factory.mktemp("hosts") / "ours", millstream=True, conf={**BLOCKS, **LESS_DELAY})
        session.call("remote_calls:write_lines", path=f"{bed.url}/large", files=2, lines=50_000)
        session.call("remote_calls:write_lines", path=f"{bed.url}/small", files=60, lines=100)
        session.call("remote_calls:write_lines", path=f"{bed.url}/parquet", files=60, lines=100, format="parquet")
        yield bed.url, session
        session.close()


@pytest.mark.parametrize(
    ("read", "path", "rdd"),
    [
        ("text", "large", "TextScanRDD"),
        ("text", "small", "TextScanRDD"),
        ("rdd", "small", "HadoopRDD"),
        ("csv", "small", "PackedFileScanRDD"),
        ("parquet", "parquet", "PackedFileScanRDD"),
    ],
)
def test_tasks_prefer_the_hosts_that_have_most_of_their_bytes(hosts, read, path, rdd):
    url, session = hosts
    found = session.call("remote_calls:tasks", read=read, path=f"{url}/{path}")
    assert found["rdd"] == rdd
    for task in found["tasks"]:
        assert task["preferred"] == sorted(task["bytes"], key=lambda host: (-task["bytes"][host], host))[:MOST_HOSTS]
    assert len({host for task in found["tasks"] for host in task["preferred"]} & set(HOSTS)) > 1


DAMAGED_READS = {
    name: f"spark.read.options(ignoreCorruptFiles={ignores}){read}"
    for ignores in (True, False)
    for name, read in {
        f"text, {ignores}": ".text(f'{root}/damaged').selectExpr('count(*)')",
        f"csv, {ignores}": ".csv(f'{root}/damaged', schema='a string').selectExpr('count(*)')",
    }.items()
}


def test_a_damaged_block_is_the_error_of_stock(tmp_path):
    """One that may be ignored: for HDFS, a block has a wrong checksum, or it is missing, depending on how it is read."""
    with HdfsBed() as bed:
        sessions = [Session(tmp_path / name, millstream=name == "ours", conf=LESS_DELAY) for name in ("stock", "ours")]
        (tmp_path / "large.gz").write_bytes(gzip.compress(random.Random(1).randbytes(300_000).hex().encode(), mtime=0))
        (tmp_path / "small.txt").write_text("a line\n")
        for name in ("large.gz", "small.txt"):
            sessions[0].call("compressed_calls:upload", source=str(tmp_path / name), target=f"{bed.url}/damaged/{name}")
        assert bed.damage_blocks(longer_than=100_000) == 1
        expected, actual = both(sessions, bed.url, DAMAGED_READS)
        for session in sessions:
            session.close()
    assert {name for name in expected if "error" in expected[name]} == {
        name for name in DAMAGED_READS if name.endswith("False")
    }, expected
    for name, answer in expected.items():
        if "error" in answer:
            assert "ChecksumException" in answer["cause"] and "ChecksumException" in actual[name]["cause"], (
                name,
                answer,
                actual[name],
            )
        else:
            assert actual[name] == answer, name
