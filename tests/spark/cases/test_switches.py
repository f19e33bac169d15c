"""Millstream works exactly where it should: enabled, disabled, and without its native library."""

import re
import zipfile
from pathlib import Path

import pytest
import queries
from answers import told_apart
from sessions import Session

SWITCH = "spark.millstream.list.enabled"
READ_SWITCH = "spark.millstream.read.enabled"
RDD_SWITCH = "spark.millstream.rdd.enabled"
OUR_FILE_SYSTEM = "io.millstream.hadoop.MillstreamLocalFileSystem"
FALLBACK_CASES = [
    "text: flat",
    "text: hive",
    "text: nested recursive",
    "text: several roots",
    "text: glob of partitions with basePath",
    "parquet: hive",
    "csv: overlapping roots",
    "text from a missing path",
    "metadata columns",
    "hidden names recursive",
    "links recursive",
    "all directory names",
    "textFile of a glob of directories",
    "table repaired",
    "a forbidden directory as the root",
    "stream from a directory",
    "pruned by year = 2020",
]


def same_answers(stock, other, data, names):
    """Asserts that the answers are those of stock Spark; returns the indexes that were used."""
    indexes = set()
    for number, name in enumerate(names):
        answers = []
        for session in (stock, other):
            scratch = session.home / f"scratch-{other.home.name}-{number}"
            scratch.mkdir()
            session.ask("answers:run_case", name=name, data=str(data), scratch=str(scratch))
        for session in (stock, other):
            answers.append(session.answer())
        index, _ = told_apart(*answers)
        indexes.add(index)
        assert answers[1] == answers[0], name
    return indexes


def test_the_file_system_is_ours(ours, stock):
    assert ours.call("session_calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": True}
    assert stock.call("session_calls:file_system")["class"] != OUR_FILE_SYSTEM


def test_statuses_come_from_native_listings(ours, data):
    statuses = ours.call("session_calls:status_classes", path=str(data / "siblings"))
    assert set(statuses) == {"io.millstream.hadoop.listing.ListedFileStatus"}


def test_a_listing_is_logged(ours, data):
    ours.call("session_calls:log_and_read", path=str(data / "layouts" / "text" / "flat"))
    assert re.search(r"Millstream listed in \d+ ms: files 5, directories 1, paths 1", ours.log.read_text())


def test_the_plan_names_the_index(ours, data):
    assert "Location: CompactFileIndex" in ours.call("session_calls:plan", path=str(data / "layouts" / "text" / "hive"))


@pytest.mark.parametrize(
    ("value", "indexes"),
    [
        ("false", [queries.STOCK, queries.STOCK]),
        ("FALSE", [queries.STOCK, queries.STOCK]),
        ("true", [queries.COMPACT, queries.COMPACT]),
        ("True", [queries.COMPACT, queries.COMPACT]),
    ],
)
def test_the_index_can_be_disabled_in_a_running_session(ours, data, value, indexes):
    path = str(data / "layouts" / "text" / "flat")
    assert ours.call("session_calls:indexes_with", key=SWITCH, value=value, path=path) == indexes


def test_the_switch_accepts_only_booleans(ours, data):
    """Like `spark.sql.…` keys."""
    path = str(data / "layouts" / "text" / "flat")
    errors = [
        ours.call("session_calls:indexes_with", key=key, value="no", path=path)
        for key in (SWITCH, "spark.sql.files.ignoreMissingFiles")
    ]
    assert SWITCH in errors[0]
    assert errors[0].replace(SWITCH, "KEY") == errors[1].replace("spark.sql.files.ignoreMissingFiles", "KEY")


@pytest.mark.parametrize(
    ("key", "value", "natively"),
    [
        ("fs.millstream.list.enabled", "false", False),
        ("fs.millstream.list.enabled", "true", True),
        ("fs.millstream.list.threads", "3", True),
        ("fs.millstream.list.readahead.directories", "0", True),
        ("fs.millstream.list.readahead.max.age.ms", "0", True),
    ],
)
def test_settings_of_the_file_system(ours, data, key, value, natively):
    listed = ours.call("session_calls:list_with", key=key, value=value, path=str(data / "siblings"))
    assert listed == {"listsNatively": natively, "files": 48}


@pytest.mark.parametrize("key", ["threads", "readahead.directories", "readahead.max.age.ms"])
def test_negative_settings_are_refused(ours, data, key):
    assert (
        "must not be negative: -1"
        in ours.call("session_calls:list_with", key=f"fs.millstream.list.{key}", value="-1", path=str(data))["error"]
    )


def jar_without(ending, top) -> Path:
    """Millstream's jar without the files whose names end so."""
    import millstream

    jar = millstream.spark_conf()["spark.driver.extraClassPath"]
    stripped = top / f"without-{ending}.jar"
    with zipfile.ZipFile(jar) as whole, zipfile.ZipFile(stripped, "w") as rest:
        for name in whole.namelist():
            if not name.endswith(ending):
                rest.writestr(name, whole.read(name))
    return stripped


