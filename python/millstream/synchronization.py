"""Synchronizes one directory with another, on Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Characters that need no escape in a setting: printable ASCII.
_PLAIN = bytes(set(range(0x20, 0x7F)) - {ord("%")})


class SyncError(RuntimeError):
    """The synchronization was refused, or ended early. The message says why. Only complete files have their final
    names.
    """


@dataclass(frozen=True)
class SyncProblem:
    """An error of a synchronization.

    Attributes:
        path: the path below source and destination.
        operation: the operation that failed.
        message: the reason.
    """

    path: str
    operation: str
    message: str


@dataclass(frozen=True)
class SyncSummary:
    """Result of a synchronization, or of a dry run.

    Attributes:
        source: the URL of the source.
        destination: the URL of the destination.
        entries: number of entries in the source; `files`, `directories`, `links` and `specials` are the numbers of
            each kind.
        bytes: the total size of the source's files.
        created: entries that the destination did not have.
        copied_files: files whose contents were copied.
        copied_bytes: their total size.
        kept: files that an earlier run with this checkpoint had copied.
        amended: entries for which only attributes were set.
        deleted: entries that were deleted.
        undeleted: entries that were not deleted because of `max_delete`.
        moving: files that vanished or changed while they were copied.
        errors: number of problems, the first of which are in `problems`, plus one if nothing is deleted because `src`
            is empty.
        dry_run: whether this is only a prediction.
        milliseconds: duration.
        exit_code: the exit code of `psync`: 0, or 23 after errors, 25 if `max_delete` prevented a deletion, 24 if
            files vanished or changed.
        manifest: the checkpoint directory, whose parts `manifest-*` are the manifest in Parquet; None without a
            checkpoint.
        notices: messages that are not errors.
        problems: the errors.
    """

    source: str
    destination: str
    entries: int
    files: int
    directories: int
    links: int
    specials: int
    bytes: int
    created: int
    copied_files: int
    copied_bytes: int
    kept: int
    amended: int
    deleted: int
    undeleted: int
    moving: int
    errors: int
    dry_run: bool
    milliseconds: int
    exit_code: int
    manifest: str | None
    notices: tuple[str, ...]
    problems: tuple[SyncProblem, ...]


def _rules(**sequences: Sequence[str | bytes]) -> dict[str, str]:
    """Settings for rules and patterns, in their order: each is a letter for its kind, and its text, with bytes escaped
    as in URLs.
    """
    rules: list[bytes] = []
    for name, kind in (("filters", b"f"), ("include", b"+"), ("exclude", b"-")):
        if isinstance(sequences[name], (str, bytes)):
            raise TypeError(f"{name} must be a sequence of strings, not a string")
        rules += [kind + os.fsencode(rule) for rule in sequences[name]]
    return {f"filter-{at}": quote(rule, safe=_PLAIN) for at, rule in enumerate(rules)}


def sync(
    spark: SparkSession,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    delete: bool = False,
    delete_before: bool = False,
    delete_excluded: bool = False,
    max_delete: int | None = None,
    ignore_errors: bool = False,
    force: bool = False,
    filters: Sequence[str | bytes] = (),
    include: Sequence[str | bytes] = (),
    exclude: Sequence[str | bytes] = (),
    files_from: str | os.PathLike[str] | None = None,
    from0: bool = False,
    recursive: bool | None = None,
    checksum: bool = False,
    size_only: bool = False,
    ignore_times: bool = False,
    update: bool = False,
    existing: bool = False,
    ignore_existing: bool = False,
    modify_window: int | None = None,
    links: bool = True,
    devices: bool = True,
    specials: bool = True,
    hard_links: bool = False,
    acls: bool = False,
    xattrs: bool = False,
    sparse: bool = False,
    one_file_system: bool = False,
    perms: bool = True,
    times: bool = True,
    owner: bool = True,
    group: bool = True,
    omit_dir_times: bool = False,
    omit_link_times: bool = False,
    bytes_per_second: int | None = None,
    verify: bool = False,
    dry_run: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
) -> SyncSummary:
    """Makes the contents of one directory equal to those of another, like `rsync -a SRC/ DST`, with Spark jobs.

    Both may be on any Hadoop file system: local or mounted, HDFS, S3 (`s3a://…`). All executors must see them.

    Args:
        spark: a session with Millstream's jar, for instance from `millstream.enable`.
        src: the directory whose contents are copied.
        dst: the destination directory; it is created if it does not exist.
        delete: whether to remove entries that `src` does not have, if both sides could be listed completely and `src`
            is not empty.
        delete_before: like `delete`, but before anything is copied.
        delete_excluded: like `delete`, and also remove entries that the filter excludes.
        max_delete: the maximum number of entries to remove.
        ignore_errors: whether to delete even if something failed before, except for entries that a directory of `src`
            may contain that cannot be listed.
        force: without `delete`, remove directories that are in the way of something else.
        filters: rules as in FILTER RULES of rsync, such as `"- *.tmp"` or `"protect /kept/"`. The first rule that
            matches wins. They come before `include`, which comes before `exclude`. The driver reads the files that
            they merge.
        include: patterns of entries that no later pattern excludes.
        exclude: patterns of entries that are neither copied nor deleted.
        files_from: a file that lists the only paths to synchronize, one per line, relative to `src`; the driver reads
            it. The directories that lead to these paths are included.
        from0: whether the paths in `files_from` end with NULs.
        recursive: with `files_from`, whether to include everything in the listed directories. By default, only listed
            directories with a trailing slash are entered, but not their subdirectories.
        checksum: compare the contents of files of the same size instead of their times.
        size_only: compare only sizes.
        ignore_times: copy every file.
        update: skip files that are newer in the destination.
        existing: skip entries that the destination does not have.
        ignore_existing: skip entries that the destination has, except for directories.
        modify_window: the number of seconds by which times may differ; -1 compares nanoseconds. By default, times are
            compared with the precision that both sides store.
        links: whether to copy symbolic links, as links.
        devices: whether to create devices, and `specials` pipes and sockets, where the destination can have them.
        hard_links: whether hard links to one file become hard links to one copy. This and `sparse` need local or
            mounted directories; `acls` and `xattrs` need two of these, or two HDFS directories.
        acls: whether to preserve access control lists, and with them permissions.
        xattrs: whether to preserve extended attributes; those outside `user.*` only for the superuser.
        sparse: whether to create holes in copies wherever there are zeros.
        one_file_system: whether to stay out of other file systems that are mounted in `src`, and to leave those
            directories of `dst` alone.
        perms: whether to preserve permissions; `times`, `owner` and `group` likewise, owner and group for the
            superuser of the destination.
        omit_dir_times: whether to leave the times of directories unchanged; `omit_link_times` the times of symbolic
            links.
        bytes_per_second: the maximum rate of all tasks together; each has an equal share.
        verify: whether to read copies again.
        dry_run: whether only to determine what would be done.
        checkpoint: a directory for listings, plan and manifest: the same call continues an interrupted run.

    Returns:
        The result, with any problems.

    Raises:
        SyncError: the synchronization was refused, or ended early. A message about a filter names the rule, a message
            about a list of files the path.
        TypeError: a sequence of patterns is a string.
    """
    from py4j.protocol import Py4JJavaError

    job = jar.find_class(spark, "io.millstream.spark.Sync")
    if job is None:
        raise SyncError(jar.MISSING)
    settings = {
        "source": os.fspath(src),
        "destination": os.fspath(dst),
        "delete": delete,
        "delete-before": delete_before,
        "delete-excluded": delete_excluded,
        "max-delete": max_delete,
        "ignore-errors": ignore_errors,
        "force": force,
        **_rules(filters=filters, include=include, exclude=exclude),
        "files-from": None if files_from is None else os.path.abspath(files_from),
        "from0": from0 or None,
        "recursive": False if recursive is None and files_from is not None else recursive,
        "checksum": checksum,
        "size-only": size_only,
        "ignore-times": ignore_times,
        "update": update,
        "existing": existing,
        "ignore-existing": ignore_existing,
        "modify-window": modify_window,
        "links": links,
        "devices": devices,
        "specials": specials,
        "hard-links": hard_links,
        "acls": acls,
        "xattrs": xattrs,
        "sparse": sparse,
        "one-file-system": one_file_system,
        "perms": perms,
        "times": times,
        "owner": owner,
        "group": group,
        "omit-dir-times": omit_dir_times,
        "omit-link-times": omit_link_times,
        "bytes-per-second": bytes_per_second,
        "verify": verify,
        "dry-run": dry_run,
        "checkpoint": None if checkpoint is None else os.fspath(checkpoint),
    }
    given = spark._jvm.java.util.HashMap()
    for key, value in settings.items():
        if value is not None:
            given[key] = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        answer = json.loads(job.runJson(spark._jsparkSession, given))
    except Py4JJavaError as error:
        cause = error.java_exception
        if cause.getClass().getName() != "io.millstream.spark.sync.SyncFailure":
            raise
        raise SyncError(cause.getMessage()) from None
    problems = tuple(SyncProblem(**problem) for problem in answer["problems"])
    return SyncSummary(**{**answer, "notices": tuple(answer["notices"]), "problems": problems})
