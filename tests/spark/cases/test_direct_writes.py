"""Direct INSERTs into tables: the results are the same as with stock Spark."""

import os
import random
import re
import string
from pathlib import Path

import pyspark
import pytest
from sessions import Session

HIVE = {
    "spark.millstream.write.enabled": "true",
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # Another file system, with the same files.
    "spark.hadoop.fs.viewfs.mounttable.far.linkMergeSlash": "file:///",
}
KINDS = {"text": "stored as textfile", "parquet": "stored as parquet", "datasource": "using parquet"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A stock session and one with direct writes, each with a separate metastore."""
    top = tmp_path_factory.mktemp("writes")
    sessions = {name: Session(top / name, millstream=name == "ours", conf=HIVE) for name in ("stock", "ours")}
    yield sessions
    for session in sessions.values():
        session.close()


def same(both, is_direct=True, **arguments):
    """Runs statements in both sessions; returns the results of direct writes, which must be the same as stock's.

    Statements that are not direct leave stock's information about sizes.
    """
    for session in both.values():
        session.ask("write_calls:run", home=str(session.home / "home"), **arguments)
    return compared({name: session.answer() for name, session in both.items()}, is_direct)


def compared(answers, is_direct=True):
    ours, stock = answers["ours"], answers["stock"]
    assert "crash" not in ours and "crash" not in stock, answers
    assert ours["errors"] == stock["errors"]
    assert ours["nodes"] == [
        f"Direct{name}".replace("RelationCommand", "Relation").replace("DirCommand", "Dir") for name in stock["nodes"]
    ]
    for name, table in stock["tables"].items():
        assert differences(without_sizes(ours["tables"][name]), without_sizes(table)) == []
        if is_direct:
            check_sizes(ours["tables"][name])
    assert counts(ours["files"]) == counts(stock["files"])
    return ours


def differences(ours, stock, path=""):
    """The differences between two descriptions."""
    if isinstance(ours, dict) and isinstance(stock, dict) and ours.keys() == stock.keys():
        return [found for key in ours for found in differences(ours[key], stock[key], f"{path}/{key}")]
    return [] if ours == stock else [f"{path}: {ours}, stock {stock}"]


def without_sizes(table):
    def shown(description):
        return {key: value for key, value in description.items() if key not in ("sizes", "statistics")}

    if table is None:
        return None
    partitions = {name: shown(description) for name, description in table["partitions"].items()}
    return {
        **table,
        "table": shown(table["table"]),
        "partitions": partitions,
        "directories": counts(table["directories"]),
    }


def counts(directories):
    return {name: [files, others] for name, (files, _, others) in directories.items()}


def check_sizes(table):
    """The catalog has the sizes of partitions."""
    for name, description in (table or {"partitions": {}})["partitions"].items():
        files, size, _ = next(
            (found for directory, found in table["directories"].items() if directory.lower() == name.lower()),
            (0, 0, []),
        )
        if description["sizes"]:
            assert description["sizes"] == {"numFiles": str(files), "totalSize": str(size)}, name


ROWS = "select id, 'x', cast(id % 3 as string) from range(10)"
SPECIAL = r"""select 1, 'x', v from (values ('a/b'), ('sp ace'), ('\u00fc'), (null), (''), ('a=b'), ('100%'), ('c:d'), ('{x}'), ('q"q')) p(v)"""
# Statements on a table t (a int, b string) partitioned by (k string), one after the other.
PARTITIONED = {
    "dynamic": [
        "insert into t partition(k) " + ROWS,
        "insert overwrite t partition(k) select 7, 'new', k from (values ('1'), ('new')) v(k)",
        "insert into t partition(k) select 8, 'more', k from (values ('1'), ('other')) v(k)",
        "insert overwrite t partition(k) select 9, 'none', 'k' where false",
    ],
    "static": [
        "insert into t partition(k='1') select id, 'x' from range(10)",
        "insert into t partition(k='1') select 11, 'y'",
        "insert overwrite t partition(k='1') select 12, 'z'",
        "insert overwrite t partition(k='2') select 13, 'z'",
        "insert overwrite t partition(k='2') select 14, 'z' where false",
        "insert into t partition(k='3') select 15, 'z' where false",
    ],
    "not exists": [
        "insert overwrite t partition(k='1') if not exists select 1, 'a'",
        "insert overwrite t partition(k='1') if not exists select 2, 'b'",
    ],
    "special values": [
        "insert into t partition(k) " + SPECIAL.replace("{", "{{").replace("}", "}}"),
        "insert overwrite t partition(k) " + SPECIAL.replace("1, 'x'", "2, 'y'").replace("{", "{{").replace("}", "}}"),
        "insert into t partition(k='st/a tic') select 3, 'z'",
        "insert overwrite t partition(k=null) select 4, 'z'",
    ],
    "from itself": [
        "insert into t partition(k) " + ROWS,
        "insert overwrite t partition(k) select a + 100, b, '1' from t where k = '1'",
    ],
    "dropped before": [
        "insert into t partition(k) " + ROWS,
        "alter table t drop partition(k='1')",
        "insert into t partition(k) select 20, 'again', '1'",
        "insert overwrite t partition(k='2') select 21, 'again'",
    ],
    "elsewhere": [
        "insert into t partition(k) " + ROWS,
        "alter table t add partition(k='far') location '{home}/far'",
        "insert into t partition(k) select 30, 'far', k from (values ('far'), ('1')) v(k)",
        "insert overwrite t partition(k) select 31, 'far', k from (values ('far'), ('2')) v(k)",
        "insert overwrite t partition(k='far') select 32, 'static'",
    ],
    "failing": [
        "insert into t partition(k) " + ROWS,
        "insert overwrite t partition(k) select if(id = 99, raise_error('no'), id), 'bad', cast(id % 5 as string) from range(100)",
    ],
}


def creation(kind, place=""):
    columns = (
        "a int, b string, k string) {} partitioned by (k)"
        if kind == "datasource"
        else "a int, b string) partitioned by (k string) {}"
    )
    return (
        f"create {'external' if place and kind != 'datasource' else ''} table t ({columns.format(KINDS[kind])} {place}"
    )


@pytest.mark.parametrize("script, kind", [(script, kind) for script in PARTITIONED for kind in KINDS])
def test_partitioned_tables(both, kind, script):
    answer = same(both, is_direct=script != "elsewhere", statements=[creation(kind), *PARTITIONED[script]])
    fails = [error is not None for error in answer["errors"]]
    assert fails == [False] * (len(fails) - 1) + [script == "failing"]


@pytest.mark.parametrize("kind", KINDS)
def test_external_tables(both, kind):
    same(
        both,
        statements=[creation(kind, "location '{home}/t'"), *PARTITIONED["dropped before"], *PARTITIONED["dynamic"]],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_partition_on_another_file_system_is_left_to_spark(both, kind):
    same(
        both,
        is_direct=False,
        statements=[
            creation(kind),
            "insert into t partition(k) " + ROWS,
            "alter table t add partition(k='far') location 'viewfs://far{home}/far'",
            "insert into t partition(k) select 30, 'near', '1'",
            "insert overwrite t partition(k) select 31, 'near', '2'",
        ],
    )
    assert "a partition of the table is at viewfs://far/" in both["ours"].log.read_text()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", ["true", "false"])
def test_statistics_of_columns(both, kind, counts):
    """Spark cannot read statistics of columns without those of the table, so a commit removes them together."""
    arguments = {
        "conf": {"spark.sql.statistics.size.autoUpdate.enabled": counts},
        "statements": [
            creation(kind),
            "insert into t partition(k) " + ROWS,
            "analyze table t compute statistics for columns a, b",
            "insert into t partition(k) select 1, 'x', 'new'",
            "analyze table t partition(k='1') compute statistics",
            "analyze table t compute statistics for all columns",
            "insert overwrite t partition(k) select 1, 'x', k from values ('1'), ('newer') v(k)",
        ],
    }
    answers = {
        name: session.call("write_calls:run", home=str(session.home / "home"), **arguments)
        for name, session in both.items()
    }
    assert compared(answers)["errors"] == [None] * 7
    ours, stock = (answers[name]["tables"]["t"]["table"]["statistics"] for name in ("ours", "stock"))
    assert ours == stock and bool(ours) == (counts == "true")


@pytest.mark.parametrize("kind", KINDS)
def test_several_partition_columns(both, kind):
    columns = (
        "a int, Y int, K string) using parquet partitioned by (Y, K)"
        if kind == "datasource"
        else f"a int) partitioned by (Y int, K string) {KINDS[kind]}"
    )
    same(
        both,
        statements=[
            f"create table t ({columns}",
            "insert into t partition(y, k) select id, 2000 + id % 2, cast(id % 3 as string) from range(12)",
            "insert overwrite t partition(y=2000, k) select 50, k from (values ('0'), ('new')) v(k)",
            "insert into t partition(y=2001, k='0') select 51",
            "insert overwrite t partition(y=2001, k='1') select 52",
            "insert overwrite t partition(y, k) select 53, 1999, 'old'",
        ],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_partitions(both, kind):
    same(
        both,
        statements=[
            f"create table t (a int) {KINDS[kind]}",
            "insert into t select id from range(10)",
            "insert into t select 11",
            "insert overwrite t select 12",
            "insert into t select 13 where false",
            "insert into t select 14",
        ],
    )


@pytest.mark.parametrize("kind", KINDS)
def test_create_table_as_select(both, kind):
    same(
        both,
        tables=("t", "u"),
        statements=[
            f"create table t {KINDS[kind]} as select id a, 'x' b from range(5)",
            f"create table u {KINDS[kind]} {'partitioned by (k)'} as select id a, cast(id % 2 as string) k from range(5)",
            f"create table t {KINDS[kind]} as select 1 a",
            f"create table if not exists t {KINDS[kind]} as select 1 a",
        ],
    )


FORMATS = {
    "sequence file": "stored as sequencefile",
    "rcfile": "stored as rcfile",
    "avro": "stored as avro",
    "csv serde": "row format serde 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
    "buckets": "clustered by (a) into 2 buckets stored as textfile",
}


@pytest.mark.parametrize("format", FORMATS)
def test_serdes(both, format):
    same(
        both,
        statements=[
            f"create table t (a string, b string) partitioned by (k string) {FORMATS[format]}",
            "insert into t partition(k) " + ROWS,
            "insert overwrite t partition(k) select 7, 'new', '1'",
        ],
    )


def test_serdes_of_columnar_formats_and_compression(both):
    conf = {
        "spark.sql.hive.convertMetastoreParquet": "false",
        "spark.sql.hive.convertMetastoreOrc": "false",
        "hive.exec.compress.output": "true",
        "mapreduce.output.fileoutputformat.compress.codec": "org.apache.hadoop.io.compress.GzipCodec",
    }
    formats = {"p": "parquet", "o": "orc", "t": "textfile"}
    create = [
        f"create table {name} (a string, b string) partitioned by (k string) stored as {format}"
        for name, format in formats.items()
    ]
    insert = [f"insert {how} {name} partition(k) {ROWS}" for name in formats for how in ("into", "overwrite")]
    same(both, conf=conf, tables=tuple(formats), statements=create + insert)


def test_directories(both):
    same(
        both,
        tables=(),
        statements=[
            f"insert overwrite directory '{{home}}/text' {ROWS}",
            "insert overwrite directory '{home}/text' select 1",
            "insert overwrite local directory '{home}/local' row format delimited fields terminated by '|' select 1, map('a', 2), null",
            "insert overwrite directory '{home}/orc' stored as orc select 1 a",
            "insert overwrite directory '{home}/json' using json select 1 a",
            "insert overwrite directory '{home}/json' using json select 2 b",
            "insert overwrite directory '{home}/twice' select 1 a, 2 a",
        ],
    )


WRITER = """
frame = spark.range(10).selectExpr("id a", "cast(id % 3 as string) k")
frame.write.partitionBy("k").saveAsTable("t")
frame.where("k = 1").write.mode("overwrite").insertInto("t")
frame.write.mode("append").partitionBy("k").saveAsTable("t")
frame.write.mode("overwrite").partitionBy("k").saveAsTable("u")
frame.write.mode("overwrite").partitionBy("k").saveAsTable("u")
frame.write.csv(home + "/csv")
frame.write.mode("append").csv(home + "/csv")
frame.write.mode("overwrite").csv(home + "/csv")
frame.write.mode("ignore").csv(home + "/csv")
frame.write.partitionBy("k").parquet(home + "/parts")
frame.where("k = 1").write.mode("overwrite").partitionBy("k").parquet(home + "/parts")
frame.where("k = 1").write.mode("overwrite").option("partitionOverwriteMode", "static").partitionBy("k").parquet(home + "/parts")
frame.write.csv(home + "/csv")
"""


def test_writers(both):
    answer = same(both, statements=[], tables=("t", "u"), code=WRITER)
    assert "PATH_ALREADY_EXISTS" in answer["errors"][0]


SINK = """
spark.range(3).selectExpr("cast(id as string) value").write.text(home + "/in")
rows = spark.readStream.text(home + "/in").writeStream.option("checkpointLocation", home + "/progress").trigger(availableNow=True)
rows.start(home + "/sink", "text").awaitTermination()
spark.range(10, 15).selectExpr("cast(id as string) value").write.mode("overwrite").text(home + "/sink")
spark.read.text(home + "/sink").write.saveAsTable("u")
"""


def test_the_output_of_a_stream_is_replaced_with_its_log(both):
    """Readers believe the log, which an overwrite that keeps hidden files would leave."""
    rows = same(
        both,
        is_direct=False,
        statements=[],
        tables=("u",),
        code=SINK,
        conf={"spark.sql.sources.partitionOverwriteMode": "static"},
    )["tables"]["u"]["rows"]
    assert sorted(rows) == [f"Row(value='{number}')" for number in range(10, 15)]


@pytest.mark.parametrize("kind", KINDS)
def test_static_overwrite_mode(both, kind):
    same(
        both,
        conf={"spark.sql.sources.partitionOverwriteMode": "static"},
        statements=[creation(kind), *PARTITIONED["dynamic"][:3], "insert overwrite t partition(k='1') select 70, 'y'"],
    )


def test_too_many_partitions(both):
    conf = {"hive.exec.max.dynamic.partitions": "2"}
    small = "insert into t partition(k) select 1, 'x', 'k'"

    def run(statements):
        if not pyspark.__version__.startswith(("4.0.", "4.1.")):
            return same(both, conf=conf, statements=statements)
        # Stock Spark 4.0 and 4.1 write more partitions of a managed table than the session allows.
        ours = both["ours"]
        return ours.call("write_calls:run", home=str(ours.home / "home"), conf=conf, statements=statements)

    answer = run(
        [
            creation("text"),
            small,
            "analyze table t compute statistics for all columns",
            "insert into t partition(k) " + ROWS,
        ]
    )
    assert "which is more than 2" in answer["errors"][3]
    # A refused statement does not change the statistics either.
    assert "rows" in answer["tables"]["t"]["table"]["statistics"]["Statistics"]
    answer = run([creation("text"), "insert into t partition(k) " + ROWS, small])
    assert "which is more than 2" in answer["errors"][1]


def test_the_plan_names_the_direct_command(both):
    plan = both["ours"].call("write_calls:plan", statement="insert overwrite directory '/nowhere' select 1")
    assert "DirectInsertIntoHiveDir" in plan


def test_files_of_a_dead_driver_are_removed_by_recovery_and_by_the_next_writer(both, tmp_path):
    ours, table = both["ours"], str(tmp_path / "table")
    first, second = "00000000-0000-4000-8000-00000000dead", "00000000-0000-4000-8001-00000000dead"

    def files():
        walk = (
            (directory, names) for directory, _, names in os.walk(table) if not directory.endswith("/.direct-writes")
        )
        return sorted(name for _, names in walk for name in names if not name.endswith(".crc") and name != "_SUCCESS")

    ours.call("write_calls:fill", path=table, value="old", partitions=2, mode="append")
    before = files()
    assert ours.call("write_calls:abandon", path=table, job=first) is None
    assert files() != before
    (finding,) = ours.call("write_calls:recover", target=table, dry_run=True)
    assert (finding["job"], finding["verdict"]) == (first, "roll-back") and any(
        f"part-{first}" in step for step in finding["steps"]
    )
    assert files() != before
    assert [finding["verdict"] for finding in ours.call("write_calls:recover", target=table)] == ["roll-back"]
    assert files() == before
    ours.call("write_calls:abandon", path=table, job=second)
    ours.call("write_calls:fill", path=table, value="more", partitions=2, mode="append")
    assert len(files()) == 2 * len(before) and not any("dead" in name for name in files())
    assert ours.call("write_calls:values", path=table) == [["more", 2], ["old", 2]]


@pytest.mark.parametrize("partitions", [1, 3])
def test_whoever_reads_a_pattern_finds_no_journal(both, tmp_path, partitions):
    """A pattern names hidden directories too."""
    table = str(tmp_path / "table")
    for mode in ("append", "overwrite"):
        both["ours"].call("write_calls:fill", path=table, value=mode, partitions=partitions, mode=mode)
    assert list(Path(table, ".direct-writes").iterdir())
    for session in both.values():
        assert session.call("write_calls:values", path=table, pattern="/*") == [["overwrite", partitions]]


def test_switched_off(both, tmp_path):
    ours = both["ours"]
    answer = ours.call(
        "write_calls:run",
        home=str(tmp_path / "home"),
        conf={"spark.millstream.write.enabled": "false"},
        statements=["create table t (a int) using csv", "insert into t select 1"],
    )
    assert answer["errors"] == [None, None] and answer["nodes"] == ["InsertIntoHadoopFsRelationCommand"]


def test_metrics(both, tmp_path):
    ours, home = both["ours"], str(tmp_path / "home")
    ours.call("write_calls:fill", path=home, value="old", partitions=3, mode="append")
    ours.call("write_calls:fill", path=home, value="new", partitions=3, mode="overwrite")
    shown = ours.call("write_calls:metrics_of_last_write")
    assert {
        name: shown[name]
        for name in (
            "number of written files",
            "number of dynamic part",
            "number of output rows",
            "number of replaced files",
        )
    } == {
        "number of written files": "3",
        "number of dynamic part": "3",
        "number of output rows": "3",
        "number of replaced files": "3",
    }
    assert {name for name in shown if name.startswith("commit: time")} >= {
        "commit: time publishing new files",
        "commit: time deleting old files",
    }


def test_tasks_share_the_configuration_but_not_their_changes(both):
    tasks = both["ours"].call("write_calls:shared_configuration")
    assert tasks["bytes"] < 5000 < 10 * tasks["sizes"][0]  # names and values would be more
    assert tasks["sizes"][0] == tasks["sizes"][1]
    assert tasks["setting"] == ["changed", "sent"]


@pytest.mark.parametrize("kind", KINDS)
def test_statements_do_not_send_the_configuration_with_their_tasks(both, kind):
    """Spark would warn about the size of such tasks."""
    large = "".join(random.Random(1).choices(string.ascii_letters, k=2_000_000))
    before = {name: session.log.stat().st_size for name, session in both.items()}
    same(both, conf={"test.large": large}, statements=[creation(kind), "insert into t partition(k) " + ROWS])
    warned = {
        name: "Broadcasting large task binary" in session.log.read_text()[before[name] :]
        for name, session in both.items()
    }
    assert warned == {"stock": True, "ours": False}


INTO, OVERWRITE = (
    f"insert {how} t partition(k) select 70, 'n', k from (values ('1'), ('new')) v(k)" for how in ("into", "overwrite")
)
# Damage to a table before a statement, as Python, and the statement; `path` is the table's directory.
SURVIVED = {
    "location gone": ("shutil.rmtree(path)", INTO),
    "location gone, overwrite": ("shutil.rmtree(path)", OVERWRITE),
    "a partition's directory gone": ("shutil.rmtree(path + '/k=1')", OVERWRITE),
    "files deeper than a partition": (
        "os.mkdir(path + '/k=1/deeper'); open(path + '/k=1/deeper/file', 'w').close()",
        OVERWRITE,
    ),
    "columns added": ("spark.sql('alter table t add columns (c int)')", OVERWRITE.replace("'n', k", "'n', 5, k")),
    "columns missing": ("spark.sql('alter table t add columns (c int)')", OVERWRITE),
}
FATAL = {
    "a file in a new partition's place": ("open(path + '/k=new', 'w').close()", OVERWRITE),
    "a partition that may not be written": ("os.chmod(path + '/k=1', 0o555)", OVERWRITE),
    "a partition that may not be written, insert": ("os.chmod(path + '/k=1', 0o555)", INTO),
    "a table that may not be written": ("os.chmod(path, 0o555)", OVERWRITE),
}
BEFALLEN = """
import os, shutil
path = location("t")
{damage}
try:
    spark.sql(\"\"\"{statement}\"\"\")
finally:
    for directory, _, _ in os.walk(path):
        os.chmod(directory, 0o755)
    if os.path.isfile(path + "/k=new"):
        os.remove(path + "/k=new")
"""


@pytest.mark.parametrize("kind", ["text", "datasource"])
@pytest.mark.parametrize("case", SURVIVED)
def test_damage_that_stock_survives(both, case, kind):
    damage, statement = SURVIVED[case]
    # The catalog's information about the other partitions is older than the removal of their
    # directories.
    same(
        both,
        is_direct="location gone" not in case,
        statements=[creation(kind), "insert into t partition(k) " + ROWS],
        code=BEFALLEN.format(damage=damage, statement=statement),
    )


@pytest.mark.parametrize("kind", ["text", "datasource"])
@pytest.mark.parametrize("case", FATAL)
def test_fatal_errors_leave_the_table_unchanged(both, case, kind):
    """Stock Spark fails as well, but may have written or removed something by then; its data sources delete a file that
    has a partition's name.
    """
    damage, statement = FATAL[case]
    filled = [creation(kind), "insert into t partition(k) " + ROWS]
    before = both["ours"].call("write_calls:run", home=str(both["ours"].home / "home"), statements=filled)
    code = BEFALLEN.format(damage=damage, statement=statement)
    after, stock = (
        both[name].call("write_calls:run", home=str(both[name].home / "home"), statements=filled, code=code)
        for name in ("ours", "stock")
    )
    assert after["errors"][-1]
    assert stock["errors"][-1] or (case, kind) == ("a file in a new partition's place", "datasource")
    assert differences(after["tables"]["t"], before["tables"]["t"]) == []


UNMARKED = """
import os
before = spark.table("t").collect()
marker = location("t") + "/_SUCCESS"
os.remove(marker)
os.mkdir(marker)
try:
    spark.sql("insert overwrite t select 2")
except Exception as error:
    assert "is committed and finished" in str(error), error
else:
    raise AssertionError("a directory has become a file")
"""


def test_committed_rows_are_visible_although_the_statement_fails(both):
    ours = both["ours"]
    answer = ours.call(
        "write_calls:run",
        home=str(ours.home / "home"),
        code=UNMARKED,
        statements=["create table t (a int) using csv", "insert into t select 1", "cache table t"],
    )
    assert answer["errors"] == [None] * 4
    assert answer["tables"]["t"]["rows"] == ["Row(a=2)"]


def test_a_commit_whose_spark_job_fails_reports_that_it_is_committed(both, tmp_path):
    ours, path = both["ours"], str(tmp_path / "d")
    ours.call("write_calls:fill", path=path, value="old", partitions=2, mode="append")
    error = ours.call("write_calls:fill_with_failing_commit", path=path, value="new", partitions=2)
    assert "CommittedException" in error and "the distributed apply of job" in error
    assert [finding["verdict"] for finding in ours.call("write_calls:recover", target=path)] == ["roll-forward"]
    assert ours.call("write_calls:values", path=path) == [["new", 2], ["old", 2]]


def test_rows_overwritten_while_they_are_read_are_read_completely(both, tmp_path):
    """Stock Spark deletes the rows first, and fails."""
    ours, path = both["ours"], str(tmp_path / "d")
    ours.call("write_calls:fill", path=path, value="old", partitions=3, mode="append")
    assert ours.call("write_calls:overwrite_with_itself", path=path) is None
    assert ours.call("write_calls:values", path=path) == [["old", 3]]


@pytest.mark.parametrize("format", ["textfile", "orc", "parquet"])
def test_hive_reads_the_written_tables(both, format):
    """With its own input formats and serdes, at the metastore's locations."""
    same(
        both,
        conf={"spark.sql.hive.convertMetastoreParquet": "false", "spark.sql.hive.convertMetastoreOrc": "false"},
        statements=[
            f"create table t (a int, b string) partitioned by (k string) stored as {format}",
            *PARTITIONED["dynamic"][:2],
            *PARTITIONED["special values"][:1],
        ],
    )
    rows = {name: session.call("write_calls:read_by_hive", name="t") for name, session in both.items()}
    assert "crash" not in rows["ours"] and rows["ours"] == rows["stock"]
    assert len(rows["ours"]) == 19 and any('"k":"a/b"' in row for row in rows["ours"])


@pytest.fixture
def spark_without_hive(tmp_path):
    """Spark's folder without Hive's jars; what ORC needs stays."""
    whole, home = Path(pyspark.__file__).parent, tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    wanted = [path for path in whole.iterdir() if path.name != "jars"]
    wanted += [
        jar
        for jar in (whole / "jars").iterdir()
        if not re.match("(spark-)?hive-(?!storage-api)", jar.name.replace("_", "-"))
    ]
    for path in wanted:
        (home / path.relative_to(whole)).symlink_to(path)
    return home


def test_spark_without_hive(stock, tmp_path, spark_without_hive):
    """Without Hive, the classes in Hive's package are not loaded; Spark's own data sources are read and written."""
    conf = {"spark.millstream.write.enabled": "true"}
    session = Session(
        tmp_path / "ours", millstream=True, conf=conf, environment={"SPARK_HOME": str(spark_without_hive)}
    )
    try:
        assert not session.call("write_calls:loads", name="org.apache.spark.sql.hive.execution.InsertIntoHiveTable")
        same(
            {"stock": stock, "ours": session},
            conf={"spark.sql.sources.partitionOverwriteMode": "dynamic"},
            statements=[creation("datasource"), *PARTITIONED["dynamic"]],
        )
        session.call("write_calls:fill", path=str(tmp_path / "table"), value="x", partitions=3, mode="append")
        assert session.call("write_calls:values", path=str(tmp_path / "table")) == [["x", 3]]
        assert "CompactFileIndex" in session.call("session_calls:plan", path=str(tmp_path / "table"))
        assert "Millstream does not support" not in session.log.read_text()
    finally:
        session.close()
