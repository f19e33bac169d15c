"""What the Spark probes share: a session with or without Millstream, and what a process has used."""

import os
from pathlib import Path

import millstream
from millstream import session as millstream_session
from pyspark.sql import SparkSession

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def session(way: str, memory: str) -> SparkSession:
    """`way`: `stock`, or Millstream on, with the jar in the wheel or that of $MILLSTREAM_BENCH_JAR."""
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    if way == "stock":
        return builder.getOrCreate()
    if jar := os.environ.get("MILLSTREAM_BENCH_JAR"):
        millstream_session.add_settings(builder, millstream.spark_conf(jar))
        return builder.getOrCreate()
    return millstream.enable(builder).getOrCreate()


def jvm_pid(spark: SparkSession) -> int:
    return spark.sparkContext._gateway.proc.pid


def fields_of(pid: int | str) -> list[str]:
    """What /proc tells of a process, from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = fields_of(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def tree_cpu_s(root: int) -> float:
    """The same of a process and all below it, those that have ended included."""
    parents, ticks = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = fields_of(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue  # has just ended
        parents[int(pid)] = int(fields[1])
        ticks[int(pid)] = sum(map(int, fields[11:15]))

    def is_below(pid: int) -> bool:
        while pid and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return sum(ticks[pid] for pid in ticks if is_below(pid)) / TICKS_PER_S


def live_heap_mb(spark: SparkSession) -> float:
    runtime = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return (runtime.totalMemory() - runtime.freeMemory()) / 2**20
