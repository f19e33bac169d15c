"""Functions for test_native_reads.py and slow_reads.py that run in a session's process."""

import threading
import time
from pathlib import Path

from answers import answer_of
from queries import reads_natively


def rows_where(spark, path, conditions):
    """The lines, in hexadecimal, for which each condition holds, or the error."""
    frames = [
        spark.read.text(path).filter(condition).selectExpr("hex(cast(value as binary)) line")
        for condition in conditions
    ]
    return [answer_of(lambda f=frame: sorted(row.line for row in f.collect())) for frame in frames]


def scan_node(graph):
    nodes = graph.allNodes()
    return next(node for node in map(nodes.apply, range(nodes.size())) if node.name().endswith("(NativeTextScan)"))


def sql_metrics(spark, path, condition):
    """The contents of the SQL tab and the stages' page."""
    sc = spark.sparkContext
    sc.setJobGroup(f"metrics of {path}", "")
    rows = len(spark.read.text(path).filter(condition).collect())
    sc._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    execution = store.executionsList().last().executionId()
    values = store.executionMetrics(execution).iterator()
    shown = {}
    while values.hasNext():
        value = values.next()
        shown[value._1()] = value._2()
    metrics = scan_node(store.planGraph(execution)).metrics()
    metrics = {metric.name(): shown.get(metric.accumulatorId()) for metric in map(metrics.apply, range(metrics.size()))}
    tracker, stages = sc.statusTracker(), sc._jsc.sc().statusStore()
    (job,) = tracker.getJobIdsForGroup(f"metrics of {path}")
    (stage,) = tracker.getJobInfo(job).stageIds
    read = stages.lastStageAttempt(stage)
    return {"rows": rows, "metrics": metrics, "bytes": read.inputBytes(), "records": read.inputRecords()}


def packed_scan(spark, format_name, path):
    frame = spark.read.format(format_name).load(path)
    rows = len(frame.collect())
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    names = ("numFiles", "filesReadAhead", "numOutputRows")
    metrics = {name: scan.metrics().apply(name).value() for name in names}
    return {"rows": rows, "node": scan.nodeName(), "tasks": frame.rdd.getNumPartitions(), "metrics": metrics}


def continued_files(spark, format_name, path):
    frame = spark.read.format(format_name).load(path)
    frame.collect()
    metrics = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0).metrics()
    return {"files": metrics.apply("numFiles").value(), "continued": metrics.apply("filesContinued").value()}


def missing_files(spark, path, removed):
    frame = spark.read.option("ignoreMissingFiles", True).text(path)
    Path(removed).unlink()
    rows = len(frame.collect())
    scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)
    return {"rows": rows, "missing": scan.metrics().apply("filesMissing").value()}


def formatted_plan(spark, path, condition):
    frame = spark.read.text(path).filter(condition)
    frame.collect()
    mode = spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    return frame._jdf.queryExecution().explainString(mode)


def counted_where(spark, path, condition, by):
    frame = spark.read.text(path).filter(condition).groupBy(*by).count()
    rows = sorted(map(repr, frame.collect()))
    plan = frame._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    return {
        "rows": rows,
        "plan": plan.replace("NativeFilters", "")
        .replace("PushedFilters", "")
        .replace("PartitionFilters", "")
        .replace("DataFilters", ""),
    }


def with_setting(spark, key, value, path):
    spark.conf.set(key, value)
    try:
        frame = spark.read.text(path).selectExpr("hex(cast(value as binary))")
        return {"rows": sorted(map(repr, frame.collect())), "natively": reads_natively(frame)}
    finally:
        spark.conf.unset(key)


def task_count(spark, path, conf):
    return with_settings(spark, conf, lambda: spark.read.text(path).rdd.getNumPartitions())


def rdd_task_count(spark, path, conf):
    return with_settings(spark, conf, lambda: spark.sparkContext.textFile(path).getNumPartitions())


def with_settings(spark, conf, run):
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        return run()
    finally:
        for key in conf:
            spark.conf.unset(key)


IN_ONE_TASK = {
    "spark.sql.files.minPartitionNum": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.openCostInBytes": "0",
}


