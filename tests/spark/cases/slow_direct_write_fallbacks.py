"""In unusual environments, direct writes leave unsupported cases to Spark. Run with `make test-group GROUP=faults`."""

import zipfile
from pathlib import Path

import pyspark
import pytest
from bed_jars import s3a_jars
from latency_mount import LatencyMount
from s3_bed import BUCKET, S3Bed
from sessions import Session
from test_direct_writes import HIVE, ROWS, creation

JARS = Path(pyspark.__file__).parent / "jars"


def without(method, jars, directory):
    """Copies of jars in which a method has another name, so that it is missing, but not for the jars' own classes."""
    directory.mkdir()
    name = method.encode()
    for jar in jars:
        with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(directory / jar.name, "w") as copy:
            for entry in whole.infolist():
                content = whole.read(entry)
                copy.writestr(
                    entry, content.replace(name, name[:-1] + b"_") if entry.filename.endswith(".class") else content
                )
    return [directory / jar.name for jar in jars]


@pytest.fixture
def other_metastore(tmp_path):
    """Settings for a metastore client that does not accept statistics."""
    patched = without(
        "alter_table_with_environmentContext",
        [*JARS.glob("hive-exec-*.jar"), *JARS.glob("hive-metastore-*.jar")],
        tmp_path / "patched",
    )
    others = [jar for jar in JARS.glob("*.jar") if jar.name not in {patch.name for patch in patched}]
    return {
        "spark.sql.hive.metastore.version": "2.3.10",
        "spark.sql.hive.metastore.jars": "path",
        "spark.sql.hive.metastore.jars.path": ",".join(f"file://{jar}" for jar in [*patched, *others]),
    }


def test_a_spark_whose_internals_differ(tmp_path):
    patched = without("verifySchema", [*JARS.glob("spark-sql_2.13-*.jar")], tmp_path / "patched")
    session = Session(
        tmp_path / "session", millstream=True, conf={**HIVE, "spark.driver.extraClassPath": ":".join(map(str, patched))}
    )
    try:
        answer = session.call(
            "write_calls:run",
            home=str(session.home / "home"),
            statements=[
                creation("datasource"),
                "insert into t partition(k) " + ROWS,
                "insert overwrite t partition(k) " + ROWS,
            ],
        )
        assert answer["errors"] == [None] * 3 and len(answer["tables"]["t"]["rows"]) == 10, answer
        assert answer["nodes"] == ["InsertIntoHadoopFsRelationCommand"] * 2
        assert "Millstream does not support this Spark" in session.log.read_text()
    finally:
        session.close()


def test_an_s3a_that_tracks_the_parts_of_uploads_differently(tmp_path):
    with S3Bed() as bed:
        jars = s3a_jars(pyspark.__version__)
        (own,) = [jar for jar in jars if jar.name.startswith("hadoop-aws-")]
        patched = without("getChecksumAlgorithm", [own], tmp_path / "patched")
        conf = {
            **HIVE,
            **bed.spark_conf(),
            "spark.driver.extraClassPath": ":".join(map(str, [*patched, *(jar for jar in jars if jar != own)])),
        }
        session = Session(tmp_path / "session", millstream=True, conf=conf)
        try:
            answer = session.call(
                "write_calls:run",
                home=str(session.home / "home"),
                database=f"s3a://{BUCKET}/d",
                statements=[creation("datasource"), "insert into t partition(k) " + ROWS],
            )
            assert answer["errors"] == [None] * 2 and len(answer["tables"]["t"]["rows"]) == 10, answer
            assert "tracks the parts of uploads in a way that direct writes do not support" in session.log.read_text()
        finally:
            session.close()


def test_a_metastore_that_does_not_accept_statistics(tmp_path, other_metastore):
    session = Session(tmp_path / "session", millstream=True, conf={**HIVE, **other_metastore})
    try:
        answer = session.call(
            "write_calls:run",
            home=str(session.home / "home"),
            tables=("t", "u"),
            statements=[
                "create table t (a int, b string) partitioned by (k string) stored as textfile",
                "insert into t partition(k) " + ROWS,
                "create table u (a int, b string, k string) using parquet partitioned by (k)",
                "insert into u partition(k) " + ROWS,
            ],
        )
        assert answer["errors"] == [None] * 4
        assert answer["nodes"] == ["InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable"]
        assert [len(answer["tables"][name]["rows"]) for name in ("t", "u")] == [10, 10]
        assert "the metastore's client is not supported: java.lang.NoSuchMethodException" in session.log.read_text()
    finally:
        session.close()


def test_a_directory_of_the_driver(tmp_path):
    """On a cluster, tasks run elsewhere; they write to the default file system, and Spark copies the files to the
    driver.
    """
    conf = {
        **HIVE,
        "spark.master": "local-cluster[1,1,1024]",
        "spark.executor.memory": "512m",
        "spark.hadoop.fs.defaultFS": "viewfs://far/",
    }
    session = Session(tmp_path / "session", millstream=True, conf=conf)
    try:
        directory = f"directory 'file://{tmp_path}/d' row format delimited fields terminated by '|' select 1"
        assert "DirectInsertIntoHiveDir" in session.call("write_calls:plan", statement=f"insert overwrite {directory}")
        assert "DirectInsert" not in session.call("write_calls:plan", statement=f"insert overwrite local {directory}")
        assert "it is a directory on the driver's machine" in session.log.read_text()
    finally:
        session.close()


@pytest.mark.parametrize("kind", ["text", "datasource"])
def test_a_file_system_without_hard_links(tmp_path, kind):
    (tmp_path / "source").mkdir()
    session = Session(tmp_path / "session", millstream=True, conf=HIVE)
    try:
        with LatencyMount(tmp_path / "source", delay_us=0, links=False) as mount:
            insert = "insert {} t partition(k) " + ROWS
            answer = session.call(
                "write_calls:run",
                home=str(session.home / "home"),
                database=str(mount.path / "d"),
                statements=[creation(kind), insert.format("into"), insert.format("overwrite")],
            )
            new = session.call(
                "write_calls:run",
                home=str(session.home / "home"),
                database=str(mount.path / "d"),
                statements=["create table t using parquet as select 1"],
                code=f"spark.range(3).write.parquet('file://{mount.path}/new')",
            )
            left = list(mount.path.rglob(".direct-*"))
            session.call("write_calls:run", home=str(session.home / "home"), statements=[])
        assert answer["errors"] == [None] * 3 and len(answer["tables"]["t"]["rows"]) == 10
        assert new["errors"] == [None] * 2 and len(new["tables"]["t"]["rows"]) == 1
        assert left == []
        assert "no hard link could be created in " in session.log.read_text()
    finally:
        session.close()
