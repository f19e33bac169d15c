"""Writes a table once in a fresh JVM, after warming it, and prints the cost of the write, as JSON. Run by
bench/direct-writes.

    direct_writes_probe.py WAY STATEMENT FORMAT FILES ROWS BED
    direct_writes_probe.py prepare STATEMENT FORMAT FILES ROWS BED

WAY is one of `WAYS`, STATEMENT one of `STATEMENTS`, FORMAT one of `FORMATS`; FILES files of ROWS rows are written.
BED is a directory with bed.json (`WriteBed` of bench/direct-writes). `prepare` makes the tables
`target` and `warm`, which has 30 files. Before the measured statement it runs ten times on `warm`, without the
environment's delay: after two runs, the JIT compiler still takes a third of our CPU time, and drivers that write tables
are seldom new. Only the statement's requests count; the rows and their sum are read afterwards.
"""

import json
import os
import re
import sys
import time
import urllib.request
from pathlib import Path

import pyspark
from harness import tree_cpu_s
from pyspark.sql import DataFrame, SparkSession
from spark_probe import live_heap_mb, session

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testbed"))
from bed_jars import hadoop_cloud_jar, hadoop_native_directory, s3a_jars
from metastore_bed import DerbyMetastore

WARM_FILES, WARM_RUNS = 30, 10
FILES_PER_TASK = 5  # when each is in a separate partition
OLD, NEW = 0, 1 << 40  # the first number of the old rows, and of the new ones
STATEMENTS = {
    "overwrite": "INSERT OVERWRITE TABLE {table} PARTITION (part) SELECT id, v, part FROM rows",
    "into": "INSERT INTO TABLE {table} PARTITION (part) SELECT id, v, part FROM rows",
    "static": "INSERT OVERWRITE TABLE {table} PARTITION (part = 0) SELECT id, v FROM rows",
    "unpartitioned": "INSERT OVERWRITE TABLE {table} SELECT id, v FROM rows",
}
ONE_DIRECTORY = {"static", "unpartitioned"}
FORMATS = {
    "text": "CREATE EXTERNAL TABLE {table} (id BIGINT, v STRING) {partitions} STORED AS TEXTFILE LOCATION '{location}'",
    "parquet": "CREATE EXTERNAL TABLE {table} (id BIGINT, v STRING) {partitions} STORED AS PARQUET LOCATION '{location}'",
    "datasource": "CREATE TABLE {table} (id BIGINT, v STRING) USING parquet {partitions} LOCATION '{location}'",
}
NO_PERMISSIONS = {"spark.hadoop.hive.warehouse.subdir.inherit.perms": "false"}
WAYS = {
    "stock": {},
    "magic": {},
    "tuned": {
        **NO_PERMISSIONS,
        "spark.hadoop.fs.s3a.performance.flags": "*",
        "spark.hadoop.hive.load.dynamic.partitions.thread": "64",
    },
    "no-permissions": NO_PERMISSIONS,
    "libhadoop": {},
    # The factory of S3A's committers without Spark's binding of them: tasks write to final paths, and nothing is ever
    # undone.
    "plain-put": {
        "spark.hadoop.mapreduce.outputcommitter.factory.scheme.s3a": "org.apache.hadoop.fs.s3a.commit.S3ACommitterFactory",
        "spark.hadoop.fs.s3a.committer.name": "magic",
    },
    "millstream": {"spark.millstream.write.enabled": "true"},
}
WAYS_WITH_HADOOP_CLOUD = {"magic", "tuned"}


