"""Functions for slow_remote_*.py that run in a session's process."""

import re

from answers import answer_of, stable
from py4j.protocol import Py4JJavaError
from write_calls import hadoop_path


def read(spark, root, reads):
    """For each read, its sorted rows or its error."""
    return {
        name: with_cause(lambda code=code: sorted(map(str, evaluate(spark, root, code))))
        for name, code in reads.items()
    }


def with_cause(run):
    """As answer_of; an error comes with its root cause, which its own message may not name."""
    causes = []

    def noted():
        try:
            return run()
        except Py4JJavaError as error:
            cause = error.java_exception
            while cause.getCause() is not None:
                cause = cause.getCause()
            causes.append(f"{cause.getClass().getName()}: {stable(str(cause.getMessage()))}")
            raise

    answer = answer_of(noted)
    return {**answer, "cause": causes[0]} if causes else answer


def evaluate(spark, root, code):
    found = eval(code, {"spark": spark, "sc": spark.sparkContext, "root": root})
    return found if isinstance(found, list) else found.collect()


def write(spark, root):
    """Data sets of the formats, written by Spark."""
    frame = spark.range(300).selectExpr("id", "id % 3 k", "concat('name ', id) name")
    for name in ("parquet", "orc", "csv", "json"):
        frame.repartition(12).write.partitionBy("k").format(name).save(f"{root}/{name}")
    frame.repartition(5).selectExpr("name value").write.text(f"{root}/text")
    frame.repartition(1).selectExpr("repeat(name, 20000) value").write.text(f"{root}/large")


def write_parquet(spark, path):
    spark.range(300).selectExpr("id", "id % 3 k", "concat('name ', id) name").repartition(6).write.partitionBy(
        "k"
    ).parquet(path)


def write_lines(spark, path, files, lines, format="text"):
    spark.range(files * lines).selectExpr("rpad(id, 99, '.') value").repartition(files).write.format(format).save(path)


def write_wide(spark, path, format, files, width):
    """Files with a narrow column, and another that makes each of them `width` bytes larger."""
    frame = spark.range(0, files, 1, files).selectExpr(
        "id", f"left(repeat(sha2(string(id), 512), {width // 128 + 1}), {width}) wide"
    )
    frame.write.option("compression", "none").format(format).save(path)


def put(spark, root, files):
    """Writes files, given by name and text, through the file system."""
    for name, text in files.items():
        path, file_system = hadoop_path(spark, f"{root}/{name}")
        out = file_system.create(path)
        out.write(bytearray(text.encode()))
        out.close()


def delete(spark, paths):
    for path in paths:
        found, file_system = hadoop_path(spark, path)
        assert file_system.delete(found, False), path


def keep_versions(spark, path):
    """Makes a bucket keep the versions of its objects."""
    file_system, model = hadoop_path(spark, path)[1], spark._jvm.software.amazon.awssdk.services.s3.model
    enabled = model.VersioningConfiguration.builder().status("Enabled").build()
    request = (
        model.PutBucketVersioningRequest.builder()
        .bucket(file_system.getBucket())
        .versioningConfiguration(enabled)
        .build()
    )
    file_system.getS3AInternals().getAmazonS3Client("tests").putBucketVersioning(request)


def versions(spark, path):
    """The versions of an object, the newest first."""
    (found, file_system), model = hadoop_path(spark, path), spark._jvm.software.amazon.awssdk.services.s3.model
    request = (
        model.ListObjectVersionsRequest.builder()
        .bucket(file_system.getBucket())
        .prefix(found.toUri().getPath()[1:])
        .build()
    )
    answer = file_system.getS3AInternals().getAmazonS3Client("tests").listObjectVersions(request)
    return [version.versionId() for version in answer.versions()]


def put_tree(spark, source, target, times):
    """Copies a local directory; `times` has the modification time of each file in milliseconds."""
    path, file_system = hadoop_path(spark, target)
    file_system.copyFromLocalFile(spark._jvm.org.apache.hadoop.fs.Path(source), path)
    for name, time_ms in times.items():
        file_system.setTimes(spark._jvm.org.apache.hadoop.fs.Path(f"{target}/{name}"), time_ms, -1)


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
            files.append(
                str(
                    (
                        status.getPath().toString(),
                        status.getLen(),
                        status.getModificationTime(),
                        status.getBlockSize(),
                        status.getOwner(),
                        status.getPermission().toString(),
                        hosts,
                        tag,
                    )
                )
            )
        return files

    return answer_of(listed)


