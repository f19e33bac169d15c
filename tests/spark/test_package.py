"""The Python package, in a session that it configures."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import dataset
import millstream
import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def spark(jar):
    os.environ["MILLSTREAM_JAR"] = str(jar)
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = millstream.enable(builder).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("package") / "data"
    path.mkdir()
    dataset.make(path, 1)
    return path


def stock_lines(spark, path):
    frame = spark.read.option("recursiveFileLookup", True).text(str(path))
    return frame.schema, sorted(row.value for row in frame.collect())


@pytest.mark.parametrize("name", ["nasty", "nested", "hidden", "zero", "nothing", "links", "lines", "random", "csv", "nested/a"])
def test_read_text_gives_the_rows_of_spark(spark, root, name):
    frame = millstream.read_text(spark, str(root / name))
    assert (frame.schema, sorted(row.value for row in frame.collect())) == stock_lines(spark, root / name)


def test_read_text_of_a_missing_path_fails_as_spark_does(spark, root):
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        millstream.read_text(spark, str(root / "missing"))


def test_read_text_reads_compressed_files_and_byte_order_marks(spark, root):
    frame = spark.createDataFrame([(f"line {i}",) for i in range(50)], "value string")
    for codec in ("gzip", "bzip2"):
        frame.write.option("compression", codec).text(str(root / "compressed" / codec))
    dataset.write(root / "compressed" / "bom", "\ufeff\r\n\ufeffx\r")
    read = millstream.read_text(spark, str(root / "compressed"))
    assert sorted(row.value for row in read.collect()) == stock_lines(spark, root / "compressed")[1]


def test_read_text_leaves_large_files_to_spark(spark, root):
    (root / "large").mkdir()
    for name in ("x", "y"):
        (root / "large" / name).write_text("".join(f"{i}\n" for i in range(3000)))
    dataset.write(root / "large" / "small")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        read = millstream.read_text(spark, str(root / "large"))
        assert read.rdd.getNumPartitions() > 4
        assert sorted(row.value for row in read.collect()) == stock_lines(spark, root / "large")[1]
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")


@pytest.mark.parametrize("partitions", [1, 3, 1000])
def test_partitions_are_as_many_as_asked_for_and_as_there_are_files(spark, root, partitions):
    frame = millstream.read_text(spark, str(root / "nasty"), partitions)
    assert frame.rdd.getNumPartitions() == min(partitions, len(dataset.NASTY))


def test_negative_partitions_are_refused(spark, root):
    with pytest.raises(Exception, match="must not be negative"):
        millstream.read_text(spark, str(root / "nasty"), -1)


def test_pure_read_text_takes_a_session_or_a_context(spark, root):
    lines = stock_lines(spark, root / "nested")[1]
    assert sorted(millstream.pure_read_text(spark, str(root / "nested")).collect()) == lines
    assert sorted(millstream.pure_read_text(spark.sparkContext, str(root / "nested"), 2).collect()) == lines


def test_enable_comes_too_late_when_a_session_runs(spark):
    with pytest.raises(RuntimeError, match="too late"):
        millstream.enable(SparkSession.builder)


def test_conf_names_the_jar_and_keeps_what_the_user_chose(jar, monkeypatch):
    monkeypatch.setenv("MILLSTREAM_JAR", str(jar))
    monkeypatch.setattr("millstream.conf._driver_runs", lambda: False)
    conf = millstream.spark_conf()
    assert conf["spark.driver.extraClassPath"] == str(jar)
    assert conf["spark.hadoop.fs.file.impl"] == "io.millstream.hadoop.MillstreamLocalFileSystem"
    assert not any("@" in value for value in conf.values())
    builder = SparkSession.Builder()
    builder._options = {"spark.driver.extraClassPath": "/mine.jar", "spark.sql.files.openCostInBytes": "7"}
    chosen = millstream.enable(builder)._options
    assert chosen["spark.driver.extraClassPath"] == f"{jar}:/mine.jar"
    assert chosen["spark.sql.files.openCostInBytes"] == "7"
    assert chosen["spark.executor.extraClassPath"] == str(jar)


def test_missing_jar_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("MILLSTREAM_JAR", str(tmp_path / "none.jar"))
    with pytest.raises(FileNotFoundError, match="MILLSTREAM_JAR"):
        millstream.jar_path()


WITHOUT_LIBRARY = """
import sys, millstream
from pyspark.sql import SparkSession
spark = millstream.enable(SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")).getOrCreate()
for _ in range(2):
    print("rows", spark.read.text(sys.argv[1]).count(), millstream.read_text(spark, sys.argv[1]).count())
print("plain", sorted(spark.sparkContext.textFile(sys.argv[1]).collect()))
"""


def test_without_the_native_library_spark_is_stock_after_one_warning(jar, root, tmp_path):
    bare = tmp_path / "bare.jar"
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(bare, "w") as copy:
        for entry in whole.infolist():
            if not entry.filename.endswith(".so"):
                copy.writestr(entry, whole.read(entry))
    environment = {**os.environ, "MILLSTREAM_JAR": str(bare)}
    command = [sys.executable, "-c", WITHOUT_LIBRARY, str(root / "zero")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["rows 2 2", "rows 2 2", "plain ['one', 'two']"], done.stderr
    warnings = [line for line in done.stderr.splitlines() if "Millstream's native library does not load" in line]
    assert len(warnings) == 1


def test_library_is_extracted_to_a_folder_of_the_user(spark, jar):
    mapped = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/maps").read_text()
    loaded = {Path(line.split(None, 5)[5]) for line in mapped.splitlines() if "libmillstream_jni" in line}
    assert len(loaded) == 1
    library = loaded.pop()
    assert library.parent.stat().st_mode & 0o777 == 0o700
    with zipfile.ZipFile(jar) as archive:
        packed = [archive.read(name) for name in archive.namelist() if name.endswith("libmillstream_jni.so")]
    assert library.read_bytes() in packed
