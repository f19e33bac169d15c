"""Files read through Hadoop's input formats: `sc.textFile` and similar calls. The order of an RDD's elements is
compared.
"""

import gzip
import threading
import time
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path

from pyspark.sql import DataFrame

from queries import add, case

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
    add(
        f"wholeTextFiles of {name}",
        lambda context, path=path: sorted(
            context.spark.sparkContext.wholeTextFiles(f"{context.data}/{path}").collect()
        ),
    )


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
        return sorted(sc.textFile(f"{context.data}/layouts/text/nested").collect()), sorted(
            sc.textFile(f"{context.data}/siblings").collect()
        )
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
    return sorted(
        context.spark.sparkContext.newAPIHadoopFile(
            f"{context.data}/siblings/*/*",
            "org.apache.hadoop.mapreduce.lib.input.TextInputFormat",
            "org.apache.hadoop.io.LongWritable",
            "org.apache.hadoop.io.Text",
        ).collect()
    )


@case("saved as text and read back")
def saved(context):
    context.spark.sparkContext.parallelize(["a", "b", "c"], 3).saveAsTextFile(f"{context.scratch}/out")
    read = context.spark.sparkContext.textFile(f"{context.scratch}/out")
    # In the order in which tasks made the files, on some file systems.
    return sorted(read.collect()), read.getNumPartitions()


@case("a file shipped to the executors")
def shipped(context):
    from pyspark import SparkFiles

    context.spark.sparkContext.addFile(f"{context.data}/layouts/text/nested", recursive=True)
    with open(SparkFiles.get("nested/p0")) as file:
        return file.read()


# Files that are packed into tasks. Millstream makes at least four tasks for each core, so packing needs more than eight
# splits.

SWITCH = "spark.millstream.rdd.enabled"
INPUT_FORMAT = (
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.io.LongWritable",
    "org.apache.hadoop.io.Text",
)


@contextmanager
def hadoop_settings(context, conf):
    """Applies settings to jobs that are created within this context."""
    jconf = context.spark.sparkContext._jsc.hadoopConfiguration()
    for key, value in conf.items():
        jconf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            jconf.unset(key)


@contextmanager
def spark_setting(context, key, value):
    """A setting of the Spark context itself, which Spark reads again for each RDD."""
    conf = context.spark.sparkContext._jsc.sc().conf()
    conf.set(key, value)
    try:
        yield
    finally:
        conf.remove(key)


def many_files(context, folder="d", count=30, lines=4):
    """A directory of small files, and the RDD of their lines, not planned yet."""
    for i in range(count):
        context.write(
            f"{folder}/f{i:02}", "".join(f"{folder} {i} {line} {'x' * (i * 7 % 50)}\n" for line in range(lines))
        )
    return context.spark.sparkContext.textFile(f"{context.scratch}/{folder}")


def described(context, jrdd):
    """Lines of a JVM RDD with Spark's file and block for them."""
    dataset = context.spark._jsparkSession.createDataset(
        jrdd.rdd(), context.spark._jvm.org.apache.spark.sql.Encoders.STRING()
    )
    frame = DataFrame(dataset.toDF(), context.spark)
    columns = ("value", "input_file_name()", "input_file_block_start()", "input_file_block_length()")
    return [tuple(row) for row in frame.selectExpr(*columns).collect()]


for splits in (1, 40, 250):
    add(
        f"textFile of all contents, at least {splits} splits",
        lambda context, n=splits: context.spark.sparkContext.textFile(f"{context.data}/contents", n),
        native=True,
    )
for tree in ("contents", "batches", "long-lines", "compressed"):
    add(
        f"places of lines in {tree}",
        lambda context, tree=tree: [
            (place, len(line), md5(line.encode()).hexdigest())
            for place, line in context.spark.sparkContext.hadoopFile(f"{context.data}/{tree}", *INPUT_FORMAT).collect()
        ],
    )
for tree in ("siblings/*/*", "{siblings/*/*,sizes/a,contents/lf}", "layouts/text/empties/*", "hidden"):
    add(
        f"textFile of the JVM: {tree}",
        lambda context, tree=tree: list(
            context.spark.sparkContext._jsc.textFile(f"{context.data}/{tree}", 5).collect()
        ),
    )
    add(
        f"file names of textFile: {tree}",
        lambda context, tree=tree: described(
            context, context.spark.sparkContext._jsc.textFile(f"{context.data}/{tree}", 5)
        ),
    )


@case("textFile of many files", native=True)
def many(context):
    return many_files(context, count=100)


@case("names of many files")
def many_names(context):
    many_files(context, "a b é", count=40)
    return described(context, context.spark.sparkContext._jsc.textFile(f"{context.scratch}/a b é"))


@case("as many partitions as were asked for")
def least_partitions(context):
    rdd = many_files(context, count=60)
    return [
        context.spark.sparkContext.textFile(f"{context.scratch}/d", n).getNumPartitions() >= n for n in (1, 20, 59)
    ], rdd.count()


@case("compressed files among many", native=True)
def compressed_among_many(context):
    rdd = many_files(context)
    for i in (0, 7, 8, 29):
        context.files.write(f"d/f{i:02}z.gz", gzip.compress(f"zipped {i}\nand more\n".encode(), mtime=0))
    context.write("d/f40", "")
    return rdd


