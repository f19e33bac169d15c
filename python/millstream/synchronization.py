"""Makes a directory like another one, on Spark."""

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


# What needs no escape in a setting: printable ASCII.
_PLAIN = bytes(set(range(0x20, 0x7F)) - {ord("%")})


class SyncError(RuntimeError):
    """The synchronization was refused, or ended early. The message says why. Files have their names only if they are
    complete.
    """


@dataclass(frozen=True)
class SyncProblem:
    """Something that could not be done.

    Attributes:
        path: the path below source and destination.
        operation: what failed.
        message: why.
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
        entries: number of entries of the source; `files`, `directories`, `links` and `specials` are those of each kind.
        bytes: the size of the source's files.
        created: entries that the destination did not have.
        copied_files: files whose contents were copied.
        copied_bytes: their size.
        kept: files that an earlier run with this checkpoint had copied.
        amended: entries of which only attributes were set.
        deleted: entries that were deleted.
        undeleted: entries that were not deleted because of `max_delete`.
        moving: files that vanished or changed while they were copied.
        errors: number of problems, the first of which are in `problems`, and one more if nothing is deleted because
        `src` is empty. dry_run: whether this is only a prediction. milliseconds: duration. exit_code: that of `psync`:
        0, or 23 after errors, 25 if `max_delete` kept something, 24 if something moved. manifest: the checkpoint
        directory, whose parts `manifest-*` are the manifest in Parquet; None without one. notices: what is no error,
        but should be known.
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
    """Settings for rules and patterns, in their order: each is a letter for its kind and its text, of which bytes are
    escaped as in URLs.
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
    """Makes the contents of a directory like those of another one, by Spark jobs, with the meaning of `rsync -a SRC/
    DST`.

    Both may be on any file system of Hadoop's: local or mounted, HDFS, S3 (`s3a://…`). All executors must see them.

    Args:
        spark: a session with Millstream's jar, for instance from `millstream.enable`.
        src: the directory whose contents are copied.
        dst: the directory that becomes like it; it is made if it does not exist.
        delete: whether to remove what `src` does not have, if all of both could be listed and `src` is not empty.
        delete_before: as `delete`, but before anything is copied.
        delete_excluded: as `delete`, and also remove what the filter excludes.
        max_delete: remove at most so many entries.
        ignore_errors: whether to delete even if something failed before; never what a directory of `src` may have
        that cannot be listed. force: without `delete`, remove directories that are in the way of something else.
        filters: rules as of rsync's FILTER RULES, such as `"- *.tmp"` or `"protect /kept/"`. The first rule that
        matches decides, and they come before `include`, which comes before `exclude`. Files that they merge are read
        by the driver. include: patterns that are not excluded by what follows. exclude: patterns of what is neither
        copied nor deleted. files_from: a file that lists the only paths that take part, one in a line, relative to
        `src`; the driver reads it. The directories that lead to them take part, too. from0: whether NULs end the
        paths of `files_from`. recursive: with `files_from`, whether all that is in listed directories takes part.
        Otherwise, which is the default, only what is in those with a slash at their end does, but not in the
        directories below. checksum: compare the contents of files of the same size, not their times. size_only:
        compare sizes alone. ignore_times: copy every file. update: no files that are newer in the destination.
        existing: only what the destination has already. ignore_existing: only what the destination does not have,
        and directories. modify_window: by how many seconds times may differ; -1 compares nanoseconds. By default,
        times are compared as far as both sides store them. links: whether to copy symbolic links, as they are.
        devices: whether to make devices, and `specials` pipes and sockets, where the destination can have them.
        hard_links: whether hard links to one file become hard links to one copy. This and `sparse` need local or
        mounted directories; `acls` and `xattrs` need two of these, or two of HDFS. acls: whether to preserve access
        control lists, and with them permissions. xattrs: whether to preserve other extended attributes; those beside
        `user.*` only for the superuser. sparse: whether copies have holes wherever there are zeros. one_file_system:
        whether not to descend into other file systems that are mounted in `src`, and to leave those directories of
        `dst` alone. perms: whether to preserve permissions; `times`, `owner` and `group` likewise, owner and group
        for the superuser of the destination. omit_dir_times: whether to leave the times of directories as they are;
        `omit_link_times` those of symbolic links. bytes_per_second: how much is copied at most, by all tasks
        together; each has an equal share. verify: whether to read copies again. dry_run: whether only to find out
        what would be done. checkpoint: a directory for listings, plan and manifest: the same call continues a run
        that was interrupted.

    Returns:
        The result, with the problems that there were.

    Raises:
        SyncError: it was refused, or ended early. The message about a filter names the rule, that about a list of
        files the path. TypeError: a sequence of patterns is a string.
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
