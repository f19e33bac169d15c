"""What is run with and without Millstream. A scenario gets a session and the root of the files, and returns plain values.

The names of those for which the compact index must have been made end in `_indexed`.
"""

from pathlib import Path

import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, input_file_name


def describe(frame: DataFrame) -> dict:
    """Everything that a listing decides."""
    meta = ["_metadata.file_path", "_metadata.file_name", "_metadata.file_size", "_metadata.file_modification_time"]
    located = frame.select("*", input_file_name().alias("input"), *(col(m).alias(m[10:]) for m in meta))
    return {
        "schema": frame.schema.json(),
        "rows": sorted(repr(tuple(row)) for row in located.collect()),
        "files": sorted(frame.inputFiles()),
    }


def text(spark: SparkSession, *paths: object, **options: object) -> dict:
    return describe(spark.read.options(**options).text([str(p) for p in paths]))


def simple_directories(name: str):
    def scenario(spark, root):
        return text(spark, root / name)

    return scenario


def recursive(name: str):
    def scenario(spark, root):
        return text(spark, root / name, recursiveFileLookup=True)

    return scenario


SCENARIOS = {}
for directory in ("nasty", "nested", "parts", "dates", "mixed-types", "hidden", "zero", "nothing", "only-directories", "links",
                  "undecodable", "times", "lines", "random", "nasty-deep", "case"):
    SCENARIOS[f"read_{directory}_indexed"] = simple_directories(directory)
    SCENARIOS[f"recursive_{directory}_indexed"] = recursive(directory)
for directory in ("conflict-names", "conflict-depth", "no-value", "missing", "loop", "colon"):
    SCENARIOS[f"read_{directory}"] = simple_directories(directory)
    SCENARIOS[f"recursive_{directory}"] = recursive(directory)


def add(scenario):
    SCENARIOS[scenario.__name__] = scenario
    return scenario


@add
def one_file_indexed(spark, root):
    return text(spark, root / "nested" / "a")


@add
def one_hidden_file_indexed(spark, root):
    return text(spark, root / "hidden" / "_x")


@add
def many_files_indexed(spark, root):
    return text(spark, root / "nested" / "a", root / "nested" / "d" / "b", root / "nested" / "a")


@add
def same_directory_twice_indexed(spark, root):
    return text(spark, root / "nested", root / "nested")


@add
def overlapping_roots_indexed(spark, root):
    return text(spark, root / "nested", root / "nested" / "d", root / "nested" / "a", recursiveFileLookup=True)


@add
def partitions_as_roots_indexed(spark, root):
    return text(spark, root / "parts" / "k=1", root / "parts" / "k=2")


@add
def partitions_with_base_path_indexed(spark, root):
    return text(spark, root / "parts" / "k=1", root / "parts" / "k=2", basePath=str(root / "parts"))


@add
def wrong_base_path(spark, root):
    return text(spark, root / "parts" / "k=1", basePath=str(root / "nested"))


@add
def missing_base_path(spark, root):
    return text(spark, root / "parts" / "k=1", basePath=str(root / "missing"))


@add
def glob_indexed(spark, root):
    return text(spark, root / "parts" / "k=*" / "j=x")


@add
def glob_and_plain_indexed(spark, root):
    return text(spark, root / "parts" / "k={1,2}", root / "nested")


@add
def glob_without_match(spark, root):
    return text(spark, root / "parts" / "q=*")


@add
def one_path_of_two_missing(spark, root):
    return text(spark, root / "parts", root / "missing")


@add
def path_glob_filter_indexed(spark, root):
    return text(spark, root / "times", pathGlobFilter="f[01].txt")


@add
def path_glob_filter_in_partitions_indexed(spark, root):
    return text(spark, root / "parts", pathGlobFilter="g*")


@add
def modified_before_and_after_indexed(spark, root):
    return text(spark, root / "times", modifiedBefore="2022-01-01T00:00:00", modifiedAfter="2010-01-01T00:00:00")


