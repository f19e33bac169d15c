"""Overwrites that become visible as a whole, by new locations of partitions or by an exchange of directories: rows and
partitions are the same as with stock Spark, and no old rows come back.
"""

import os

import pytest
from sessions import Session
from test_direct_writes import HIVE, KINDS, PARTITIONED, ROWS, compared, creation, differences

EXCHANGE = {"fs.millstream.write.visibility": "exchange"}
SWAP = {**HIVE, "spark.hadoop.fs.millstream.write.visibility": "metastore-swap"}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    top = tmp_path_factory.mktemp("swap")
    sessions = {
        "stock": Session(top / "stock", millstream=False, conf=HIVE),
        "ours": Session(top / "ours", millstream=True, conf=SWAP),
    }
    yield sessions
    for session in sessions.values():
        session.close()


def same(both, tables=("t",), **arguments):
    """Runs statements in both sessions: the results are the same except for the files' locations. Returns the location
    of each table and partition in ours.
    """
    for session in both.values():
        session.ask("write_calls:run", home=str(session.home / "home"), tables=tables, **arguments)
    answers = {name: session.answer() for name, session in both.items()}
    ours, stock = answers["ours"], answers["stock"]
    assert "crash" not in ours and "crash" not in stock, answers
    assert ours["errors"] == stock["errors"]
    assert [node for node in ours["nodes"] if not node.startswith("Direct")] == []
    # A location is a URI, not a name.
    assert [folder for folder, _, _ in os.walk(both["ours"].home) if folder.endswith(":")] == []
    for name, table in stock["tables"].items():
        assert differences(logical(ours["tables"][name]), logical(table)) == []
    return {name: both["ours"].call("swap_calls:places", name=f"d.{name}") for name in tables}


def logical(table):
    def shown(description):
        return {key: value for key, value in description.items() if key not in ("sizes", "statistics", "Location")}

    return {
        "rows": table["rows"],
        "schema": table["schema"],
        "partitions": {name: shown(found) for name, found in table["partitions"].items()},
    }


def swapped(places, uncounted=()):
    """Partitions that a swap has moved; all have correct numbers of files, except those to which Spark's own command
    has added files.
    """
    for name, place in places.items():
        files = [file for file in os.listdir(place["location"]) if file[0] not in "._"]
        if name not in uncounted and place["files"] is not None:
            assert place["files"] == len(files), name
    return {name for name, place in places.items() if "/.swap-" in place["location"]}


@pytest.mark.parametrize("script, kind", [(script, kind) for script in PARTITIONED for kind in KINDS])
def test_partitioned_tables(both, kind, script):
    places = same(both, statements=[creation(kind), *PARTITIONED[script]])["t"]
    expected = {"dynamic": {"k=1", "k=new"}, "static": {"k=1", "k=2"}}
    found = swapped(
        places, uncounted={"k=1"} if script == "elsewhere" else ()
    )  # an INSERT out of the table's reach is Spark's
    assert found == expected.get(script, found)


@pytest.mark.parametrize("kind", KINDS)
def test_static_overwrite_mode(both, kind):
    places = same(
        both,
        conf={"spark.sql.sources.partitionOverwriteMode": "static"},
        statements=[creation(kind), *PARTITIONED["dynamic"][:3], "insert overwrite t partition(k='1') select 70, 'y'"],
    )["t"]
    assert "k=1" in swapped(places)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_partitions(both, kind):
    statements = [
        "insert into t select id from range(10)",
        "insert overwrite t select 12",
        "insert into t select 13",
        "insert overwrite t select a + 1 from t",
        "insert into t select 14 where false",
        "insert overwrite t select 15 where false",
        "insert into t select 16",
    ]
    place = "using parquet location '{home}/t'" if kind == "datasource" else f"{KINDS[kind]} location '{{home}}/t'"
    create = f"create {'' if kind == 'datasource' else 'external'} table t (a int) {place}"
    assert swapped(same(both, statements=[create, *statements])["t"]) == {""}
    managed = same(
        both,
        statements=[
            f"create table t (a int) {KINDS[kind]}",
            *statements,
            "drop table t",
            f"create table t (a int) {KINDS[kind]}",
        ],
    )
    assert swapped(managed["t"]) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_moved_partitions_are_written_in_place(both, kind):
    """Replaced rows do not come back with a dropped partition either."""
    places = same(
        both,
        conf={"fs.millstream.write.visibility": "metastore-swap"},
        statements=[
            creation(kind),
            "insert into t partition(k) " + ROWS,
            "insert overwrite t partition(k) select 40, 'new', k from (values ('1'), ('2')) v(k)",
            "alter table t drop partition(k='2')",
            "insert into t partition(k) select 41, 'again', '2'",
            "set fs.millstream.write.visibility=in-place",
            "insert into t partition(k) select 42, 'more', k from (values ('1'), ('2'), ('3')) v(k)",
            "insert overwrite t partition(k) select 43, 'over', k from (values ('1'), ('3')) v(k)",
            "insert overwrite t partition(k='0') select 44, 'static'",
            "insert overwrite t partition(k='1') select 45, 'static' where false",
            "insert into t partition(k='1') select 46, 'static'",
        ],
    )["t"]
    assert swapped(places) == {"k=1"}


