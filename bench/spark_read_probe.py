"""Runs jobs in a fresh JVM, after warming it, and prints the cost of each as a line of JSON. Run by bench/spark-read
with the Python of a Spark environment.

    spark_read_probe.py JOB[,JOB...] stock|tuned|millstream[-CORES] MEMORY WARM_UP TIMES DIRECTORY [LIMIT_S]

JOB is a function of `JOBS` (with the suffix `_below`: including files in subdirectories), a name of spark_everyday.py,
or `pattern-PARTITIONS`; `tuned` is stock with the settings of `TUNED`; CORES is 2 by default; MEMORY is the driver's.
All jobs first run over the directory WARM_UP, TIMES times each. If there are several jobs, each that takes less than a
second runs `REPEATS` times; the run with the median wall time counts. A job is stopped after LIMIT_S seconds, and no
other begins. The cost includes this process, the JVM, its Python workers and the commands that they start.
"""

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import millstream
from harness import scratch_directory, tree_cpu_s
from pyspark.sql import DataFrame, SparkSession, functions
from spark_everyday import JOBS as EVERYDAY_JOBS
from spark_everyday import everyday, shown_lines
from spark_probe import RECORD, live_heap_mb, session, way_and_slots

TUNED = {"spark.sql.files.openCostInBytes": "4096", "spark.sql.files.maxPartitionNum": "4"}
"""What is advised for small files: many in a partition, and no more than two partitions a core."""
REPEATS, SHORT_S = 5, 1.0
REPARTITIONS = 16
Answer = tuple[int, int | None]  # rows, and a sum over them


def count(spark: SparkSession, directory: str, **options: bool) -> Answer:
    return spark.read.options(**options).text(directory).count(), None


def rdd_count(spark: SparkSession, directory: str) -> Answer:
    """sc.textFile in the JVM, so that no line goes through Python."""
    return spark.sparkContext._jsc.textFile(directory).count(), None


def matching(spark: SparkSession, directory: str) -> Answer:
    return spark.read.text(directory).filter(functions.col("value").contains("BALTIMORE")).count(), None


def count_repartitioned(spark: SparkSession, directory: str) -> Answer:
    """The published way to spread a compressed file over the cores."""
    return spark.read.text(directory).repartition(REPARTITIONS).count(), None


def matching_repartitioned(spark: SparkSession, directory: str) -> Answer:
    return spark.read.text(directory).repartition(REPARTITIONS).filter(
        functions.col("value").contains("BALTIMORE")
    ).count(), None


def unpacked_count(spark: SparkSession, directory: str) -> Answer:
    """Decompresses with lbzip2 first, on two CPUs."""
    with tempfile.NamedTemporaryFile(suffix=".txt", dir=scratch_directory()) as plain:
        for file in sorted(Path(directory).iterdir()):
            subprocess.run(["lbzip2", "-n2", "-dc", file], stdout=plain, check=True)
        plain.flush()
        return count(spark, plain.name)


def forget_indexes(spark: SparkSession, directory: str) -> None:
    shutil.rmtree(Path(directory) / "_millstream", ignore_errors=True)


def rlike_matching(spark: SparkSession, directory: str) -> Answer:
    """One line in 450."""
    return spark.read.text(directory).filter(
        functions.col("value").rlike("BALTIMORE,MD,2[0-9]{4},.*(LEAK|POTHOLE)")
    ).count(), None


def words(spark: SparkSession, directory: str) -> Answer:
    """A word count: the number of distinct words, and the sum of the counts."""
    split = spark.read.text(directory).select(functions.explode(functions.split("value", " ")).alias("word"))
    return tuple(split.groupBy("word").count().agg(functions.count("word"), functions.sum("count")).first())


def csv_columns(spark: SparkSession, directory: str, **options: bool) -> Answer:
    return len(spark.read.csv(directory, header=True, **options).columns), None


def csv_inferred_total(spark: SparkSession, directory: str, **options: bool) -> Answer:
    return total(spark.read.csv(directory, header=True, inferSchema=True, **options))


def csv_show(spark: SparkSession, directory: str) -> Answer:
    return shown_lines(spark.read.csv(directory, header=True)), None


def csv_limit(spark: SparkSession, directory: str) -> Answer:
    return len(spark.read.csv(directory, header=True).limit(1_000).collect()), None


def json_columns(spark: SparkSession, directory: str, **options: bool) -> Answer:
    return len(spark.read.json(directory, **options).columns), None


TENTH_OF_PARTITIONS = "part % 10 = 3"


def path_tenth(spark: SparkSession, directory: str) -> Answer:
    return total(spark.sql(f"select * from parquet.`{directory}` where {TENTH_OF_PARTITIONS}"))


