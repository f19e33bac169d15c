"""Switches Millstream on in a Spark session.

All of it is configuration, and most of that has to be there before the driver's JVM starts: the JVM makes its first file
system, which it then keeps, while it starts. So `enable` adds the conf block to a builder whose JVM does not run yet. If
one runs, it can only look whether the block was given to it (`spark-submit`, `spark-defaults.conf`), and say so if not.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAR_PLACEHOLDER = "@JAR@"
FILE_SYSTEM_CLASS = "io.millstream.hadoop.MillstreamLocalFileSystem"
SETTING = re.compile(r"(?P<key>[^\s=:]+)\s*[=:]?\s*(?P<value>.*)")
# Settings that hold several values, and what separates them: the user's own are kept, ours is added.
LISTS = {"spark.driver.extraClassPath": ":", "spark.executor.extraClassPath": ":", "spark.jars": ","}


def spark_conf(jar: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """The settings that turn Millstream on, as they stand in the jar's conf block (`millstream spark-conf` prints it).

    They must reach Spark before the driver's JVM starts: `SparkConf().setAll(spark_conf().items())`, or `--conf` for
    each with spark-submit.

    Args:
        jar: path of the jar on the driver, which becomes absolute; by default the one in this package.

    Returns:
        Spark's keys and values.

    Raises:
        FileNotFoundError: no `jar` was given and this installation carries none (an editable install).
    """
    package = files("millstream")
    if jar is None:
        jar = Path(str(package.joinpath("jars", "millstream-spark.jar")))
        if not jar.is_file():
            raise FileNotFoundError(f"{jar} is missing: install the wheel that `make wheel` builds, or pass jar=")
    block = package.joinpath("spark-defaults.conf").read_text(encoding="utf-8")
    return {key: value.replace(JAR_PLACEHOLDER, absolute(os.fspath(jar))) for key, value in parse_defaults(block).items()}


def absolute(jar: str) -> str:
    """A path; URIs, such as those of jars that executors have, are left alone."""
    return jar if ":/" in jar else os.path.abspath(jar)


def enable(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Turns Millstream on for the session that a builder makes.

    Settings that the builder or `spark-defaults.conf` already has are kept; class paths and jars are added to them.

    If the driver's JVM runs already (after spark-submit, in the pyspark shell, or because there was a session before) it is
    too late to change it: if it was not started with `spark_conf()` this warns, and Spark stays stock. The same holds for
    Spark Connect, where the server has to be configured.

    Args:
        builder: `SparkSession.builder`, with or without settings.

    Returns:
        The same builder.

    Warns:
        RuntimeWarning: Millstream cannot be turned on from here any more; the message says what to do.

    Raises:
        TypeError: `builder` is none.
    """
    if not hasattr(builder, "_options"):
        raise TypeError(f"enable() takes SparkSession.builder, not {builder!r}")
    if connects_to_server(builder):
        warn("Spark Connect sessions are configured at the server: start it with what `millstream spark-conf` prints")
    elif jvm_is_running():
        if not jvm_has_millstream():
            warn(
                "the JVM of this driver already runs, without Millstream: call enable() before the first session, "
                "or give what `millstream spark-conf` prints to spark-submit or spark-defaults.conf"
            )
    else:
        add_settings(builder, spark_conf())
    return builder


def warn(reason: str) -> None:
    warnings.warn(f"Millstream stays off: {reason}", RuntimeWarning, stacklevel=3)


def add_settings(builder: SparkSession.Builder, ours: Mapping[str, str]) -> None:
    theirs = {**site_defaults(), **builder._options}
    for key, value in ours.items():
        if key not in theirs:
            builder.config(key, value)
        elif key in LISTS and value not in theirs[key].split(LISTS[key]):
            builder.config(key, LISTS[key].join([theirs[key], value]))


def connects_to_server(builder: SparkSession.Builder) -> bool:
    return "spark.remote" in builder._options or "SPARK_REMOTE" in os.environ


def jvm_is_running() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def jvm_has_millstream() -> bool:
    """Whether the file system of `file:`, which a JVM makes once and keeps, is ours."""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf).getClass().getName() == FILE_SYSTEM_CLASS


def site_defaults() -> dict[str, str]:
    """What the installation's spark-defaults.conf says: a builder's setting would replace it, not add to it."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(_find_spark_home(), "conf")
    file = Path(folder, "spark-defaults.conf")
    return parse_defaults(file.read_text(encoding="utf-8")) if file.is_file() else {}


def parse_defaults(text: str) -> dict[str, str]:
    """Keys and values of a spark-defaults.conf, which is a file of Java properties without line continuations."""
    lines = (line.strip() for line in text.splitlines())
    settings = (SETTING.fullmatch(line) for line in lines if line and line[0] not in "#!")
    return {match["key"]: match["value"] for match in settings if match}
