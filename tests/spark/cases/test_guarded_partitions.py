"""A statement looks for the partitions that it reads, which may be elsewhere, at a bounded cost, and continues if one
cannot be found (issue 36).
"""

import pytest
from sessions import Session
from test_direct_writes import HIVE

UNGUARDED = "will not notice unfinished writes there"
LIMIT = 5
PARTITIONS = 8
# More than StatementReads.MostPartitions.
MANY = 10_001
CONDITIONS = {
    "directly above": "select a from t where p = '3'",
    "above a join": "select t.a from t join u on t.a = u.a where t.p = '3'",
    "of the other table": "select t.a from t join u on t.p = u.p where u.p = '3'",
    "above an aggregate": "select a from (select a, p, count(*) from t group by a, p) where p = '3'",
    "above a union": "select a from (select a, p from t union all select a, p from t where a is null) where p = '3'",
    "above a common table expression": "with x as (select * from t) select a from x where p = '3'",
    "above a common table expression in a subquery": "with x as (select * from t), y as (select p from x where p = '3') select a from u where p in (select p from y)",
    "above a view": "select a from grouped where p = '3'",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    conf = {**HIVE, "spark.hadoop.hive.metastore.limit.partition.request": str(LIMIT)}
    session = Session(tmp_path_factory.mktemp("partitions") / "home", millstream=True, conf=conf)
    yield session
    session.close()


@pytest.fixture(scope="module", params=["serde", "source"])
def tables(session, request):
    """The tables of a database, which is the current one. Warnings, which are given once for a table, are reset."""
    created = {
        "serde": "(a string) partitioned by (p string) stored as textfile",
        "source": "(a string, p string) using text partitioned by (p)",
    }
    session.database = request.param
    run(
        session,
        f"create database {request.param}",
        f"use {request.param}",
        f"create table t {created[request.param]}",
        "create table u (a string, p string) stored as textfile",
        "insert into u select '3', '3'",
        "create table copy (a string) stored as textfile",
        *(f"insert into t partition(p='{p}') select '{p}'" for p in range(PARTITIONS)),
        "create view grouped as select a, p, count(*) n from t group by a, p",
    )
    return session


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory):
    """A catalog that does not look at the locations of partitions."""
    conf = {"spark.millstream.write.enabled": "true", "spark.hadoop.ipc.client.connect.max.retries": "0"}
    session = Session(tmp_path_factory.mktemp("in-memory") / "home", millstream=True, conf=conf)
    yield session
    session.close()


def run(session, *statements):
    """Runs statements that succeed; returns the warnings of reads that are not guarded."""
    errors, told = tried(session, *statements)
    assert errors == [None] * len(statements)
    return told


def tried(session, *statements):
    before = len(session.log.read_text())
    errors = session.call("lost_row_calls:run", statements=statements)
    return errors, [line for line in session.log.read_text()[before:].splitlines() if UNGUARDED in line]


def copied(session):
    return [row[0] for row in session.call("lost_row_calls:rows", table="copy")]


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_on_a_partition_column_limits_the_partitions_that_are_asked_for(tables, where):
    assert run(tables, f"insert overwrite table copy {CONDITIONS[where]}") == []
    assert copied(tables) == ["3"]


def test_a_metastore_that_refuses_to_list_the_partitions_is_told_of_once(tables):
    (error, again), told = tried(tables, *["insert into copy select a from t"] * 2)

    assert (
        len(told) == 1
        and f"partitions of spark_catalog.{tables.database}.t outside its directory" in told[0]
        and str(LIMIT) in told[0]
    ), told
    # What Spark's own request for the partitions answers is Spark's matter: of a serde's table it reads directories
    # instead.
    assert "cannot be read" not in f"{error} {again}"


@pytest.mark.parametrize("location", ["nosuch://there/p", "hdfs://localhost:1/p"])
def test_a_location_that_cannot_be_reached_is_no_reason_to_refuse_a_statement_that_does_not_read_it(
    in_memory, location
):
    far = f"far_{location.partition(':')[0]}"
    run(
        in_memory,
        "drop table if exists copy",
        "create table copy (a string) using text",
        f"create table {far} (a string, p string) using text partitioned by (p)",
        f"insert into {far} values ('1', '1'), ('2', '2')",
        f"alter table {far} partition (p='2') set location '{location}'",
    )

    # A common table expression that is used twice is examined without the conditions on it.
    told = run(
        in_memory,
        f"insert overwrite table copy with x as (select * from {far}) select a from x where p = '1' union select p from x where p = '1'",
    )
    assert len(told) == 1 and f"read {location} will not notice" in told[0], told
    assert copied(in_memory) == ["1"]
    (error,), _ = tried(in_memory, f"insert overwrite table copy select a from {far}")

    assert error and "cannot be read" not in error and copied(in_memory) == ["1"]


def test_the_partitions_of_a_very_large_table_are_not_listed_for_a_statement_without_conditions(in_memory):
    add = " ".join(f"partition (p={p})" for p in range(MANY))
    told = run(
        in_memory,
        "drop table if exists copy",
        "create table many (a string, p int) using text partitioned by (p)",
        "create table copy (a string) using text",
        f"alter table many add {add}",
        "insert into many partition(p=1) select '1'",
        "insert into copy select a from many where p < 3",
    )
    assert told == []
    told = run(in_memory, *["insert into copy select a from many"] * 2)
    assert len(told) == 1 and f"it has {MANY} partitions" in told[0], told
    assert copied(in_memory) == ["1"] * 3