@add
def bad_modified_before(spark, root):
    return text(spark, root / "times", modifiedBefore="yesterday")


@add
def case_sensitive_partitions(spark, root):
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        return text(spark, root / "case")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


@add
def no_type_inference_indexed(spark, root):
    spark.conf.set("spark.sql.sources.partitionColumnTypeInference.enabled", "false")
    try:
        return text(spark, root / "parts")
    finally:
        spark.conf.unset("spark.sql.sources.partitionColumnTypeInference.enabled")


@add
def partition_filter_indexed(spark, root):
    return describe(spark.read.text(str(root / "parts")).where("k > 1 and j is null"))


@add
def metadata_filter_indexed(spark, root):
    return describe(spark.read.text(str(root / "times")).where("_metadata.file_name = 'f1.txt'"))


@add
def user_schema_with_partition_indexed(spark, root):
    return describe(spark.read.schema("a int, b string, p string").option("header", True).csv(str(root / "csv")))


@add
def bad_user_schema_for_partition(spark, root):
    return describe(spark.read.schema("value string, j int").text(str(root / "parts")))


@add
def csv_inferred_indexed(spark, root):
    return describe(spark.read.csv(str(root / "csv"), header=True, inferSchema=True))


@add
def json_inferred_indexed(spark, root):
    return describe(spark.read.json(str(root / "json")))


@add
def json_multiline_indexed(spark, root):
    return describe(spark.read.json(str(root / "json"), multiLine=True))


@add
def parquet_indexed(spark, root):
    return describe(spark.read.parquet(str(root / "parquet")))


@add
def parquet_merged_indexed(spark, root):
    return describe(spark.read.option("mergeSchema", True).parquet(str(root / "parquet")))


@add
def orc_indexed(spark, root):
    return describe(spark.read.orc(str(root / "orc")))


@add
def binary_indexed(spark, root):
    return describe(spark.read.format("binaryFile").load(str(root / "parts")))


@add
def parquet_of_nothing(spark, root):
    return describe(spark.read.parquet(str(root / "nothing")))


@add
def json_of_nothing(spark, root):
    return describe(spark.read.json(str(root / "nothing")))


@add
def parquet_of_text(spark, root):
    return describe(spark.read.parquet(str(root / "nested")))


@add
def unknown_format(spark, root):
    return describe(spark.read.format("nosuchformat").load(str(root / "nested")))


@add
def path_twice(spark, root):
    return describe(spark.read.option("path", str(root / "nested")).format("text").load(str(root / "nested")))


@add
def path_as_option_indexed(spark, root):
    return describe(spark.read.option("path", str(root / "nested")).format("text").load())


@add
def no_path(spark, root):
    return describe(spark.read.format("text").load())


@add
def file_uri_indexed(spark, root):
    return text(spark, f"file:{root}/nested", f"file://{root}/parts", recursiveFileLookup=True)


@add
def file_gone_before_reading(spark, root):
    path = dataset.fresh(root, "gone")
    dataset.write(path / "f")
    frame = spark.read.text(str(path))
    (path / "f").unlink()
    return describe(frame)


@add
def file_gone_but_ignored_indexed(spark, root):
    path = dataset.fresh(root, "gone-ignored")
    dataset.write(path / "f")
    dataset.write(path / "g")
    frame = spark.read.option("ignoreMissingFiles", True).text(str(path))
    (path / "f").unlink()
    return describe(frame)


@add
def refresh_by_path_indexed(spark, root):
    path = dataset.fresh(root, "refresh")
    dataset.write(path / "f", "1\n")
    frame = spark.read.text(str(path)).cache()
    before = frame.count()
    dataset.write(path / "g", "2\n")
    cached = spark.read.text(str(path)).count()
    spark.catalog.refreshByPath(str(path))
    after = spark.read.text(str(path)).count()
    frame.unpersist()
    return [before, cached, after]


@add
def overwrite_and_read_again(spark, root):
    path = str(dataset.fresh(root, "overwrite") / "out")
    counts = []
    for rows in (3, 5):
        spark.range(rows).write.mode("overwrite").parquet(path)
        counts.append(spark.read.parquet(path).count())
    return counts