def list_files_of_closed(spark, path):
    """The error of a recursive listing by a file system that is closed."""
    path, file_system = hadoop_path(spark, path)
    file_system.close()
    return answer_of(lambda: file_system.listFiles(path, True).hasNext())


def first_file(spark, path):
    path, file_system = hadoop_path(spark, path)
    return file_system.listFiles(path, True).next().getPath().toString()


def stream(spark, path):
    """The number of lines that a streaming query has written once it has read all existing data."""
    query = (
        spark.readStream.text(f"{path}/in")
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{path}/checkpoint")
    )
    query.trigger(availableNow=True).start(f"{path}/out").awaitTermination()
    return spark.read.parquet(f"{path}/out").count()


def close_file_systems(spark):
    """The next access initializes them again."""
    spark.sparkContext._jvm.org.apache.hadoop.fs.FileSystem.closeAll()


REQUESTS = ("requests", "nativeRequests", "retries", "throttled")


def plan(spark, path):
    """The scan of a count of lines, its metrics, the index, and the classes of the file system."""
    return {
        **scan(spark.read.text(path).filter("value like '%7%'"), "numFiles", "filesOpened", *REQUESTS),
        **index(spark, path),
    }


def packed_plan(spark, path, format):
    """The scan of all rows, and its metrics."""
    frame = spark.read.format(format).load(path)
    return scan(frame, "numFiles", "filesReadAhead", *REQUESTS)


def scan(frame, *names):
    """The scan of a frame: its rows, its plan and these metrics."""
    rows = len(frame.collect())
    plan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    transport = re.search(r"Transport: (.*)", plan.verboseStringWithOperatorId())
    return {
        "rows": rows,
        "node": plan.nodeName().split()[-1].strip("()"),
        "transport": transport and transport[1],
        "metrics": {name: plan.metrics().apply(name).value() for name in names if plan.metrics().contains(name)},
    }


def diagnoses(spark):
    """Maps each check of `millstream doctor` to its finding and its fix (None if nothing is wrong)."""
    doctor = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.Diagnosis
    found = listed(doctor.of(spark._jsparkSession))
    return {
        diagnosis.what(): (diagnosis.found(), diagnosis.fix().get() if diagnosis.fix().isDefined() else None)
        for diagnosis in found
    }


def index(spark, path):
    """The classes of a read's index and of the file system."""
    relation = spark.read.text(path)._jdf.queryExecution().analyzed().collectLeaves().apply(0).relation()
    return {
        "index": relation.location().getClass().getSimpleName(),
        "fileSystem": hadoop_path(spark, path)[1].getClass().getSimpleName(),
    }


def tasks(spark, read, path):
    """For each task of a read, the hosts that it prefers, and how many of its bytes each host has."""
    if read == "rdd":
        lines = spark.sparkContext._jsc.sc().textFile(path, 2)
        lines.partitions()  # the first caller decides how they are packed
        rdd = leaf_of(lines)
        found = [
            (
                task,
                [
                    (f"{path}/{part.path().rpartition('/')[2]}", part.start(), part.length())
                    for part in task.inputSplit().value().ranges()
                ],
            )
            for task in rdd.partitions()
        ]
    else:
        plan = spark.read.format(read).load(path)._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
        rdd = leaf_of(plan.executeColumnar() if plan.supportsColumnar() else plan.execute())
        found = [(task, list(ranges(task.ranges().cursor()))) for task in rdd.partitions()]
    return {
        "rdd": rdd.getClass().getSimpleName(),
        "tasks": [
            {"preferred": listed(rdd.preferredLocations(task)), "bytes": bytes_by_host(spark, parts)}
            for task, parts in found
        ],
    }


def leaf_of(rdd):
    while not rdd.dependencies().isEmpty():
        rdd = rdd.dependencies().head().rdd()
    return rdd


def ranges(cursor):
    while cursor.next():
        yield cursor.uri(), cursor.start(), cursor.length()


def listed(sequence):
    return [sequence.apply(i) for i in range(sequence.size())]


def bytes_by_host(spark, parts):
    total = {}
    for url, start, length in parts:
        path, file_system = hadoop_path(spark, url)
        for block in file_system.getFileBlockLocations(path, start, length):
            size = min(start + length, block.getOffset() + block.getLength()) - max(start, block.getOffset())
            for host in block.getHosts():
                total[host] = total.get(host, 0) + size
    return total


