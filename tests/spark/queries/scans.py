"""Plans with scans of text: pruning, joins, reuse, caches, subqueries, aggregates, files that change during a query."""

import re
from pathlib import Path

from datasets import NASTY_NAMES

from queries import CATALOG, STOCK, WRITTEN_BY_SPARK, add, case

# On partitions of integers, dates, strings and null.
PARTITION_QUERIES = {
    "columns alone": ("layouts/text/hive", ["year", "month"]),
    "one column alone": ("values/dates", ["k"]),
    "value and column": ("values/nulls", ["k", "value"]),
    "column first": ("values/strings", ["k", "upper(value)"]),
    "timestamps": ("values/timestamps", ["value", "k"]),
    "decimals": ("values/decimals", ["value", "k"]),
    "booleans": ("values/booleans", ["k", "value"]),
    "all null": ("values/all-null", ["k", "value"]),
    "in the value's place": ("columns/in-value", ["*"]),
}
for name, (tree, columns) in PARTITION_QUERIES.items():
    add(f"scan of partitions: {name}", lambda context, t=tree, c=columns: context.text(t).selectExpr(*c), native=True)
for name, condition in {
    "pruned": "a = 1",
    "pruned by two": "a = 1 and b > 2",
    "null or not": "a is null",
    "by a function": "a + b = 3",
    "to nothing": "a = 77",
    "and by the value": "b = 1 and contains(value, '1')",
    "of both at once": "a = 1 or contains(value, '.1')",
}.items():
    add(f"scan of partitions {name}", lambda context, c=condition: context.text("columns/many").filter(c), native=True)
    add(
        f"scan of partitions {name}, counted",
        lambda context, c=condition: context.text("columns/many").filter(c).groupBy("a").count(),
    )