def test_locations_outside_of_the_table(both):
    places = same(
        both,
        statements=[
            creation("text"),
            "insert into t partition(k) " + ROWS,
            "alter table t add partition(k='far') location '{home}/far'",
            "alter table t add partition(k='also far') location '{home}/far'",
            "alter table t add partition(k='gone') location '{home}/gone'",
            "insert overwrite t partition(k) select 31, 'far', k from (values ('gone'), ('2')) v(k)",
            "insert overwrite t partition(k='gone') select 32, 'x'",
        ],
    )["t"]
    assert swapped(places) == {"k=2", "k=gone"}


def test_a_second_table_on_the_directory_of_a_swapped_one_is_warned_of(both):
    ours = both["ours"]
    columns = "(a int) partitioned by (k string) stored as textfile location '{home}/shared'"
    answer = ours.call(
        "write_calls:run",
        home=str(ours.home / "home"),
        conf={"fs.millstream.write.visibility": "metastore-swap"},
        statements=[
            f"create external table t {columns}",
            "insert into t partition(k='1') select 1",
            "insert overwrite t partition(k='1') select 2",
            f"create external table second {columns}",
            "msck repair table second",
        ],
    )
    assert answer["errors"] == [None] * 5, answer["errors"]
    warnings = [
        line
        for line in ours.log.read_text().splitlines()
        if "or of another table on this directory" in line and ".second uses" in line
    ]
    assert [line.partition(" of ")[0].rpartition(": ")[2] for line in warnings] == ["CREATE TABLE", "MSCK REPAIR TABLE"]


def test_several_partition_columns_and_special_values(both):
    special = PARTITIONED["special values"]
    places = same(
        both,
        statements=[
            "create table t (a int, Y int, K string) using parquet partitioned by (Y, K)",
            "insert into t partition(y, k) select id, 2000 + id % 2, cast(id % 3 as string) from range(12)",
            "insert overwrite t partition(y=2000, k) select 50, k from (values ('0'), ('new')) v(k)",
            "insert into t partition(y=2001, k='0') select 51",
            "insert overwrite t partition(y=2001, k='1') select 52",
            "msck repair table t",
        ],
    )["t"]
    assert swapped(places) == {"Y=2000/K=0", "Y=2000/K=new", "Y=2001/K=1"}
    same(both, statements=[creation("parquet"), *special])


def test_create_table_as_select_and_paths(both):
    same(
        both,
        tables=("t", "u"),
        statements=[
            "create table t stored as parquet as select id a, cast(id % 2 as string) k from range(5)",
            "create table u using parquet partitioned by (k) as select * from t",
            "insert overwrite directory '{home}/csv' using csv select 1",
            "insert overwrite directory '{home}/csv' using csv select 2",
        ],
    )


INTO = "insert into d.t partition(k='1') select wait('more')"
OVERWRITE = "insert overwrite d.t partition(k='1') select 'new'"


