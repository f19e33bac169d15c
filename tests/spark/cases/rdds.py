"""Files read through Hadoop's input formats: `sc.textFile` and its relatives. The order of an RDD's elements counts."""

from cases import add, case

PATHS = {
    "a directory": "layouts/text/flat",
    "a file": "layouts/text/flat/part-0",
    "a glob of files": "layouts/text/flat/part-[13]",
    "a glob of directories": "siblings/*/*",
    "a glob of directories and files": "siblings/d0[0-4]/e*/p1",
    "a glob without matches": "layouts/none*",
    "a missing path": "nowhere",
    "nested directories": "layouts/text/nested",
    "hidden names": "hidden-partitions/*",
    "links": "links/*",
    "a loop of links": "loop/sub/up/sub/up/*",
    "an empty directory": "layouts/text/nothing/below/here",
    "zero-length files": "layouts/text/empties/zero",
    "braces": "layouts/text/{flat,hive/*/*}",
    "a path with spaces": "layouts/text/nested/c d",
    "compressed files": "compressed",
    "a bad checksum": "checksums",
    "a forbidden directory": "forbidden/directory/locked",
}
for name, path in PATHS.items():
    add(f"textFile of {name}", lambda context, path=path: context.spark.sparkContext.textFile(f"{context.data}/{path}"))
    add(f"wholeTextFiles of {name}", lambda context, path=path: sorted(
        context.spark.sparkContext.wholeTextFiles(f"{context.data}/{path}").collect()))


@case("textFile of several directories")
def several(context):
    top = f"{context.data}/layouts/text"
    return context.spark.sparkContext.textFile(f"{top}/flat,{top}/hive/*/*,{top}/nested/p0")


@case("textFile with many partitions")
def partitions(context):
    return context.spark.sparkContext.textFile(f"{context.data}/sizes", 7)


@case("textFile recursive")
def recursive(context):
    sc = context.spark.sparkContext
    conf = sc._jsc.hadoopConfiguration()
    conf.set("mapreduce.input.fileinputformat.input.dir.recursive", "true")
    try:
        return sorted(sc.textFile(f"{context.data}/layouts/text/nested").collect()), sorted(sc.textFile(f"{context.data}/siblings").collect())
    finally:
        conf.unset("mapreduce.input.fileinputformat.input.dir.recursive")


@case("textFile listed by several threads")
def threads(context):
    sc = context.spark.sparkContext
    conf = sc._jsc.hadoopConfiguration()
    conf.set("mapreduce.input.fileinputformat.list-status.num-threads", "4")
    try:
        return sorted(sc.textFile(f"{context.data}/siblings/*/*").collect())
    finally:
        conf.unset("mapreduce.input.fileinputformat.list-status.num-threads")


@case("binaryFiles")
def binary_files(context):
    return sorted(context.spark.sparkContext.binaryFiles(f"{context.data}/layouts/text/flat").collect())


@case("newAPIHadoopFile")
def new_api(context):
    return sorted(context.spark.sparkContext.newAPIHadoopFile(
        f"{context.data}/siblings/*/*", "org.apache.hadoop.mapreduce.lib.input.TextInputFormat", "org.apache.hadoop.io.LongWritable",
        "org.apache.hadoop.io.Text").collect())


@case("saved as text and read back")
def saved(context):
    context.spark.sparkContext.parallelize(["a", "b", "c"], 3).saveAsTextFile(f"{context.scratch}/out")
    return context.spark.sparkContext.textFile(f"{context.scratch}/out")


@case("a file shipped to the executors")
def shipped(context):
    from pyspark import SparkFiles

    context.spark.sparkContext.addFile(f"{context.data}/layouts/text/nested", recursive=True)
    with open(SparkFiles.get("nested/p0")) as file:
        return file.read()
