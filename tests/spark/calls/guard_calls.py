"""Functions for test_guarded_paths.py that run in a session's process: statements that read or write a table's files
not by its name.
"""

import contextlib
import os

from lost_row_calls import error_of
from swap_calls import settings

V2 = {"spark.sql.sources.useV1SourceList": ""}
TEXT = "(a string) stored as textfile"
PARTITIONED = "(a string) partitioned by (q string) stored as textfile"


def copy(spark, way, folder, name):
    """Copies the rows of `folder/p=1`, read in some way; returns the statement's error, and the values of the copy."""
    source = f"{folder}/p=1"
    with READS[way](spark, source, name) as read:
        error = error_of(lambda: read().write.mode("overwrite").saveAsTable(f"{name}_copy"))
    return error, sorted(int(row[0]) for row in spark.table(f"{name}_copy").collect()) if error is None else None


@contextlib.contextmanager
def table(spark, name, *statements):
    for statement in statements:
        spark.sql(statement)
    yield lambda: spark.table(name).select("a")


def external(kind):
    return lambda spark, source, name: table(spark, name, f"create table {name} {kind} location '{source}'")


def as_a_partition(kind):
    def read(spark, source, name):
        return table(
            spark, name, f"create table {name} {kind}", f"alter table {name} add partition (q='1') location '{source}'"
        )

    return read


@contextlib.contextmanager
def two_partitions(spark, source, name):
    """A partition that the query does not read is elsewhere, too."""
    with as_a_partition(PARTITIONED)(spark, source, name):
        spark.sql(
            f"alter table {name} add partition (q='2') location '{os.path.dirname(os.path.dirname(source))}/nothing'"
        )
        yield lambda: spark.table(name).where("q = '1' and a is not null").select("a")


@contextlib.contextmanager
def path(spark, source, name):
    frame = spark.read.text(source)
    yield lambda: frame


@contextlib.contextmanager
def version_2(spark, source, name):
    with settings(spark, V2):
        frame = spark.read.text(source)
        assert "RelationV2" in frame._jdf.queryExecution().analyzed().toString(), "not a source of version 2"
        yield lambda: frame


@contextlib.contextmanager
def in_sql(spark, source, name):
    yield lambda: spark.sql(f"select * from text.`{source}`")


@contextlib.contextmanager
def a_view(spark, source, name):
    spark.read.text(source).createOrReplaceTempView(f"{name}_view")
    yield lambda: spark.sql(f"select value from {name}_view where value is not null")


@contextlib.contextmanager
def in_a_subquery(spark, source, name):
    spark.sql(f"create table {name} {TEXT} location '{source}'")
    yield lambda: spark.sql(f"select id from range(1000) where id in (select cast(a as bigint) from {name})")


@contextlib.contextmanager
def a_common_table(spark, source, name):
    spark.sql(f"create table {name} {TEXT} location '{source}'")
    yield lambda: spark.sql(
        f"with x as (select * from {name}) select id from range(1000) where id in (select cast(a as bigint) from x)"
    )


@contextlib.contextmanager
def a_shared_common_table(spark, source, name):
    spark.sql(f"create table {name} {TEXT} location '{source}'")
    yield lambda: spark.sql(
        f"with x as (select * from {name}) select a from x where a < 20 union all select a from x where a >= 20"
    )


@contextlib.contextmanager
def a_pattern(spark, source, name):
    frame = spark.read.text(f"{source[:-1]}[1]")
    yield lambda: frame


def copy_from_above(spark, folder, name, options):
    """Copies what is found in and below the directory above `folder`; returns the statement's error, and the values of
    the copy.
    """
    frame = spark.read.options(**options).text(os.path.dirname(folder)).select("value")
    error = error_of(lambda: frame.write.mode("overwrite").saveAsTable(f"{name}_copy"))
    return error, sorted(int(row[0]) for row in spark.table(f"{name}_copy").collect()) if error is None else None


def cache(spark, folder, name):
    """Keeps the rows of a path in memory, as a view; forgets those of other tests."""
    spark.catalog.clearCache()
    spark.read.text(folder).cache().createOrReplaceTempView(name)
    spark.table(name).count()


def rows_as_listed(spark, folder, names):
    """The rows of tables or views, as the session has listed their files."""
    return [sorted([int(a), str(p)] for a, p in spark.table(name).collect()) for name in names]


READS = {
    "an external table": external(TEXT),
    "an external data source table": external("(a string) using text"),
    "a partition of another table": as_a_partition(PARTITIONED),
    "a partition of another data source table": as_a_partition("(a string, q string) using text partitioned by (q)"),
    "a selected partition": two_partitions,
    "a path": path,
    "a source of version 2": version_2,
    "a path in SQL": in_sql,
    "a view of a path": a_view,
    "a subquery": in_a_subquery,
    "a common table expression": a_common_table,
    "a common table expression that is used twice": a_shared_common_table,
    "a pattern": a_pattern,
}


