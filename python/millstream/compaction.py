"""Merges small files into a few larger ones, on Spark."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


class CompactError(RuntimeError):
    """Nothing was changed, or the next compaction will finish the work. The message says why, and what to do."""


@dataclass(frozen=True)
class Left:
    """Files that were not merged.

    Attributes:
        directory: their directory.
        files: their number.
        reason: the reason.
    """

    directory: str
    files: int
    reason: str


@dataclass(frozen=True)
class CompactSummary:
    """Result of a compaction.

    Attributes:
        source: the directory.
        destination: the directory of the outputs; the source, if they replace its files.
        directories: number of directories with files.
        files: number of files found.
        bytes: their total size.
        outputs: number of files written.
        output_bytes: their total size.
        merged: number of files merged into the outputs.
        merged_bytes: their total size.
        kept: number of files that needed no change. A new destination gets copies of them, which also count in
            `outputs` and `merged`.
        recovered: number of outputs of an earlier, interrupted compaction that were moved into place.
        restored: number of replaced files that were put back (`undo`).
        removed: number of outputs that were removed at the same time (`undo`).
        purged: number of compactions whose replaced files were removed (`purge`).
        dry_run: whether this is only a prediction.
        milliseconds: duration.
        copied: files that could not be merged and were copied to the destination unchanged (`copy_left`), with the
            reasons. They also count in `outputs` and `merged`.
        left: files that could not be merged, with the reasons: unchanged in place, missing from a new destination.
    """

    source: str
    destination: str
    directories: int
    files: int
    bytes: int
    outputs: int
    output_bytes: int
    merged: int
    merged_bytes: int
    kept: int
    recovered: int
    restored: int
    removed: int
    purged: int
    dry_run: bool
    milliseconds: int
    copied: tuple[Left, ...]
    left: tuple[Left, ...]


def compact(
    spark: SparkSession,
    src: str | os.PathLike[str] | None = None,
    dst: str | os.PathLike[str] | None = None,
    *,
    target_size: int | str = "128m",
    format: str = "same",
    codec: str | None = None,
    header: bool | None = None,
    lines: Sequence[str] = (),
    in_place: bool = False,
    table: str | None = None,
    plain_files: bool = False,
    keep_for: str = "7d",
    undo: bool = False,
    purge: bool = False,
    copy_left: bool = False,
    dry_run: bool = False,
) -> CompactSummary:
    """Merges the small files of each directory of a tree into a few larger ones.

    Partition directories are kept. As in Spark, hidden files (names that begin with `.` or `_`) are not data.

    Args:
        spark: a session with Millstream's jar, for instance from `millstream.enable`.
        src: the root directory of the tree: on a local or mounted file system, or an S3 (`s3a://…`) or HDFS URL.
        dst: a directory that does not exist or is empty.
        target_size: the approximate size of an output: bytes, or Spark's notation (`"128m"`).
        format: `"same"` (text stays text, Parquet stays Parquet), `"text"`, or `"parquet"` (lines become a column
            `value`).
        codec: `"none"`, `"gzip"`, `"bzip2"`, `"zstd"`, `"lz4"` or `"snappy"`; by default the codec of the inputs.
        header: whether the first line of each file is a header, which an output then has once. If this is None, files
            named `.csv` and `.tsv` are not merged.
        lines: extensions, such as `".dat"`, of files that consist of independent lines.
        in_place: whether to replace the files of `src`, on a local or mounted file system, after all outputs have
            been written and verified. Needs `table` or `plain_files`.
        table: replaces the files of this table, or those in `src` within it. The session's catalog must list it as
            plain text, csv, json or Parquet files without buckets.
        plain_files: declares that no table format and no other program keeps a list of the files of `src`.
            Directories that show otherwise are refused all the same.
        keep_for: how long to keep the replaced files, so that they can be put back: `"12h"`, `"7d"`. A later
            compaction removes them.
        undo: puts back the files that the latest in-place compaction of `src` replaced, unless its outputs have
            changed since.
        purge: removes the kept files of `src`; with `in_place`, does not keep the replaced files.
        copy_left: whether to copy files that cannot be merged to `dst` unchanged; otherwise they are missing there.
        dry_run: whether only to predict the result, as far as the beginnings of the files and the schemas of Parquet
            files show.

    Returns:
        The result. Files that could not be merged are in `left` or in `copied`.

    Raises:
        CompactError: nothing was changed, or the next compaction will finish the work.
    """
    from py4j.protocol import Py4JJavaError

    job = jar.find_class(spark, "io.millstream.spark.Compact")
    if job is None:
        raise CompactError(jar.MISSING)
    settings = {
        "source": None if src is None else os.fspath(src),
        "destination": None if dst is None else os.fspath(dst),
        "target-size": f"{target_size}b" if isinstance(target_size, int) else target_size,
        "format": format,
        "codec": codec,
        "header": header or None,
        "no-header": True if header is False else None,
        "lines": ",".join(lines) or None,
        "in-place": in_place or None,
        "table": table,
        "plain-files": plain_files or None,
        "keep-for": None if undo or purge or not in_place else str(keep_for),
        "undo": undo or None,
        "purge": purge or None,
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
        if cause.getClass().getName() != "io.millstream.spark.compact.CompactFailure":
            raise
        raise CompactError(cause.getMessage()) from None
    groups = {field: tuple(Left(**group) for group in answer[field]) for field in ("copied", "left")}
    return CompactSummary(**{**answer, **groups})
