"""SQL over paths, and tables whose files lie in a directory."""

from queries import CATALOG_COMPACT, COMPACT, STOCK, add, case

SQL_PATHS = {
    "text.`{data}/layouts/text/flat`": COMPACT,
    "text.`{data}/layouts/text/hive`": COMPACT,
    "text.`{data}/layouts/text/nested`": COMPACT,
    "text.`{data}/layouts/text/hive/year=*`": COMPACT,
    "parquet.`{data}/layouts/parquet/flat`": COMPACT,
    "parquet.`file:{data}/layouts/parquet/hive`": COMPACT,
    "json.`{data}/layouts/json/hive`": COMPACT,
    "orc.`{data}/layouts/orc/hive`": COMPACT,
    "text.`{data}/hidden-partitions`": COMPACT,
    "text.`{data}/columns/conflict`": STOCK,
    "text.`{data}/links`": COMPACT,
    "text.`{data}/loop`": STOCK,
    "text.`{data}/nowhere`": STOCK,
    "text.`{data}/layouts/text/nothing`": COMPACT,
    "text.`{data}/forbidden/partitions`": STOCK,
    "text.`{data}/columns/many`": COMPACT,
    "read_files_that_are_no_function": STOCK,
}
for source, index in SQL_PATHS.items():
    add(
        f"select from {source}",
        lambda context, source=source: context.spark.sql("select * from " + source.format(data=context.data)),
        index,
    )


def table(context, name, definition):
    context.spark.sql(f"drop table if exists {name}")
    context.spark.sql(f"create table {name} {definition.format(data=context.data, scratch=context.scratch)}")
    return context.spark.table(name)


@case("table with a location", index=STOCK)
def located(context):
    return table(context, "located", "using text location '{data}/layouts/text/flat'")


@case("table with a location and inferred partitions", index=CATALOG_COMPACT)
def located_inferred(context):
    return table(context, "located_inferred", "using json location '{data}/layouts/json/hive'")


@case("table of hidden names", index=STOCK)
def located_hidden(context):
    return table(context, "located_hidden", "using text location '{data}/hidden'")


@case("table of hidden partitions", index=STOCK)
def located_hidden_partitions(context):
    return table(
        context, "located_hidden_partitions", "using text options (recursiveFileLookup true) location '{data}/hidden'"
    )


@case("table on a missing location", index=STOCK)
def located_missing(context):
    return table(context, "located_missing", "(value string) using text location '{data}/nowhere'")


def recovered(context, name, command):
    frame = table(
        context,
        name,
        "(id long, name string, year int, month int) using json partitioned by (year, month) location '{data}/layouts/json/hive'",
    )
    before = frame.count()
    context.spark.sql(command.format(name=name))
    return before, name


@case("table whose partitions are recovered", index=CATALOG_COMPACT)
def recover(context):
    recovered(context, "recovered", "alter table {name} recover partitions")
    return context.spark.table("recovered")


@case("table repaired", index=CATALOG_COMPACT)
def repair(context):
    recovered(context, "repaired", "msck repair table {name}")
    return context.spark.sql("select year, count(*) from repaired where month < 10 group by year")


@case("partitions shown")
def partitions_shown(context):
    recovered(context, "shown", "msck repair table {name} sync partitions")
    return sorted(map(repr, context.spark.sql("show partitions shown").collect()))


@case("recovery by many small listings")
def recover_many(context):
    table(
        context,
        "many",
        "(value string, a int, b int, c int) using text partitioned by (a, b, c) location '{data}/columns/many'",
    )
    context.spark.sql("msck repair table many")
    return sorted(
        map(repr, context.spark.sql("select a, count(*), sum(c) from many where b != 2 group by a").collect())
    )


@case("table analysed")
def analysed(context):
    frame = table(context, "analysed", "using text location '{data}/layouts/text/flat'")
    context.spark.sql("analyze table analysed compute statistics")
    size = [row for row in context.spark.sql("describe extended analysed").collect() if row.col_name == "Statistics"]
    return repr(size), frame.count()


@case("managed table, filled and refreshed")
def managed(context):
    table(context, "managed", "(id long, k int) using parquet partitioned by (k)")
    context.spark.sql("insert into managed values (1, 1), (2, 2)")
    before = context.spark.table("managed").count()
    context.spark.sql("insert overwrite managed partition (k = 2) values (22)")
    context.spark.sql("refresh table managed")
    return before, sorted(map(repr, context.spark.table("managed").collect()))


@case("external table, filled by others and refreshed")
def external(context):
    context.write("d/a", "a\n")
    frame = table(context, "external", "using text location '{scratch}/d'")
    counts = [frame.count()]
    context.write("d/b", "b\n")
    counts.append(context.spark.table("external").count())
    context.spark.sql("refresh table external")
    counts.append(context.spark.table("external").count())
    return counts


@case("temporary view over a path")
def temporary_view(context):
    context.spark.sql(
        f"create or replace temporary view over_path using text options (path '{context.data}/layouts/text/hive')"
    )
    return context.spark.table("over_path")


@case("table made from a query over a path")
def as_select(context):
    context.spark.sql("drop table if exists made")
    context.spark.sql(f"create table made using parquet as select * from text.`{context.data}/layouts/text/flat`")
    return sorted(map(repr, context.spark.table("made").collect()))


@case("table saved with a path")
def saved_with_path(context):
    context.spark.sql("drop table if exists saved")
    context.text("layouts/text/hive").write.option("path", f"{context.scratch}/saved").partitionBy("year").saveAsTable(
        "saved"
    )
    return sorted(map(repr, context.spark.table("saved").collect()))


@case("bucketed table")
def bucketed(context):
    context.spark.sql("drop table if exists bucketed")
    context.spark.range(20).write.bucketBy(4, "id").sortBy("id").saveAsTable("bucketed")
    return context.spark.sql("select count(*), sum(id) from bucketed where id in (3, 5)").collect()
