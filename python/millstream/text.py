"""Reads the lines of many text files, in partitions sized by cost instead of one task for every few files."""

from __future__ import annotations

import operator
import os
import warnings
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession


# Names in a server's plan that show that it lists or reads with Millstream.
OURS_IN_PLANS = ("NativeTextScan", "CompactFileIndex")
# A key of the conf block.
KEY = "spark.millstream.write.enabled"
# The reader option that sets the number of tasks of a native scan.
PARTITIONS = "millstream.read.partitions"


def read_text(
    spark: SparkSession | SparkContext, path: str | os.PathLike[str], partitions: int | None = None
) -> DataFrame:
    """The lines of all files below a path: `spark.read.option("recursiveFileLookup", True).text(path)` with a given
    number of partitions.

    Spark itself reads file systems that are neither local nor mounted, and trees with compressed files, as with
    `spark.read.text`. Hidden files (names that begin with `.` or `_`) are skipped, as in Spark. If the session's JVM
    or the Spark Connect server does not have Millstream's jar, Spark reads everything, with a warning.

    Args:
        spark: a session made by `millstream.enable`, or its SparkContext.
        path: a directory or a file; without a scheme it is on the session's default file system.
        partitions: maximum number of partitions; by default one per core, or more if a partition would exceed
            `spark.sql.files.maxPartitionBytes`.

    Returns:
        A DataFrame with one column, `value: string`, and one row per line, without its line break.

    Raises:
        TypeError: `partitions` is not an integer.
        ValueError: `partitions` is not positive.
        pyspark.errors.AnalysisException: the path does not exist.
    """
    spark = session_of(spark)
    if not is_connected(spark):
        warn_without_jar(spark)
        return lines(spark, path, partitions)
    frame = lines(spark, path, partitions)
    warn_without_millstream_on_server(spark, frame)
    return frame


def pure_read_text(
    sc_or_spark: SparkContext | SparkSession, path: str | os.PathLike[str], partitions: int | None = None
) -> RDD[str]:
    """The same lines as an RDD of strings.

    This replaces the pattern that lists files in a subprocess, parallelizes their names, and opens and reads each file
    in Python (`sc.parallelize(names, partitions).flatMap(read_lines)`). Listing and reading happen in the JVM. Lines
    reach Python as from `sc.textFile`: without line breaks, and with replacement characters for bytes that are not
    UTF-8.

    Args:
        sc_or_spark: the SparkContext, as in that pattern, or the session.
        path: as in `read_text`.
        partitions: as in `read_text`; the default is not much more than the number of cores, since each partition is
            a Python task.

    Returns:
        An RDD with one string per line.

    Raises:
        The same exceptions as `read_text`.
    """
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer, UTF8Deserializer

    spark = session_of(sc_or_spark)
    frame = lines(spark, path, partitions)
    sc = spark.sparkContext
    if warn_without_jar(spark):
        strings = getattr(frame._jdf, "as")(sc._jvm.org.apache.spark.sql.Encoders.STRING())
        return RDD(strings.javaRDD(), sc, UTF8Deserializer())
    # Only standard library functions, so that executors do not need this package.
    pieces = RDD(sc._jvm.io.millstream.spark.PythonLines.joined(frame._jdf, partitions is None), sc, NoOpSerializer())
    return pieces.map(operator.methodcaller("decode")).flatMap(operator.methodcaller("split", "\n"))


def session_of(sc_or_spark: SparkContext | SparkSession) -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate() if isinstance(sc_or_spark, SparkContext) else sc_or_spark


def lines(spark: SparkSession, path: str | os.PathLike[str], partitions: int | None) -> DataFrame:
    reader = spark.read.option("recursiveFileLookup", True)
    if partitions is None:
        return reader.text(os.fspath(path))
    partitions = operator.index(partitions)
    if partitions < 1:
        raise ValueError(f"partitions must be positive: {partitions}")
    return reader.option(PARTITIONS, partitions).text(os.fspath(path)).coalesce(partitions)


def is_connected(spark: SparkSession) -> bool:
    """Whether it is a Spark Connect session, which has no JVM."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def warn_without_millstream_on_server(spark: SparkSession, frame: DataFrame) -> None:
    """Warns if neither the server's settings nor its plan for the lines mention Millstream."""
    # The default is no string, because a server that knows the key accepts only a boolean.
    has_settings = spark.conf.get(KEY, None) is not None
    if not has_settings and not any(node in frame._explain_string() for node in OURS_IN_PLANS):
        warnings.warn(
            "Spark reads these files itself, more slowly: the Spark Connect server does not have Millstream. Start it with the "
            "settings that `millstream spark-conf` prints",
            RuntimeWarning,
            stacklevel=3,
        )


def warn_without_jar(spark: SparkSession) -> bool:
    """Warns if the session's JVM lacks the jar, and returns whether it does."""
    is_missing = jar.find_class(spark, "io.millstream.spark.PythonLines") is None
    if is_missing:
        warnings.warn(f"Spark reads these files itself, more slowly: {jar.MISSING}", RuntimeWarning, stacklevel=3)
    return is_missing