@pytest.mark.parametrize(
    ("lacks", "natively", "warning"),
    [
        ("libmillstream_jni.so", False, "native library does not load"),
        # Simulates that a Spark class needed by this class is missing.
        ("CompactFileIndex$.class", True, "does not support this Spark"),
    ],
)
def test_spark_is_stock_with_one_warning_where_millstream_does_not_work(top, stock, data, lacks, natively, warning):
    session = Session(top / f"without-{lacks}", millstream=True, jar=jar_without(lacks, top))
    try:
        assert session.call("session_calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": natively}
        assert queries.COMPACT not in same_answers(stock, session, data, FALLBACK_CASES)
        lines = session.call("session_calls:read_text_lines", path=str(data / "layouts" / "text" / "nested"))
        assert lines == stock.call("session_calls:stock_lines", path=str(data / "layouts" / "text" / "nested"))
        warnings = re.findall(rf"WARN .*{warning}.*", session.log.read_text())
        assert len(warnings) == 1, warnings
    finally:
        session.close()


def test_a_driver_without_the_library_refuses_to_synchronize(top, data):
    library, destination = "libmillstream_jni.so", top / "not-made"
    session = Session(top / "sync", millstream=True, jar=jar_without(library, top))
    try:
        # Filters ask the library while the options are read.
        for options in ({}, {"exclude": ["*.tmp"]}):
            said = session.call("sync_calls:sync", src=str(data / "siblings"), dst=str(destination), **options)["error"]
            assert "native library, millstream_jni, does not load in it: java.io.IOException: no /millstream/" in said
            assert said.endswith("(-Djava.io.tmpdir=DIRECTORY)")
        assert not destination.exists()
    finally:
        session.close()


@pytest.mark.parametrize("key", [SWITCH, "spark.hadoop.fs.millstream.list.enabled"])
def test_disabled_at_the_start_spark_is_stock_without_a_warning(top, stock, data, key):
    session = Session(top / key, millstream=True, conf={key: "False", READ_SWITCH: "False", RDD_SWITCH: "False"})
    try:
        assert session.call("session_calls:file_system") == {"class": OUR_FILE_SYSTEM, "listsNatively": False}
        assert queries.COMPACT not in same_answers(
            stock, session, data, ["text: flat", "text: hive", "textFile of a directory"]
        )
        path = str(data / "layouts" / "text" / "nested")
        assert session.call("session_calls:read_text_lines", path=path) == stock.call(
            "session_calls:stock_lines", path=path
        )
        assert session.call("session_calls:mapped_libraries") == []
        assert "Millstream" not in session.log.read_text()
    finally:
        session.close()


@pytest.mark.parametrize(("value", "libraries"), [("true", 1), ("false", 0)])
def test_the_switch_reaches_executors(top, data, value, libraries):
    conf = {
        "spark.master": "local-cluster[1,1,1024]",
        "spark.executor.memory": "1g",
        SWITCH: value,
        READ_SWITCH: "false",
    }
    session = Session(top / f"cluster-{value}", millstream=True, conf=conf)
    try:
        found = session.call("session_calls:libraries_of_executors", path=str(data / "layouts" / "text" / "flat"))
        assert len(found) == libraries, found
    finally:
        session.close()


def test_the_library_is_unpacked_for_this_user_alone(ours):
    (library,) = ours.call("session_calls:mapped_libraries")
    assert Path(library).parent.stat().st_mode & 0o777 == 0o700


def test_the_temporary_folder_may_be_relative(top):
    session = Session(
        top / "relative-tmp", millstream=True, conf={"spark.driver.defaultJavaOptions": "-Djava.io.tmpdir=tmp"}
    )
    try:
        assert session.call("session_calls:file_system")["listsNatively"]
        (library,) = session.call("session_calls:mapped_libraries")
        assert Path(library).is_relative_to(session.home / "tmp")
    finally:
        session.close()


def test_executors_get_the_jar_from_the_driver(top, data):
    """Executors are separate processes, and the jar is not at the path in `spark.executor.extraClassPath`."""
    conf = {
        "spark.master": "local-cluster[1,1,1024]",
        "spark.executor.memory": "1g",
        "spark.executor.extraClassPath": "/nowhere/millstream.jar",
    }
    session = Session(top / "cluster", millstream=True, conf=conf)
    try:
        path = str(data / "layouts" / "text" / "nested")
        assert session.call("session_calls:read_text_lines", path=path) == session.call(
            "session_calls:stock_lines", path=path
        )
        assert session.call("session_calls:rdd_lines", path=str(data / "siblings" / "*" / "*"))
        formats = ["text", "csv", "json", "orc", "parquet"]
        assert session.call("session_calls:counted_each", formats=formats, directory=str(session.home / "counted")) == {
            kind: [[str(value), 1] for value in range(10)] for kind in formats
        }
    finally:
        session.close()
