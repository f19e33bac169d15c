"""The conf block, and how `enable` combines it with the user's settings."""

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import millstream
import pytest
from millstream import session
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def no_site_defaults(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "no-conf"))
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def enabled(**settings):
    builder = SparkSession.Builder()
    builder.config(map=settings)
    return millstream.enable(builder)._options


def test_the_block_names_the_jar_of_the_package():
    conf = millstream.spark_conf()
    jar = Path(conf["spark.driver.extraClassPath"])
    assert jar.is_absolute() and jar.is_file()
    assert conf["spark.executor.extraClassPath"] == conf["spark.jars"] == str(jar)
    assert not any("@" in value for value in conf.values())


def test_the_block_names_no_class():
    """A JVM that lacks the jar, such as spark-submit's own in cluster mode, would look for it."""
    assert not any(value.startswith("io.millstream") for value in millstream.spark_conf().values())


@pytest.mark.parametrize("uri", ["local:///opt/ms.jar", "local:/opt/ms.jar"])
def test_class_paths_have_the_path_of_a_jar_that_is_on_every_machine(uri):
    conf = millstream.spark_conf(uri)
    assert (conf["spark.jars"], conf["spark.driver.extraClassPath"], conf["spark.executor.extraClassPath"]) == (
        uri,
        "/opt/ms.jar",
        "/opt/ms.jar",
    )


def test_the_block_takes_another_jar():
    assert millstream.spark_conf(Path("/opt/ms.jar"))["spark.jars"] == "/opt/ms.jar"
    assert millstream.spark_conf("ms.jar").keys() == millstream.spark_conf().keys()
    assert millstream.spark_conf("ms.jar")["spark.jars"] == str(Path("ms.jar").absolute())


def test_a_package_without_jar_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "files", lambda package: tmp_path)
    with pytest.raises(
        FileNotFoundError,
        match=r"millstream-spark\.jar is missing: install the wheel that `make wheel` builds, or pass jar=",
    ):
        millstream.spark_conf()


def test_enable_sets_the_block_and_returns_the_builder():
    builder = SparkSession.Builder()
    assert millstream.enable(builder) is builder
    assert builder._options == millstream.spark_conf()


@pytest.mark.parametrize(
    ("key", "theirs", "separator"),
    [
        ("spark.driver.extraClassPath", "/a.jar:/b/*", ":"),
        ("spark.executor.extraClassPath", "/a.jar", ":"),
        ("spark.jars", "/a.jar,hdfs:///b.jar", ","),
    ],
)
def test_our_values_are_appended_to_the_users_lists(key, theirs, separator):
    ours = millstream.spark_conf()[key]
    assert enabled(**{key: theirs})[key] == theirs + separator + ours
    assert enabled(**{key: theirs + separator + ours})[key] == theirs + separator + ours


def test_other_settings_of_the_user_are_kept():
    assert enabled(**{"spark.sql.files.openCostInBytes": "7"})["spark.sql.files.openCostInBytes"] == "7"


def test_settings_of_the_installation_are_kept(tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text(
        "spark.driver.extraClassPath /site.jar\nspark.sql.files.openCostInBytes=7\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    options = enabled()
    assert options["spark.driver.extraClassPath"] == "/site.jar:" + millstream.spark_conf()["spark.jars"]
    assert "spark.sql.files.openCostInBytes" not in options


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("a.b c", "a.b", "c"),
        ("a.b=c", "a.b", "c"),
        ("a.b = c", "a.b", "c"),
        ("  a.b \t c d  ", "a.b", "c d"),
        ("a.b: c", "a.b", "c"),
        ("a.b", "a.b", ""),
        ("a.b -Dx=y -Dz=1", "a.b", "-Dx=y -Dz=1"),
    ],
)
def test_lines_of_spark_defaults(line, key, value):
    assert session.parse_defaults(f"# comment\n! comment\n\n{line}\n") == {key: value}


def test_spark_connect_is_left_alone_with_a_warning(monkeypatch):
    builder = SparkSession.Builder()
    builder._options["spark.remote"] = "sc://host"
    with pytest.warns(
        RuntimeWarning, match="Millstream stays off: Spark Connect sessions are configured on the server"
    ):
        assert millstream.enable(builder)._options == {"spark.remote": "sc://host"}


def run_python(tmp_path, code, *command):
    """Runs a program in a separate process; returns its output."""
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(code))
    run = subprocess.run(
        [*(command or [sys.executable]), program], capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr


# spark-submit would use the python3 of the PATH.
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "PYSPARK_PYTHON": sys.executable}
ENABLE_AND_COUNT = """
    import warnings, millstream
    from pyspark.sql import SparkSession
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spark = millstream.enable({builder}).getOrCreate()
    print([str(w.message) for w in caught if "Millstream" in str(w.message)])
    frame = spark.read.text(__file__)
    print(frame.count() > 0, frame._jdf.queryExecution().analyzed().relation().location().getClass().getSimpleName())
"""


def test_enable_after_the_first_session_warns_and_spark_stays_stock(tmp_path):
    first = 'SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")'
    code = ENABLE_AND_COUNT.format(builder="SparkSession.builder").replace(
        "    with", f"    {first}.getOrCreate()\n    with", 1
    )
    out, _ = run_python(tmp_path, code)
    warned, answer = out.splitlines()
    assert "Millstream stays off: this driver's JVM is already running without Millstream" in warned
    assert answer == "True InMemoryFileIndex"


def spark_submit(tmp_path, lines):
    properties = tmp_path / "properties"
    properties.write_text("".join(f"{line}\n" for line in lines))
    command = [sys.executable, "-m", "pyspark.find_spark_home"]
    home = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    builder = 'SparkSession.builder.config("spark.ui.enabled", "false")'
    submit = [f"{home}/bin/spark-submit", "--master", "local[1]", "--properties-file", str(properties)]
    return run_python(tmp_path, ENABLE_AND_COUNT.format(builder=builder), *submit)[0].splitlines()


def test_spark_submit_without_the_block_warns(tmp_path):
    warned, answer = spark_submit(tmp_path, ["spark.ui.enabled false"])
    assert "pass the settings of `millstream spark-conf` to spark-submit or spark-defaults.conf" in warned
    assert answer == "True InMemoryFileIndex"


def test_spark_submit_with_the_block_is_on(tmp_path):
    assert spark_submit(tmp_path, [f"{key} {value}" for key, value in millstream.spark_conf().items()]) == [
        "[]",
        "True CompactFileIndex",
    ]


@pytest.mark.parametrize("tool", ["pls", "pfind", "pdu", "pchmod", "pchown", "millstream"])
def test_the_wheel_installs_the_tools(tool):
    path = Path(sysconfig.get_path("scripts"), tool)
    assert subprocess.run([path, "--version"], capture_output=True, timeout=60).returncode == 0


@pytest.mark.parametrize("jar", [None, "/opt/ms.jar", "local:///opt/ms.jar", "local:/opt/ms.jar", "hdfs:///ms.jar"])
def test_the_tool_prints_the_same_block(jar):
    tool = Path(sysconfig.get_path("scripts"), "millstream")
    options = [f"--jar={jar}"] if jar else []
    printed = subprocess.run(
        [tool, "spark-conf", *options], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert session.parse_defaults(printed) == millstream.spark_conf(jar)
