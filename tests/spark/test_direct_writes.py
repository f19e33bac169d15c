"""INSERT straight into tables: what it makes is what stock Spark makes, and its commit survives crashes."""

import pytest

from sessions import Session

HIVE = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.driver.memory": "1g",
}
KINDS = {"text": "stored as textfile", "parquet": "stored as parquet", "datasource": "using parquet"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A stock session and one with direct writes, each with a metastore of its own."""
    top = tmp_path_factory.mktemp("writes")
    sessions = {name: Session(top / name, millstream=name == "ours", conf=HIVE) for name in ("stock", "ours")}
    yield sessions
    for session in sessions.values():
        session.close()


def same(both, **arguments):
    """Runs statements in both sessions; answers what they made with direct writes, which is as stock makes it."""
    for session in both.values():
        session.ask("write_calls:run", home=str(session.home / "home"), **arguments)
    answers = {name: session.answer() for name, session in both.items()}
    ours, stock = answers["ours"], answers["stock"]
    assert "crash" not in ours and "crash" not in stock, answers
    assert ours["errors"] == stock["errors"]
    for name, table in stock["tables"].items():
        assert without_sizes(ours["tables"][name]) == without_sizes(table), name
        check_sizes(ours["tables"][name])
    assert counts(ours["files"]) == counts(stock["files"])
    return ours


def without_sizes(table):
    def shown(description):
        return {key: value for key, value in description.items() if key not in ("sizes", "statistics")}

    if table is None:
        return None
    partitions = {name: shown(description) for name, description in table["partitions"].items()}
    return {**table, "table": shown(table["table"]), "partitions": partitions, "directories": counts(table["directories"])}


def counts(directories):
    return {name: [files, others] for name, (files, _, others) in directories.items()}


def check_sizes(table):
    """Partitions say how much they have."""
    for name, description in (table or {"partitions": {}})["partitions"].items():
        files, size, _ = next((found for directory, found in table["directories"].items() if directory.lower() == name.lower()), (0, 0, []))
        if description["sizes"]:
            assert description["sizes"] == {"numFiles": str(files), "totalSize": str(size)}, name


ROWS = "select id, 'x', cast(id % 3 as string) from range(10)"
SCRIPTS = {
    "dynamic": ["insert into t partition(k) " + ROWS, "insert overwrite t partition(k) select 7, 'new', k from (values ('1'), ('new')) v(k)",
                "insert into t partition(k) select 8, 'more', k from (values ('1'), ('other')) v(k)"],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_partitioned_tables(both, kind, script):
    create = f"create table t (a int, b string, k string) {KINDS[kind]} partitioned by (k)" if kind == "datasource" else \
        f"create table t (a int, b string) partitioned by (k string) {KINDS[kind]}"
    answer = same(both, statements=[create, *SCRIPTS[script]])
    assert answer["errors"] == [None] * (1 + len(SCRIPTS[script]))
