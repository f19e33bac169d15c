"""Functions for test_compressed.py and slow_compressed.py that run in a session's process."""

import os
import re
import time
from pathlib import Path
from urllib.parse import unquote

from read_calls import with_settings
from remote_calls import evaluate, with_cause
from write_calls import hadoop_path

LINE = "if(octet_length(value) > 64, md5(cast(value as binary)), hex(cast(value as binary))) line"
"""A line of any bytes in a form that can be sent."""


def encode(spark, codec, files):
    """Compresses files with Hadoop's codec; `files` maps the sources to the targets."""
    conf = spark._jsc.hadoopConfiguration()
    found = spark._jvm.org.apache.hadoop.io.compress.CompressionCodecFactory(conf).getCodecByClassName(
        f"org.apache.hadoop.io.compress.{codec}"
    )
    for source, target in files.items():
        out = found.createOutputStream(spark._jvm.java.io.FileOutputStream(target))
        spark._jvm.java.nio.file.Files.copy(spark._jvm.java.io.File(source).toPath(), out)
        out.close()


def save_lines(spark, path, codec, count):
    """Files of lines, written by the RDD and the DataFrame."""
    rows = spark.range(0, count, 1, 3).selectExpr("concat(id, ' ', sha2(string(id), 256)) value")
    rows.rdd.map(lambda row: row.value).saveAsTextFile(f"{path}/rdd", f"org.apache.hadoop.io.compress.{codec}")
    rows.write.option("compression", f"org.apache.hadoop.io.compress.{codec}").text(f"{path}/frame")


def lines_below(spark, path):
    return answered(
        lambda: [
            lines(spark.read.option("recursiveFileLookup", True).text(path)),
            sorted(spark.sparkContext.textFile(f"{path}/*").collect()),
        ]
    )


def base_name(url):
    """The name of a file without the extension of a codec."""
    return re.sub(r"\.(gz|bz2|zst|lz4|deflate|snappy)$", "", unquote(url.rpartition("/")[2]))


def by_file(frame):
    """The lines of each file in their order."""
    files = {}
    for file, line in frame.selectExpr("input_file_name()", LINE).collect():
        files.setdefault(base_name(file), []).append(line)
    return files


def lines(frame):
    return sorted(row.line for row in frame.selectExpr(LINE).collect())


def collected(frame):
    return {"schema": frame.schema.simpleString(), "rows": sorted(map(repr, frame.collect()))}


def table(spark, path):
    spark.sql("drop table if exists of_text")
    spark.sql(f"create table of_text (value string, k string) using text partitioned by (k) location '{path}'")
    spark.sql("msck repair table of_text")
    counts = sorted(map(list, spark.sql("select k, count(*) from of_text group by k").collect()))
    return {
        "counts": counts,
        "lines": lines(spark.table("of_text")),
        "one": lines(spark.sql("select value from of_text where k = 'crlf'")),
    }


def read_text(spark, path):
    """By millstream.read_text, which a stock session lacks and reads with Spark, with a warning."""
    import millstream

    return lines(millstream.read_text(spark, path))


def pure_read_text(spark, path):
    import millstream

    return sorted(millstream.pure_read_text(spark, path).collect())


def metadata(spark, path):
    rows = spark.read.text(path).selectExpr("_metadata.file_name", LINE).collect()
    return sorted([base_name(name), line] for name, line in rows)