def test_an_insert_into_a_partition_moved_meanwhile_is_refused(both, tmp_path):
    answer = both["ours"].call(
        "swap_calls:statement_during_another", home=str(tmp_path / "home"), slow=INTO, fast=OVERWRITE
    )
    assert "moved it to" in answer["error"] and "nothing is written" in answer["error"]
    assert answer["rows"] == ["new"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_that_is_renamed_after_a_swap_is_written_under_its_new_name(both, kind):
    same(
        both,
        tables=("t", "u"),
        statements=[
            creation(kind),
            "insert into t partition(k) " + ROWS,
            "insert overwrite t partition(k='1') select 40, 'new'",
            "alter table t rename to u",
            creation(kind),
            "set fs.millstream.write.replaced.keep.ms=0",
            "insert into u partition(k) " + ROWS,
            "insert overwrite u partition(k='2') select 41, 'newer'",
            "insert into t partition(k='1') select 42, 'another'",
            "set fs.millstream.write.replaced.keep.ms=600000",
        ],
    )


def test_replaced_files_are_deleted_after_their_keep_time(both):
    ours = both["ours"]
    same(
        both,
        statements=[
            creation("text"),
            "insert into t partition(k='1') select 1, 'old'",
            "insert overwrite t partition(k='1') select 2, 'new'",
        ],
    )
    assert ours.call("write_calls:recover", target="d.t") == []
    assert ours.call("swap_calls:files", name="d.t") == 2
    found = ours.call("swap_calls:recover_with", target="d.t", keep_millis=0)
    assert [finding["verdict"] for finding in found] == ["remove-replaced"] and len(found[0]["steps"]) == 1
    assert ours.call("swap_calls:files", name="d.t") == 1


def exchanged(both, **arguments):
    """Runs statements in both sessions: the results are the same, and locations do not change."""
    for session in both.values():
        session.ask("write_calls:run", home=str(session.home / "home"), conf=EXCHANGE, **arguments)
    return compared({name: session.answer() for name, session in both.items()})


@pytest.mark.parametrize(
    "script, kind", [(script, kind) for script in PARTITIONED if script != "elsewhere" for kind in KINDS]
)
def test_exchanged_partitions(both, kind, script):
    exchanged(both, statements=[creation(kind), *PARTITIONED[script]])
    if script == "dynamic":
        overwrite = "insert overwrite d.t partition(k) select 40, 'new', k from (values ('1'), ('new')) v(k)"
        assert both["ours"].call("swap_calls:replaced_directories", name="d.t", conf=EXCHANGE, statement=overwrite) == [
            "k=1",
            "k=new",
        ]
    assert "appear one by one" not in both["ours"].log.read_text()


def test_exchanged_paths(both):
    """Exchanges directories without a table."""
    exchanged(
        both,
        tables=(),
        statements=[],
        code="""
        def write(rows, mode):
            spark.range(rows).selectExpr("id", "id % 3 k").write.partitionBy("k").mode("overwrite").option("partitionOverwriteMode", mode).csv(home + "/p")
        write(9, "static")
        write(2, "dynamic")
        assert spark.read.csv(home + "/p").count() == 5
        write(2, "static")
        assert spark.read.csv(home + "/p").count() == 2
        """.replace("\n        ", "\n"),
    )
    assert "/home/p in place" not in both["ours"].log.read_text()


def test_targets_that_cannot_be_exchanged_are_overwritten_in_place_with_a_warning(both):
    ours = both["ours"]
    answer = ours.call(
        "write_calls:run",
        home=str(ours.home / "home"),
        conf=EXCHANGE,
        statements=[
            "create table t (a int) using parquet",
            "insert overwrite t select 1",
            "insert overwrite t select 2",
            "insert overwrite directory '{home}/d' using csv select 1",
            "insert overwrite directory '{home}/d' using csv select 2",
        ],
    )
    assert answer["tables"]["t"]["rows"] == ["Row(a=2)"]
    reasons = [
        line
        for line in ours.log.read_text().splitlines()
        if "its own directory cannot be exchanged, because it contains the journal" in line
    ]
    assert (
        len([line for line in reasons if ".d.t in place" in line]) == 1
        and len([line for line in reasons if "/home/d in place" in line]) == 1
    )


def test_an_insert_into_a_partition_exchanged_meanwhile_is_kept(both, tmp_path):
    answer = both["ours"].call(
        "swap_calls:statement_during_another", home=str(tmp_path / "home"), slow=INTO, fast=OVERWRITE, conf=EXCHANGE
    )
    assert answer == {"error": None, "rows": ["more", "new"]}


@pytest.mark.parametrize(
    "creation",
    [
        "(a string) partitioned by (k string) stored as textfile",
        "(a string, k string) using parquet partitioned by (k)",
    ],
)
@pytest.mark.parametrize("visibility", ["in-place", "exchange", "metastore-swap"])
def test_if_not_exists_does_not_overwrite_a_partition_created_meanwhile(both, tmp_path, visibility, creation):
    answer = both["ours"].call(
        "swap_calls:statement_during_another",
        home=str(tmp_path / "home"),
        conf={"fs.millstream.write.visibility": visibility},
        creation=creation,
        slow="insert overwrite d.t partition(k='2') if not exists select wait('late')",
        fast="insert into d.t partition(k='2') select 'early'",
    )
    assert answer == {"error": None, "rows": ["early", "old"]}
    assert both["ours"].call("write_calls:recover", target="d.t") == []


def test_partitions_that_a_swap_has_moved_are_exchanged_there(both):
    statements = [
        creation("parquet"),
        "insert into t partition(k) " + ROWS,
        "insert overwrite t partition(k='1') select 40, 'moved'",
        "set fs.millstream.write.visibility=exchange",
        "insert overwrite t partition(k) select 41, 'x', k from (values ('1'), ('2')) v(k)",
    ]
    places = same(both, conf={"fs.millstream.write.visibility": "metastore-swap"}, statements=statements)["t"]
    assert swapped(places) == {"k=1"}
