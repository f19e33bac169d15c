"""`millstream doctor` reports whether Millstream works with the Spark that it finds, and how to fix what does not."""

import json
import os
import subprocess
import sys
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