class Table:
    """A table; rows that begin with a number are written by a statement or, for `write`, to its path."""

    def __init__(
        self, spark: SparkSession, name: str, statement: str, format_name: str, files: int, rows: int, root: str
    ):
        self.spark = spark
        self.name, self.statement, self.format, self.files, self.rows = name, statement, format_name, files, rows
        self.location = f"{root}/{name}"
        self.plan = ""

    def create(self) -> None:
        partitions = "" if self.statement == "unpartitioned" else "PARTITIONED BY (part INT)"
        self.spark.sql(FORMATS[self.format].format(table=self.name, partitions=partitions, location=self.location))
        self.run("into" if self.statement == "overwrite" else self.statement, OLD)

    def write(self) -> None:
        self.run(self.statement, NEW)

    def run(self, statement: str, first: int) -> None:
        rows = self.rows_from(first)
        if statement == "write":
            rows.write.mode("append").partitionBy("part").parquet(self.location)
        else:
            rows.createOrReplaceTempView("rows")
            done = self.spark.sql(STATEMENTS[statement].format(table=self.name))
            self.plan = done._jdf.queryExecution().commandExecuted().toString()

    def rows_from(self, first: int) -> DataFrame:
        tasks = self.files if self.statement in ONE_DIRECTORY else -(-self.files // FILES_PER_TASK)
        numbers = self.spark.range(0, self.files * self.rows, 1, tasks)
        return numbers.selectExpr(
            f"id + {first} AS id", "repeat(md5(string(id)), 3) AS v", f"int(id DIV {self.rows}) AS part"
        )

    def contents(self) -> tuple[int, int]:
        self.spark.catalog.clearCache()
        table = self.spark.read.parquet(self.location) if self.statement == "write" else self.spark.table(self.name)
        return tuple(int(value) for value in table.selectExpr("count(*)", "sum(cast(id AS DECIMAL(20)))").first())


def start(way: str, bed: Path, facts: dict) -> SparkSession:
    conf = {
        **facts["conf"],
        **WAYS[way],
        "spark.master": f"local[{facts['threads']}]",
        "spark.sql.warehouse.dir": str(bed / "warehouse"),
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    }
    with DerbyMetastore(bed) as metastore:
        conf |= metastore.spark_conf()
    if facts["endpoint"]:
        jars = s3a_jars(pyspark.__version__) + (
            [hadoop_cloud_jar(pyspark.__version__)] if way in WAYS_WITH_HADOOP_CLOUD else []
        )
        conf["spark.driver.extraClassPath"] = ":".join(map(str, jars))
    if way == "libhadoop":
        conf["spark.driver.extraLibraryPath"] = str(hadoop_native_directory())
    spark = session("millstream" if way == "millstream" else "stock", facts["memory"], conf)
    spark.sparkContext.setLogLevel("ERROR")
    if spark._jvm.org.apache.hadoop.io.nativeio.NativeIO.isAvailable() != (way == "libhadoop"):
        sys.exit(f"{way}: whether Hadoop uses libhadoop is not as it should be")
    return spark


def ask(facts: dict, what: str, body: bytes | None = None) -> str:
    """The answer of the S3 server, if there is one."""
    if not facts["endpoint"]:
        return ""
    with urllib.request.urlopen(f"{facts['endpoint']}/__bed/{what}", data=body) as answer:
        return answer.read().decode()


def measure(spark: SparkSession, table: Table, facts: dict) -> dict:
    heap_before, cpu_before = live_heap_mb(spark), tree_cpu_s(os.getpid())
    ask(facts, f"delay?us={facts['delay_us']}", b"")
    ask(facts, "reset", b"")
    start_s = time.perf_counter()
    table.write()
    cost = {"wall_s": time.perf_counter() - start_s, "cpu_s": tree_cpu_s(os.getpid()) - cpu_before}
    line = ask(facts, "statistics")
    ask(facts, "delay?us=0", b"")
    print(line, file=sys.stderr)
    counters = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line)}
    cost |= {"requests": counters.get("total"), "max_in_flight": counters.get("max_inflight")}
    return {**cost, "heap_mb": live_heap_mb(spark) - heap_before}


def main(way: str, statement: str, format_name: str, files: int, rows: int, bed: Path) -> None:
    facts = json.loads((bed / "bed.json").read_text())
    spark = start("stock" if way == "prepare" else way, bed, facts)
    shape = (statement, format_name)
    target = Table(spark, "target", *shape, files, rows, facts["root"])
    warm = Table(spark, "warm", *shape, min(files, WARM_FILES), min(rows, 100), facts["root"])
    if way == "prepare":
        for table in (target, warm):
            if statement != "write":
                table.create()
    else:
        for _ in range(WARM_RUNS):
            warm.write()
        cost = measure(spark, target, facts)
        if way == "millstream" and statement != "write" and "DirectInsertInto" not in target.plan:
            sys.exit(f"this was not written directly:\n{target.plan}")
        count, total = target.contents()
        print(json.dumps({**cost, "rows": count, "sum": total}))
    spark.stop()


if __name__ == "__main__":
    way, statement, format_name, files, rows, bed = sys.argv[1:]
    main(way, statement, format_name, int(files), int(rows), Path(bed))
