"""When a write is left to Spark, one warning gives the reason."""

import pytest
from sessions import Session
from test_direct_writes import HIVE

HANDLER = "create table t (a int) stored as textfile tblproperties ('{property}')"
DATASOURCE = "create table t (a int) using parquet"
CASES = {
    "storage handler": (
        HANDLER.format(property="storage_handler'='org.apache.hadoop.hive.ql.metadata.DefaultStorageHandler"),
        {},
        "the table uses a storage handler",
    ),
    "transactional": (
        "create table t (a int) clustered by (a) into 2 buckets stored as orc tblproperties ('transactional'='true')",
        {},
        "the table is transactional",
    ),
    "own commit protocol": (
        DATASOURCE,
        {"spark.sql.sources.commitProtocolClass": "org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"},
        "spark.sql.sources.commitProtocolClass is org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
    ),
    "own committer": (
        DATASOURCE,
        {"spark.sql.sources.outputCommitterClass": "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"},
        "spark.sql.sources.outputCommitterClass is set",
    ),
    "summaries of Parquet": (DATASOURCE, {"parquet.summary.metadata.level": "ALL"}, "Parquet summaries are enabled"),
    "another file system": (
        "create table t (a int) using parquet location 'viewfs://far{home}/t'",
        {},
        "direct writes support the file systems file, hdfs and s3a, but not viewfs",
    ),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("fallbacks") / "home", millstream=True, conf=HIVE)
    yield session
    session.close()


@pytest.mark.parametrize("case", CASES)
def test_reasons_for_leaving_writes_to_spark(session, case):
    create, conf, reason = CASES[case]
    before = len(session.log.read_text())
    explain = ["explain insert into t select 1", "explain insert into t select 2"]
    answer = session.call(
        "write_calls:run", home=str(session.home / "home"), conf=conf, tables=(), statements=[create, *explain]
    )
    assert answer.get("errors") == [None] * 3, answer
    told = [line for line in session.log.read_text()[before:].splitlines() if "without Millstream, more slowly" in line]
    assert len(told) == 1 and reason in told[0], told


@pytest.mark.parametrize("case", ["own commit protocol", "own committer", "summaries of Parquet"])
def test_spark_writes_it(session, case):
    create, conf, _ = CASES[case]
    answer = session.call(
        "write_calls:run",
        home=str(session.home / "home"),
        conf=conf,
        statements=[create, "insert into t select 1", "insert overwrite t select 2"],
    )
    assert answer["errors"] == [None] * 3 and answer["tables"]["t"]["rows"] == ["Row(a=2)"], answer
    assert answer["nodes"] == ["InsertIntoHadoopFsRelationCommand"] * 2


@pytest.mark.parametrize("case", CASES)
def test_a_strict_visibility_is_an_error_where_spark_would_write(session, case):
    create, conf, reason = CASES[case]
    answer = session.call(
        "write_calls:run",
        home=str(session.home / "home"),
        conf={**conf, "fs.millstream.write.visibility": "exchange-strict"},
        tables=(),
        statements=[create, "insert overwrite t select 2"],
    )
    assert answer["errors"][0] is None and reason[:60] in answer["errors"][1], answer
