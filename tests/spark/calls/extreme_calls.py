"""Functions for slow_extreme_files.py that run in a session's process."""

import re
import threading
import time
from pathlib import Path

from answers import answer_of

SCHEMAS = {"text": "b string", "csv": "a int, b string", "json": "a int, b string"}
MATCHED = re.compile(r"VmRSS:\s+(\d+)")


def long_lines(spark, path, format_name, options):
    """Queries on files with a long line, and the peak memory of the process meanwhile."""
    peak = Peak(spark)
    frame = spark.read.options(**options).schema(SCHEMAS[format_name]).format(format_name).load(path)
    found = {
        "count": of(lambda: frame.count()),
        "longest": of(lambda: frame.selectExpr("max(length(b))").first()[0]),
        "hash": of(lambda: frame.selectExpr("sum(hash(*))").first()[0]),
        "short": of(lambda: sorted(row.b for row in frame.filter("length(b) < 10").collect())),
        "found": of(lambda: frame.filter("b like 'x%x'").count()),
    }
    return {**found, "peak kb": peak.end()}


def of(run):
    """A plain value, or the error without the parts that differ from run to run."""
    result = []
    answer = answer_of(lambda: result.append(run()))
    return answer if "error" in answer else result[0]


class Peak:
    """The resident memory of the JVM, sampled continuously."""

    def __init__(self, spark):
        self._status = Path(f"/proc/{spark._jvm.java.lang.ProcessHandle.current().pid()}/status")
        self._most, self._ends = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self):
        while not self._ends.is_set():
            self._most = max(self._most, int(MATCHED.search(self._status.read_text())[1]))
            time.sleep(0.05)

    def end(self):
        self._ends.set()
        self._thread.join()
        return self._most


def many_files(spark, path, format_name, options):
    """The number of rows, the rows, the schema and the number of tasks of a read of many files; or the error."""
    options = dict(options)
    schema = options.pop("schema", None)
    reader = spark.read.option("recursiveFileLookup", True).options(**options)
    frame = []
    made = of(lambda: frame.append((reader.schema(schema) if schema else reader).format(format_name).load(path)))
    if made is not None:
        return made
    (frame,) = frame
    rows = of(lambda: sorted(map(str, frame.collect())))
    return {
        "schema": frame.schema.simpleString(),
        "count": of(frame.count),
        "rows": rows,
        "tasks": frame.rdd.getNumPartitions(),
    }
