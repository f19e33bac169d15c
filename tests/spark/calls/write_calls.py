"""Functions for test_direct_writes.py that run in a session's process."""

import glob
import os
import re
import shutil
import threading
import time

from py4j.java_gateway import get_field

CHANGING = re.compile(r"transient_lastDdlTime=\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIMES = ("Created Time", "Last Access", "Created By", "Owner")
# Numbers that stock leaves unchanged or does not count: Millstream's are correct, and checked separately.
SIZES = re.compile(r"\b(numFiles|totalSize|numRows|rawDataSize|COLUMN_STATS_ACCURATE)=(\{[^}]*\}|[^,\]]*)(, )?")
STATISTICS = ("Statistics", "Partition Statistics")


def run(spark, statements, tables=("t",), home=None, conf=None, code=None, database=None):
    """Runs statements in a new database; returns their errors, and descriptions of the tables and `home` afterwards.

    `{home}` in a statement is a directory that is empty at first. `code` is Python, run last; `location`
    gives it a table's directory. `database` is the database's directory.
    """
    spark.sql("drop database if exists d cascade")
    spark.sql("create database d" + (f" location '{database}'" if database else ""))
    spark.sql("use d")
    if is_local(home):
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(home)
    else:
        path, file_system = hadoop_path(spark, home)
        file_system.delete(path, True)
    errors = []
    before = executions(spark)
    settings = {key: spark.conf.get(key, None) for key in conf or {}}
    for key, value in (conf or {}).items():
        spark.conf.set(key, value)
    try:
        for statement in statements:
            errors.append(error_of(lambda: spark.sql(statement.format(home=home))))
        if code:
            errors.append(
                error_of(
                    lambda: exec(code, {"spark": spark, "home": home, "location": lambda name: location(spark, name)})
                )
            )
    finally:
        for key, value in settings.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
    nodes = sorted(plan for number, plan in executions(spark).items() if number not in before)
    tables = {name: table(spark, name, home) for name in tables}
    found = {"errors": errors, "nodes": nodes, "tables": tables, "files": directories(spark, home)}
    spark.sql("use default")
    return found


def executions(spark):
    """The commands of INSERTs, by execution."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = {found.apply(i).executionId(): found.apply(i).physicalPlanDescription() for i in range(found.size())}
    inserts = {
        number: re.search(r"Execute (\w*InsertInto(?:Hive|HadoopFs)\w*)", plan) for number, plan in plans.items()
    }
    return {number: match[1] for number, match in inserts.items() if match}


def error_of(action):
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {first_lines(error)}"


def first_lines(error):
    java = getattr(error, "java_exception", None)
    while java is not None and java.getCause() is not None:
        java = java.getCause()
    text = java.toString() if java is not None else str(error)
    return re.sub(r"file:\S*|/\S*|Job \S+", "PATH", text.splitlines()[0])[:200]


def table(spark, name, home):
    if not spark.catalog.tableExists(name):
        return None
    try:
        rows = sorted(map(str, spark.table(name).collect()))
    except Exception as error:
        rows = first_lines(error)
    columns = spark.sql(f"describe {name}").collect()
    partitions = {}
    location = describe(spark, name, "", home)["Location"]
    if any(row[0] == "# Partition Information" for row in columns):
        for (partition,) in spark.sql(f"show partitions {name}").collect():
            partitions[partition] = described(spark, name, partition, home)
    return {
        "rows": rows,
        "schema": str(columns),
        "table": scrub(describe(spark, name, "", home)),
        "partitions": partitions,
        "directories": directories(spark, location),
    }


def described(spark, name, partition, home):
    return scrub(describe(spark, name, specification(partition), home))


def specification(partition):
    values = {}
    for part in partition.split("/"):
        key, value = part.split("=", 1)
        values[key] = unescape(value)
    spec = ", ".join(
        f"{key}=" + ("null" if value == "__HIVE_DEFAULT_PARTITION__" else "'" + value.replace("'", "\\'") + "'")
        for key, value in values.items()
    )
    return f"partition({spec})"


def unescape(value):
    return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), value)


def describe(spark, name, partition, home):
    found = {row[0]: row[1] for row in spark.sql(f"describe extended {name} {partition}").collect() if row[0]}
    top = os.path.dirname(home)
    return {
        key: value if key == "Location" else value.replace(top, "TOP")
        for key, value in found.items()
        if key not in TIMES
    }


def scrub(description):
    answer = {key: CHANGING.sub("", value) for key, value in description.items() if key not in STATISTICS}
    sizes = dict(found[:2] for found in SIZES.findall(answer.get("Partition Parameters", "")))
    answer["Partition Parameters"] = ", ".join(
        sorted(part for part in SIZES.sub("", answer.get("Partition Parameters", "")).strip("[] ,").split(", ") if part)
    )
    answer["Table Properties"] = ", ".join(
        sorted(part for part in SIZES.sub("", answer.get("Table Properties", "")).strip("[] ,").split(", ") if part)
    )
    answer["Location"] = re.sub(r"^\w+:.*?/(warehouse|home)/", "", answer.get("Location", ""))
    return {"sizes": sizes, "statistics": {key: description[key] for key in STATISTICS if key in description}, **answer}


def is_local(url):
    return url.startswith(("/", "file:"))


def hadoop_path(spark, url):
    """A path, and its file system."""
    path = spark._jvm.org.apache.hadoop.fs.Path(url)
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())


def directories(spark, top):
    """Number and bytes of data files, and names of the others, by directory."""
    files = local_files(top.removeprefix("file:")) if is_local(top) else remote_files(spark, top)
    found = {}
    for directory, name, size in files:
        # The journal keeps entries of aborted jobs for some time.
        if name == ".direct-writes" or name.endswith(".crc"):
            continue
        # A stock task that outlives its failed job recreates the job's staging directory.
        if name.startswith((".spark-staging-", ".hive-staging_")) and not loads(
            spark, "io.millstream.write.protocol.DirectJob"
        ):
            continue
        number, total, others = found.setdefault(directory, (0, 0, []))
        if name[0] in "._":
            # Hive gives the second _SUCCESS that it moves into a directory another name.
            others = sorted({*others, re.sub(r"_copy_\d+$", "", name)})
        else:
            number, total = number + 1, total + size
        found[directory] = (number, total, others)
    return found


def local_files(top):
    """Directory, name and size of every file; a hidden directory counts as one."""
    for directory, folders, names in os.walk(top):
        hidden = [folder for folder in folders if folder[0] in "._"]
        folders[:] = [folder for folder in folders if folder not in hidden]
        for name in hidden:
            yield os.path.relpath(directory, top), name, 0
        for name in names:
            yield os.path.relpath(directory, top), name, os.path.getsize(os.path.join(directory, name))


def remote_files(spark, top):
    root, file_system = hadoop_path(spark, top)
    if file_system.exists(root):
        files = file_system.listFiles(root, True)
        while files.hasNext():
            status = files.next()
            names = status.getPath().toUri().getPath().removeprefix(root.toUri().getPath()).strip("/").split("/")
            hidden = next((i for i, name in enumerate(names[:-1]) if name[0] in "._"), len(names) - 1)
            yield "/".join(names[:hidden]) or ".", names[hidden], status.getLen()


def plan(spark, statement):
    return spark.sql(f"explain {statement}").collect()[0][0]


def fill(spark, path, value, partitions, mode):
    """Writes one row to each partition; returns the driver's PID."""
    frame = spark.range(0, partitions, 1, 2).selectExpr(f"'{value}' value", "id k")
    frame.write.mode(mode).option("partitionOverwriteMode", "dynamic").partitionBy("k").csv(path)
    return spark._jvm.java.lang.ProcessHandle.current().pid()


def fill_with_failing_commit(spark, path, value, partitions):
    """The error, with its causes, of a Spark job that cannot publish in the first partition: a directory with the name
    of its file is in the way, and is removed at the end.
    """
    jvm = spark._jvm
    holder = "00000000-0000-4000-8000-0000000000aa"
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    lock = jvm.io.millstream.write.protocol.DirectJob.begin(jvm.org.apache.hadoop.fs.Path(path), holder, "", conf, None)
    with open(f"{path}/.direct-writes/_lock-1", "w") as file:
        file.write(holder)
    errors = []

    def insert():
        try:
            fill(spark, path, value, partitions, "append")
        except Exception as error:
            errors.append(str(error))

    spark.conf.set("fs.millstream.write.distribute.files", "1")
    insertion = threading.Thread(target=insert)
    insertion.start()
    while (
        len(glob.glob(f"{path}/k=*/.direct-*.csv")) < partitions
        or spark.sparkContext.statusTracker().getActiveJobsIds()
    ):
        time.sleep(0.05)
    (staged,) = glob.glob(f"{path}/k=0/.direct-*.csv")
    final = f"{path}/k=0/part{staged.partition('.part')[2]}"
    os.mkdir(final)
    lock.abort()
    lock.close()
    insertion.join()
    os.rmdir(final)
    spark.conf.unset("fs.millstream.write.distribute.files")
    return errors[0]


def overwrite_with_itself(spark, path):
    """The statement's error, if it fails."""
    frame = spark.read.schema("value string, k int").csv(path)
    return error_of(
        lambda: frame.write.mode("overwrite").option("partitionOverwriteMode", "static").partitionBy("k").csv(path)
    )


def values(spark, path, pattern=""):
    """The number of partitions for each value, of all partitions or of those that a pattern names."""
    rows = (
        spark.read.option("basePath", path)
        .schema("value string, k int")
        .csv(path + pattern)
        .groupBy("value")
        .count()
        .orderBy("value")
        .collect()
    )
    return [list(row) for row in rows]


def driver(spark):
    """The PID of the driver."""
    return spark._jvm.java.lang.ProcessHandle.current().pid()


def recover(spark, target, dry_run=False):
    import dataclasses

    import millstream

    return [dataclasses.asdict(finding) for finding in millstream.recover(spark, target, dry_run=dry_run)]


def abandon(spark, path, job):
    """Begins a job, with a file of a task, whose driver then stops renewing its lease."""
    jvm = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    begun = jvm.io.millstream.write.protocol.DirectJob.begin(jvm.org.apache.hadoop.fs.Path(path), job, "", conf, None)
    with open(os.path.join(path, "k=1", f".direct-{job}-0.part-{job}.csv"), "w"):
        pass
    begun.close()


def metrics_of_last_write(spark):
    """Names and values in the SQL tab."""
    last = max(executions(spark))
    store = spark._jsparkSession.sharedState().statusStore()
    values = store.executionMetrics(last)
    metrics = store.execution(last).get().metrics()
    shown = {}
    for i in range(metrics.size()):
        metric = metrics.apply(i)
        if values.contains(metric.accumulatorId()):
            shown[metric.name()] = values.apply(metric.accumulatorId())
    return shown


def shared_configuration(spark):
    """A job's configuration in two tasks: the bytes sent with each, and their values of a setting that the first task
    changes.
    """
    jvm = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    conf.set("test.shared", "sent")
    shared = jvm.org.apache.spark.sql.execution.datasources.millstream.write.SharedConfiguration(conf, spark._jsc.sc())
    sent = jvm.org.apache.spark.util.Utils.serialize(shared)
    first, second = (jvm.org.apache.spark.util.Utils.deserialize(sent).value() for _ in range(2))
    first.set("test.shared", "changed")
    return {
        "bytes": len(sent),
        "sizes": [conf.size(), second.size()],
        "setting": [first.get("test.shared"), second.get("test.shared")],
    }


def location(spark, name):
    (path,) = [row[1] for row in spark.sql(f"describe extended {name}").collect() if row[0] == "Location"]
    return path.removeprefix("file:")


def loads(spark, name):
    try:
        spark._jvm.java.lang.Class.forName(name)
    except Exception:
        return False
    return True


def read_by_hive(spark, name):
    """The rows of a table as read by Hive's own fetch task, with the metastore's input formats and serdes."""
    jvm = spark._jvm
    hive = jvm.org.apache.hadoop.hive
    clients = jvm.org.apache.spark.sql.hive.client.HiveClientImpl
    nothing = jvm.scala.Option.empty()
    catalog = spark._jsparkSession.sharedState().externalCatalog()
    table = clients.toHiveTable(catalog.getTable("d", name), nothing)
    paths, descriptions = jvm.java.util.ArrayList(), jvm.java.util.ArrayList()
    found = catalog.listPartitions("d", name, nothing)
    for i in range(found.size()):
        partition = clients.toHivePartition(found.apply(i), table)
        paths.add(partition.getDataLocation())
        descriptions.add(hive.ql.plan.PartitionDesc(partition))
    work = hive.ql.plan.FetchWork(paths, descriptions, hive.ql.exec.Utilities.getTableDesc(table))
    reader = hive.ql.exec.FetchOperator(
        work, jvm.org.apache.hadoop.mapred.JobConf(spark._jsparkSession.sessionState().newHadoopConf())
    )
    inspector, rows = reader.getOutputObjectInspector(), []
    while (row := reader.getNextRow()) is not None:
        rows.append(hive.serde2.SerDeUtils.getJSONString(get_field(row, "o"), inspector))
    return sorted(rows)
