"""Functions for test_compact.py that run in a session's process."""

from dataclasses import asdict
from urllib.parse import unquote, urlparse


def compact(spark, **arguments):
    import millstream

    try:
        return asdict(millstream.compact(spark, **arguments))
    except millstream.CompactError as error:
        return {"error": str(error)}


def lines(spark, path):
    """All lines below a path, each with the directory of its file."""
    rows = spark.read.option("recursiveFileLookup", True).text(path).selectExpr("input_file_name()", "value").collect()
    return sorted(
        [unquote(urlparse(name).path).rpartition("/")[0].removeprefix(urlparse(path).path), value]
        for name, value in rows
    )


def files(spark, path):
    """The paths and contents of all files below a path, including those that Spark's text reader ignores."""
    read = (
        spark.read.option("recursiveFileLookup", True)
        .format("binaryFile")
        .load(path)
        .select("path", "content")
        .collect()
    )
    return sorted(
        [unquote(urlparse(row.path).path).removeprefix(urlparse(path).path), row.content.hex()] for row in read
    )


def rows(spark, path, format, options=None):
    frame = spark.read.options(**(options or {})).format(format).load(path)
    return sorted([*sorted(frame.columns), *map(str, row)] for row in frame.select(*sorted(frame.columns)).collect())


def write(spark, path, format, expressions, files, options=None):
    """One data set in `files` files."""
    spark.range(0, 1000, 1, files).selectExpr(*expressions).write.options(**(options or {})).format(format).mode(
        "append"
    ).save(path)


def partition_rows(spark, path):
    return spark.read.text(path).groupBy("k").count().orderBy("k").collect()


def tasks_of(spark, description, action, **arguments):
    """The result of `action`, and the numbers of tasks of the jobs with this description that ran meanwhile."""
    store = spark.sparkContext._jsc.sc().statusStore()
    before = {job.jobId() for job in seq(spark, store.jobsList(None))}
    answer = globals()[action](spark, **arguments)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    new = [job for job in seq(spark, store.jobsList(None)) if job.jobId() not in before]
    described = [job for job in new if job.description().isDefined() and description in job.description().get()]
    return {"answer": answer, "tasks": [job.numTasks() for job in described]}


def seq(spark, scala):
    return [scala.apply(i) for i in range(scala.size())]


def sql(spark, statements):
    """The rows of the last of some statements."""
    for statement in statements:
        answer = spark.sql(statement)
    return [list(row) for row in answer.collect()]


def stream(spark, source, sink, checkpoint):
    """Reads a directory of text as a stream to its end, into partitions."""
    rows = spark.readStream.text(source).selectExpr("value", "substring(value, 1, 1) as k")
    rows.writeStream.format("text").partitionBy("k").option("checkpointLocation", checkpoint).trigger(
        availableNow=True
    ).start(sink).awaitTermination()
