"""Functions for slow_leaks.py that run in a session's process: the same queries many times, and their leftovers."""

import gzip
import json
import os
import re
import subprocess
import time
from pathlib import Path

from kill_calls import scan_threads

FILES = 40


def make(spark, top):
    """Small files of each format, one that is read in parallel, a damaged one, and a partitioned table."""
    top = Path(top)
    for name in ("text", "csv", "json", "gz", "damaged"):
        (top / name).mkdir(parents=True)
    for n in range(FILES):
        lines = [f"{n},{i},some text of line {i}" for i in range(200)]
        (top / f"text/{n}.txt").write_text("\n".join(lines))
        (top / f"csv/{n}.csv").write_text("a,b,c\n" + "\n".join(lines))
        (top / f"json/{n}.json").write_text(
            "\n".join(json.dumps({"a": n, "b": i, "c": f"line {i}"}) for i in range(200))
        )
    packed = gzip.compress("\n".join(f"{i} {i * i} line" for i in range(400_000)).encode())
    (top / "gz/a.gz").write_bytes(packed)
    (top / "damaged/a.gz").write_bytes(packed[: len(packed) // 2])
    spark.range(2000).selectExpr("id", "id % 20 p", "cast(id as string) s").repartition(20, "p").write.partitionBy(
        "p"
    ).parquet(str(top / "parquet"))
    spark.sql("create table leaks (id bigint, s string) using parquet partitioned by (p bigint)")


def queries(spark, top):
    """One round, with the results; those that fail are part of it."""
    statement = "insert overwrite leaks partition (p) select id, cast(id as string), id % 10 from range(500)"
    found = [
        spark.read.text(f"{top}/text").count(),
        spark.read.text(f"{top}/text").filter("value rlike 'line 1[0-9]$'").count(),
        spark.read.text(f"{top}/text", wholetext=True).filter("value like '%line 7%'").count(),
        spark.sparkContext.textFile(f"{top}/text")._jrdd.count(),
        len(spark.read.csv(f"{top}/csv", header=True, schema="a int, b int, c string").filter("b < 3").collect()),
        spark.read.csv(f"{top}/csv", header=True, inferSchema=True).selectExpr("sum(a)", "max(c)").first()[0],
        spark.read.json(f"{top}/json").selectExpr("sum(a)", "max(c)").first()[0],
        spark.read.parquet(f"{top}/parquet").filter("p = 3 and id > 1000").count(),
        spark.read.parquet(f"{top}/parquet").selectExpr("sum(id)", "max(s)").first()[0],
        spark.read.text(f"{top}/gz").count(),
        spark.read.text(f"{top}/gz").filter("value like '%99 line'").count(),
        len(spark.read.text(f"{top}/text").limit(5).collect()),
        spark.sql(statement).count(),
        spark.table("leaks").selectExpr("sum(id)").first()[0],
    ]
    for bad in (lambda: spark.read.text(f"{top}/damaged").count(), lambda: spark.read.text(f"{top}/nowhere").count()):
        try:
            found.append(bad())
        except Exception as error:
            found.append(type(error).__name__)
    return found


def native_kb(jvm, pid):
    """Memory that the JVM does not account for: its compiled code and classes grow for hundreds of queries, with stock
    Spark, too.
    """
    for _ in range(3):
        jvm.java.lang.Runtime.getRuntime().gc()
        time.sleep(0.2)
    told = subprocess.run(
        ["jcmd", str(pid), "VM.native_memory", "summary", "scale=KB"], capture_output=True, text=True, check=True
    ).stdout
    (committed,) = re.findall(r"^Total: .*committed=(\d+)KB", told, re.MULTILINE)
    (anonymous,) = re.findall(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(anonymous) - int(committed)


def remains(spark, top, rounds, times):
    """Of each round: the distinct results, and then native memory in kB, open files and scan threads."""
    jvm = spark.sparkContext._jvm
    pid = jvm.java.lang.ProcessHandle.current().pid()
    found = []
    for _ in range(rounds):
        results = {json.dumps(queries(spark, top)) for _ in range(times)}
        found.append(
            {
                "results": sorted(results),
                "kb": native_kb(jvm, pid),
                "files": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": len(scan_threads(pid)),
            }
        )
    return found
