"""Enables Millstream in a Spark session, and checks whether it works in one.

Millstream is enabled by configuration, most of which must be set before the driver's JVM starts,
because the JVM creates and caches its first file system at its start. So `enable` adds the conf
block to a builder whose JVM is not running yet. If the JVM is running, `enable` can only check
whether it was started with the block (`spark-submit`, `spark-defaults.conf`), and warn if not.
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
# The jar where it has to be a path.
PATH_PLACEHOLDER = "@JAR_PATH@"
# Spark's scheme for files present on every machine.
ON_EVERY_MACHINE = re.compile(r"local:(?://)?(?=/)")
FILE_SYSTEM_CLASS = "io.millstream.hadoop.MillstreamLocalFileSystem"
SETTING = re.compile(r"(?P<key>[^\s=:]+)\s*[=:]?\s*(?P<value>.*)")
# Settings that are lists, with their separators: our value is appended to the user's.
LISTS = {"spark.driver.extraClassPath": ":", "spark.executor.extraClassPath": ":", "spark.jars": ","}


def spark_conf(jar: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """The settings that enable Millstream, as in the jar's conf block (`millstream spark-conf` prints it).

    They must reach Spark before the driver's JVM starts: `SparkConf().setAll(spark_conf().items())`, or `--conf` for
    each with spark-submit.

    Args:
        jar: path of the jar on the driver, which becomes absolute; by default the jar in this package. `local:///PATH`
            is a jar that is on every machine, so it is not sent to executors.

    Returns:
        Spark's keys and values.

    Raises:
        FileNotFoundError: no `jar` was given, and this installation contains none (an editable
            install).
    """
    package = files("millstream")
    if jar is None:
        jar = Path(str(package.joinpath("jars", "millstream-spark.jar")))
        if not jar.is_file():
            raise FileNotFoundError(f"{jar} is missing: install the wheel that `make wheel` builds, or pass jar=")
    block = package.joinpath("spark-defaults.conf").read_text(encoding="utf-8")
    uri = absolute(os.fspath(jar))
    path = ON_EVERY_MACHINE.sub("", uri, count=1)
    return {
        key: value.replace(JAR_PLACEHOLDER, uri).replace(PATH_PLACEHOLDER, path)
        for key, value in parse_defaults(block).items()
    }


def absolute(jar: str) -> str:
    """An absolute path; URIs, such as those of jars on executors, are returned unchanged."""
    return jar if ":/" in jar else os.path.abspath(jar)


def enable(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Enables Millstream for the session that a builder makes.

    Settings that the builder or `spark-defaults.conf` already has are kept; class paths and jars are added to them.

    If the driver's JVM is already running (after spark-submit, in the pyspark shell, or because of
    an earlier session), it is too late to change its configuration: if it was not started with
    `spark_conf()`, this warns, and Spark runs without Millstream. The same applies to Spark
    Connect, where the server must be configured.

    Args:
        builder: `SparkSession.builder`, with or without settings.

    Returns:
        The same builder.

    Warns:
        RuntimeWarning: it is too late to enable Millstream here; the message says what to do.

    Raises:
        TypeError: `builder` is not a builder.
    """
    if not hasattr(builder, "_options"):
        raise TypeError(f"enable() takes SparkSession.builder, not {builder!r}")
    if connects_to_server(builder):
        warn(
            "Spark Connect sessions are configured on the server: start it with the settings that "
            "`millstream spark-conf` prints"
        )
    elif jvm_is_running():
        if not jvm_has_millstream():
            warn(
                "this driver's JVM is already running without Millstream: call enable() before the first session, "
                "or pass the settings of `millstream spark-conf` to spark-submit or spark-defaults.conf"
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
    """Whether the JVM's cached file system of `file:` is ours."""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    conf = jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()
    return jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf).getClass().getName() == FILE_SYSTEM_CLASS


def site_defaults() -> dict[str, str]:
    """The settings of the installation's spark-defaults.conf, which a builder's settings would replace."""
    from pyspark.find_spark_home import _find_spark_home

    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(_find_spark_home(), "conf")
    file = Path(folder, "spark-defaults.conf")
    return parse_defaults(file.read_text(encoding="utf-8")) if file.is_file() else {}


def parse_defaults(text: str) -> dict[str, str]:
    """Keys and values of a spark-defaults.conf, which is a file of Java properties without line continuations."""
    lines = (line.strip() for line in text.splitlines())
    settings = (SETTING.fullmatch(line) for line in lines if line and line[0] not in "#!")
    return {match["key"]: match["value"] for match in settings if match}
