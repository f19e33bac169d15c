"""Every format on every layout."""

from datasets import FORMATS

from queries import READ_BY_SPARK, STOCK, add, case

# Name, paths below layouts/<format>, options.
LAYOUTS = [
    ("flat", ["flat"], {}),
    ("file", ["flat/part-1"], {}),
    ("nested", ["nested"], {}),
    ("nested recursive", ["nested"], {"recursiveFileLookup": True}),
    ("hive", ["hive"], {}),
    ("hive recursive", ["hive"], {"recursiveFileLookup": True}),
    ("hive with directories below", ["hive-deep"], {}),
    ("one partition", ["hive/year=2020"], {}),
    ("partition with basePath", ["hive/year=2020/month=2"], {"basePath": "hive"}),
    ("several partitions", ["hive/year=2020", "hive/year=2021"], {}),
    ("several partitions with basePath", ["hive/year=2020", "hive/year=2021"], {"basePath": "hive"}),
    ("glob of files", ["flat/part-[1-3]"], {}),
    ("glob of partitions", ["hive/year=*"], {}),
    ("glob of partitions with basePath", ["hive/year=*/month=*"], {"basePath": "hive"}),
    ("several roots", ["flat", "nested"], {}),
    ("several roots recursive", ["flat", "nested"], {"recursiveFileLookup": True}),
    ("the same root twice", ["flat", "flat"], {}),
    ("overlapping roots", ["nested", "nested/a"], {"recursiveFileLookup": True}),
    ("directory and a file in it", ["flat", "flat/part-0"], {}),
    ("files of two directories", ["flat/part-0", "nested/p0"], {}),
    ("zero-length files", ["empties"], {}),
    ("zero-length files recursive", ["empties"], {"recursiveFileLookup": True}),
    ("only empty directories", ["nothing"], {}),
    ("only empty directories recursive", ["nothing"], {"recursiveFileLookup": True}),
]
READ_OPTIONS = {"csv": {"header": True, "inferSchema": True}}


def read_layout(format_name, paths, options):
    def run(context):
        top = f"layouts/{format_name}"
        located = dict(options)
        if "basePath" in located:
            located["basePath"] = f"{context.data}/{top}/{located['basePath']}"
        return context.read(
            format_name, *(f"{top}/{path}" for path in paths), **READ_OPTIONS.get(format_name, {}), **located
        )

    return run


for format_name in FORMATS:
    for layout, paths, options in LAYOUTS:
        add(f"{format_name}: {layout}", read_layout(format_name, paths, options))


@case("basePath that is no ancestor")
def wrong_base_path(context):
    return context.text("layouts/text/hive/year=2020", basePath=f"{context.data}/layouts/text/nested")


@case("basePath that does not exist")
def missing_base_path(context):
    return context.text("layouts/text/hive/year=2020", basePath=f"{context.data}/nowhere")


@case("basePath that is a file")
def file_base_path(context):
    return context.text("layouts/text/hive/year=2020", basePath=f"{context.data}/layouts/text/flat/part-0")


@case("glob and plain path")
def glob_and_plain(context):
    return context.text("layouts/text/hive/year=20{20,21}/*", "layouts/text/flat")


@case("path with a trailing slash")
def trailing_slash(context):
    return context.text("layouts/text/flat/")


@case("path with doubled slashes and dots")
def odd_slashes(context):
    return context.text("layouts//text/./nested/../flat")


@case("path as a URI")
def uri(context):
    return context.spark.read.text(f"file:{context.data}/layouts/text/flat")


@case("path as a URI with empty authority")
def uri_with_authority(context):
    return context.spark.read.text(f"file://{context.data}/layouts/text/flat")


@case("path as an option")
def path_option(context):
    return context.spark.read.format("text").option("path", f"{context.data}/layouts/text/flat").load()


@case("path as an option and as an argument")
def path_twice(context):
    return (
        context.spark.read.format("text")
        .option("path", f"{context.data}/layouts/text/flat")
        .text(f"{context.data}/layouts/text/nested")
    )


