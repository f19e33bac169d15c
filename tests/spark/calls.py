"""Functions that the tests call in a session's process, besides the cases (answers.py)."""

from pathlib import Path

import datasets
from answers import index_of
from pyspark.errors import IllegalArgumentException


def write_templates(spark, data):
    datasets.write_templates(spark, Path(data))


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


def index_with(spark, key, value, path):
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        return index_of(spark.read.text(path))
    finally:
        spark.conf.unset(key) if before is None else spark.conf.set(key, before)


def mapped_libraries(spark):
    maps = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/maps").read_text()
    return sorted({line.split(None, 5)[5] for line in maps.splitlines() if "libmillstream" in line})


def stock_lines(spark, path):
    return described_lines(spark.read.option("recursiveFileLookup", True).text(path))


def read_text_lines(spark, path, partitions=None):
    import millstream

    return described_lines(millstream.read_text(spark, path, partitions))


def described_lines(frame):
    return {"schema": frame.schema.jsonValue(), "lines": sorted(row.value for row in frame.collect())}


def rdd_lines(spark, path):
    return sorted(spark.sparkContext.textFile(path).collect())
