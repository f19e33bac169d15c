"""Runs one job on S3 in a fresh JVM and prints what it cost, as JSON. Run by bench/spark-remote with a Spark's Python.

    spark_remote_probe.py JOB stock|millstream BED SETTING=VALUE...

BED is a JSON file: `conf` (Spark's settings), `jars` (a class path) and `endpoint` (the bed's control endpoint).
"""

import json
import re
import sys
import threading
import time
import urllib.request
import uuid
from pathlib import Path

import millstream
from harness import TESTBED, cpu_s
from pyspark.sql import SparkSession
from spark_probe import jvm_pid, live_heap_mb, session

sys.path.insert(0, str(TESTBED))
from s3_bed import BUCKET  # noqa: E402

LIMIT_S = 300


def list_files(spark: SparkSession, bucket: str) -> int:
    frame = spark.read.option("recursiveFileLookup", "true").text(f"s3a://{bucket}/set")
    return len(frame._jdf.inputFiles())


def count(spark: SparkSession, bucket: str) -> int:
    return spark.read.text(f"s3a://{bucket}/set").count()


def text_file(spark: SparkSession, bucket: str) -> int:
    return spark.sparkContext.textFile(f"s3a://{bucket}/set").count()


def search(spark: SparkSession, bucket: str) -> int:
    return spark.read.text(f"s3a://{bucket}/set").filter("value like '%7.txt%'").count()


def compact(spark: SparkSession, bucket: str) -> int:
    """Few files of the same lines in a new directory. Stock Spark writes as many as there are cores, in the JVM alone."""
    source, target = f"s3a://{bucket}/set", f"s3a://{BUCKET}/{uuid.uuid4()}"
    if millstream.jar.find_class(spark, "io.millstream.spark.Compact"):
        millstream.compact(spark, source, target)
    else:
        context = spark.sparkContext
        context._jsc.textFile(source).coalesce(context.defaultParallelism).saveAsTextFile(target)
    return spark.read.text(target).count()


JOBS = {"list": list_files, "count": count, "text-file": text_file, "search": search, "compact": compact}


def requests(endpoint: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{endpoint}/__bed/statistics") as answer:
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", answer.read().decode())}


def set_delay(endpoint: str, delay_us: int) -> None:
    urllib.request.urlopen(f"{endpoint}/__bed/delay?us={delay_us}", data=b"").close()


def main(job: str, way: str, bed: str, *settings: str) -> None:
    facts = json.loads(Path(bed).read_text())
    conf = {**facts["conf"], "spark.driver.extraClassPath": facts["jars"], **dict(setting.split("=", 1) for setting in settings)}
    spark = session(way, "4g", conf)
    set_delay(facts["endpoint"], 0)
    for _ in range(3):
        JOBS[job](spark, "warm")
    set_delay(facts["endpoint"], facts["delay_us"])
    jvm = jvm_pid(spark)
    urllib.request.urlopen(f"{facts['endpoint']}/__bed/reset", data=b"").close()
    stopper = threading.Timer(LIMIT_S, spark.sparkContext.cancelAllJobs)
    stopper.start()
    cpu, start = cpu_s(jvm), time.perf_counter()
    rows, stopped = None, False
    try:
        rows = JOBS[job](spark, "data")
    except Exception:
        stopped = time.perf_counter() - start >= LIMIT_S
        if not stopped:
            raise
    cost = {"wall_s": time.perf_counter() - start, "cpu_s": cpu_s(jvm) - cpu}
    stopper.cancel()
    made = requests(facts["endpoint"])
    print(json.dumps({
        **cost, "heap_mb": live_heap_mb(spark), "rows": rows or 0, "stopped": stopped, "requests": made["total"], "max_in_flight": made["max_inflight"],
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