@case("no path", index=STOCK)
def no_path(context):
    return context.spark.read.format("text").load()


@case("empty list of paths", index=STOCK)
def no_paths(context):
    return context.spark.read.format("text").load([])


@case("the order of rows of a flat directory")
def order_of_rows(context):
    with context.settings(READ_BY_SPARK):
        return [row.value for row in context.text("layouts/text/flat").collect()]


@case("the order of files of a flat directory")
def order_of_files(context):
    return context.text("layouts/text/flat").inputFiles()


@case("the order of rows of nested directories")
def order_of_nested_rows(context):
    with context.settings(READ_BY_SPARK):
        frame = context.text("first/text", recursiveFileLookup=True).selectExpr("_metadata.file_path")
        return [row.file_path for row in frame.collect()]


@case("the order of rows of partitions")
def order_of_partitions(context):
    with context.settings(READ_BY_SPARK):
        return [row.asDict() for row in context.text("columns/many").collect()]


@case("the first of several ORC schemas")
def first_orc_schema(context):
    return context.read("orc", "first/orc", recursiveFileLookup=True)


@case("the first of several CSV headers")
def first_csv_header(context):
    return context.read("csv", "first/csv", recursiveFileLookup=True, header=True).schema.simpleString()


@case("the first of several headers, several roots")
def first_of_roots(context):
    return context.read(
        "csv", *(f"first/csv/{name}" for name in "zam"), recursiveFileLookup=True, header=True
    ).schema.simpleString()


@case("line endings and byte order marks")
def endings(context):
    return context.text("endings")


@case("compressed files")
def compressed(context):
    return context.text("compressed")


@case("files of several partitions each")
def large(context):
    return context.text("sizes").groupBy("value").count().filter("count != 1")


@case("links")
def links(context):
    return context.text("links")


@case("links recursive")
def links_recursive(context):
    return context.text("links", recursiveFileLookup=True)


@case("a link as the root")
def link_as_root(context):
    return context.text("link-to-root", recursiveFileLookup=True)


@case("a dangling link as the root")
def dangling_root(context):
    return context.text("links/dangling")


@case("a loop of links", index=STOCK)
def loop(context):
    return context.text("loop").select("value")


@case("a loop of links, recursive", index=STOCK)
def loop_recursive(context):
    return context.text("loop", recursiveFileLookup=True)


@case("hidden names")
def hidden(context):
    return context.text("hidden")


@case("hidden names recursive")
def hidden_recursive(context):
    return context.text("hidden", recursiveFileLookup=True)


@case("hidden names between partitions")
def hidden_partitions(context):
    return context.text("hidden-partitions")


@case("a hidden file as the root")
def hidden_root(context):
    return context.text("hidden/_hidden")


@case("a hidden directory as the root")
def hidden_directory_root(context):
    return context.text("hidden/_temporary", recursiveFileLookup=True)


@case("the working directory as the root")
def relative(context):
    return context.spark.read.text("tmp").limit(0).schema.simpleString()


@case("files of checksums")
def checksums(context):
    return context.text("checksums/good")


@case("the CSV header of the largest file")
def largest_csv_header(context):
    schemas = []
    for largest in "abcd":
        for name in "abcd":
            context.write(f"{largest}/{name}", f"{name},x\n{'1,22' if name == largest else '1,2'}\n")
        schemas.append(context.spark.read.csv(f"{context.scratch}/{largest}", header=True).schema.simpleString())
    return schemas


@case("the CSV header of the first of several split files")
def first_split_csv_header(context):
    for name, lines in zip("abcd", (3, 40, 60, 50)):
        context.write(f"d/{name}", f"{name},x\n" + "1,2\n" * lines)
    with context.settings({"spark.sql.files.maxPartitionBytes": "100", "spark.sql.files.openCostInBytes": "1"}):
        return context.spark.read.csv(f"{context.scratch}/d", header=True).schema.simpleString()
