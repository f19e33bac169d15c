"""The block of Spark configuration that turns Millstream on. It is kept in the jar; `millstream spark-conf` prints the same."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONF_IN_JAR = "millstream/spark-defaults.conf"
_PACKAGED_JAR = Path(__file__).parent / "jars" / "millstream-spark.jar"
_CLASS_PATH_KEYS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")


def jar_path() -> Path:
    """The jar that this package carries, or the one that `MILLSTREAM_JAR` names."""
    override = os.environ.get("MILLSTREAM_JAR")
    path = Path(override).absolute() if override else _PACKAGED_JAR
    if not path.is_file():
        origin = "named by MILLSTREAM_JAR" if override else "of this package"
        raise FileNotFoundError(f"the jar {origin} is not there: {path}")
    return path


def spark_conf() -> dict[str, str]:
    """Keys and values to set before the driver's JVM starts."""
    jar = jar_path()
    with zipfile.ZipFile(jar) as archive:
        text = archive.read(_CONF_IN_JAR).decode()
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return {key: value.replace("@JAR@", str(jar)) for key, value in pairs}


def enable(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Sets Millstream's configuration on a session builder, before `getOrCreate`.

    What the builder already has wins, except that class paths are joined.
    """
    if _driver_runs():
        raise RuntimeError("millstream.enable comes too late: a Spark session is already running in this process")
    chosen: dict[str, str] = builder._options
    for key, value in spark_conf().items():
        if key in _CLASS_PATH_KEYS and chosen.get(key):
            if value not in chosen[key].split(os.pathsep):
                builder.config(key, os.pathsep.join([value, chosen[key]]))
        elif key not in chosen:
            builder.config(key, value)
    return builder


def _driver_runs() -> bool:
    from pyspark import SparkContext

    return SparkContext._active_spark_context is not None
