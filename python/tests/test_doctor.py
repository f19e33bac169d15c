"""`millstream doctor` reports whether Millstream works with the Spark that it finds, and how to fix what does not."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

MILLSTREAM = Path(sys.executable).with_name("millstream")


def doctor(conf_directory, *options):
    environment = {**os.environ, "SPARK_CONF_DIR": str(conf_directory), "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.run([MILLSTREAM, "doctor", "--conf=spark.ui.enabled=false", *options], env=environment, capture_output=True, text=True)


def test_missing_settings_are_reported_with_their_fix(tmp_path):
    done = doctor(tmp_path, "--json")

    found = {diagnosis["what"]: diagnosis for diagnosis in json.loads(done.stdout)}
    assert done.returncode == 1, done.stderr
    assert {what for what, diagnosis in found.items() if not diagnosis["ok"]} == {"class path", "file: system", "direct writes"}
    assert "millstream spark-conf" in found["class path"]["cure"] and "spark.millstream.write.enabled=true" in found["direct writes"]["cure"]


def test_all_checks_succeed_with_the_conf_block(tmp_path):
    block = subprocess.run([MILLSTREAM, "spark-conf"], check=True, capture_output=True).stdout
    (tmp_path / "spark-defaults.conf").write_bytes(block)

    done = doctor(tmp_path)

    assert done.returncode == 0 and "FIX" not in done.stdout, done.stdout + done.stderr
    assert "native library" in done.stdout and "spark.millstream.write.enabled=true" in done.stdout


def test_disabled_switches_and_custom_committers_are_reported(tmp_path):
    block = subprocess.run([MILLSTREAM, "spark-conf"], check=True, capture_output=True).stdout
    (tmp_path / "spark-defaults.conf").write_bytes(block)

    done = doctor(tmp_path, "--conf=spark.millstream.read.enabled=false", "--conf=spark.sql.sources.commitProtocolClass=org.apache.spark.internal.io.HadoopMapReduceCommitProtocol")

    assert done.returncode == 1, done.stderr
    assert "spark.millstream.read.enabled=false" in done.stdout and "spark.sql.sources.commitProtocolClass=org.apache.spark.internal.io.HadoopMapReduceCommitProtocol" in done.stdout


def remote_file_systems(tmp_path, *options):
    """What is said of s3a and hdfs, with the conf block and these options."""
    block = subprocess.run([MILLSTREAM, "spark-conf"], check=True, capture_output=True).stdout
    (tmp_path / "spark-defaults.conf").write_bytes(block)
    done = doctor(tmp_path, "--json", *options)
    found = {diagnosis["what"]: diagnosis for diagnosis in json.loads(done.stdout)}
    assert done.returncode == (0 if all(diagnosis["ok"] for diagnosis in found.values()) else 1), done.stderr
    return found["s3a: system"], found["hdfs: system"]


def test_remote_file_systems_are_reported(tmp_path):
    s3a, hdfs = remote_file_systems(tmp_path)

    assert (s3a["ok"], s3a["found"]) == (True, "none: there are no jars for it on the class path (docs/remote.md says how to add them)")
    assert (hdfs["ok"], hdfs["found"]) == (True, "io.millstream.hadoop.hdfs.MillstreamDistributedFileSystem")


def test_remote_file_systems_of_other_classes_are_reported(tmp_path):
    s3a, hdfs = remote_file_systems(tmp_path, "--conf=spark.hadoop.fs.s3a.impl=org.apache.hadoop.fs.ftp.FTPFileSystem", "--conf=spark.millstream.remote.enabled=false")

    assert s3a["found"] == "org.apache.hadoop.fs.ftp.FTPFileSystem, since fs.s3a.impl is set"
    assert "unset spark.hadoop.fs.s3a.impl" in s3a["cure"]
    assert hdfs["found"] == "org.apache.hadoop.hdfs.DistributedFileSystem, since spark.millstream.remote.enabled=false"
    assert "set spark.millstream.remote.enabled=true" in hdfs["cure"]


def test_a_missing_class_is_reported(tmp_path):
    s3a, _ = remote_file_systems(tmp_path, "--conf=spark.hadoop.fs.s3a.impl=org.example.OtherS3A")

    assert s3a["found"] == "none: org.example.OtherS3A, which fs.s3a.impl names, does not load: java.lang.ClassNotFoundException: org.example.OtherS3A"
    assert "unset spark.hadoop.fs.s3a.impl" in s3a["cure"]


def test_jars_that_come_too_late_are_reported(tmp_path):
    source = tmp_path / "S3AFileSystem.java"
    source.write_text("package org.apache.hadoop.fs.s3a; public class S3AFileSystem {}")
    subprocess.run(["javac", "-d", tmp_path, source], check=True)
    with zipfile.ZipFile(tmp_path / "s3a.jar", "w") as jar:
        jar.write(tmp_path / "org/apache/hadoop/fs/s3a/S3AFileSystem.class", "org/apache/hadoop/fs/s3a/S3AFileSystem.class")

    s3a, hdfs = remote_file_systems(tmp_path, f"--conf=spark.jars={tmp_path / 's3a.jar'}")

    assert "org.apache.hadoop.fs.s3a.S3AFileSystem, since Millstream's class path lacks its jars" in s3a["found"]
    assert "spark.driver.extraClassPath" in s3a["cure"]
    assert hdfs["ok"]