SETTINGS = {
    "AQE off": {"spark.sql.adaptive.enabled": "false"},
    "codegen off": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "both off": {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"},
    "codegen fused": {"spark.sql.codegen.wholeStage": "true"},
    "no broadcast": {"spark.sql.autoBroadcastJoinThreshold": "-1"},
    "off heap": {"spark.sql.columnVector.offheap.enabled": "true"},
    "single tasks": {
        "spark.sql.optimizer.singleTaskExecution.enabled": "true",
        "spark.sql.optimizer.singleTaskExecution.minNumFiles": "0",
        "spark.sql.optimizer.singleTaskExecution.minNumBytes": "0",
    },
}
# Strings that outlive their batch: an aggregate, a sort or a window that kept a pointer would return another row's
# bytes.
KEEPING = {
    "max": lambda f: f.selectExpr("max(value)", "min(value)", "max(struct(value, 1))"),
    "max of some": lambda f: f.filter("contains(value, 'w')").selectExpr("max(value)", "max_by(value, md5(value))"),
    "max by group": lambda f: f.selectExpr("value", "length(value) n").groupBy("n").agg({"value": "max"}),
    "sets": lambda f: f.filter("endswith(value, 'ww')").selectExpr(
        "sort_array(collect_set(substr(value, 1, 5)))", "count(distinct value)", "mode(length(value))"
    ),
    "lists": lambda f: f.filter("startswith(value, 'zz')").selectExpr(
        "collect_list(value)", "any_value(value)", "first(value)", "last(value)"
    ),
    "sorted": lambda f: f.filter("contains(value, '9999')").orderBy("value").limit(20),
    "distinct": lambda f: f.selectExpr("substr(value, 1, 7) v").distinct().groupBy().agg({"v": "count"}),
    "window": lambda f: (
        f.filter("contains(value, '00')")
        .selectExpr("value", "lag(value) over (order by value, length(value)) l")
        .selectExpr("md5(concat(value, coalesce(l, '')))")
    ),
    "exploded": lambda f: f.filter("endswith(value, ' ww')").selectExpr("explode(split(value, ' '))"),
    "repartitioned": lambda f: f.repartition(5, "value").groupBy().agg({"value": "max"}),
    "percentile": lambda f: f.selectExpr(
        "percentile_approx(length(value), 0.5)", "sum(length(value))", "bit_xor(hash(value))"
    ),
}
for query, run in KEEPING.items():
    for setting in ("codegen fused", "both off"):
        add(
            f"rows kept: {query}, {setting}",
            lambda context, r=run, s=setting: context.with_conf(SETTINGS[s], lambda: r(context.text("batches"))),
            native=True,
        )


def joined(context):
    left, right = context.text("columns/many"), context.text("layouts/text/hive")
    return left.join(right, "value").selectExpr("value", "a", "year")


def self_joined(context):
    frame = context.text("columns/many")
    return frame.alias("l").join(frame.alias("r"), "value").selectExpr("l.a", "r.c", "value")


def different_files(context):
    """The two sides differ only in the option; if one exchange were reused for both, all rows would match."""
    one, two = (
        context.text("layouts/text/flat", pathGlobFilter=glob).groupBy("value").count()
        for glob in ("part-[012]", "part-[234]")
    )
    return one.join(two, "value")


def different_filters(context):
    one, two = (context.text("columns/many").filter(f"a = {a}").groupBy("value").count() for a in (1, 2))
    return one.join(two, "value", "full")


def different_conditions(context):
    one, two = (
        context.text("batches").filter(f"contains(value, '{text}')").groupBy("value").count() for text in ("99", "98")
    )
    return one.join(two, "value")


def different_formats(context):
    one, two = (context.text("contents", lineSep=s).groupBy("value").count() for s in ("|", "a"))
    return one.join(two, "value", "full")


def same_twice(context):
    one, two = (context.text("layouts/text/flat").groupBy("value").count() for _ in range(2))
    return one.union(two)


def in_subquery(context):
    context.text("columns/many").createOrReplaceTempView("scan_many")
    context.text("layouts/text/hive").createOrReplaceTempView("scan_hive")
    return context.spark.sql(
        "select a, count(*) n, max(value) from scan_many where c in (select month from scan_hive) group by a "
        "having count(*) >= (select min(month) from scan_hive where year = 2020)"
    )


def pruned_dynamically(context):
    context.text("columns/many").createOrReplaceTempView("scan_fact")
    context.text("layouts/text/hive").createOrReplaceTempView("scan_dim")
    return context.spark.sql(
        "select f.value, f.a from scan_fact f join scan_dim d on f.c = d.month where d.year = 2020"
    )


def file_names(context):
    return context.text("columns/many").groupBy("input_file_name()").count()


def file_names_of_some(context):
    return (
        context.text("columns/many")
        .filter("contains(value, '1')")
        .selectExpr("value", "input_file_name()", "input_file_block_start()", "input_file_block_length()")
    )


def windowed(context):
    return (
        context.text("columns/many")
        .selectExpr("a", "value", "row_number() over (partition by a order by value, c) n")
        .filter("n < 4")
    )


QUERIES = [
    joined,
    self_joined,
    different_files,
    different_filters,
    different_conditions,
    different_formats,
    same_twice,
    in_subquery,
    pruned_dynamically,
    file_names,
    file_names_of_some,
    windowed,
]
for query in QUERIES:
    for setting, conf in SETTINGS.items():
        add(
            f"plan: {query.__name__}, {setting}",
            lambda context, q=query, c=conf: context.with_conf(c, lambda: q(context)),
        )

for tree, options in {
    "directories": {"recursiveFileLookup": True},
    "partitions/4": {},
    "hidden/a": {"recursiveFileLookup": True},
    "links": {},
}.items():
    add(
        f"file names below {tree}",
        lambda context, t=tree, o=options: context.text(t, **o).selectExpr("value", "input_file_name()"),
        native=True,
    )


@case("file names of any characters", native=True)
def nasty_names(context):
    return context.text(*(f"names/{i}" for i, name in enumerate(NASTY_NAMES) if ":" not in name)).selectExpr(
        "value", "input_file_name()"
    )


def taken(frame):
    return (
        frame.limit(3).count(),
        len(frame.take(2)),
        len(frame.head(1)),
        frame.isEmpty(),
        len(frame.tail(1)),
        frame.filter("value = 'nowhere'").first(),
    )


@case("some of the rows", native=True)
def some(context):
    one = context.text("layouts/text/flat/part-2")
    context.rows(one)
    return (
        taken(context.text("batches")),
        taken(one),
        one.take(2),
        context.text("batches").filter("contains(value, '000')").limit(5).count(),
    )


@case("rows of a cached DataFrame", native=None)
def cached(context):
    frame = context.text("batches").cache()
    answer = (
        frame.count(),
        frame.filter("contains(value, '99')").count(),
        frame.selectExpr("max(value)").collect(),
        frame.select("value").distinct().count(),
    )
    frame.unpersist()
    return answer


@case("rows as an RDD, one by one, and in Python")
def python_rows(context):
    from pyspark.sql.functions import udf

    frame = context.text("batches").filter("contains(value, '77')")
    length = udf(len, "int")
    local = sorted(row.value for row in frame.toLocalIterator())
    return (
        local,
        sorted(frame.rdd.map(lambda row: row.value[3:9]).collect()),
        sorted(map(repr, frame.select(length("value")).collect())),
        sorted(map(repr, frame.filter(length("value") > 30).selectExpr("value", "input_file_name()").collect())),
    )


@case("written from a scan")
def written(context):
    context.text("batches").write.text(f"{context.scratch}/out")
    return context.rows(context.spark.read.text(f"{context.scratch}/out").groupBy().count())


@case("overwriting what is scanned")
def overwritten(context):
    context.write("d/a", "a\n")
    with context.settings(WRITTEN_BY_SPARK):
        context.spark.read.text(f"{context.scratch}/d").write.mode("overwrite").text(f"{context.scratch}/d")


@case("appending to what is scanned", native=True)
def appended(context):
    context.write("d/a", "a\nb\n")
    frame = context.spark.read.text(f"{context.scratch}/d")
    frame.write.mode("append").text(f"{context.scratch}/d")
    return context.rows(frame), context.rows(context.spark.read.text(f"{context.scratch}/d"))


@case("inserted into a text table", native=True)
def inserted(context):
    spark = context.spark
    spark.sql("drop table if exists inserted_text")
    spark.sql(f"create table inserted_text (value string) using text location '{context.scratch}/t'")
    held = spark.table("inserted_text")
    spark.sql("insert into inserted_text values ('one'), ('two')")
    first = context.rows(spark.table("inserted_text"))
    spark.sql("insert into inserted_text values ('three')")
    context.write("t/by-others", "four\n")
    before = context.rows(spark.table("inserted_text"))
    spark.sql("refresh table inserted_text")
    after = context.rows(spark.table("inserted_text"))
    spark.sql("insert overwrite inserted_text values ('last')")
    return first, before, after, context.rows(spark.table("inserted_text")), sorted(map(repr, held.collect()))


@case("managed text table of partitions", index=CATALOG, native=True)
def partitioned_table(context):
    spark = context.spark
    spark.sql("drop table if exists text_partitions")
    spark.sql("create table text_partitions (value string, k int, d date) using text partitioned by (k, d)")
    spark.sql(
        "insert into text_partitions values ('a', 1, date'2020-01-01'), ('b', 2, date'2020-01-02'), ('c', null, null)"
    )
    context.write("elsewhere/p", "x\ny\n")
    spark.sql(
        f"alter table text_partitions add partition (k = 9, d = '2021-01-01') location '{context.scratch}/elsewhere'"
    )
    rows = [
        context.rows(spark.sql(f"select * from text_partitions {where}"))
        for where in ("", "where k > 1", "where d is null", "where value = 'x'")
    ]
    return rows, spark.table("text_partitions")


@case("bucketed text table", native=False)
def bucketed(context):
    spark = context.spark
    spark.sql("drop table if exists bucketed_text")
    context.text("columns/many").select("value").write.format("text").bucketBy(3, "value").saveAsTable("bucketed_text")
    return context.with_conf(
        {"spark.sql.sources.bucketing.autoBucketedScan.enabled": "false"}, lambda: spark.table("bucketed_text")
    )


@case("a collated column", native=False)
def collated(context):
    return context.read("text", "rows", schema="line string collate UTF8_LCASE").filter("line = 'ABC'")


@case("a column of another name", native=True)
def renamed(context):
    return context.read("text", "rows", schema="line string, k int").filter("contains(line, 'é')")


@case("a column of limited length")
def limited(context):
    return context.read("text", "rows", schema="line varchar(3)")


def frame_of(context, **options):
    for name in ("a", "b", "c"):
        context.write(f"d/{name}", f"first of {name}\nsecond of {name}\n")
    return context.spark.read.options(**options).text(f"{context.scratch}/d")


def planned(frame):
    frame._jdf.queryExecution().executedPlan()
    return frame


@case("file deleted after planning")
def deleted(context):
    frame = planned(frame_of(context))
    context.files.remove("d/b")
    return frame


@case("file deleted after planning, ignored by the option", native=True)
def deleted_ignored(context):
    frame = planned(frame_of(context, ignoreMissingFiles=True))
    context.files.remove("d/b")
    return context.rows(frame), context.rows(frame.groupBy().count())


@case("file deleted after planning, ignored by the setting", native=True)
def deleted_ignored_by_setting(context):
    def run():
        frame = planned(frame_of(context))
        context.files.remove("d/b")
        return frame

    return context.with_conf({"spark.sql.files.ignoreMissingFiles": "true"}, run)


@case("file deleted after planning, ignored by the setting but not by the option")
def deleted_option_wins(context):
    def run():
        frame = planned(frame_of(context, ignoreMissingFiles=False))
        context.files.remove("d/b")
        return frame

    return context.with_conf({"spark.sql.files.ignoreMissingFiles": "true"}, run)


@case("directory deleted after planning")
def directory_deleted(context):
    frame = planned(frame_of(context))
    context.files.remove("d")
    return condition_of_error(frame)


@case("file forbidden after planning")
def forbidden(context):
    frame = planned(frame_of(context))
    Path(context.scratch, "d/b").chmod(0)
    return frame


@case("file forbidden after planning, missing ones ignored", native=True)
def forbidden_ignored(context):
    frame = planned(frame_of(context, ignoreMissingFiles=True))
    Path(context.scratch, "d/b").chmod(0)
    return context.rows(frame)


@case("file that has become a directory")
def became_directory(context):
    frame = planned(frame_of(context))
    context.files.remove("d/b")
    context.files.make_directory("d/b")
    return condition_of_error(frame)


def condition_of_error(frame):
    """Which of several files is found first is random."""
    try:
        return frame.collect()
    except Exception as error:
        return re.search(r"\[([A-Z_.]+)\]", str(error))[1]


@case("directory with a file in its place")
def replaced_directory(context):
    frame = planned(frame_of(context))
    context.files.remove("d")
    context.write("d", "a file\n")
    return condition_of_error(frame)


@case("file that grows after planning", native=True)
def grown(context):
    frame = planned(frame_of(context))
    context.write("d/b", "first of b\nsecond of b\nthird of b\nfourth of b\n")
    return context.rows(frame), context.rows(frame.groupBy().count())


@case("file without a last newline that grows", native=True)
def grown_line(context):
    context.write("d/a", "one\ntwo")
    frame = planned(context.spark.read.text(f"{context.scratch}/d"))
    context.write("d/a", "one\ntwo and more\nthree\n")
    return context.rows(frame)


@case("files that end before a split does")
def cut_off(context):
    answers = []
    for format_name, line in (("text", "a line of a file\n"), ("csv", "1,a line\n"), ("json", '{"a": 1}\n')):
        context.write(f"{format_name}/file", line * (2_000_000 // len(line)))
        with context.settings({"spark.sql.files.maxPartitionBytes": "500000"}):
            frame = planned(
                context.spark.read.format(format_name).schema("a string").load(f"{context.scratch}/{format_name}")
            )
            context.write(f"{format_name}/file", line[:10])
            answers.append(condition_of_error(frame))
    return answers


@case("whole files that grow and shrink after planning", native=True)
def whole_changed(context):
    frame_of(context)
    # Its own call sets wholetext to false.
    frame = planned(context.spark.read.format("text").options(wholetext=True).load(f"{context.scratch}/d"))
    context.write("d/b", "first of b\nsecond of b\nthird of b\nfourth of b\n")
    context.write("d/a", "f")
    context.write("d/c", "")
    return context.rows(frame)


@case("files added, seen by plans made before and after", native=True)
def added(context):
    frame = frame_of(context)
    counted = frame.groupBy().count()
    before = context.rows(frame), context.rows(counted)
    context.write("d/new", "new\n")
    again = (
        context.rows(frame),
        context.rows(counted),
        context.rows(frame.filter("true")),
        context.rows(frame.select("value")),
    )
    context.spark.catalog.refreshByPath(f"{context.scratch}/d")
    return (
        before,
        again,
        context.rows(frame),
        context.rows(frame.select("value")),
        context.rows(context.spark.read.text(f"{context.scratch}/d")),
    )


@case("a text source of a stream", native=None)
def streamed(context):
    frame_of(context)
    rows = []
    stream = (
        context.spark.readStream.text(f"{context.scratch}/d")
        .filter("contains(value, 'b')")
        .selectExpr("value", "input_file_name()")
    )
    query = (
        stream.writeStream.option("checkpointLocation", f"{context.scratch}/checkpoint")
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: rows.extend(map(repr, batch.collect())))
        .start()
    )
    query.awaitTermination()
    return sorted(rows)


@case("select from a path", native=True)
def from_path(context):
    return context.spark.sql(f"select value, year from text.`{context.data}/layouts/text/hive` where month < 10")


@case("text table with a location", index=STOCK, native=True)
def table_with_location(context):
    context.spark.sql("drop table if exists scanned")
    context.spark.sql(f"create table scanned using text location '{context.data}/layouts/text/flat'")
    return context.spark.sql(
        "select upper(value), input_file_name() from scanned where value like '%1%2%' or value like 'line%'"
    )


@case("several roots", native=True)
def several_roots(context):
    return context.text("layouts/text/flat", "layouts/text/nested", "rows/k=1").selectExpr("value", "input_file_name()")