def explained(spark, path):
    """All plans of a read, as `explain` and the SQL tab show them."""
    frame = spark.read.text(path).filter("value like '%7%'")
    frame.collect()
    return frame._jdf.queryExecution().toString() + str(frame._jdf.queryExecution().executedPlan().treeString())


def serialized(spark, path):
    """What a scan sends to tasks: the RDD and its partitions. Broadcasts and SQL settings, which Spark adds to each of
    its own, are not in it.
    """
    rdd = spark.read.text(path).filter("value like '%7%'")._jdf.queryExecution().executedPlan().execute()
    serializer = spark._jvm.org.apache.spark.serializer.JavaSerializer(
        spark.sparkContext._jsc.sc().conf()
    ).newInstance()
    any_class = spark._jvm.scala.reflect.ClassTag.Any()
    return b"".join(bytes(serializer.serialize(sent, any_class).array()) for sent in (rdd, *rdd.partitions())).decode(
        "latin-1"
    )


def log_level(spark, levels):
    """Sets the levels of loggers, by their names; "" is that of all others."""
    log4j = spark._jvm.org.apache.logging.log4j
    for name, level in levels.items():
        log4j.core.config.Configurator.setLevel(name, log4j.Level.toLevel(level))


def store_password(spark, provider, entries):
    """Writes secrets to a file of Hadoop's credential provider."""
    conf = spark._jvm.org.apache.hadoop.conf.Configuration(False)
    conf.set("hadoop.security.credential.provider.path", provider)
    store = spark._jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(conf).get(0)
    for name, secret in entries.items():
        chars = spark.sparkContext._gateway.new_array(spark._jvm.char, len(secret))
        for at, char in enumerate(secret):
            chars[at] = char
        store.createCredentialEntry(name, chars)
    store.flush()


def statistics(spark, path, read):
    """The statistics of S3A that a read changes, by how much, in each of the three places where Hadoop has them."""
    _, file_system = hadoop_path(spark, path)
    before = counters(spark, file_system)
    rows = len(evaluate(spark, path, read))
    after = counters(spark, file_system)
    return {
        "rows": rows,
        **{place: {name: after[place][name] - before[place][name] for name in after[place]} for place in after},
    }


def counters(spark, file_system):
    names = ("object_list_request", "object_continue_list_request", "action_http_get_request", "stream_read_bytes")
    instance, storage = file_system.getIOStatistics().counters(), file_system.getStorageStatistics()
    schemes = of_scheme(spark, file_system)
    return {
        "instance": {name: instance.get(name) for name in names},
        "storage": {name: storage.getLong(name) for name in names},
        "scheme": {
            "bytesRead": sum(found.getBytesRead() for found in schemes),
            "readOps": sum(found.getReadOps() for found in schemes),
        },
    }


def of_scheme(spark, file_system):
    """Hadoop's statistics of the scheme of a file system."""
    return [
        found
        for found in spark._jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        if found.getScheme() == file_system.getScheme()
    ]


def bytes_of_scheme(spark, path, read):
    """The bytes that a read adds to Hadoop's counter for the scheme."""
    _, file_system = hadoop_path(spark, path)
    before = sum(found.getBytesRead() for found in of_scheme(spark, file_system))
    evaluate(spark, path, read)
    return sum(found.getBytesRead() for found in of_scheme(spark, file_system)) - before


def keep(spark, name, code):
    """Makes a DataFrame whose files are listed immediately, to be counted later."""
    KEPT[name] = eval(code, {"spark": spark})
    return len(KEPT[name].inputFiles())


def count(spark, name):
    return with_cause(lambda: sorted(map(str, KEPT[name].collect())))


def missing(spark, path):
    found, file_system = hadoop_path(spark, path)
    return not file_system.exists(found)


def hidden(spark, path):
    """Hidden files and directories below a path, and those of incomplete uploads on S3."""
    found, file_system = hadoop_path(spark, path)
    names = [status.getPath().getName() for status in file_system.listStatus(found)]
    uploads = (
        [upload.key() for upload in remote(file_system.listUploads(found.toUri().getPath()[1:]))]
        if found.toUri().getScheme() == "s3a"
        else []
    )
    return sorted([name for name in names if name[0] in "._"] + uploads)


def remote(iterator):
    while iterator.hasNext():
        yield iterator.next()


KEPT = {}
