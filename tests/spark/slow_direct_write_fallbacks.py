"""Where Spark runs otherwise than it mostly does, direct writes leave to it what they cannot do. Run with `make test-group GROUP=faults`."""

import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from sessions import Session
from test_direct_writes import HIVE, ROWS, creation

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "testbed"))
from latency_mount import LatencyMount  # noqa: E402

JARS = Path(pyspark.__file__).parent / "jars"
NEEDED = b"alter_table_with_environmentContext"
"""A method of the metastore's client. Under another name it is not there, and the client's own classes do not miss it."""


@pytest.fixture
def other_metastore(tmp_path):
    """Settings for a metastore's client without that method."""
    patched = tmp_path / "patched"
    patched.mkdir()
    for jar in [*JARS.glob("hive-exec-*.jar"), *JARS.glob("hive-metastore-*.jar")]:
        with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(patched / jar.name, "w") as copy:
            for entry in whole.infolist():
                content = whole.read(entry)
                copy.writestr(entry, content.replace(NEEDED, NEEDED[:-1] + b"T") if entry.filename.endswith(".class") else content)
    others = [jar for jar in JARS.glob("*.jar") if not (patched / jar.name).exists()]
    return {"spark.sql.hive.metastore.version": "2.3.10", "spark.sql.hive.metastore.jars": "path",
            "spark.sql.hive.metastore.jars.path": ",".join(f"file://{jar}" for jar in [*patched.iterdir(), *others])}


def test_a_metastore_that_cannot_be_told_of_statistics(tmp_path, other_metastore):
    session = Session(tmp_path / "session", millstream=True, conf={**HIVE, **other_metastore})
    try:
        answer = session.call("write_calls:run", home=str(session.home / "home"), tables=("t", "u"), statements=[
            "create table t (a int, b string) partitioned by (k string) stored as textfile", "insert into t partition(k) " + ROWS,
            "create table u (a int, b string, k string) using parquet partitioned by (k)", "insert into u partition(k) " + ROWS])
        assert answer["errors"] == [None] * 4
        assert answer["nodes"] == ["InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable"]
        assert [len(answer["tables"][name]["rows"]) for name in ("t", "u")] == [10, 10]
        assert "the metastore's client differs from those that are known: java.lang.NoSuchMethodException" in session.log.read_text()
    finally:
        session.close()


def test_a_directory_of_the_driver(tmp_path):
    """On a cluster tasks run elsewhere; Spark takes what they write in the default file system to the driver."""
    conf = {**HIVE, "spark.master": "local-cluster[1,1,1024]", "spark.executor.memory": "512m", "spark.hadoop.fs.defaultFS": "viewfs://far/"}
    session = Session(tmp_path / "session", millstream=True, conf=conf)
    try:
        directory = f"directory 'file://{tmp_path}/d' row format delimited fields terminated by '|' select 1"
        assert "DirectInsertIntoHiveDir" in session.call("write_calls:plan", statement=f"insert overwrite {directory}")
        assert "DirectInsert" not in session.call("write_calls:plan", statement=f"insert overwrite local {directory}")
        assert "it is a directory of the driver" in session.log.read_text()
    finally:
        session.close()


@pytest.mark.parametrize("kind", ["text", "datasource"])
def test_a_file_system_without_hard_links(tmp_path, kind):
    (tmp_path / "source").mkdir()
    session = Session(tmp_path / "session", millstream=True, conf=HIVE)
    try:
        with LatencyMount(tmp_path / "source", delay_us=0, links=False) as mount:
            insert = "insert {} t partition(k) " + ROWS
            answer = session.call("write_calls:run", home=str(session.home / "home"), database=str(mount.path / "d"), statements=[
                creation(kind), insert.format("into"), insert.format("overwrite")])
            new = session.call("write_calls:run", home=str(session.home / "home"), database=str(mount.path / "d"), statements=[
                "create table t using parquet as select 1"], code=f"spark.range(3).write.parquet('file://{mount.path}/new')")
            left = list(mount.path.rglob(".direct-*"))
            session.call("write_calls:run", home=str(session.home / "home"), statements=[])
        assert answer["errors"] == [None] * 3 and len(answer["tables"]["t"]["rows"]) == 10
        assert new["errors"] == [None] * 2 and len(new["tables"]["t"]["rows"]) == 1
        assert left == []
        assert "no hard link could be made at " in session.log.read_text()
    finally:
        session.close()
