"""Does one job in a fresh JVM, after warming it, and prints what the job cost, as JSON. Run by bench/spark-read with a Spark's Python.

    spark_read_probe.py JOB stock|tuned|millstream MEMORY WARM_UP TIMES DIRECTORY [LIMIT_S]

JOB is a function of `JOBS`, or `pattern-PARTITIONS`; `tuned` is stock with the settings of `TUNED`; MEMORY is the driver's. WARM_UP is the directory over which the job is
done before, TIMES times. A job that is not done after LIMIT_S seconds is stopped. Counted is what this process, the JVM, its Python workers and the commands that they start use.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import millstream
from harness import tree_cpu_s
from pyspark.sql import DataFrame, SparkSession, functions
from spark_probe import live_heap_mb, session

RECORD = "id INT, date TIMESTAMP, address STRING, city STRING, state STRING, zip STRING, service STRING, amount INT"
TUNED = {"spark.sql.files.openCostInBytes": "4096", "spark.sql.files.maxPartitionNum": "4"}
"""What is advised for small files: many in a partition, and no more than two partitions a core."""
Answer = tuple[int, int | None]  # rows, and a sum over them


def count(spark: SparkSession, directory: str) -> Answer:
    return spark.read.text(directory).count(), None


def count_below(spark: SparkSession, directory: str) -> Answer:
    return spark.read.option("recursiveFileLookup", "true").text(directory).count(), None


def rdd_count(spark: SparkSession, directory: str) -> Answer:
    """sc.textFile in the JVM, so that no line goes through Python."""
    return spark.sparkContext._jsc.textFile(directory).count(), None


def matching(spark: SparkSession, directory: str) -> Answer:
    return spark.read.text(directory).filter(functions.col("value").contains("BALTIMORE")).count(), None


def total(records: DataFrame) -> Answer:
    return tuple(records.agg(functions.count("amount"), functions.sum("amount")).first())


def json_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).json(directory))


def csv_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).csv(directory))


def parquet_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).parquet(directory))


def binary_files(spark: SparkSession, directory: str) -> Answer:
    lengths = spark.sparkContext.binaryFiles(directory).map(lambda file: len(file[1]))
    return lengths.map(lambda length: (1, length)).reduce(lambda a, b: (a[0] + b[0], a[1] + b[1]))


def pure(spark: SparkSession, directory: str) -> Answer:
    return millstream.pure_read_text(spark.sparkContext, directory).count(), None


def lines_of(name: str) -> Iterator[str]:
    with open(name, encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")


def pattern(spark: SparkSession, directory: str, partitions: int) -> Answer:
    """The published way round slow listings: names from a command, each file read in Python."""
    found = subprocess.run(["find", directory, "-type", "f"], capture_output=True, text=True, check=True)
    names = found.stdout.splitlines()
    return spark.sparkContext.parallelize(names, min(partitions, len(names))).flatMap(lines_of).count(), None


def lines_in(directory: str) -> int:
    return sum(path.read_bytes().count(b"\n") for path in Path(directory).glob("[!._]*"))


def merged_by_rdd(spark: SparkSession, directory: str) -> Answer:
    """The published way to merge; in the JVM, so that no line goes through Python."""
    with tempfile.TemporaryDirectory(dir=Path(directory).parent) as scratch:
        spark.sparkContext._jsc.textFile(directory).coalesce(2).saveAsTextFile(f"{scratch}/out")
        return lines_in(f"{scratch}/out"), None


def compacted(spark: SparkSession, directory: str) -> Answer:
    with tempfile.TemporaryDirectory(dir=Path(directory).parent) as scratch:
        millstream.compact(spark, directory, f"{scratch}/out")
        return lines_in(f"{scratch}/out"), None


JOBS = {
    job.__name__: job for job in (
        count, count_below, rdd_count, matching, json_total, csv_total, parquet_total, binary_files, pure, merged_by_rdd, compacted,
    )
}


def job_named(name: str) -> Callable[[SparkSession, str], Answer]:
    kind, _, partitions = name.partition("-")
    return functools.partial(pattern, partitions=int(partitions)) if kind == "pattern" else JOBS[name]


def main(name: str, way: str, memory: str, warm_up: str, times: str, directory: str, limit_s: str = "inf") -> None:
    job = job_named(name)
    spark = session("stock", memory, TUNED) if way == "tuned" else session(way, memory)
    for _ in range(int(times)):
        job(spark, warm_up)
    heap_before, cpu_before = live_heap_mb(spark), tree_cpu_s(os.getpid())
    at_limit = {}

    def stop() -> None:
        at_limit.update(wall_s=float(limit_s), cpu_s=tree_cpu_s(os.getpid()) - cpu_before, heap_mb=0, rows=None, stopped=True)
        spark.sparkContext._gateway.proc.kill()

    timer = threading.Timer(min(float(limit_s), threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    start = time.perf_counter()
    try:
        rows, sum_of_rows = job(spark, directory)
    except Exception:
        if not at_limit:
            raise
        print(json.dumps(at_limit))
        return
    wall = time.perf_counter() - start
    timer.cancel()
    cpu = tree_cpu_s(os.getpid()) - cpu_before
    heap = live_heap_mb(spark) - heap_before
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "heap_mb": heap, "rows": rows, "sum": sum_of_rows}))


if __name__ == "__main__":
    main(*sys.argv[1:])
