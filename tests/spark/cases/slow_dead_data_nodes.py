"""HDFS is read as by stock Spark when data nodes die, between a listing and its read, and while a task reads. Run with
`make test-group GROUP=remote-changes`.
"""

import gzip
import random
import re
import time

import pytest
from compressed_files import log_lines, pzstd
from hdfs_bed import LESS_DELAY, HdfsBed
from sessions import Session

NODES = ("north", "east")
MEGABYTE = 1 << 20
FAST = {
    **LESS_DELAY,
    # How long the client waits before it requests a block again that no node has.
    "spark.hadoop.dfs.client.retry.window.base": "10",
    "spark.hadoop.dfs.blocksize": str(MEGABYTE),
}
FORMATS = ("text", "csv", "json", "parquet", "orc")
FILES, ROWS, WIDTH = 40, 5, 100_000
LARGE_ROWS = 500
PATIENCE_S = 300
CODECS = {"gz": lambda text, rng: gzip.compress(text, 1, mtime=0), "zst": pzstd}
KEPT = {
    "text": "spark.read.text({url!r} + '/text').selectExpr('count(*)', 'sum(hash(value))')",
    **{
        name: f"spark.read.schema('v string').{name}({{url!r}} + '/{name}').selectExpr('count(*)', 'sum(hash(v))')"
        for name in FORMATS[1:]
    },
    "binary": "spark.read.format('binaryFile').load({url!r} + '/csv').selectExpr('count(*)', 'sum(hash(content))')",
    "large": "spark.read.text({url!r} + '/large').selectExpr('count(*)', 'sum(hash(value))')",
    **{
        name: f"spark.read.text({{url!r}} + '/log.{name}').selectExpr('count(*)', 'sum(hash(value))')"
        for name in CODECS
    },
    **{
        f"csv of {name}": f"spark.read.schema('a string').csv({{url!r}} + '/log.{name}').selectExpr('count(*)', 'sum(hash(a))')"
        for name in CODECS
    },
}
ONE_COPY = {
    "text": "spark.read.options({options}).text({url!r} + '/one-copy')",
    "csv": "spark.read.options({options}).schema('v string').csv({url!r} + '/one-copy')",
    "binary": "spark.read.options({options}).format('binaryFile').load({url!r} + '/one-copy').selectExpr('sum(hash(content))')",
}
IGNORED = {"nothing": "", "missing": "ignoreMissingFiles=True", "corrupt": "ignoreCorruptFiles=True"}


class DeadNode:
    """The rows read while the first of two data nodes stops. Each file has a copy on both, unless its name says
    otherwise.
    """

    def __init__(self, bed, scratch):
        self.bed, self.url = bed, bed.url
        self.stock, self.ours = (
            self.session(scratch / name, millstream=name == "ours", replication=2) for name in ("stock", "ours")
        )
        self.write(scratch)
        # The first reads make the indexes, which later ones use.
        self.before = {
            (name, read): self.kept(session, read) for name, session in self.sessions().items() for read in KEPT
        }
        self.stepped = self.read_while_it_stops(scratch)

    def session(self, home, *, millstream, replication):
        return Session(home, millstream=millstream, conf={**FAST, "spark.hadoop.dfs.replication": str(replication)})

    def sessions(self):
        return {"stock": self.stock, "ours": self.ours}

    def write(self, scratch):
        for name in FORMATS:
            self.stock.call(
                "changed_calls:write_files",
                path=f"{self.url}/{name}",
                format_name=name,
                version="old",
                files=FILES,
                rows=ROWS,
                width=WIDTH,
            )
        self.stock.call(
            "changed_calls:write_files",
            path=f"{self.url}/large",
            format_name="text",
            version="old",
            files=1,
            rows=LARGE_ROWS,
            width=WIDTH,
        )
        rng = random.Random(1)
        text = log_lines(rng, 400_000)
        for name, compress in CODECS.items():
            (scratch / f"log.{name}").write_bytes(compress(text, rng))
            self.stock.call(
                "compressed_calls:upload", source=str(scratch / f"log.{name}"), target=f"{self.url}/log.{name}"
            )
        once = self.session(scratch / "once", millstream=False, replication=1)
        once.call(
            "changed_calls:write_files",
            path=f"{self.url}/one-copy",
            format_name="text",
            version="old",
            files=FILES,
            rows=ROWS,
            width=1000,
        )
        once.close()

    def kept(self, session, read):
        """Lists files for a read that is made again later, and its rows now."""
        session.call("remote_calls:keep", name=read, code=KEPT[read].format(url=self.url))
        return session.call("remote_calls:count", name=read)

    def read_while_it_stops(self, scratch):
        """The rows of one large file, of which one task has read the first when the data node stops."""
        for name, session in self.sessions().items():
            (scratch / f"marks-{name}").mkdir()
            session.ask(
                "changed_calls:read_in_steps",
                path=f"{self.url}/large",
                format_name="text",
                marks=str(scratch / f"marks-{name}"),
            )
        deadline = time.monotonic() + PATIENCE_S
        while not all((scratch / f"marks-{name}/begun").exists() for name in self.sessions()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.bed.stop_data_node(0)
        for name in self.sessions():
            (scratch / f"marks-{name}/go").touch()
        return {name: session.answer() for name, session in self.sessions().items()}

    def close(self):
        self.stock.close()
        self.ours.close()


@pytest.fixture(scope="module")
def dead(tmp_path_factory):
    with HdfsBed(hosts=NODES) as bed:
        found = DeadNode(bed, tmp_path_factory.mktemp("dead"))
        yield found
        found.close()


def test_a_data_node_that_dies_while_a_task_reads(dead):
    assert dead.stepped == {name: {"rows": [["f000", "old", LARGE_ROWS]]} for name in ("stock", "ours")}


@pytest.mark.parametrize("name", KEPT)
def test_a_data_node_that_dies_once_files_are_listed(dead, name):
    for session_name, session in dead.sessions().items():
        assert "value" in dead.before[session_name, name], dead.before
        assert session.call("remote_calls:count", name=name) == dead.before[session_name, name]
    assert dead.before["ours", name] == dead.before["stock", name]


def test_indexes_are_used_in_spite_of_the_dead_node(dead):
    indexes = dead.ours.call("compressed_calls:stored", path=f"{dead.url}/_millstream")
    assert len(indexes) == len(CODECS)
    for name in CODECS:
        assert dead.ours.call("compressed_calls:divided", path=f"{dead.url}/log.{name}", conf={})["partitions"] > 1
    assert dead.ours.call("compressed_calls:stored", path=f"{dead.url}/_millstream") == indexes


@pytest.mark.parametrize("ignored", IGNORED)
@pytest.mark.parametrize("read", ONE_COPY)
def test_blocks_without_a_live_copy_are_the_error_of_stock(dead, read, ignored):
    code = ONE_COPY[read].format(url=dead.url, options=IGNORED[ignored])
    answers = {}
    for name, session in dead.sessions().items():
        session.call("remote_calls:keep", name="one copy", code=code)
        answers[name] = session.call("remote_calls:count", name="one copy")
    for answer in answers.values():
        # Which of them is read first is chance.
        assert "BlockMissingException" in answer["cause"], answer
        assert re.search(r"one-copy/part-", answer["message"]), answer
    assert answers["ours"].get("condition") == answers["stock"].get("condition")
    assert answers["ours"]["error"] == answers["stock"]["error"]
