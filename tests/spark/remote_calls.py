"""Functions for slow_remote_reads.py that run in a session's process."""

import re

from answers import answer_of
from write_calls import hadoop_path


def read(spark, root, reads):
    """For each read, its sorted rows or its error."""
    return {name: answer_of(lambda code=code: sorted(map(str, evaluate(spark, root, code)))) for name, code in reads.items()}


def evaluate(spark, root, code):
    found = eval(code, {"spark": spark, "sc": spark.sparkContext, "root": root})
    return found if isinstance(found, list) else found.collect()


def write(spark, root):
    """Data sets of the formats, by Spark itself."""
    frame = spark.range(300).selectExpr("id", "id % 3 k", "concat('name ', id) name")
    for name in ("parquet", "orc", "csv", "json"):
        frame.repartition(12).write.partitionBy("k").format(name).save(f"{root}/{name}")
    frame.repartition(5).selectExpr("name value").write.text(f"{root}/text")
    frame.repartition(1).selectExpr("repeat(name, 20000) value").write.text(f"{root}/large")


def put(spark, root, files):
    """Writes files, given by name and text, through the file system."""
    for name, text in files.items():
        path, file_system = hadoop_path(spark, f"{root}/{name}")
        out = file_system.create(path)
        out.write(bytearray(text.encode()))
        out.close()


def make_directory(spark, path):
    path, file_system = hadoop_path(spark, path)
    return file_system.mkdirs(path)


def put_lines(spark, path, line, count):
    """Writes a file of equal lines."""
    path, file_system = hadoop_path(spark, path)
    out, block = file_system.create(path), bytearray((line * 10_000).encode())
    for _ in range(count // 10_000):
        out.write(block)
    out.close()


def list_files(spark, path):
    """What a recursive listing by the file system returns, in its order; or its error."""
    path, file_system = hadoop_path(spark, path)

    def listed():
        files, found = [], file_system.listFiles(path, True)
        while found.hasNext():
            status = found.next()
            hosts = [list(block.getHosts()) for block in status.getBlockLocations() or []]
            tag = status.getEtag() if hasattr(status, "getEtag") and file_system.getScheme() == "s3a" else None
            files.append(str((status.getPath().toString(), status.getLen(), status.getModificationTime(), status.getBlockSize(), status.getOwner(),
                              status.getPermission().toString(), hosts, tag)))
        return files

    return answer_of(listed)


def stream(spark, path):
    """How many lines a streaming query has written so far once it has read all that is there."""
    query = spark.readStream.text(f"{path}/in").writeStream.format("parquet").option("checkpointLocation", f"{path}/checkpoint")
    query.trigger(availableNow=True).start(f"{path}/out").awaitTermination()
    return spark.read.parquet(f"{path}/out").count()


def close_file_systems(spark):
    """The next access initializes them again."""
    spark.sparkContext._jvm.org.apache.hadoop.fs.FileSystem.closeAll()


def plan(spark, path):
    """The scan of a count of lines, its metrics, the index, and the classes of the file system."""
    frame = spark.read.text(path)
    counted = frame.filter("value like '%7%'")
    rows = len(counted.collect())
    scan = counted._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    index = frame._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation().location()
    names = [name for name in ("numFiles", "filesOpened", "requests", "nativeRequests", "retries", "throttled") if scan.metrics().contains(name)]
    transport = re.search(r"Transport: (.*)", scan.verboseStringWithOperatorId())
    return {
        "rows": rows, "transport": transport and transport[1], "node": scan.nodeName().split()[0], "index": index.getClass().getSimpleName(),
        "metrics": {name: scan.metrics().apply(name).value() for name in names},
        "fileSystem": hadoop_path(spark, path)[1].getClass().getSimpleName(),
    }


def keep(spark, name, code):
    """Makes a DataFrame whose files are listed now, to be counted later."""
    KEPT[name] = eval(code, {"spark": spark})
    return len(KEPT[name].inputFiles())


def count(spark, name):
    return answer_of(lambda: sorted(map(str, KEPT[name].collect())))


def missing(spark, path):
    found, file_system = hadoop_path(spark, path)
    return not file_system.exists(found)


def hidden(spark, path):
    """Hidden files and directories below a path, and those of unfinished uploads on S3."""
    found, file_system = hadoop_path(spark, path)
    names = [status.getPath().getName() for status in file_system.listStatus(found)]
    uploads = [upload.key() for upload in remote(file_system.listUploads(found.toUri().getPath()[1:]))] if found.toUri().getScheme() == "s3a" else []
    return sorted([name for name in names if name[0] in "._"] + uploads)


def remote(iterator):
    while iterator.hasNext():
        yield iterator.next()


KEPT = {}
