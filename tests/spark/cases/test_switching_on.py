"""The conf block: what it switches on, why each line is needed, and that it does no harm where the jar is missing."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from sessions import BASE_CONF, Session

OURS = "io.millstream.hadoop.MillstreamLocalFileSystem"
OLD_LINE = {"spark.hadoop.fs.file.impl": OURS}
DESCRIBED = """
    def described(context):
        file_system = context._jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
        return [file_system.getClass().getName(), OURS in file_system.getClass().getName() and file_system.listsNatively()]
"""


def block(**others):
    import millstream

    return {**millstream.spark_conf(), **others}


def run(tmp_path, conf, code):
    """The last line that a program prints, from JSON, and its log. The program has `conf` and `described`."""
    program = tmp_path / "program.py"
    head = f"import json\nfrom pyspark import SparkConf, SparkContext\nOURS = {OURS!r}\nconf = SparkConf().setAll({list({**BASE_CONF, **conf}.items())!r})\n"
    program.write_text(head + textwrap.dedent(DESCRIBED) + textwrap.dedent(code))
    done = subprocess.run(
        [sys.executable, program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


# ---- what it switches on ----


@pytest.mark.parametrize("older", [{}, OLD_LINE], ids=["block", "block of an older version"])
def test_a_context_without_a_session_lists_and_reads_natively(tmp_path, older):
    directory = tmp_path / "lines"
    directory.mkdir()
    for n in range(100):
        (directory / str(n)).write_text(f"line {n}\n")
    (file_system, tasks, lines), _ = run(
        tmp_path,
        block(**older),
        f"""
        context = SparkContext(conf=conf)
        rdd = context.textFile({str(directory)!r})
        print(json.dumps([described(context), rdd.getNumPartitions(), sorted(rdd.collect())]))
    """,
    )
    assert file_system == [OURS, True]
    assert tasks < 20, "small files share tasks only if Millstream makes the splits"
    assert lines == sorted(f"line {n}" for n in range(100))


def test_the_first_file_system_of_the_jvm_is_ours_already(tmp_path):
    """The event log is opened, and `spark.jars` are resolved, before there is a session."""
    (tmp_path / "logs").mkdir()
    conf = block(**{"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path / 'logs'}"})
    (file_system, statuses), _ = run(
        tmp_path,
        conf,
        f"""
        context = SparkContext(conf=conf)
        path = context._jvm.org.apache.hadoop.fs.Path({str(tmp_path)!r})
        listed = path.getFileSystem(context._jsc.hadoopConfiguration()).listStatus(path)
        print(json.dumps([described(context), sorted({{status.getClass().getSimpleName() for status in listed}})]))
    """,
    )
    assert (file_system, statuses) == ([OURS, True], ["ListedFileStatus"])


@pytest.mark.parametrize("chosen", ["org.apache.hadoop.fs.LocalFileSystem", "org.apache.hadoop.fs.RawLocalFileSystem"])
def test_a_file_system_that_the_user_has_set_stays(tmp_path, chosen):
    (tmp_path / "file").write_text("a line\n")
    got, log = run(
        tmp_path,
        block(**{"spark.hadoop.fs.file.impl": chosen}),
        f"""
        from pyspark.sql import SparkSession
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
        path = spark._jvm.org.apache.hadoop.fs.Path({str(tmp_path)!r})
        found = path.getFileSystem(spark._jsc.hadoopConfiguration()).getClass().getName()
        print(json.dumps([found, spark.read.text({str(tmp_path / "file")!r}).count()]))
    """,
    )
    assert (
        got == [chosen, 1]
        and "Millstream's jar was added after" not in log
        and "Failed to load session extension" not in log
    )


def test_a_rename_is_that_of_stock_spark(tmp_path):
    """Spark with Hive replaces no file by a rename."""
    answers = []
    for name, conf in (("ours", block()), ("stock", {})):
        top = tmp_path / name
        (top / "directory").mkdir(parents=True)
        for file in ("from", "to"):
            (top / file).write_text(file)
        answer, _ = run(
            top,
            conf,
            f"""
            context = SparkContext(conf=conf)
            hadoop = context._jvm.org.apache.hadoop.fs
            local = hadoop.FileSystem.getLocal(context._jsc.hadoopConfiguration())
            at = lambda name: hadoop.Path({str(top)!r}, name)
            print(json.dumps([local.rename(at("from"), at(to)) for to in ("to", "new")] + [local.rename(at("to"), at("directory"))]))
        """,
        )
        answers.append((answer, (top / "directory" / "to").read_text()))
    assert answers == [([False, True, True], "to")] * 2


# ---- the jar without the block ----


def test_the_jar_alone_gives_one_warning_with_the_missing_line(top, data):
    import millstream

    jar = millstream.spark_conf()["spark.jars"]
    session = Session(top / "jars-alone", millstream=False, conf={"spark.jars": jar})
    try:
        path = str(data / "layouts" / "text" / "nested")
        assert session.call("session_calls:read_text_lines", path=path) == session.call(
            "session_calls:stock_lines", path=path
        )
    finally:
        session.close()
    warnings = [line for line in session.log.read_text().splitlines() if "WARN" in line and "illstream" in line]
    assert len(warnings) == 1 and f"The missing setting is spark.driver.extraClassPath={jar};" in warnings[0], warnings


# ---- JVMs without the jar ----

MASTERS = {"yarn": [], "k8s": ["--conf", "spark.kubernetes.container.image=x"], "standalone": []}
URLS = {"yarn": "yarn", "k8s": "k8s://https://127.0.0.1:1", "standalone": "spark://127.0.0.1:1"}


@pytest.mark.parametrize("master", MASTERS)
def test_a_jvm_without_the_jar_submits_with_the_block(stock, tmp_path, master):
    """spark-submit's own, in cluster mode: it resolves the paths of jars before any jar is on its class path."""
    properties = tmp_path / "block.conf"
    # Hadoop's cache has a file system from an earlier test.
    lines = {**block(), "spark.hadoop.fs.file.impl.disable.cache": "true"}
    arguments = [
        "--master",
        URLS[master],
        "--deploy-mode",
        "cluster",
        "--properties-file",
        str(properties),
        *MASTERS[master],
        "--class",
        "Any",
        str(tmp_path / "any.jar"),
    ]
    for older, error in (({}, None), (OLD_LINE, "ClassNotFoundException")):
        properties.write_text("".join(f"{key} {value}\n" for key, value in {**lines, **older}.items()))
        told = stock.call("submit_calls:prepared", arguments=arguments)
        assert (error is None and told is None) or (error and error in (told or "")), told
