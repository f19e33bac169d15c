"""Lines of many files, as a DataFrame or an RDD."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, SparkSession

_TEXT_FILES = "org.apache.spark.sql.execution.datasources.millstream.TextFiles"


def read_text(spark: SparkSession, path: str, partitions: int | None = None) -> DataFrame:
    """The lines of all files below `path`, hidden ones left out, as a DataFrame with one column `value`.

    The rows are those of `spark.read.option("recursiveFileLookup", True).text(path)`. Small files are packed into few
    partitions: `partitions` of them, or as many as suit the data and the cores.
    """
    from pyspark.sql import DataFrame

    text_files = spark._jvm
    for part in _TEXT_FILES.split("."):
        text_files = getattr(text_files, part)
    return DataFrame(text_files.read(spark._jsparkSession, path, partitions or 0), spark)


def pure_read_text(spark: SparkSession | SparkContext, path: str, partitions: int | None = None) -> RDD[str]:
    """The lines of all files below `path` as an RDD of strings.

    A drop-in for the pattern in which the driver lists the files in a subprocess (`pls`), distributes the names by
    `parallelize`, and opens every file in a `flatMap`.
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    session = SparkSession(spark) if isinstance(spark, SparkContext) else spark
    return read_text(session, path, partitions).rdd.map(lambda row: row.value)