def create_table(spark: SparkSession, directory: str) -> None:
    """Creates the table with all its partitions; nothing of it is listed yet when the next query comes."""
    spark.sql("drop table if exists records")
    spark.sql(f"create table records ({RECORD}, part INT) using parquet partitioned by (part) location '{directory}'")
    spark.sql("msck repair table records")
    spark.sql("refresh table records")


def table_tenth(spark: SparkSession, directory: str) -> Answer:
    return total(spark.sql(f"select * from records where {TENTH_OF_PARTITIONS}"))


def total(records: DataFrame) -> Answer:
    return tuple(records.agg(functions.count("amount"), functions.sum("amount")).first())


def json_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).json(directory))


def csv_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).csv(directory))


def parquet_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).parquet(directory))


def orc_total(spark: SparkSession, directory: str) -> Answer:
    return total(spark.read.schema(RECORD).orc(directory))


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
    """The published workaround for slow listings: names from a command, each file read in Python."""
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
        millstream.compact(spark, directory, f"{scratch}/out", header=False)
        return lines_in(f"{scratch}/out"), None


JOBS = {
    job.__name__: job
    for job in (
        count,
        count_repartitioned,
        rdd_count,
        matching,
        matching_repartitioned,
        rlike_matching,
        words,
        csv_columns,
        csv_inferred_total,
        csv_show,
        csv_limit,
        json_columns,
        path_tenth,
        unpacked_count,
        table_tenth,
        json_total,
        csv_total,
        parquet_total,
        orc_total,
        binary_files,
        pure,
        merged_by_rdd,
        compacted,
    )
}
JOBS |= {f"first_{job.__name__}": job for job in (count, matching)}
PREPARATIONS = {"table_tenth": create_table, "first_count": forget_indexes, "first_matching": forget_indexes}
"""The preparation of a job, over the same directory, which is not part of it."""


def job_named(name: str) -> Callable[[SparkSession, str], Answer]:
    if name in EVERYDAY_JOBS:
        return functools.partial(everyday, name=name, record=RECORD)
    kind, _, partitions = name.partition("-")
    if kind == "pattern":
        return functools.partial(pattern, partitions=int(partitions))
    if name.endswith("_below"):
        return functools.partial(JOBS[name.removesuffix("_below")], recursiveFileLookup=True)
    return JOBS[name]


def prepare(spark: SparkSession, name: str, directory: str) -> None:
    if preparation := PREPARATIONS.get(name):
        preparation(spark, directory)


def cost_of(spark: SparkSession, name: str, directory: str, limit_s: float) -> dict:
    """Runs the job once. At the time limit the JVM is killed."""
    job = job_named(name)
    prepare(spark, name, directory)
    heap_before, cpu_before = live_heap_mb(spark), tree_cpu_s(os.getpid())
    at_limit = {}

    def stop() -> None:
        at_limit.update(wall_s=limit_s, cpu_s=tree_cpu_s(os.getpid()) - cpu_before, heap_mb=0, rows=None, stopped=True)
        spark.sparkContext._gateway.proc.kill()

    timer = threading.Timer(min(limit_s, threading.TIMEOUT_MAX), stop)
    timer.daemon = True
    timer.start()
    start = time.perf_counter()
    try:
        rows, sum_of_rows = job(spark, directory)
    except Exception:
        if not at_limit:
            raise
        return at_limit
    wall = time.perf_counter() - start
    timer.cancel()
    cpu = tree_cpu_s(os.getpid()) - cpu_before
    heap = live_heap_mb(spark) - heap_before
    return {"wall_s": wall, "cpu_s": cpu, "heap_mb": heap, "rows": rows, "sum": sum_of_rows}


def main(jobs: str, way: str, memory: str, warm_up: str, times: str, directory: str, limit_s: str = "inf") -> None:
    names = jobs.split(",")
    way, conf = way_and_slots(way)
    spark = session("stock", memory, TUNED | conf) if way == "tuned" else session(way, memory, conf)
    for name in names:
        for _ in range(int(times)):
            prepare(spark, name, warm_up)
            job_named(name)(spark, warm_up)
            if name.startswith("first_"):
                # The session finds the index that the job has made. Otherwise it would conclude that the job cannot keep
                # one.
                job_named(name)(spark, warm_up)
    for name in names:
        cost = cost_of(spark, name, directory, float(limit_s))
        if len(names) > 1 and cost["wall_s"] < SHORT_S:
            costs = [cost, *(cost_of(spark, name, directory, float(limit_s)) for _ in range(REPEATS - 1))]
            cost = sorted(costs, key=lambda cost: cost["wall_s"])[REPEATS // 2]
        print(json.dumps({"job": name if len(names) > 1 else "", **cost}), flush=True)
        if cost.get("stopped"):
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
