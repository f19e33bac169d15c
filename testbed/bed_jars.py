"""Jars for the test environments, which Maven fetches once, by the poms in jars/."""

import os
import shutil
import zipfile
from pathlib import Path

from service import ServiceError, built_by_one, checked
from spark_versions import line_of

POMS = Path(__file__).resolve().parent / "jars"
# The jars that Spark has in addition to Hadoop's client, so that a class path has no two versions.
SPARK_HAS = "io.netty,org.slf4j,commons-codec,commons-logging,org.apache.httpcomponents"

# The newest Hadoop for which there is a libhadoop.so.
HADOOP_WITH_LIBHADOOP = "3.4.1"

LIBHADOOP = "nativelib/Linux-amd64/libhadoop.so"


def maven(directory: Path, goal: str, *options: str) -> None:
    """Fills `directory`; removes it on failure."""
    partial = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    if not shutil.which("mvn"):
        raise ServiceError("Maven is missing: see testbed/setup build")
    checked(["mvn", "-B", "-q", goal, f"-DoutputDirectory={partial}", *options], cwd="/")
    shutil.rmtree(directory, ignore_errors=True)
    partial.rename(directory)


def jars_by_pom(pom: str, profile: str, exclude_groups: str = "") -> list[Path]:
    """The jars that jars/POM.xml names for a profile."""
    source = POMS / f"{pom}.xml"
    with built_by_one("jars") as build:
        directory = build / "jars" / f"{pom}-{profile}"
        if not directory.exists() or directory.stat().st_mtime < source.stat().st_mtime:
            directory.parent.mkdir(exist_ok=True)
            options = [f"-DexcludeGroupIds={exclude_groups}"] if exclude_groups else []
            maven(directory, "dependency:copy-dependencies", "-f", str(source), f"-P{profile}", *options)
            os.utime(directory)
    return sorted(directory.glob("*.jar"))


def jar_of(artifact: str) -> Path:
    """One jar, by GROUP:ARTIFACT:VERSION."""
    with built_by_one("jars") as build:
        directory = build / "jars" / artifact.replace(":", "_")
        if not directory.exists():
            directory.parent.mkdir(exist_ok=True)
            maven(directory, "dependency:copy", f"-Dartifact={artifact}")
    return next(directory.glob("*.jar"))


def hadoop_native_directory() -> Path:
    """The directory of a libhadoop.so for Hadoop 3.4; Hadoop 3.5 does not load it, and publishes none."""
    jar = jar_of("io.trino.hadoop:hadoop-apache:3.3.5-3")
    with zipfile.ZipFile(jar) as archive:
        archive.extract(LIBHADOOP, jar.parent)
    return (jar.parent / LIBHADOOP).parent


def s3a_jars(spark_version: str) -> list[Path]:
    """S3A for the Hadoop version of a Spark."""
    return jars_by_pom("s3a", f"hadoop-{line_of(spark_version).hadoop}", SPARK_HAS)


def hadoop_cloud_jar(spark_version: str) -> Path:
    """With it on the class path, Spark from 4.1 on writes to S3 with the magic committer."""
    return jar_of(f"org.apache.spark:spark-hadoop-cloud_2.13:{line_of(spark_version).hadoop_cloud}")


def avro_jar(spark_version: str) -> Path:
    """The format `avro`; Spark contains the library."""
    return jar_of(f"org.apache.spark:spark-avro_2.13:{line_of(spark_version).avro}")


def iceberg_jar(spark_version: str) -> Path | None:
    """Iceberg's catalogs and tables, with their dependencies."""
    artifact = line_of(spark_version).iceberg
    return artifact and jar_of(f"org.apache.iceberg:{artifact}")


def distcp_jars(hadoop_version: str) -> list[Path]:
    """The jars that run org.apache.hadoop.tools.DistCp in one JVM."""
    return jars_by_pom("distcp", f"hadoop-{hadoop_version}")