SCHEMA = "id long, amount double, what string"
FORMS = {
    # Of the directory `text`:
    "text": lambda spark, path: lines(spark.read.text(f"{path}/text")),
    "by file": lambda spark, path: by_file(spark.read.text(f"{path}/text")),
    "count": lambda spark, path: spark.read.text(f"{path}/text").count(),
    "contains": lambda spark, path: lines(spark.read.text(f"{path}/text").filter("contains(value, 'o')")),
    "count of contains": lambda spark, path: spark.read.text(f"{path}/text").filter("contains(value, 'o')").count(),
    "starts with": lambda spark, path: lines(spark.read.text(f"{path}/text").filter("startswith(value, '00')")),
    "sql": lambda spark, path: lines(spark.sql(f"select * from text.`{path}/text`")),
    "line separator": lambda spark, path: lines(spark.read.text(f"{path}/text", lineSep="|")),
    "lf alone": lambda spark, path: lines(spark.read.text(f"{path}/text", lineSep="\n")),
    "whole": lambda spark, path: by_file(spark.read.text(f"{path}/text", wholetext=True)),
    "metadata": lambda spark, path: metadata(spark, f"{path}/few"),
    "table": lambda spark, path: table(spark, f"{path}/table"),
    "pieces": lambda spark, path: with_settings(
        spark, {"spark.sql.files.maxPartitionBytes": "10000"}, lambda: by_file(spark.read.text(f"{path}/few"))
    ),
    "text file": lambda spark, path: sorted(spark.sparkContext.textFile(f"{path}/few").collect()),
    "text file of 7": lambda spark, path: sorted(spark.sparkContext.textFile(f"{path}/few", minPartitions=7).collect()),
    "whole files": lambda spark, path: sorted(
        [base_name(name), text] for name, text in spark.sparkContext.wholeTextFiles(f"{path}/few").collect()
    ),
    "read_text": lambda spark, path: read_text(spark, f"{path}/text"),
    "pure_read_text": lambda spark, path: pure_read_text(spark, f"{path}/few"),
    "csv": lambda spark, path: collected(spark.read.csv(f"{path}/csv", schema=SCHEMA, header=True)),
    "csv inferred": lambda spark, path: collected(spark.read.csv(f"{path}/csv", header=True, inferSchema=True)),
    "json": lambda spark, path: collected(spark.read.json(f"{path}/json", schema=SCHEMA)),
    "json inferred": lambda spark, path: collected(spark.read.json(f"{path}/json")),
    "many": lambda spark, path: by_file(spark.read.text(f"{path}/many")),
    "many by text file": lambda spark, path: sorted(spark.sparkContext.textFile(f"{path}/many").collect()),
}


def answered(run):
    """What `run` returns, or its error with the cause."""
    found = []
    answer = with_cause(lambda: found.append(run()))
    return found[0] if found else answer


def read(spark, form, path):
    return answered(lambda: FORMS[form](spark, path))


DAMAGED_FORMS = {
    "text": lambda spark, path: by_file(spark.read.text(path)),
    "count": lambda spark, path: spark.read.text(path).count(),
    "ends with": lambda spark, path: lines(spark.read.text(path).filter("endswith(value, '7')")),
    "csv": lambda spark, path: collected(spark.read.csv(path, schema="line string")),
    "text file": lambda spark, path: sorted(spark.sparkContext.textFile(path).collect()),
}


def forget_decompressors(spark):
    """Hadoop reuses Snappy and LZ4 decompressors after damaged files, and they then fail for good ones."""
    pool = spark._jvm.java.lang.Class.forName("org.apache.hadoop.io.compress.CodecPool").getDeclaredField(
        "decompressorPool"
    )
    pool.setAccessible(True)
    pool.get(None).clear()


def read_damaged(spark, path):
    """The answer of each form for the files in `alone`; and the lines of each file in `beside` if corrupt ones are
    ignored.
    """

    def answer(read):
        forget_decompressors(spark)
        return answered(read)

    answers = {form: answer(lambda read=read: read(spark, f"{path}/alone")) for form, read in DAMAGED_FORMS.items()}
    return answers, answer(lambda: by_file(spark.read.option("ignoreCorruptFiles", True).text(f"{path}/beside")))


LINES_BY_SPARK = {
    "csv": lambda reader, path: reader.csv(path, schema="value string").select("value"),
    "csv with a header": lambda reader, path: reader.csv(path, schema="value string", header=True).select("value"),
    "json": lambda reader, path: reader.json(path, schema="value string").select("value"),
    "text": lambda reader, path: reader.text(path).select("value", "_metadata.file_name"),
}
"""Whose parsers get lines that are decoded natively."""


def read_in_one_task(spark, form, path, removed, options):
    """The values of a directory's files, which one task reads; `removed` is a file that is removed once it is listed."""

    def run():
        frame = LINES_BY_SPARK[form](spark.read.options(**options), path)
        assert frame.rdd.getNumPartitions() == 1
        frame = LINES_BY_SPARK[form](spark.read.options(**options), path)
        if removed:
            Path(removed).unlink()
        return sorted(row.value for row in frame.collect())

    return answered(lambda: with_settings(spark, {"spark.sql.files.minPartitionNum": "1"}, run))