@add
def union_and_join_indexed(spark, root):
    left, right = spark.read.text(str(root / "parts")), spark.read.text(str(root / "parts"))
    joined = left.join(right, ["k", "j"]).count()
    return [left.union(right).count(), joined]


@add
def temporary_view_indexed(spark, root):
    spark.read.text(str(root / "parts")).createOrReplaceTempView("parts")
    rows = spark.sql("select k, count(*) from parts group by k").collect()
    return sorted(map(repr, rows))


@add
def sql_over_path(spark, root):
    return describe(spark.sql(f"select * from text.`{root}/parts`"))


@add
def sql_over_hidden(spark, root):
    return sorted(map(repr, spark.sql(f"select * from text.`{root}/nasty`").collect()))


@add
def external_table(spark, root):
    spark.sql("drop table if exists t_csv")
    spark.sql(f"create table t_csv using csv options (header true) location '{root}/csv'")
    return describe(spark.table("t_csv"))


@add
def recovered_partitions(spark, root):
    path = dataset.fresh(root, "recovered")
    for k in (1, 2):
        dataset.write(path / f"k={k}" / "f", f"{k}\n")
    spark.sql("drop table if exists t_parts")
    spark.sql(f"create table t_parts (value string, k int) using text partitioned by (k) location '{path}'")
    before = spark.table("t_parts").count()
    spark.sql("msck repair table t_parts")
    after = describe(spark.table("t_parts"))
    dataset.write(path / "k=1" / "g", "more\n")
    spark.sql("refresh table t_parts")
    return [before, after, describe(spark.table("t_parts").where("k = 1"))]


@add
def inserted_table(spark, root):
    path = dataset.fresh(root, "inserted")
    spark.sql("drop table if exists t_inserted")
    spark.sql(f"create table t_inserted (a int, k int) using parquet partitioned by (k) location '{path}'")
    spark.sql("insert into t_inserted values (1, 1), (2, 2)")
    first = spark.table("t_inserted").count()
    spark.sql("insert overwrite t_inserted partition (k = 1) values (7), (8)")
    return [first, sorted(map(repr, spark.table("t_inserted").collect()))]


@add
def text_file_rdd(spark, root):
    sc = spark.sparkContext
    several = f"{root}/nested/d,{root}/parts/k=1/j=x"
    return [
        sorted(sc.textFile(f"{root}/parts/*/*").collect()),
        sorted(sc.textFile(several).collect()),
        sorted(sc.textFile(f"{root}/nasty").collect()),
        sorted(sc.wholeTextFiles(f"{root}/parts/k=*/j=x").collect()),
    ]


@add
def text_file_rdd_missing(spark, root):
    return spark.sparkContext.textFile(f"{root}/missing").collect()


@add
def streaming(spark, root):
    query = spark.readStream.text(str(root / "parts")).writeStream.format("memory").queryName("stream")
    query.trigger(availableNow=True).start().awaitTermination()
    return sorted(map(repr, spark.table("stream").collect()))


@add
def streaming_output(spark, root):
    """Only what the log of the query names counts."""
    path = dataset.fresh(root, "sink")
    query = spark.readStream.text(str(root / "nested")).writeStream.format("text").option("checkpointLocation", str(path / "c"))
    query.trigger(availableNow=True).start(str(path / "out")).awaitTermination()
    dataset.write(path / "out" / "stray.txt", "stray\n")
    return sorted(map(repr, spark.read.text(str(path / "out")).collect()))



def prepare(spark: SparkSession, root: Path) -> None:
    """Files that Spark must write."""
    for name in ("parquet", "orc"):
        frame = spark.range(20).selectExpr("id", "id % 3 as p", "cast(id as string) as s")
        frame.write.partitionBy("p").format(name).save(str(root / name))
    spark.range(3).selectExpr("id", "id * 2 as extra").write.parquet(str(root / "parquet" / "p=7"))
