"""Merging small files into few, on Spark."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CompactError(RuntimeError):
    """Nothing was done, or what has begun is finished by the next compaction; the message says why and what to do."""


@dataclass(frozen=True)
class Left:
    """Files that were not merged.

    Attributes:
        directory: their directory.
        files: how many.
        reason: why.
    """

    directory: str
    files: int
    reason: str


@dataclass(frozen=True)
class CompactSummary:
    """What a compaction has done.

    Attributes:
        source: the directory.
        destination: where the outputs are; the source, if they replace its files.
        directories: directories that hold files.
        files: files that there were.
        bytes: their size.
        outputs: files that were written.
        output_bytes: their size.
        merged: files that the outputs were made of.
        kept: files that were as they should be; to a new destination they are copied, so they count in `outputs` and `merged`, too.
        copied: files that could not be merged, with the reason, and were copied to the destination as they are (`copy_left`); they count in
            `outputs` and `merged`, too.
        recovered: outputs of an earlier compaction, interrupted, that were put in their places.
        dry_run: whether all this is only what would be done.
        milliseconds: how long it took.
        left: files that could not be merged, and why: in place they are as they were, and a new destination does not have them.
    """

    source: str
    destination: str
    directories: int
    files: int
    bytes: int
    outputs: int
    output_bytes: int
    merged: int
    kept: int
    recovered: int
    dry_run: bool
    milliseconds: int
    copied: tuple[Left, ...]
    left: tuple[Left, ...]


def compact(
    spark: SparkSession,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str] | None = None,
    *,
    target_size: int | str = "128m",
    format: str = "same",
    codec: str | None = None,
    header: bool = False,
    in_place: bool = False,
    copy_left: bool = False,
    dry_run: bool = False,
) -> CompactSummary:
    """Merges the small files of each directory below a local or mounted one into few.

    Partition directories stay. Hidden files (names that begin with `.` or `_`) are no data, as in Spark.

    Args:
        spark: a session with Millstream's jar, for instance made by `millstream.enable`.
        src: the directory.
        dst: a directory that does not exist, or is empty.
        target_size: files are merged until they have about so many bytes; a number, or Spark's notation (`"128m"`).
        format: `"same"` (lines stay lines, Parquet stays Parquet), `"text"` (lines) or `"parquet"` (lines in a column `value`).
        codec: `"none"`, `"gzip"`, `"bzip2"`, `"zstd"`, `"lz4"` or `"snappy"`; by default as the files were.
        header: whether the first line of each file is a header, of which one is kept.
        in_place: whether the outputs replace the files of `src`, once all of them have been written and verified.
        copy_left: whether files that cannot be merged are copied to `dst` as they are; without it they are missing there.
        dry_run: whether only to tell what would be done, as far as the beginnings of the files and the schemas of Parquet files say.

    Returns:
        What has been done. Files that could not be merged are in `left`, or in `copied`.

    Raises:
        CompactError: nothing was done, or what has begun is finished by the next compaction.
    """
    from py4j.protocol import Py4JJavaError

    job = jar.find_class(spark, "io.millstream.spark.Compact")
    if job is None:
        raise CompactError(jar.MISSING)
    settings = {
        "source": os.fspath(src),
        "destination": None if dst is None else os.fspath(dst),
        "target-size": f"{target_size}b" if isinstance(target_size, int) else target_size,
        "format": format,
        "codec": codec,
        "header": header or None,
        "in-place": in_place or None,
        "copy-left": copy_left or None,
        "dry-run": dry_run or None,
    }
    given = spark._jvm.java.util.HashMap()
    for key, value in settings.items():
        if value is not None:
            given[key] = "true" if value is True else value
    try:
        answer = json.loads(job.runJson(spark._jsparkSession, given))
    except Py4JJavaError as error:
        cause = error.java_exception
        if cause.getClass().getName() != "io.millstream.spark.CompactFailure":
            raise
        raise CompactError(cause.getMessage()) from None
    groups = {field: tuple(Left(**group) for group in answer[field]) for field in ("copied", "left")}
    return CompactSummary(**{**answer, **groups})
