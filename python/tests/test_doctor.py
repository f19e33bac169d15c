"""`millstream doctor` reports whether Millstream works with the Spark that it finds, and how to fix what does not."""

import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

MILLSTREAM = Path(sys.executable).with_name("millstream")


def doctor(conf_directory, *options, **environment):
    environment = {**os.environ, "SPARK_CONF_DIR": str(conf_directory), "SPARK_LOCAL_IP": "127.0.0.1", **environment}
    return subprocess.run(
        [MILLSTREAM, "doctor", "--conf=spark.ui.enabled=false", *options],
        env=environment,
        capture_output=True,
        text=True,
    )


def block():
    return subprocess.run([MILLSTREAM, "spark-conf"], check=True, capture_output=True, text=True).stdout


def configured(directory, *lines, without=()):
    """Writes the conf block, without the lines of some keys, and more lines to a Spark configuration directory."""
    kept = [line for line in block().splitlines() if line.split(" ")[0] not in without]
    (directory / "spark-defaults.conf").write_text("".join(f"{line}\n" for line in [*kept, *lines]))
    return directory


def to_fix(done):
    """The checks that failed, with the finding and its fix."""
    assert done.returncode in (0, 1), done.stderr
    found = [check for check in json.loads(done.stdout) if not check["ok"]]
    assert done.returncode == (1 if found else 0)
    return {check["what"]: (check["found"], check["fix"]) for check in found}


def test_an_installation_without_settings_is_no_fault(tmp_path):
    """As after the README's quick start, where millstream.enable sets them."""
    (tmp_path / "spark-defaults.conf").write_text("# spark.jars /opt/millstream-spark.jar\nspark.log.level WARN\n")

    done = doctor(tmp_path)

    assert done.returncode == 0 and "FIX" not in done.stdout, done.stdout + done.stderr
    assert (
        "spark-defaults.conf has no Millstream settings: it is off, except in programs that call millstream.enable"
        in done.stdout
    )
    assert "spark.millstream.write.enabled=true" in done.stdout


@pytest.mark.parametrize(
    "key, what",
    [
        ("spark.driver.extraClassPath", {"class path", "file: system"}),
        ("spark.millstream.write.enabled", {"direct writes"}),
    ],
)
def test_a_missing_line_is_reported_with_its_fix(tmp_path, key, what):
    found = to_fix(doctor(configured(tmp_path, without=[key]), "--json"))

    assert found.keys() == what
    assert all(key in fix for _, fix in found.values()), found


def test_all_checks_succeed_with_the_conf_block(tmp_path):
    done = doctor(configured(tmp_path))

    assert done.returncode == 0 and "FIX" not in done.stdout, done.stdout + done.stderr
    assert "native library" in done.stdout and "spark.millstream.write.enabled=true" in done.stdout


@pytest.mark.parametrize(
    "line, found, fix",
    [
        (
            "spark.millstream.wirte.enabled true",
            "spark.millstream.wirte.enabled is not a key of Millstream; did you mean spark.millstream.write.enabled?",
            "correct it to spark.millstream.write.enabled",
        ),
        (
            "spark.hadoop.fs.millstream.write.visibilty exchange",
            "did you mean spark.hadoop.fs.millstream.write.visibility?",
            "or remove it",
        ),
        (
            "spark.millstream.hologram.enabled true",
            "spark.millstream.hologram.enabled is not a key of this version",
            "remove it, or use the version that has it",
        ),
        ("spark.millstream.read.maxReaders many", "spark.millstream.read.maxReaders", "correct the value"),
        ("spark.millstream.read.maxReaders -1", "spark.millstream.read.maxReaders", "correct the value"),
        ("spark.millstream.list.enabled yes", "spark.millstream.list.enabled", "correct the value"),
        (
            "spark.hadoop.fs.millstream.write.visibility soon",
            "fs.millstream.write.visibility must be one of",
            "correct the value",
        ),
    ],
)
def test_a_wrong_setting_is_reported_with_its_fix(tmp_path, line, found, fix):
    wrong = to_fix(doctor(configured(tmp_path, line), "--json"))

    assert wrong.keys() == {"settings"}
    assert found in wrong["settings"][0] and fix in wrong["settings"][1], wrong


@pytest.mark.parametrize(
    "line, found",
    [
        ("spark.hadoop.fs.millstream.list.threads -1", "fs.millstream.list.threads must not be negative: -1"),
        ("spark.hadoop.fs.millstream.list.threads x", "fs.millstream.list.threads must be a number, but was x"),
    ],
)
def test_a_setting_with_which_spark_does_not_start_is_reported_without_a_stack_trace(tmp_path, line, found):
    done = doctor(configured(tmp_path, line))

    assert done.returncode == 1 and "Exception in thread" not in done.stdout + done.stderr, done.stderr
    assert done.stdout.startswith("FIX   Spark  does not start: ") and found in done.stdout, done.stdout
    assert "correct the setting that this message names" in done.stdout


@pytest.mark.parametrize("scala, spark", [("2.12", "3.5.6"), ("2.13", "3.5.6"), ("2.13", "4.4.0")])
def test_a_spark_that_is_not_supported_is_reported(tmp_path, scala, spark):
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    (home / "jars").mkdir()
    (home / "bin" / "spark-submit").write_text("#!/bin/sh\nexit 3\n")
    (home / "bin" / "spark-submit").chmod(0o755)
    (home / "jars" / f"spark-core_{scala}-{spark}.jar").touch()

    found, fix = to_fix(doctor(tmp_path, "--json", SPARK_HOME=str(home)))["Spark"]

    assert found == f"{spark} with Scala {scala}, which Millstream does not support" and fix.startswith(
        "use Spark 4.0 to 4.3"
    )


