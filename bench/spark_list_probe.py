"""Creates one DataFrame in a fresh JVM and prints the cost as JSON. Run by bench/spark-list with the Python of a
Spark environment.

spark_list_probe.py DIRECTORY stock|stock-SLOTS|file-system|millstream|millstream-SLOTS
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from harness import cpu_s
from pyspark.sql import DataFrame, SparkSession
from spark_probe import jvm_pid, live_heap_mb, session, way_and_slots


def create(spark: SparkSession, directory: str) -> DataFrame:
    return spark.read.option("recursiveFileLookup", "true").text(directory)


def main(directory: str, way: str) -> None:
    way, conf = way_and_slots(way)
    spark = session(way, "6g", conf)
    if way == "file-system":
        # The same rule, spelled differently: the file index leaves anything but the default to Spark.
        spark.conf.set("spark.sql.files.ignoredPathSegmentRegex", "^[._].*")
    with tempfile.TemporaryDirectory() as small:
        Path(small, "sub").mkdir()
        Path(small, "sub", "file").touch()
        create(spark, small)  # loads the classes of both rivals, but compiles the code of neither
    jvm = jvm_pid(spark)
    heap_before, cpu_before = live_heap_mb(spark), cpu_s(jvm)
    start = time.perf_counter()
    frame = create(spark, directory)
    wall = time.perf_counter() - start
    cpu = cpu_s(jvm) - cpu_before
    heap = live_heap_mb(spark) - heap_before
    files = frame._jdf.inputFiles()
    print(json.dumps({"wall_s": wall, "cpu_s": cpu, "heap_mb": heap, "rows": len(files)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
