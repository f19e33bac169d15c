"""Options and settings that select files, and columns with the origin of a row."""

from queries import STOCK, add, case

# Options on layouts/text/nested with recursiveFileLookup; times are those of datasets.py.
OPTIONS = [
    {"pathGlobFilter": "p[12]"},
    {"pathGlobFilter": "none*"},
    {"pathGlobFilter": "{p0,p4}"},
    {"pathGlobFilter": "["},
    {"modifiedBefore": "2020-09-13T20:00:00"},
    {"modifiedAfter": "2020-09-13T20:00:00"},
    {"modifiedAfter": "2030-01-01T00:00:00"},
    {"modifiedBefore": "2020-09-13T22:00:00", "modifiedAfter": "2020-09-13T18:00:00"},
    {"modifiedBefore": "yesterday"},
    {"modifiedBefore": "2020-09-13T20:00:00", "timeZone": "Asia/Tokyo"},
    {"ignoreMissingFiles": True},
    {"ignoreCorruptFiles": True},
    {"wholetext": True},
    {"lineSep": "n"},
    {"PATHGLOBFILTER": "p1"},
]
for options in OPTIONS:
    label = ", ".join(f"{key}={value}" for key, value in options.items())
    add(
        f"options {label}",
        lambda context, options=options: context.text("layouts/text/nested", recursiveFileLookup=True, **options),
    )

for value in ("false", "maybe"):
    add(
        f"recursiveFileLookup={value}",
        lambda context, value=value: context.text("layouts/text/nested", recursiveFileLookup=value),
    )


@case("recursiveFileLookup spelled otherwise")
def other_case(context):
    return context.text("layouts/text/nested", RECURSIVEFILELOOKUP="true")


@case("pathGlobFilter on partitions")
def filtered_partitions(context):
    return context.text("layouts/text/hive", pathGlobFilter="p[12]")


@case("modifiedBefore on partitions")
def timed_partitions(context):
    return context.text("layouts/text/hive", modifiedBefore="2020-09-14T00:30:00")


@case("globbing turned off", index=STOCK)
def no_globbing(context):
    return context.text("layouts/text/flat", __globPaths__="false")


@case("option that changes which names are hidden", index=STOCK)
def hidden_names_option(context):
    return sorted(map(repr, context.text("hidden", ignoredPathSegmentRegex="^nothing$").collect()))


@case("setting that changes which names are hidden", index=STOCK)
def hidden_names_setting(context):
    return context.with_conf({"spark.sql.files.ignoredPathSegmentRegex": "^seen$"}, lambda: context.text("hidden"))


@case("path filter of Hadoop", index=STOCK)
def hadoop_path_filter(context):
    return context.text("hidden", **{"mapreduce.input.pathFilter.class": "org.apache.hadoop.mapred.OutputLogFilter"})


@case("second data source interface", index=STOCK)
def second_interface(context):
    return context.with_conf({"spark.sql.sources.useV1SourceList": ""}, lambda: context.text("layouts/text/hive"))


@case("legacy path option")
def legacy_path_option(context):
    def both():
        top = f"{context.data}/layouts/text"
        return context.spark.read.format("text").option("path", f"{top}/flat").load([f"{top}/nested"])

    return context.with_conf({"spark.sql.legacy.pathOptionBehavior.enabled": "true"}, both)


@case("input_file_name and the block's columns")
def input_file(context):
    return context.text("layouts/text/hive").selectExpr(
        "value", "input_file_name()", "input_file_block_start()", "input_file_block_length()"
    )


@case("metadata columns")
def metadata(context):
    return context.text("layouts/text/hive").selectExpr("value", "_metadata.*")


@case("metadata columns filtered")
def metadata_filtered(context):
    return (
        context.text("layouts/text/nested", recursiveFileLookup=True)
        .filter("_metadata.file_name = 'p2'")
        .select("_metadata.file_path", "value")
    )


@case("metadata columns filtered by time")
def metadata_time(context):
    return (
        context.text("layouts/text/flat")
        .filter("_metadata.file_modification_time > '2020-09-13 13:30:00'")
        .select("_metadata.file_size")
    )


@case("metadata of parquet rows")
def row_index(context):
    return context.read("parquet", "layouts/parquet/flat").select("id", "_metadata.row_index", "_metadata.file_name")


@case("binary files with their columns")
def binary_columns(context):
    return (
        context.read("binaryFile", "layouts/binaryFile/hive")
        .filter("length > 0")
        .select("path", "modificationTime", "length", "year")
    )


@case("binary files filtered by time")
def binary_filtered(context):
    return context.read("binaryFile", "layouts/binaryFile/flat").filter("modificationTime > '2020-09-14 12:00:00'")


@case("csv without header")
def csv_plain(context):
    return context.read("csv", "layouts/csv/flat")


@case("csv of several lines")
def csv_multi_line(context):
    return context.read("csv", "layouts/csv/flat", header=True, multiLine=True)


@case("json of several lines")
def json_multi_line(context):
    return context.read("json", "layouts/json/hive", multiLine=True)


@case("json sampled")
def json_sampled(context):
    return context.read("json", "layouts/json/flat", samplingRatio=1.0, primitivesAsString=True)


@case("schema given")
def schema_given(context):
    return context.read("json", "layouts/json/flat", schema="name string, missing int")


@case("schema with a type that text cannot hold")
def schema_of_text(context):
    return context.read("text", "layouts/text/flat", schema="a int, b string")


@case("schema with a column twice")
def column_twice(context):
    return context.read("json", "layouts/json/flat", schema="a int, A int")


@case("formats by class name")
def class_name(context):
    return context.read("org.apache.spark.sql.execution.datasources.text.TextFileFormat", "layouts/text/flat")


@case("unknown format")
def unknown_format(context):
    return context.read("no-such-format", "layouts/text/flat")


@case("reader of RDDs of lines", index=None)
def csv_of_rdd(context):
    return context.spark.read.csv(context.spark.sparkContext.parallelize(["1,a", "2,b"]))
