"""Checks whether Millstream works in a session."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream import jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTED = "this is a Spark Connect session, whose JVM runs on the server"
CHECK_THERE = "run `millstream doctor` on the server's machine, with the server's settings"


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check.

    Attributes:
        what: what was checked.
        found: the result.
        ok: whether it is correct.
        fix: how to fix it; None if there is nothing to fix.
    """

    what: str
    found: str
    ok: bool
    fix: str | None


def doctor(spark: SparkSession) -> list[Diagnosis]:
    """Checks whether Millstream works in a running session, and prints the result.

    `millstream doctor` does the same for the settings of the installation. On a cluster, a short job checks the
    executors.

    Args:
        spark: the session.

    Returns:
        The results of the checks. Millstream works if every `ok` is true.
    """
    job = jar.find_class(spark, "io.millstream.spark.Doctor")
    if job is None:
        is_connected = getattr(spark, "_jvm", None) is None
        found = Diagnosis(
            "jar", *((CONNECTED, False, CHECK_THERE) if is_connected else ("not in the session's JVM", False, jar.CURE))
        )
        print(f"FIX   {found.what}  {found.found}\n           {found.fix}")
        return [found]
    answer = json.loads(job.runJson(spark._jsparkSession))
    print(answer["screen"])
    return [Diagnosis(**check) for check in answer["checks"]]
