"""Measures which storage format suits text best."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "source string, format string, job string, engine string, bytes bigint, lines bigint, rows bigint, partitions int, wall_s double, cpu_s double, "
    "peak_memory_bytes bigint, skew double, speedup double, problem string, recommended boolean"
)


class FormatsError(RuntimeError):
    """Nothing was measured, and nothing is left behind. The message says why, and what to do."""


def formats(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    sample: int | str = "256m",
    codecs: Iterable[str] | None = None,
    rounds: int = 3,
    limit: int | str = "10m",
    work_dir: str | os.PathLike[str] | None = None,
    also: str | None = None,
    picture: str | os.PathLike[str] | None = None,
) -> DataFrame:
    """Measures which compression format suits your text best, in stock Spark and with Millstream.

    Takes a sample, writes it once in each format, and counts its lines in new JVMs with the session's settings.
    This takes minutes.

    Args:
        spark: a session with Millstream's jar, for instance from `millstream.enable`. Other sessions on the machine
            should be idle.
        path: a text file, or a directory of text files; they may be compressed.
        sample: the size of the sample: bytes, or Spark's notation (`"256m"`).
        codecs: the formats: any of `"none"`, `"gz"`, `"bz2"`, `"zst"`, `"lz4"` and `"snappy"`; by default all but the
            last.
        rounds: how many times each run reads, from 1 to 100; the median is reported.
        limit: the time limit of a run: seconds, or Spark's notation (`"10m"`).
        work_dir: an existing directory for the sample; by default the directory for temporary files. Executors on
            other machines must see it, too.
        also: a directory on S3 or HDFS; reads of copies of the sample there are measured as well.
        picture: a file for a bar chart of the times, whose name ends in `.svg` or `.png`.

    Returns:
        A row for each run, with the columns

        - `source` (string): `"local"`, or `also`.
        - `format` (string): the codec.
        - `job` (string): `"read"`, `"repartition"` (a read with a repartition), or `"first-read"`
          (of a file that has no index yet).
        - `engine` (string): `"stock"` or `"millstream"`.
        - `bytes` (bigint): size of the file, in bytes.
        - `lines` (bigint): number of lines in the file.
        - `rows` (bigint): number of rows that Spark found. If nothing was measured, this and all following columns except
          the last two are null.
        - `partitions` (int): number of tasks that read the file.
        - `wall_s`, `cpu_s` (double): wall time and CPU time, in seconds. CPU time includes the driver's JVM and
          tasks elsewhere.
        - `peak_memory_bytes` (bigint): peak resident memory (RSS) of the driver's JVM, in bytes.
        - `skew` (double): time of the longest read task, divided by the time of the median one.
        - `speedup` (double): time of stock Spark, divided by `wall_s`; null in rows of stock Spark, and where
          either result was wrong.
        - `problem` (string): why nothing was measured, or that `rows` differs from `lines`; null if there is none.
        - `recommended` (boolean): whether this format has the smallest product of size and read time, with
          Millstream, for the source.

    Raises:
        FormatsError: nothing was measured, and nothing is left behind.
    """
    from py4j.protocol import Py4JJavaError

    job = jar.find_class(spark, "io.millstream.spark.Formats")
    if job is None:
        raise FormatsError(jar.MISSING)
    settings = {
        "path": os.fspath(path),
        "sample": f"{sample}b" if isinstance(sample, int) else sample,
        "codecs": None if codecs is None else ",".join(codecs),
        "rounds": str(rounds),
        "limit": f"{limit}s" if isinstance(limit, int) else limit,
        "work-dir": None if work_dir is None else os.fspath(work_dir),
        "also": also,
        "picture": None if picture is None else os.fspath(picture),
    }
    given = spark._jvm.java.util.HashMap()
    for key, value in settings.items():
        if value is not None:
            given[key] = value
    try:
        answer = json.loads(job.runJson(spark._jsparkSession, given))
    except Py4JJavaError as error:
        cause = error.java_exception
        if cause.getClass().getName() != "io.millstream.spark.formats.FormatsFailure":
            raise
        raise FormatsError(cause.getMessage()) from None
    except KeyboardInterrupt:
        job.stop()
        raise
    columns = [field.split()[0] for field in SCHEMA.split(", ")]
    return spark.createDataFrame([tuple(row[column] for column in columns) for row in answer["rows"]], SCHEMA)
