"""Shared by the Spark probes: a session with or without Millstream, and its JVM."""

import os
import re
import sys

import millstream
from harness import scratch_directory
from millstream import session as millstream_session
from pyspark.sql import SparkSession

RECORD = "id INT, date TIMESTAMP, address STRING, city STRING, state STRING, zip STRING, service STRING, amount INT"
"""The records of testbed/mktree."""
SLOTS = re.compile(r"(.+)-(\d+)")


def way_and_slots(way: str) -> tuple[str, dict[str, str]]:
    """`stock-16` is stock Spark with 16 task slots: the way, and the setting for that. Without a number: no setting."""
    found = SLOTS.fullmatch(way)
    return (found[1], {"spark.master": f"local[{found[2]}]"}) if found else (way, {})


def session(way: str, memory: str, conf: dict[str, str] | None = None) -> SparkSession:
    """`way`: `stock`, or Millstream on, with the jar in the wheel or that of $MILLSTREAM_BENCH_JAR.

    `conf` adds settings, or replaces those set here.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable  # Spark refuses workers of another Python version
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config(
        "spark.sql.warehouse.dir", str(scratch_directory() / "spark-warehouse")
    )  # else in the current directory
    for key, value in (conf or {}).items():
        builder = builder.config(key, value)
    if way == "stock":
        return builder.getOrCreate()
    if jar := os.environ.get("MILLSTREAM_BENCH_JAR"):
        millstream_session.add_settings(builder, millstream.spark_conf(jar))
        return builder.getOrCreate()
    return millstream.enable(builder).getOrCreate()


def jvm_pid(spark: SparkSession) -> int:
    return spark.sparkContext._gateway.proc.pid


def live_heap_mb(spark: SparkSession) -> float:
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20
