"""Runs one job on S3 in a fresh JVM and prints the cost as JSON. Run by bench/spark-remote with Spark's Python.

    spark_remote_probe.py JOB stock|millstream BED SETTING=VALUE...

BED is a JSON file: `conf` (Spark's settings), `jars` (a class path), `endpoint` (the bed's control endpoint, or null),
`data` and `warm` (the URLs of a data set, and of a small one of its kind for warming up), and `delay_us`.
"""

import json
import re
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import millstream
from harness import TESTBED, cpu_s
from pyspark.sql import SparkSession
from spark_probe import jvm_pid, live_heap_mb, session

sys.path.insert(0, str(TESTBED))
from s3_bed import BUCKET

LIMIT_S = 300


def list_files(spark: SparkSession, url: str) -> Callable[[], int]:
    """Creates the DataFrame. The number of files is determined later: Spark makes a string of each path for it."""
    frame = spark.read.option("recursiveFileLookup", "true").text(url)
    return lambda: len(frame._jdf.inputFiles())


def count(spark: SparkSession, url: str) -> int:
    return spark.read.option("recursiveFileLookup", "true").text(url).count()


def text_file(spark: SparkSession, url: str) -> int:
    return spark.sparkContext.textFile(url).count()


def search(spark: SparkSession, url: str) -> int:
    return spark.read.text(url).filter("value like '%7.txt%'").count()


def parquet(spark: SparkSession, url: str) -> int:
    return spark.read.parquet(url).selectExpr("sum(amount)", "max(city)").first()[0]


def compact(spark: SparkSession, url: str) -> int:
    """Merges into a few files in a new directory. Stock Spark writes one file per core, without Python."""
    target = f"s3a://{BUCKET}/{uuid.uuid4()}"
    if millstream.jar.find_class(spark, "io.millstream.spark.Compact"):
        millstream.compact(spark, url, target, header=False)
    else:
        context = spark.sparkContext
        context._jsc.textFile(url).coalesce(context.defaultParallelism).saveAsTextFile(target)
    return spark.read.text(target).count()


def count_gz(spark: SparkSession, url: str) -> int:
    return count(spark, f"{url}/gz")


def count_plain(spark: SparkSession, url: str) -> int:
    return count(spark, f"{url}/plain")


def create_table(spark: SparkSession, url: str) -> None:
    """A table of text whose partitions are the directories `dir=0000` and so on of `url`."""
    table = table_of(url)
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    spark.sql(f"CREATE TABLE {table} (value STRING, dir STRING) USING text PARTITIONED BY (dir) LOCATION '{url}'")
    spark.sql(f"MSCK REPAIR TABLE {table}")


def table_of(url: str) -> str:
    return re.sub("[^a-z]", "_", url)


def catalog(spark: SparkSession, url: str) -> int:
    """A third of the partitions of a table with 3,000."""
    return spark.sql(f"SELECT count(*) FROM {table_of(url)} WHERE dir < '1000'").first()[0]


def fill(facts: dict) -> None:
    """Copies local trees, many directories at once."""
    spark = session("stock", "1g", facts["conf"])
    files, conf = spark._jvm.org.apache.hadoop.fs, spark.sparkContext._jsc.hadoopConfiguration()

    def copy(source: Path, target: str) -> None:
        path = files.Path(target)
        files.FileUtil.copy(spark._jvm.java.io.File(str(source)), path.getFileSystem(conf), path, False, conf)

    with ThreadPoolExecutor(16) as threads:
        copies = [
            threads.submit(copy, source, f"{url}/{source.name}")
            for url, tree in facts["trees"].items()
            for source in Path(tree).iterdir()
        ]
    for done in copies:
        done.result()


JOBS = {
    "list": list_files,
    "count": count,
    "text-file": text_file,
    "search": search,
    "parquet": parquet,
    "compact": compact,
    "catalog": catalog,
    "count-gz": count_gz,
    "count-plain": count_plain,
}
# The preparation of each job.
PREPARE = {"catalog": create_table, "count-gz": count_gz}
# How many times a job runs on the small data set before it is measured, if not three times.
WARM_UPS = {"count-gz": 20, "count-plain": 20}


def requests(endpoint: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{endpoint}/__bed/statistics") as answer:
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", answer.read().decode())}


def control(facts: dict, what: str) -> None:
    """Sends a request to the environment's control endpoint, if it has one."""
    if facts["endpoint"]:
        urllib.request.urlopen(f"{facts['endpoint']}/__bed/{what}", data=b"").close()


def main(job: str, way: str, bed: str, *settings: str) -> None:
    facts = json.loads(Path(bed).read_text())
    if job == "fill":
        return fill(facts)
    conf = {
        **facts["conf"],
        "spark.driver.extraClassPath": facts["jars"],
        **dict(setting.split("=", 1) for setting in settings),
    }
    spark = session(way, "4g", conf)
    control(facts, "delay?us=0")
    if job in PREPARE:
        PREPARE[job](spark, facts["warm"])
        PREPARE[job](spark, facts["data"])
    for _ in range(WARM_UPS.get(job, 3)):
        JOBS[job](spark, facts["warm"])
    control(facts, f"delay?us={facts['delay_us']}")
    jvm = jvm_pid(spark)
    control(facts, "reset")
    stopper = threading.Timer(LIMIT_S, spark.sparkContext.cancelAllJobs)
    stopper.start()
    cpu, start = cpu_s(jvm), time.perf_counter()
    rows, stopped = None, False
    try:
        rows = JOBS[job](spark, facts["data"])
    except Exception:
        stopped = time.perf_counter() - start >= LIMIT_S
        if not stopped:
            raise
    cost = {"wall_s": time.perf_counter() - start, "cpu_s": cpu_s(jvm) - cpu}
    stopper.cancel()
    made = requests(facts["endpoint"]) if facts["endpoint"] else {}
    rows = rows() if callable(rows) else rows
    print(
        json.dumps(
            {
                **cost,
                "heap_mb": live_heap_mb(spark),
                "rows": rows or 0,
                "stopped": stopped,
                "requests": made.get("total"),
                "max_in_flight": made.get("max_inflight"),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
