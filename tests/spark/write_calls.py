"""Functions for test_direct_writes.py that run in a session's process."""

import os
import re
import shutil

CHANGING = re.compile(r"transient_lastDdlTime=\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIMES = ("Created Time", "Last Access", "Created By", "Owner")
# What stock leaves as it was, or says without having counted: Millstream's are right, and looked at by themselves.
SIZES = re.compile(r"\b(numFiles|totalSize|numRows|rawDataSize|COLUMN_STATS_ACCURATE)=(\{[^}]*\}|[^,\]]*)(, )?")
STATISTICS = ("Statistics", "Partition Statistics")


def run(spark, statements, tables=("t",), home=None, conf=None, code=None):
    """Runs statements in a database of their own; answers their errors, and what the tables and `home` then are.

    `{home}` in a statement is a directory that is empty at first. `code` is Python, run last.
    """
    spark.sql("drop database if exists d cascade")
    spark.sql("create database d")
    spark.sql("use d")
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home)
    errors = []
    before = executions(spark)
    settings = {key: spark.conf.get(key, None) for key in conf or {}}
    for key, value in (conf or {}).items():
        spark.conf.set(key, value)
    try:
        for statement in statements:
            errors.append(error_of(lambda: spark.sql(statement.format(home=home))))
        if code:
            errors.append(error_of(lambda: exec(code, {"spark": spark, "home": home})))
    finally:
        for key, value in settings.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
    nodes = sorted(plan for number, plan in executions(spark).items() if number not in before)
    return {"errors": errors, "nodes": nodes, "tables": {name: table(spark, name, home) for name in tables}, "files": tree(home)}


def executions(spark):
    """The commands that inserted, by execution."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    plans = {found.apply(i).executionId(): found.apply(i).physicalPlanDescription() for i in range(found.size())}
    inserts = {number: re.search(r"Execute (\w*InsertInto(?:Hive|HadoopFs)\w*)", plan) for number, plan in plans.items()}
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
    frame = spark.table(name)
    rows = sorted(map(str, frame.collect()))
    columns = spark.sql(f"describe {name}").collect()
    partitions = {}
    location = describe(spark, name, "", home)["Location"]
    if any(row[0] == "# Partition Information" for row in columns):
        for (partition,) in spark.sql(f"show partitions {name}").collect():
            partitions[partition] = described(spark, name, partition, home)
    return {"rows": rows, "schema": str(columns), "table": scrub(describe(spark, name, "", home)), "partitions": partitions,
            "directories": directories(location.removeprefix("file:"))}


def described(spark, name, partition, home):
    values = {}
    for part in partition.split("/"):
        key, value = part.split("=", 1)
        values[key] = unescape(value)
    spec = ", ".join(f"{key}=" + ("null" if value == "__HIVE_DEFAULT_PARTITION__" else "'" + value.replace("'", "\\'") + "'") for key, value in values.items())
    return scrub(describe(spark, name, f"partition({spec})", home))


def unescape(value):
    return re.sub("%([0-9A-F]{2})", lambda found: chr(int(found[1], 16)), value)


def describe(spark, name, partition, home):
    found = {row[0]: row[1] for row in spark.sql(f"describe extended {name} {partition}").collect() if row[0]}
    top = os.path.dirname(home)
    return {key: value if key == "Location" else value.replace(top, "TOP") for key, value in found.items() if key not in TIMES}


def scrub(description):
    answer = {key: CHANGING.sub("", value) for key, value in description.items() if key not in STATISTICS}
    sizes = dict(found[:2] for found in SIZES.findall(answer.get("Partition Parameters", "")))
    answer["Partition Parameters"] = ", ".join(sorted(part for part in SIZES.sub("", answer.get("Partition Parameters", "")).strip("[] ,").split(", ") if part))
    answer["Table Properties"] = ", ".join(sorted(part for part in SIZES.sub("", answer.get("Table Properties", "")).strip("[] ,").split(", ") if part))
    answer["Location"] = re.sub(r"^file:.*?/(warehouse|home)/", "", answer.get("Location", ""))
    return {"sizes": sizes, "statistics": {key: description[key] for key in STATISTICS if key in description}, **answer}


def directories(top):
    """Number and bytes of data files, and names of the others, by directory."""
    found = {}
    for directory, folders, names in os.walk(top):
        # The journal remembers for some time that a job was undone.
        folders[:] = [folder for folder in folders if folder != ".direct-writes"]
        files = [name for name in names if name[0] not in "._"]
        # Hive gives the second _SUCCESS that it moves into a directory another name.
        others = sorted({re.sub(r"_copy_\d+$", "", name) for name in names + folders if name[0] in "._" and not name.endswith(".crc")})
        if files or others:
            size = sum(os.path.getsize(os.path.join(directory, name)) for name in files)
            found[os.path.relpath(directory, top)] = [len(files), size, others]
    return found


def tree(home):
    return directories(home)


def plan(spark, statement):
    return spark.sql(f"explain {statement}").collect()[0][0]


def fill(spark, path, value, partitions, mode):
    """One row in each partition; answers the driver's process."""
    frame = spark.range(0, partitions, 1, 2).selectExpr(f"'{value}' value", "id k")
    frame.write.mode(mode).option("partitionOverwriteMode", "dynamic").partitionBy("k").csv(path)
    return spark._jvm.java.lang.ProcessHandle.current().pid()


def values(spark, path):
    """How many partitions hold which values."""
    rows = spark.read.schema("value string, k int").csv(path).groupBy("value").count().orderBy("value").collect()
    return [list(row) for row in rows]


def recover(spark, target, dry_run=False):
    import dataclasses

    import millstream

    return [dataclasses.asdict(finding) for finding in millstream.recover(spark, target, dry_run=dry_run)]


def abandon(spark, path, job):
    """Begins a job whose driver then gives no more signs of life, with a file of a task."""
    jvm = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    begun = jvm.io.millstream.write.DirectJob.begin(jvm.org.apache.hadoop.fs.Path(path), job, conf, None)
    with open(os.path.join(path, "k=1", f".direct-{job}-0.part-{job}.csv"), "w"):
        pass
    begun.close()


def metrics_of_last_write(spark):
    """Names and values that the SQL tab shows."""
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
