"""Finishing or undoing writes whose drivers have died."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RecoverError(RuntimeError):
    """The table or directory could not be looked at, or a write could not be finished or undone; the message says why."""


@dataclass(frozen=True)
class Finding:
    """What became of a write.

    Attributes:
        job: its id, which is in the names of its files.
        owner: who ran it.
        verdict: `"alive"` (it gives signs of life, and is left alone), `"roll-forward"` (it was committed, and is finished),
            `"roll-back"` (it was not, and what it has written is removed), `"superseded"` (it is finished, but for directories that another
            program has overwritten meanwhile: its files for these are kept), `"lost"` (it was committed, could not be finished, and is ended) or
            `"remove-replaced"` (it is finished, and the files that it has replaced, which were kept for queries under way, are removed).
        steps: each file and partition that is touched, or lost; of one that is alive, when it counts as dead.
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
    """Finishes the direct writes of a table or a directory that are committed, and undoes those of drivers that have died. The next write to it
    does the same.

    Args:
        spark: a session with Millstream's jar, for instance made by `millstream.enable`, and with the table's catalog.
        target: the table's name, or the path of the table or directory: what has a slash in it is a path.
        dry_run: whether only to tell what would be done.
        accept_loss: whether committed writes that cannot be finished are ended; what they lose is in their steps. Without it they are errors.
        superseded: what becomes of files of overwrites for directories that another program has overwritten meanwhile: `"apply"` puts them in the
            place of what is there, `"drop"` removes them, `"keep"` leaves them, unseen.

    Returns:
        The writes that were found.

    Raises:
        RecoverError: something could not be finished or undone, or `superseded` is none of the three; it can be tried again.
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
