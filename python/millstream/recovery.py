"""Finishes or undoes writes whose drivers have died."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RecoverError(RuntimeError):
    """The table or directory could not be examined, or a write not be finished or undone. The message says why."""


@dataclass(frozen=True)
class Finding:
    """A write that was found, and how it was resolved.

    Attributes:
        job: its id, which is in the names of its files.
        owner: the process that ran it.
        verdict: `"alive"` (it renews its lease and is left alone), `"roll-forward"` (it was committed, and is
            finished), `"roll-back"` (it was not committed, and its files are removed), `"leftovers"` (it has ended,
            committed or not; files that its killed or repeated attempts left behind, whose rows were never part of
            it, are removed), `"superseded"` (it is finished, except for directories that another program has
            overwritten meanwhile: its files for these are kept), `"lost"` (it was committed, could not be finished,
            and was given up) or `"remove-replaced"` (it is finished, and its replaced files, which were kept for
            running queries, are removed).
        steps: one line for each file and partition that is changed or lost; for a live write, when it counts as dead.
    """

    job: str
    owner: str
    verdict: str
    steps: tuple[str, ...]


def recover(
    spark: SparkSession,
    target: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    accept_loss: bool = False,
    superseded: str = "keep",
) -> list[Finding]:
    """Finishes the committed direct writes of a table or directory, and undoes the others if their drivers have died.
    The next write to it does the same.

    Args:
        spark: a session with Millstream's jar, for instance from `millstream.enable`, and with the table's catalog.
        target: the name of the table, or the path of the table or directory; an argument with a slash is a path.
        dry_run: whether only to report what would be done.
        accept_loss: whether to give up committed writes that cannot be finished; their steps list the losses.
            Otherwise such writes are errors.
        superseded: what to do with the files of overwrites for directories that another program has overwritten
            meanwhile: `"apply"` replaces the current files with them, `"drop"` removes them, `"keep"` keeps them,
            hidden from readers.

    Returns:
        The writes that were found.

    Raises:
        RecoverError: something could not be finished or undone, or `superseded` has another value. The call can be
            repeated.
    """
    from py4j.protocol import Py4JJavaError

    job = jar.find_class(spark, "io.millstream.spark.Recover")
    if job is None:
        raise RecoverError(jar.MISSING)
    try:
        found = json.loads(job.runJson(spark._jsparkSession, os.fspath(target), dry_run, accept_loss, superseded))
    except Py4JJavaError as error:
        cause = error.java_exception
        if cause.getClass().getName() != "io.millstream.spark.RecoverFailure":
            raise
        raise RecoverError(cause.getMessage()) from None
    return [Finding(**{**finding, "steps": tuple(finding["steps"])}) for finding in found]