def copy_linked(spark, folder, links, way, name):
    """Copies what is found in a directory in which `p=1` is a link; returns the statement's error, and the values of
    the copy.
    """
    if way == "a path":
        frame = spark.read.text(links).select("value")
    else:
        spark.sql(
            f"create table {name} {PARTITIONED.replace('q string', 'p string')} location '{links}'"
            if way == "a table"
            else f"create table {name} (a string, p string) using text partitioned by (p) location '{links}'"
        )
        spark.sql(f"alter table {name} add if not exists partition (p='1')")
        frame = spark.table(name).select("a")
    error = error_of(lambda: frame.write.mode("overwrite").saveAsTable(f"{name}_copy"))
    return error, sorted(int(row[0]) for row in spark.table(f"{name}_copy").collect()) if error is None else None


LINKED = ["a table", "a data source table", "a path"]


def write_linked(spark, links, way, name, conf=None):
    """Writes a row to partition 1 of a table in a directory in which `p=1` is a link; returns the statement's error."""
    row = spark.range(1000, 1001).selectExpr("cast(id as int) a", "'1' p")
    kind = (
        "(a int, p string) using csv partitioned by (p)"
        if "source" in way
        else "(a int) partitioned by (p string) stored as textfile"
    )
    with settings(spark, conf or {}):
        if way == "a path":
            return error_of(lambda: row.write.mode("overwrite").partitionBy("p").csv(links))
        spark.sql(f"create table {name} {kind} location '{links}'")
        spark.sql(f"alter table {name} add if not exists partition (p='1')")
        return error_of(lambda: spark.sql(WRITES[way].format(name)))


# Statements by their names, and whether they overwrite; `a path` has none.
WRITES = {
    "into a table": "insert into {} partition(p='1') select 1000",
    "into a source": "insert into {} partition(p='1') select 1000",
    "dynamically into a table": "insert into {} partition(p) select 1000, '1'",
    "overwrite a table": "insert overwrite {} partition(p='1') select 1000",
    "overwrite a source": "insert overwrite {} partition(p='1') select 1000",
    "dynamically overwrite a table": "insert overwrite {} partition(p) select 1000, '1'",
    "overwrite all of a source": "insert overwrite {} partition(p) select 1000, '1'",
    "a path": None,
}


def overwrite_elsewhere(spark, folder, name):
    """Swaps a partition whose location is `folder/p=1`, without keeping the replaced files; returns the statement's
    error.
    """
    spark.sql(f"create table {name} (a int) partitioned by (p string) stored as textfile")
    spark.sql(f"alter table {name} add partition (p='1') location '{folder}/p=1'")
    with settings(
        spark, {"fs.millstream.write.visibility": "metastore-swap-strict", "fs.millstream.write.replaced.keep.ms": "0"}
    ):
        return error_of(lambda: spark.sql(f"insert overwrite {name} partition(p='1') select 1000"))


def copy_file(spark, file, way, name):
    """Copies a named file; returns the statement's error, and the values of the copy, if there is one."""
    with settings(spark, V2 if way == "a source of version 2" else {}):
        frame = spark.sql(f"select * from text.`{file}`") if way == "a path in SQL" else spark.read.text(file)
        error = error_of(lambda: frame.write.mode("overwrite").saveAsTable(f"{name}_copy"))
    exists = spark.catalog.tableExists(f"{name}_copy")
    return error, sorted(int(row[0]) for row in spark.table(f"{name}_copy").collect()) if exists else None


FILES = ["a path", "a path in SQL", "a source of version 2"]


def copy_twice(spark, folder, name):
    """One statement of two INSERTs that Spark writes itself; returns its error, and the values of one copy."""
    spark.sql(f"create table {name} {TEXT} location '{folder}/p=1'")
    spark.sql(f"create table {name}_hive {TEXT}")
    spark.sql(f"create table {name}_text (a string) using text")
    error = error_of(
        lambda: spark.sql(f"from {name} insert into {name}_hive select a insert into {name}_text select a")
    )
    return error, sorted(int(row[0]) for row in spark.table(f"{name}_hive").collect())


def overwrite_part(spark, folder, way, conf=None):
    """Overwrites `folder/p=1` by its path; returns the statement's error."""
    frame = spark.range(3).selectExpr("cast(id as string) value")
    with settings(spark, conf or {}):
        if way == "a directory in SQL":
            return error_of(
                lambda: spark.sql(
                    f"insert overwrite directory '{folder}/p=1' stored as textfile select cast(id as string) from range(3)"
                )
            )
        return error_of(lambda: frame.write.mode("overwrite").text(f"{folder}/p=1"))