def read_ignoring_damage(spark, form, path, conf=None):
    """The lines of a directory's files in their order."""

    def run():
        reader = spark.read.option("ignoreCorruptFiles", True)
        frame = reader.text(path) if form == "text" else reader.csv(path, schema="value string", sep="\1", quote="")
        return [row.value for row in frame.collect()]

    return with_settings(spark, conf or {}, run)


SHORTENED_FORMS = {
    "text": lambda spark, path: spark.read.text(path).collect,
    "count": lambda spark, path: spark.read.text(path).groupBy().count().collect,
    "some": lambda spark, path: spark.read.text(path).filter("contains(value, '7')").collect,
    "whole": lambda spark, path: spark.read.text(path, wholetext=True).collect,
    "metadata": lambda spark, path: spark.read.text(path).select("value", "_metadata.file_name").collect,
    "csv": lambda spark, path: spark.read.csv(path, schema="value string").collect,
    "json": lambda spark, path: spark.read.json(path, schema="value string").collect,
    "text file": lambda spark, path: spark.sparkContext.textFile(path).collect,
}
"""Reads of a directory that is listed when they are made."""


def read_shortened(spark, form, path, file, left, conf):
    """The number of rows that a read finds or its error, if a file is cut to some of its bytes once it is listed, or
    replaced by a link if there is a path.
    """

    def run():
        read = SHORTENED_FORMS[form](spark, path)
        frame = read.__self__
        assert frame.getNumPartitions() if form == "text file" else frame._jdf.queryExecution().executedPlan()
        if isinstance(left, int):
            os.truncate(file, left)
        else:
            os.unlink(file)
            os.symlink(left, file)
        rows = read()
        return rows[0]["count"] if form == "count" else len(rows)

    return answered(lambda: with_settings(spark, conf, run))


def read_removed(spark, path):
    """The error of a read whose file is removed between the plan and the tasks."""
    frame = spark.read.text(path)
    Path(path).unlink()
    return answered(frame.count)


DIGEST = ("count(*)", "sum(cast(xxhash64(value) as decimal(38, 0)))")


def digest(frame):
    return [str(value) for value in frame.selectExpr(*DIGEST).first()]


def divided(spark, path, conf):
    """How the lines of a path are divided among the tasks."""

    def run():
        frame = spark.read.text(path)
        shares = frame.selectExpr("spark_partition_id() task").groupBy("task").count().collect()
        return {
            "partitions": frame.rdd.getNumPartitions(),
            "rows": sorted(row["count"] for row in shares),
            "digest": digest(frame),
        }

    return answered(lambda: with_settings(spark, conf, run))


def counted(spark, path, conf=None):
    return with_settings(spark, conf or {}, spark.read.text(path).count)


def counted_by(spark, path, conf):
    """The number of lines, and of the tasks that counted them."""
    context, group = spark.sparkContext, f"counted by {time.monotonic_ns()}"
    context.setJobGroup(group, "")
    try:
        count = counted(spark, path, conf)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
    return count, max(stage.numTasks for stage in stages if stage)


def visible(spark, path):
    """The files found by reads of a directory."""
    recursive = spark.read.option("recursiveFileLookup", True)
    return {
        "text": sorted(spark.read.text(path).inputFiles()),
        "below": sorted(recursive.text(path).inputFiles()),
        "binary": sorted(row.path for row in recursive.format("binaryFile").load(path).select("path").collect()),
        "rdd": spark.sparkContext.textFile(path).count(),
        "glob": spark.sparkContext.textFile(f"{path}/*").count(),
        "whole": len(spark.sparkContext.wholeTextFiles(path).keys().collect()),
        "schema": spark.read.text(path).schema.simpleString(),
        "rows": digest(spark.read.text(path)),
    }


def read_replaced(spark, path, other, conf):
    """What a frame reads once it has read a file that another one then replaces."""

    def run():
        frame = spark.read.text(path)
        before = digest(frame)
        Path(other).replace(path)
        return before, answered(lambda: digest(frame))

    return with_settings(spark, conf, run)


