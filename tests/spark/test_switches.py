"""That Millstream is at work where it should be, and only there: switched on, switched off, without its native library."""

import re
import zipfile
from pathlib import Path

import pytest

import cases
from sessions import Session

OUR_FILE_SYSTEM = "io.millstream.hadoop.MillstreamLocalFileSystem"
FALLBACK_CASES = [
    "text: flat", "text: hive", "text: nested recursive", "text: several roots", "text: glob of partitions with basePath",
    "parquet: hive", "csv: overlapping roots", "text from a missing path", "metadata columns",
    "hidden names recursive", "links recursive", "all directory names", "textFile of a glob of directories", "table repaired",
    "a forbidden directory as the root", "stream from a directory", "pruned by year = 2020",
]


def same_answers(stock, other, data, names):
    """Asserts that the answers are those of stock Spark; returns which indexes were used."""
    indexes = set()
    for number, name in enumerate(names):
        answers = []
        for session in (stock, other):
            scratch = session.home / f"scratch-{other.home.name}-{number}"
            scratch.mkdir()
            session.ask("answers:run_case", name=name, data=str(data), scratch=str(scratch))
        for session in (stock, other):
            answer = session.answer()
            indexes.add(answer.pop("index", None))
            answers.append(answer)
        assert answers[1] == answers[0], name
    return indexes


def test_the_file_system_is_ours(ours, stock):
    assert ours.call("calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": True}
    assert stock.call("calls:file_system")["class"] != OUR_FILE_SYSTEM


def test_statuses_come_from_native_listings(ours, data):
    statuses = ours.call("calls:status_classes", path=str(data / "siblings"))
    assert set(statuses) == {"io.millstream.hadoop.ListedFileStatus"}


def test_a_listing_is_logged(ours, data):
    ours.call("calls:log_and_read", path=str(data / "layouts" / "text" / "flat"))
    assert re.search(r"Millstream listed 5 files in 1 directories under 1 paths in \d+ ms", ours.log.read_text())


def test_the_plan_names_the_index(ours, data):
    assert "Location: CompactFileIndex" in ours.call("calls:plan", path=str(data / "layouts" / "text" / "hive"))


def test_the_index_can_be_switched_off_in_a_running_session(ours, data):
    path = str(data / "layouts" / "text" / "hive")
    indexes = {value: ours.call("calls:index_with", key="spark.millstream.list.enabled", value=value, path=path) for value in ("false", "true")}
    assert indexes == {"false": cases.STOCK, "true": cases.COMPACT}


@pytest.mark.parametrize(("key", "value", "natively"), [
    ("fs.millstream.list.enabled", "false", False),
    ("fs.millstream.list.enabled", "true", True),
    ("fs.millstream.list.threads", "3", True),
    ("fs.millstream.list.readahead.directories", "0", True),
    ("fs.millstream.list.readahead.max.age.ms", "0", True),
])
def test_settings_of_the_file_system(ours, data, key, value, natively):
    listed = ours.call("calls:list_with", key=key, value=value, path=str(data / "siblings"))
    assert listed == {"listsNatively": natively, "files": 48}


@pytest.mark.parametrize("key", ["threads", "readahead.directories", "readahead.max.age.ms"])
def test_negative_settings_are_refused(ours, data, key):
    assert "must not be negative: -1" in ours.call("calls:list_with", key=f"fs.millstream.list.{key}", value="-1", path=str(data))["error"]


@pytest.fixture(scope="module")
def without_library(top):
    """A session whose jar has no library for this platform."""
    import millstream

    jar = millstream.spark_conf()["spark.driver.extraClassPath"]
    stripped = top / "stripped.jar"
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(stripped, "w") as rest:
        for name in whole.namelist():
            if not name.endswith(".so"):
                rest.writestr(name, whole.read(name))
    session = Session(top / "without-library", millstream=True, jar=stripped)
    yield session
    session.close()


def test_without_the_library_spark_is_stock_with_one_warning(stock, without_library, data):
    assert without_library.call("calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": False}
    assert cases.COMPACT not in same_answers(stock, without_library, data, FALLBACK_CASES)
    lines = without_library.call("calls:read_text_lines", path=str(data / "layouts" / "text" / "nested"))
    assert lines == stock.call("calls:stock_lines", path=str(data / "layouts" / "text" / "nested"))
    warnings = re.findall(r"WARN .*native library does not load.*", without_library.log.read_text())
    assert len(warnings) == 1, warnings


@pytest.fixture(scope="module")
def switched_off(top):
    session = Session(top / "switched-off", millstream=True, conf={"spark.hadoop.fs.millstream.list.enabled": "false"})
    yield session
    session.close()


def test_switched_off_spark_is_stock_without_a_warning(stock, switched_off, data):
    assert switched_off.call("calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": False}
    assert cases.COMPACT not in same_answers(stock, switched_off, data, ["text: flat", "text: hive", "textFile of a directory"])
    assert "Millstream" not in switched_off.log.read_text()


def test_the_library_is_unpacked_for_this_user_alone(ours):
    (library,) = ours.call("calls:mapped_libraries")
    assert Path(library).parent.stat().st_mode & 0o777 == 0o700


def test_executors_get_the_jar_from_the_driver(top, data):
    """Executors are other processes, and the jar is not where `spark.executor.extraClassPath` says."""
    conf = {"spark.master": "local-cluster[1,1,1024]", "spark.executor.memory": "1g", "spark.executor.extraClassPath": "/nowhere/millstream.jar"}
    session = Session(top / "cluster", millstream=True, conf=conf)
    try:
        path = str(data / "layouts" / "text" / "nested")
        assert session.call("calls:read_text_lines", path=path) == session.call("calls:stock_lines", path=path)
        assert session.call("calls:rdd_lines", path=str(data / "siblings" / "*" / "*"))
    finally:
        session.close()
