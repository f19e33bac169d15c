"""Files that appear and disappear between reads, and writes to a path that is read. Each case writes to a separate
directory.
"""

from pathlib import Path

from queries import WRITTEN_BY_SPARK, case


def lines(frame):
    return sorted(row.value for row in frame.collect())


@case("files added after the DataFrame was made")
def added(context):
    context.write("d/a", "a\n")
    frame = context.spark.read.text(f"{context.scratch}/d")
    before = lines(frame)
    context.write("d/b", "b\n")
    after = lines(frame)
    again = lines(context.spark.read.text(f"{context.scratch}/d"))
    context.spark.catalog.refreshByPath(f"{context.scratch}/d")
    return before, after, again, lines(frame)


@case("directories added in a partitioned tree")
def partition_added(context):
    context.write("d/k=1/a", "a\n")
    first = context.spark.read.text(f"{context.scratch}/d").collect()
    context.write("d/k=2/b", "b\n")
    return sorted(map(repr, first)), sorted(map(repr, context.spark.read.text(f"{context.scratch}/d").collect()))


@case("a file removed after the DataFrame was made")
def removed(context):
    context.write("d/a", "a\n")
    context.write("d/b", "b\n")
    frame = context.spark.read.text(f"{context.scratch}/d")
    context.files.remove("d/b")
    return frame


@case("a file removed after the DataFrame was made, ignored")
def removed_ignored(context):
    context.write("d/a", "a\n")
    context.write("d/b", "b\n")
    frame = context.spark.read.option("ignoreMissingFiles", True).text(f"{context.scratch}/d")
    context.files.remove("d/b")
    return lines(frame)


@case("a file replaced after the DataFrame was made")
def replaced(context):
    context.write("d/a", "short\n")
    frame = context.spark.read.text(f"{context.scratch}/d")
    context.write("d/a", "much longer than before\n" * 10)
    return lines(frame)


@case("refresh of a cached DataFrame")
def refresh_cached(context):
    context.write("d/a", "a\n")
    frame = context.spark.read.text(f"{context.scratch}/d").cache()
    before = lines(frame)
    context.write("d/b", "b\n")
    context.spark.catalog.refreshByPath(f"{context.scratch}/d")
    after = lines(frame)
    frame.unpersist()
    return before, after


def refreshed(context, change):
    """Lines of a DataFrame before a change, and after the change and a refresh."""
    context.write("d/a", "a\n")
    context.write("d/sub/b", "b\n")
    frame = context.spark.read.option("recursiveFileLookup", True).text(f"{context.scratch}/d").cache()
    before = lines(frame)
    change(Path(context.scratch, "d"))
    context.spark.catalog.refreshByPath(f"{context.scratch}/d")
    after = lines(frame), sorted(frame.inputFiles())
    frame.unpersist()
    return before, after


@case("refresh after a loop of links has appeared")
def refresh_loop(context):
    return refreshed(context, lambda top: (top / "sub" / "up").symlink_to(".."))


@case("refresh after a directory was forbidden")
def refresh_forbidden(context):
    return refreshed(context, lambda top: (top / "sub").chmod(0))


@case("refresh after a directory was removed")
def refresh_part_gone(context):
    return refreshed(context, lambda _: context.files.remove("d/sub"))


@case("refresh after the directory was removed")
def refresh_gone(context):
    context.write("d/a", "a\n")
    frame = context.spark.read.text(f"{context.scratch}/d")
    context.files.remove("d")
    context.spark.catalog.refreshByPath(f"{context.scratch}/d")
    return lines(frame)


def rows_by_id(frame):
    return sorted(row.id for row in frame.select("id").collect())


@case("written and read back")
def written(context):
    for _ in range(2):
        context.spark.range(10).write.mode("append").parquet(f"{context.scratch}/out")
    return rows_by_id(context.spark.read.parquet(f"{context.scratch}/out"))


@case("written in partitions and read back")
def written_partitioned(context):
    context.spark.range(10).selectExpr("id", "id % 3 as k", "cast(id as string) as s").write.partitionBy("k").json(
        f"{context.scratch}/out"
    )
    return sorted(map(repr, context.spark.read.json(f"{context.scratch}/out").collect()))


@case("overwritten while it is read")
def overwritten(context):
    context.spark.range(3).write.parquet(f"{context.scratch}/out")
    frame = context.spark.read.parquet(f"{context.scratch}/out")
    with context.settings(WRITTEN_BY_SPARK):
        frame.write.mode("overwrite").parquet(f"{context.scratch}/out")


@case("appended to while it is read")
def appended(context):
    context.spark.range(3).write.parquet(f"{context.scratch}/out")
    frame = context.spark.read.parquet(f"{context.scratch}/out")
    frame.write.mode("append").parquet(f"{context.scratch}/out")
    return rows_by_id(frame), rows_by_id(context.spark.read.parquet(f"{context.scratch}/out"))


@case("overwritten by another path's rows")
def overwritten_by_other(context):
    context.spark.range(3).write.parquet(f"{context.scratch}/a")
    context.spark.range(7).write.parquet(f"{context.scratch}/b")
    context.spark.read.parquet(f"{context.scratch}/b").write.mode("overwrite").parquet(f"{context.scratch}/a")
    return rows_by_id(context.spark.read.parquet(f"{context.scratch}/a"))


@case("dynamic overwrite of partitions")
def dynamic_overwrite(context):
    rows = context.spark.range(6).selectExpr("id", "id % 3 as k")
    rows.write.partitionBy("k").parquet(f"{context.scratch}/out")
    rows.filter("k = 1").selectExpr("id + 100 as id", "k").write.mode("overwrite").option(
        "partitionOverwriteMode", "dynamic"
    ).partitionBy("k").parquet(f"{context.scratch}/out")
    return rows_by_id(context.spark.read.parquet(f"{context.scratch}/out"))


@case("insertInto a relation's view")
def insert_into_view(context):
    context.spark.range(3).write.parquet(f"{context.scratch}/out")
    context.spark.read.parquet(f"{context.scratch}/out").createOrReplaceTempView("target")
    context.spark.range(10, 13).write.insertInto("target")
    return rows_by_id(context.spark.read.parquet(f"{context.scratch}/out"))


@case("saved again over sibling directories")
def siblings_rewritten(context):
    for k in range(6):
        context.write(f"d/e{k}/f", f"{k}\n")
    sc = context.spark.sparkContext
    before = sorted(sc.textFile(f"{context.scratch}/d/*").collect())
    for k in range(6):
        context.write(f"d/e{k}/g", f"more {k}\n")
    return before, sorted(sc.textFile(f"{context.scratch}/d/*").collect())