KEPT = {}


def keep(spark, name, path, conf):
    """Makes a frame, whose files are listed then, and reads it."""

    def run():
        KEPT[name] = spark.read.text(path)
        return digest(KEPT[name])

    return with_settings(spark, conf, run)


def digest_of_kept(spark, name, conf):
    return answered(lambda: with_settings(spark, conf, lambda: digest(KEPT[name])))


def upload(spark, source, target):
    """Copies a local file, or the files of a directory. Not by copyFromLocalFile, in which S3A's transfers never end
    behind the test server.
    """
    hadoop, conf = spark._jvm.org.apache.hadoop.fs, spark._jsc.hadoopConfiguration()
    files = (
        {Path(source): target}
        if Path(source).is_file()
        else {path: f"{target}/{path.relative_to(source)}" for path in Path(source).rglob("*") if path.is_file()}
    )
    local, there = hadoop.FileSystem.getLocal(conf), hadoop.Path(target).getFileSystem(conf)
    for file, path in files.items():
        hadoop.FileUtil.copy(local, hadoop.Path(f"file:{file}"), there, hadoop.Path(path), False, True, conf)
    return len(files)


def download(spark, path, target):
    path, file_system = hadoop_path(spark, path)
    file_system.copyToLocalFile(False, path, spark._jvm.org.apache.hadoop.fs.Path(f"file:{target}"), True)


def stored(spark, path):
    """All files below a path, including hidden ones, with the metadata that a rewrite changes."""
    path, file_system = hadoop_path(spark, path)
    if not file_system.exists(path):
        return {}
    found = {}
    files = file_system.listFiles(path, True)
    while files.hasNext():
        status = files.next()
        version = status.getEtag() if file_system.getScheme() == "s3a" else None
        found[status.getPath().toString()] = [status.getLen(), status.getModificationTime(), version]
    return found


def give(spark, path, owner):
    path, file_system = hadoop_path(spark, path)
    file_system.setOwner(path, owner, None)


def admit(spark, path, user, scope="access"):
    """Lets a user read a file, or with the scope `default` all that is made in a directory later."""
    path, file_system = hadoop_path(spark, path)
    acl = spark._jvm.org.apache.hadoop.fs.permission.AclEntry.parseAclSpec(
        f"{'default:' if scope == 'default' else ''}user:{user}:r-x", True
    )
    file_system.modifyAclEntries(path, acl)


def access(spark, path):
    """The owner, the mode and the entries of the access control list of a file."""
    path, file_system = hadoop_path(spark, path)
    status = file_system.getFileStatus(path)
    return (
        status.getOwner(),
        status.getPermission().toString(),
        [str(entry) for entry in file_system.getAclStatus(path).getEntries()],
    )


def hashed(spark, path, code):
    """The number of rows that `code` makes of a path, a sum that identifies them, and the first; or the error."""

    def run():
        rows = [row if isinstance(row, int) else row[0] for row in evaluate(spark, path, code)]
        return [len(rows), sum(rows), rows[0]]

    return answered(run)


def indexed(spark, path):
    """The results of the job of `millstream index --spark` for the files of a directory."""
    # A Python int would become an Integer.
    smallest = spark._jvm.scala.jdk.javaapi.OptionConverters.toScala(spark._jvm.java.util.OptionalLong.of(0))
    job = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.compressed.IndexJob(
        spark._jsparkSession, spark._jvm.scala.Option.empty(), smallest, False
    )
    outcomes = job.make(spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala([path]).toSeq())
    return [outcomes.apply(i).action() for i in range(outcomes.length())]


def read_pieces(spark, path, conf, partitions):
    """Reads of the same files with splits anywhere."""

    def run():
        frame = spark.read.text(path)
        return {
            "by file": by_file(frame),
            "count": frame.count(),
            "found": lines(frame.filter("contains(value, 'a')")),
            "rdd": spark.sparkContext.textFile(path, partitions).count(),
            "lf": lines(spark.read.text(path, lineSep="\n")),
            "csv": spark.read.csv(path, schema="a string", sep="\u0001", quote="").count(),
        }

    return answered(lambda: with_settings(spark, conf, run))
