"""Functions that the tests call in a session's process, in addition to the queries (answers.py)."""

import threading
import time
from pathlib import Path

import columnar_files
import datasets
from answers import answer_of, index_of
from pyspark.errors import IllegalArgumentException


def write_templates(spark, data):
    datasets.write_templates(spark, Path(data))
    columnar_files.write(spark, Path(data, "columnar"))


def local_file_system(spark, conf):
    return spark._jvm.org.apache.hadoop.fs.FileSystem.newInstance(spark._jvm.java.net.URI.create("file:///"), conf)


def describe_file_system(file_system):
    name = file_system.getClass().getName()
    return {"class": name} | ({"listsNatively": file_system.listsNatively()} if "millstream" in name else {})


def file_system(spark):
    conf = spark._jsc.hadoopConfiguration()
    return describe_file_system(spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf))


def status_classes(spark, path):
    hadoop = spark._jvm.org.apache.hadoop.fs
    statuses = hadoop.FileSystem.getLocal(spark._jsc.hadoopConfiguration()).listStatus(hadoop.Path(path))
    return [status.getClass().getName() for status in statuses]


def list_with(spark, key, value, path):
    conf = spark._jvm.org.apache.hadoop.conf.Configuration(spark._jsc.hadoopConfiguration())
    conf.set(key, value)
    try:
        found = local_file_system(spark, conf)
    except IllegalArgumentException as error:
        return {"error": str(error)}
    files, pending = 0, [spark._jvm.org.apache.hadoop.fs.Path(path)]
    while pending:
        for status in found.listStatus(pending.pop()):
            if status.isDirectory():
                pending.append(status.getPath())
            else:
                files += 1
    return {"listsNatively": found.listsNatively(), "files": files}


def log_and_read(spark, path):
    log4j = spark._jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel("org.apache.spark.sql.execution.datasources.millstream", log4j.Level.INFO)
    return spark.read.text(path).count()


def plan(spark, path):
    return spark.read.text(path)._jdf.queryExecution().toString()


def indexes_with(spark, key, value, path):
    """The indexes of a DataFrame and of `read_text`; or the error."""
    import millstream

    before = spark.conf.get(key, None)
    try:
        spark.conf.set(key, value)
        return [index_of(spark.read.text(path)), index_of(millstream.read_text(spark, path))]
    except IllegalArgumentException as error:
        return str(error)
    finally:
        spark.conf.unset(key) if before is None else spark.conf.set(key, before)


def mapped_libraries(spark):
    maps = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    return sorted({line.split(None, 5)[5] for line in maps.splitlines() if "libmillstream" in line})


def libraries_of_executors(spark, path):
    """The libraries that an executor's JVM has mapped after it has listed a directory. That JVM is an ancestor of the
    Python worker.
    """

    def mapped(_):
        import os
        from pathlib import Path

        pid = os.getpid()
        while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
            pid = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
        return sorted(
            {
                line.split(None, 5)[5]
                for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
                if "libmillstream" in line
            }
        )

    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "0")
    # Files of a table without partitions are listed by Spark's own index, here in a job.
    spark.sql(f"create table listed (value string) using text location '{path}'")
    assert spark.table("listed").count()
    return spark.sparkContext.parallelize([0], 1).map(mapped).first()


def interrupted(spark, path, what):
    """The result of a call whose thread is interrupted while it waits for a native listing, and the time until it
    returns.
    """
    file_system = spark._jvm.org.apache.hadoop.fs.FileSystem.getLocal(spark._jsc.hadoopConfiguration())
    calls = {
        "DataFrame": lambda: spark.read.option("recursiveFileLookup", True).text(path),
        "textFile": lambda: spark.sparkContext.textFile(f"{path}/*/*"),
        "listFiles": lambda: file_system.listFiles(spark._jvm.org.apache.hadoop.fs.Path(path), True).hasNext(),
    }
    answers = []
    caller = threading.Thread(target=lambda: answers.append(answer_of(calls[what])), daemon=True)
    caller.start()
    deadline = time.monotonic() + 30
    while (
        not (waiting := thread_in(spark, "io.millstream.hadoop.listing.NativeListing")) and time.monotonic() < deadline
    ):
        time.sleep(0.1)
    waiting.interrupt()
    start = time.monotonic()
    caller.join(timeout=30)
    return {"answers": answers, "seconds": time.monotonic() - start}


def thread_in(spark, class_name):
    """A JVM thread that is in a method of a class, or None."""
    stacks = spark._jvm.java.lang.Thread.getAllStackTraces().entrySet().iterator()
    while stacks.hasNext():
        entry = stacks.next()
        if any(frame.getClassName() == class_name for frame in entry.getValue()):
            return entry.getKey()
    return None


def stock_lines(spark, path):
    return described_lines(spark.read.option("recursiveFileLookup", True).text(path))


def read_text_lines(spark, path, partitions=None):
    import millstream

    return described_lines(millstream.read_text(spark, path, partitions))


def described_lines(frame):
    return {"schema": frame.schema.jsonValue(), "lines": sorted(row.value for row in frame.collect())}


def rdd_lines(spark, path):
    return sorted(spark.sparkContext.textFile(path).collect())


def of_each(spark, formats, directory):
    """Each format, with ten rows read from a file of it."""
    for kind in formats:
        spark.range(10).selectExpr("cast(id as string) value").write.format(kind).save(f"{directory}/{kind}")
        yield kind, spark.read.format(kind).schema("value string").load(f"{directory}/{kind}")


def counted_each(spark, formats, directory):
    """How often each value occurs in files of each format, which tasks count that get the plan below."""
    return {
        kind: sorted(map(list, frame.groupBy("value").count().collect()))
        for kind, frame in of_each(spark, formats, directory)
    }


def scan_each(spark, formats, directory):
    """Runs a query with a filter on files of each format."""
    for _, frame in of_each(spark, formats, directory):
        assert frame.filter("value > '7'").count() == 2