def records(spark, path, format_name, options, schema):
    """The rows of each file in a directory, which one task reads, in their order; or the error, whichever file has it."""
    frame = spark.read.format(format_name).options(**options).schema(schema).load(path)
    columns = [
        f"hex({column})" if column in ("b", "_corrupt_record") else f"cast({column} as string)"
        for column in frame.columns
    ]

    def run():
        rows = {}
        for *values, name in frame.selectExpr(*columns, "regexp_extract(input_file_name(), '[^/]*$', 0)").collect():
            rows.setdefault(name, []).append(values)
        return rows

    try:
        return {"rows": with_settings(spark, IN_ONE_TASK, run)}
    except Exception as error:
        # Of several files that are broken, each session may read another one first.
        return {"error": error.getCondition() if hasattr(error, "getCondition") else type(error).__name__}


def shortened(spark, path, length, partitions):
    """The errors of reads of a file that is cut to a length once it is listed; None for those that do not fail."""
    frame = spark.read.option("millstream.read.partitions", partitions).text(path)
    frames = {"rows": frame, "count": frame.groupBy().count(), "some": frame.filter("contains(value, '7')")}
    rdd = spark.sparkContext.textFile(path, partitions)
    assert rdd.getNumPartitions() and all(planned._jdf.queryExecution().executedPlan() for planned in frames.values())
    with Path(path).open("r+b") as file:
        file.truncate(length)
    return {
        name: answer_of(run).get("message")
        for name, run in {**{name: read.collect for name, read in frames.items()}, "rdd": rdd.count}.items()
    }


def binary_file_tasks(spark, path):
    return spark.sparkContext.binaryFiles(path).getNumPartitions()


def read_while_growing(spark, path, how):
    """Lines of a file that grows continuously, read several times."""
    record = b"%031d\n"
    stop = threading.Event()

    def grow():
        number = 2000
        with open(path, "ab", buffering=0) as file:
            while not stop.is_set():
                file.write(record % number)
                number += 1
                time.sleep(0.0005)

    Path(path).write_bytes(b"".join(record % i for i in range(2000)))
    writer = threading.Thread(target=grow)
    writer.start()
    try:
        rounds = []
        for _ in range(5):
            least = Path(path).stat().st_size // 32
            if how == "RDD":
                lines = spark.sparkContext.textFile(path).collect()
            else:
                lines = [row.value for row in spark.read.text(path).collect()]
            most = Path(path).stat().st_size // 32
            rounds.append(
                {"count": least <= len(lines) <= most, "lines": sorted(map(int, lines)) == list(range(len(lines)))}
            )
        return rounds
    finally:
        stop.set()
        writer.join()


def names_in_executors(spark, path):
    """The rows that tasks in executors read, with their file names."""
    text = spark.read.option("recursiveFileLookup", True).text(path)
    csv = spark.read.option("recursiveFileLookup", True).schema("value string").csv(path)
    named = [frame.selectExpr("value", "input_file_name()").collect() for frame in (text, csv)]
    # The JVM's RDD, because PySpark's lines come from another reader.
    lines = list(spark.sparkContext._jsc.textFile(f"{path}/*").collect())
    encoding = spark.range(1).selectExpr("reflect('java.lang.System', 'getProperty', 'sun.jnu.encoding')").first()[0]
    return {"frames": [sorted(map(list, rows)) for rows in named], "lines": sorted(lines), "encoding": encoding}


def long_line(spark, path):
    """Queries on a line of a gigabyte that do not load it into the heap."""
    frame = spark.read.text(path)
    return {
        "count": frame.count(),
        "longest": frame.selectExpr("max(length(value))").first()[0],
        "found": frame.filter("value like 'x%x' and length(value) > 10").count(),
        "filtered": frame.filter("contains(value, 'short')").collect()[0].value,
    }


def why_not(spark, path):
    """The error for a file that cannot be read, with the causes."""
    from py4j.protocol import Py4JJavaError

    try:
        return spark.read.text(path).selectExpr("max(length(value))").first()[0]
    except Py4JJavaError as error:
        messages, cause = [], error.java_exception
        while cause:
            messages.append(cause.getMessage())
            cause = cause.getCause()
        return messages


def keys_for_readers(spark, session, keys, own=None):
    """Values of `keys` in the configuration that readers of files get, with the session's keys and `own` ones."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    for key, value in {**session, **(own or {})}.items():
        conf.set(key, value)
    package = spark._jvm.org.apache.spark.sql.execution.datasources.millstream.reading.packed
    slim = getattr(getattr(package, "SlimConfiguration$"), "MODULE$").of(conf, spark.sparkContext._jsc.sc().getConf())
    return [slim.get(key) for key in keys]
