"""Creates one DataFrame in a fresh JVM and prints what that cost, as JSON. Run by bench/spark-list with a Spark's Python.

    spark_list_probe.py DIRECTORY stock|file-system|millstream
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import millstream
from pyspark.sql import DataFrame, SparkSession

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def session(way: str) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "6g")
    if way != "stock":
        builder = millstream.enable(builder)
    if way == "file-system":
        # The same rule in other words: whatever is not the default, the index leaves to Spark's own.
        builder = builder.config("spark.sql.files.ignoredPathSegmentRegex", "^[._].*")
    return builder.getOrCreate()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def live_heap_mb(spark: SparkSession) -> float:
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20


def create(spark: SparkSession, directory: str) -> DataFrame:
    return spark.read.option("recursiveFileLookup", "true").text(directory)


def main(directory: str, way: str) -> None:
    spark = session(way)
    with tempfile.TemporaryDirectory() as small:
        Path(small, "sub").mkdir()
        Path(small, "sub", "file").touch()
        create(spark, small)  # both rivals meet their classes loaded, neither its code compiled
    jvm = spark.sparkContext._gateway.proc.pid
    heap_before, cpu_before = live_heap_mb(spark), cpu_s(jvm)
    start = time.perf_counter()
    frame = create(spark, directory)
    wall = time.perf_counter() - start
    cpu = cpu_s(jvm) - cpu_before
    heap = live_heap_mb(spark) - heap_before
    files = frame._jdf.inputFiles()
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "heap_mb": heap, "files": len(files)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