# ---- millstream.doctor ----

QUICK_START = """
    import json, sys, millstream
    from pyspark.sql import SparkSession
    spark = {builder}.config("spark.ui.enabled", "false").getOrCreate()
    {before}
    found = millstream.doctor(spark)
    print("=====")
    print(json.dumps([[check.what, check.found, check.fix] for check in found if not check.ok]))
"""


def diagnosed(tmp_path, builder, before=""):
    """The output, and the checks that failed."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(QUICK_START).format(builder=builder, before=before))
    environment = {**os.environ, "SPARK_CONF_DIR": str(tmp_path / "no-conf"), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    screen, _, found = done.stdout.partition("=====\n")
    return screen, json.loads(found)


def test_a_session_of_the_quick_start_is_well(tmp_path):
    screen, found = diagnosed(tmp_path, "millstream.enable(SparkSession.builder)")

    assert found == [] and "FIX" not in screen
    assert re.search(r"(?m)^ok +native library +loads$", screen) and re.search(
        r"(?m)^ok +file: system +io.millstream", screen
    )


def test_a_session_with_a_switch_off_is_reported(tmp_path):
    screen, found = diagnosed(
        tmp_path, "millstream.enable(SparkSession.builder)", 'spark.conf.set("spark.millstream.read.enabled", "false")'
    )

    assert [what for what, _, _ in found] == ["native and packed reads"]
    assert "FIX   native and packed reads" in screen


def test_a_session_without_the_jar_is_reported(tmp_path):
    screen, found = diagnosed(tmp_path, "SparkSession.builder")

    assert found == [
        [
            "jar",
            "not in the session's JVM",
            "set its configuration (millstream.enable) before the first session is made",
        ]
    ]
    assert screen.startswith("FIX   jar  not in the session's JVM")


def test_disabled_switches_and_custom_committers_are_reported(tmp_path):
    configured(tmp_path)

    done = doctor(
        tmp_path,
        "--conf=spark.millstream.read.enabled=false",
        "--conf=spark.sql.sources.commitProtocolClass=org.apache.spark.internal.io.HadoopMapReduceCommitProtocol",
    )

    assert done.returncode == 1, done.stderr
    assert (
        "spark.millstream.read.enabled=false" in done.stdout
        and "spark.sql.sources.commitProtocolClass=org.apache.spark.internal.io.HadoopMapReduceCommitProtocol"
        in done.stdout
    )


def remote_file_systems(tmp_path, *options):
    """The checks of s3a and hdfs, with the conf block and these options."""
    done = doctor(configured(tmp_path), "--json", *options)
    found = {diagnosis["what"]: diagnosis for diagnosis in json.loads(done.stdout)}
    assert done.returncode == (0 if all(diagnosis["ok"] for diagnosis in found.values()) else 1), done.stderr
    return found["s3a: system"], found["hdfs: system"]


def test_remote_file_systems_are_reported(tmp_path):
    s3a, hdfs = remote_file_systems(tmp_path)

    assert (s3a["ok"], s3a["found"]) == (
        True,
        "none: its jars are not on the class path (docs/remote.md says how to add them)",
    )
    assert (hdfs["ok"], hdfs["found"]) == (True, "io.millstream.hadoop.hdfs.MillstreamDistributedFileSystem")


def test_remote_file_systems_of_other_classes_are_reported(tmp_path):
    s3a, hdfs = remote_file_systems(
        tmp_path,
        "--conf=spark.hadoop.fs.s3a.impl=org.apache.hadoop.fs.ftp.FTPFileSystem",
        "--conf=spark.millstream.remote.enabled=false",
    )

    assert s3a["found"] == "org.apache.hadoop.fs.ftp.FTPFileSystem, since fs.s3a.impl is set"
    assert "unset spark.hadoop.fs.s3a.impl" in s3a["fix"]
    assert hdfs["found"] == "org.apache.hadoop.hdfs.DistributedFileSystem, since spark.millstream.remote.enabled=false"
    assert "set spark.millstream.remote.enabled=true" in hdfs["fix"]


def test_a_missing_class_is_reported(tmp_path):
    s3a, _ = remote_file_systems(tmp_path, "--conf=spark.hadoop.fs.s3a.impl=org.example.OtherS3A")

    assert (
        s3a["found"]
        == "none: org.example.OtherS3A, which fs.s3a.impl names, does not load: java.lang.ClassNotFoundException: org.example.OtherS3A"
    )
    assert "unset spark.hadoop.fs.s3a.impl" in s3a["fix"]


def test_jars_that_come_too_late_are_reported(tmp_path):
    source = tmp_path / "S3AFileSystem.java"
    source.write_text("package org.apache.hadoop.fs.s3a; public class S3AFileSystem {}")
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    with zipfile.ZipFile(tmp_path / "s3a.jar", "w") as jar:
        jar.write(
            tmp_path / "org/apache/hadoop/fs/s3a/S3AFileSystem.class", "org/apache/hadoop/fs/s3a/S3AFileSystem.class"
        )

    s3a, hdfs = remote_file_systems(tmp_path, f"--conf=spark.jars={tmp_path / 's3a.jar'}")

    assert "org.apache.hadoop.fs.s3a.S3AFileSystem, since Millstream's class path lacks its jars" in s3a["found"]
    assert "spark.driver.extraClassPath" in s3a["fix"]
    assert hdfs["ok"]
