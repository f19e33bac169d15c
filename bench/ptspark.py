"""The published way to synchronise two trees with plain PySpark, as a rival for bench/sync.

    ptspark.py SOURCE DESTINATION

Both trees are listed at once: the upper directories by the driver, the rest by os.walk and os.stat in tasks.
The listings become DataFrames, an outer join on the relative path finds what is new or has changed, and tasks copy it
with shutil.copy2. A second run continues where the first was interrupted. The published script joins on the base name,
which confuses files of different directories.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col

PARTS = 64  # of each listing, and of the copies
LISTING = "path STRING, is_directory BOOLEAN, size LONG, mtime LONG"


def entry_of(root: str, path: str) -> tuple[str, bool, int, int]:
    status = os.lstat(path)
    is_directory = stat.S_ISDIR(status.st_mode)
    return (
        os.path.relpath(path, root),
        is_directory,
        0 if is_directory else status.st_size,
        0 if is_directory else status.st_mtime_ns,
    )


def upper_entries(root: str) -> tuple[list[str], list[tuple]]:
    """Directories whose contents tasks list, which are at least PARTS if the tree has so many; and the entries above
    them.
    """
    directories, entries = [root], []
    while directories and len(directories) < PARTS:
        below = []
        for directory in directories:
            for name in os.listdir(directory):
                path = os.path.join(directory, name)
                entries.append(entry_of(root, path))
                if entries[-1][1]:
                    below.append(path)
        directories = below
    return directories, entries


def walk(root: str, top: str) -> Iterator[tuple]:
    for directory, directories, files in os.walk(top):
        for name in directories + files:
            yield entry_of(root, os.path.join(directory, name))


def listing(spark: SparkSession, root: str) -> DataFrame:
    directories, entries = upper_entries(root)
    context = spark.sparkContext
    below = context.parallelize(directories, max(1, len(directories))).flatMap(lambda top: walk(root, top))
    return spark.createDataFrame(context.parallelize(entries, 1).union(below), LISTING)


def copy(source: str, destination: str, rows: Iterator[Row]) -> None:
    for row in rows:
        target = os.path.join(destination, row.path)
        if row.is_directory:
            os.makedirs(target, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(os.path.join(source, row.path), target)


def main(source: str, destination: str) -> None:
    source, destination = os.path.realpath(source), os.path.realpath(destination)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    ours, theirs = listing(spark, source).alias("s"), listing(spark, destination).alias("d")
    pairs = ours.join(theirs, col("s.path") == col("d.path"), "full_outer").where("s.path IS NOT NULL")
    wanted = pairs.where("d.path IS NULL OR s.size <> d.size OR s.mtime <> d.mtime").select("s.path", "s.is_directory")
    wanted.repartition(PARTS).foreachPartition(lambda rows: copy(source, destination, rows))
    stop(spark)


def stop(spark: SparkSession) -> None:
    """Waits for the JVM to end, so that its cost is counted."""
    gateway = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
