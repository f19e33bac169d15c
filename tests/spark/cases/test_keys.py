"""Misspelt keys are refused, others that are unknown are warned about, and an unset switch has the value with which the
application was started.
"""

import re
from pathlib import Path

import pytest
from sessions import Session
from test_direct_writes import HIVE

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("keys") / "home", millstream=True, conf=HIVE)
    yield session
    session.close()


def test_the_documented_keys_are_those_that_are_read(session):
    documented = {
        key
        for page in DOCS.glob("*.md")
        for key in re.findall(r"\b(?:spark|fs)\.millstream\.[\w.]*\w", page.read_text())
    }
    assert set(session.call("key_calls:known")) == documented - {"spark.millstream.writes.enabled"}


@pytest.mark.parametrize(
    "key, meant",
    [
        ("spark.millstream.writes.enabled", "spark.millstream.write.enabled"),
        ("fs.millstream.write.visibilty", "fs.millstream.write.visibility"),
        ("spark.hadoop.fs.millstream.write.lease", "spark.hadoop.fs.millstream.write.lease.ms"),
        ("spark.millstream.list.enable", "spark.millstream.list.enabled"),
        ("spark.millstream.write", "spark.millstream.write.enabled"),
        ("spark.millstream.raed.enabled", "spark.millstream.read.enabled"),
    ],
)
def test_a_misspelt_key_is_refused_with_a_suggestion(session, key, meant):
    by_session, after, set_it, by_statement, reset, after_reset = session.call(
        "key_calls:with_key", key=key, value="true"
    )
    assert f"{key} is not a key of Millstream; did you mean {meant}?" in by_session
    assert f"did you mean {meant}?" in by_statement
    assert [after, set_it, reset, after_reset] == [None] * 4


@pytest.mark.parametrize(
    "key", ["spark.millstream.cache.enabled", "fs.millstream.cache.mounts", "spark.hadoop.fs.millstream.cache.memory"]
)
def test_a_key_of_a_newer_version_is_warned_about_once(session, key):
    assert session.call("key_calls:with_key", key=key, value="true") == [None] * 6
    assert (
        session.log.read_text().count(
            f"{key} is not a key of this version of Millstream and has no effect; a newer version may have it"
        )
        == 1
    )


def test_a_hadoop_key_with_sparks_prefix_is_warned_about_in_a_running_session(session):
    key = "spark.hadoop.fs.millstream.write.threads"
    assert session.call("key_calls:with_key", key=key, value="8") == [None] * 6
    warning = f"{key} has no effect in a running session: set fs.millstream.write.threads, without spark.hadoop."
    assert session.log.read_text().count(warning) == 1
    assert session.log.read_text().count("has no effect in a running session") == 1


def test_no_new_key_is_taken_for_a_misspelling_of_an_old_one(session):
    """By a version that knows only the old one. A pair that was new in the same version does no harm; it is listed
    here.
    """
    same_version = {("spark.millstream.rdd.enabled", "spark.millstream.read.enabled")}
    assert {tuple(pair) for pair in session.call("key_calls:near_pairs")} == same_version


def test_a_misspelt_option_of_a_write_is_refused(session, tmp_path):
    assert "did you mean fs.millstream.write.visibility?" in session.call(
        "key_calls:written_with", key="fs.millstream.write.visibilty", path=str(tmp_path / "d")
    )
    assert not (tmp_path / "d").exists()


def test_a_misspelt_key_that_the_application_starts_with_is_refused(tmp_path):
    session = Session(tmp_path / "home", millstream=True, conf={"spark.millstream.write.enable": "true"})
    try:
        answer = session.call("session_calls:read_text_lines", path=str(tmp_path))
        assert "did you mean spark.millstream.write.enabled?" in answer["crash"]
    finally:
        session.close()


def test_an_unset_switch_has_the_value_of_the_application(session):
    assert session.call("key_calls:plan_after_unset", key="spark.millstream.write.enabled") == [False, True]


@pytest.mark.parametrize("visibility", ["exchange-strict", "metastore-swap-strict"])
def test_an_unavailable_strict_visibility_is_an_error(session, visibility):
    create = [
        "create table t (a int) stored as textfile",
        "insert into t select 1",
        f"set fs.millstream.write.visibility={visibility}",
    ]
    answer = session.call(
        "write_calls:run",
        home=str(session.home / "home"),
        statements=[
            *create,
            "insert overwrite t select 2",
            "insert into t select 3",
            "reset fs.millstream.write.visibility",
        ],
    )
    assert f"cannot be overwritten with fs.millstream.write.visibility={visibility}" in answer["errors"][3]
    assert answer["errors"][4] is None and answer["tables"]["t"]["rows"] == ["Row(a=1)", "Row(a=3)"]


def test_the_tasks_of_a_large_cluster_share_the_readers_of_remote_files(tmp_path):
    session = Session(tmp_path / "home", millstream=True, conf={"spark.master": "local[1000]"})
    try:
        shares = session.call("key_calls:readers", key="spark.millstream.read.maxReaders", value="16")
    finally:
        session.close()
    assert shares == [[32, 20, 4], [32, 32, 32], [16, 16, 16]]
