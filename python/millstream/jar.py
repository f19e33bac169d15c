"""Checks whether a session's JVM has Millstream's jar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py4j.java_gateway import JavaClass
    from pyspark.sql import SparkSession

CURE = "set its configuration (millstream.enable) before the first session is made"
MISSING = f"Millstream's jar is not in the session's JVM: {CURE}"


def find_class(spark: SparkSession, name: str) -> JavaClass | None:
    """A class of the jar; None if the JVM does not have it, or is out of reach (Spark Connect)."""
    from py4j.java_gateway import JavaClass

    found = getattr(spark, "_jvm", None)
    for part in name.split("."):
        found = found and getattr(found, part)
    return found if isinstance(found, JavaClass) else None