@case("an empty file that grows before it is read")
def empty_grows(context):
    many_files(context)
    context.write("d/f10", "")
    answers = []
    for ignores in ("true", "false"):
        with spark_setting(context, "spark.hadoopRDD.ignoreEmptySplits", ignores):
            rdd = context.spark.sparkContext.textFile(f"{context.scratch}/d")
            rdd.getNumPartitions()
            context.write("d/f10", "grown\nby more\n")
            answers.append(rdd.collect())
            context.write("d/f10", "")
    return answers


@case("files that change before they are read", native=True)
def change(context):
    rdd = many_files(context)
    rdd.getNumPartitions()
    context.files.append("d/f05", b"appended\nand more\n")
    return rdd


@case("a file that vanishes before it is read")
def vanish(context):
    rdd = many_files(context)
    rdd.getNumPartitions()
    context.files.remove("d/f20")
    return rdd


@case("a file that vanishes, ignored")
def vanish_ignored(context):
    with spark_setting(context, "spark.files.ignoreMissingFiles", "true"):
        rdd = many_files(context)
        rdd.getNumPartitions()
        context.files.remove("d/f20")
        context.files.remove("d/f29")
        return rdd.collect()


@case("a file that may not be read among many")
def forbidden(context):
    rdd = many_files(context)
    Path(context.scratch, "d/f20").chmod(0)
    return rdd


@case("a bad checksum among many")
def bad_checksum(context):
    rdd = many_files(context)
    context.files.write("d/.f20.crc", b"crc\0\0\0\x02\0\0\0\0\0")
    return rdd


@case("a bad checksum, ignored")
def bad_checksum_ignored(context):
    with spark_setting(context, "spark.files.ignoreCorruptFiles", "true"):
        rdd = many_files(context)
        context.files.write("d/.f20.crc", b"crc\0\0\0\x02\0\0\0\0\0")
        return rdd.collect()


@case("a directory among many files")
def directory_inside(context):
    rdd = many_files(context)
    context.files.make_directory("d/sub")
    return rdd


for name, conf in {
    "a delimiter": {"textinputformat.record.delimiter": " "},
    "longest lines": {"mapreduce.input.linerecordreader.line.maxlength": "20"},
    "least bytes of a split": {"mapreduce.input.fileinputformat.split.minsize": "400"},
    "a filter of paths": {"mapreduce.input.pathFilter.class": "org.apache.hadoop.mapred.OutputLogFilter"},
}.items():

    @case(f"textFile with {name}")
    def with_hadoop_settings(context, conf=conf):
        many_files(context)
        with hadoop_settings(context, conf):
            return [
                context.spark.sparkContext.textFile(path, 3).collect()
                for path in (f"{context.scratch}/d", f"{context.data}/contents")
            ]


@case("the first lines of many files")
def first_lines(context):
    rdd = context.spark.sparkContext.textFile(f"{context.data}/batches")
    return (
        [rdd.take(n) for n in (1, 3, 9000)],
        rdd.first(),
        list(context.spark.sparkContext._jsc.textFile(f"{context.data}/batches").take(5)),
    )


@case("a job on many files that is cancelled")
def cancelled(context):
    sc = context.spark.sparkContext
    rdd = many_files(context)

    def run():
        sc.setJobGroup("slow", "slow", interruptOnCancel=True)
        try:
            rdd.map(lambda line: time.sleep(0.5)).count()
        except Exception as error:
            failures.append("cancelled" in str(error))

    failures = []
    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 60
    while not active_tasks(sc) and time.monotonic() < deadline:
        time.sleep(0.05)
    sc.cancelJobGroup("slow")
    thread.join(timeout=60)
    return failures, thread.is_alive(), rdd.count()


def active_tasks(sc):
    stages = map(sc.statusTracker().getStageInfo, sc.statusTracker().getActiveStageIds())
    return sum(stage.numActiveTasks for stage in stages if stage)


@case("rows of two RDDs side by side")
def zipped(context):
    left, right = (many_files(context, folder)._jrdd for folder in ("d", "longer name"))
    return [pair.toString() for pair in left.zip(right).collect()]


@case("a command that is told the file")
def piped(context):
    many_files(context)
    return sorted(
        context.spark.sparkContext._jsc.textFile(f"{context.scratch}/d")
        .pipe("printenv mapreduce_map_input_file")
        .collect()
    )


@case("splits that a caller may look at")
def visible_splits(context):
    many_files(context)
    jvm = context.spark._jvm
    names = [jvm.java.lang.Class.forName(name) for name in INPUT_FORMAT]
    rdd = context.spark.sparkContext._jsc.hadoopFile(f"{context.scratch}/d", *names)
    return [partition.inputSplit().value().toString() for partition in rdd.rdd().partitions()]


@case("cached lines of many files")
def cached(context):
    rdd = many_files(context).cache()
    try:
        return rdd.count(), rdd.collect(), rdd.distinct().count(), [i for _, i in rdd.zipWithIndex().collect()]
    finally:
        rdd.unpersist()


@case("many files with the switch off", native=False)
def switched_off(context):
    with context.settings({SWITCH: "false"}):
        rdd = many_files(context)
        rdd.getNumPartitions()
    return rdd


@case("input metrics of many files")
def metrics(context):
    sc = context.spark.sparkContext
    many_files(context)
    tracker = sc._jsc.sc().statusStore()
    jrdd = sc._jsc.textFile(f"{context.scratch}/d")
    jrdd.count()
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = tracker.jobsList(None)
    newest = max((jobs.apply(i) for i in range(jobs.size())), key=lambda job: job.jobId())
    stage = tracker.lastStageAttempt(newest.stageIds().apply(0))
    return stage.inputBytes(), stage.inputRecords()
