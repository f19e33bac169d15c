"""`millstream recover` in the shell: its output, effects and exit status. Run with `make test-group GROUP=faults`."""

import json
import os
from pathlib import Path

import pytest
from faults import DerbyMetastore, driver, leftovers, recover_command

DEAD = "00000000-0000-4000-8000-0000000000de"


def output_of(*arguments, conf=None, status=0):
    """Its standard output, or its error output."""
    done = recover_command(*arguments, conf=conf)
    assert done.returncode == status, (done.stdout, done.stderr[-3000:])
    return done.stdout if status == 0 else done.stderr


def test_of_a_path(ours, tmp_path):
    table = str(tmp_path / "a table, é")
    ours.call("write_calls:fill", path=table, value="old", partitions=2, mode="append")
    assert output_of(table) == f"{table}: no interrupted writes\n"
    assert ours.call("write_calls:abandon", path=table, job=DEAD) is None
    for attempt in range(1, 25):
        Path(table, "k=1", f".direct-{DEAD}-{attempt}.part-{DEAD}.csv").touch()

    said = output_of("--dry-run", table).splitlines()
    assert (
        len(said) == 22
        and said[0].startswith(f"job {DEAD} of ")
        and said[0].endswith("was not committed; would be removed")
    )
    assert said[21] == "  and 5 more, which --json lists"
    assert leftovers(table) != []

    (finding,) = json.loads(output_of("--json", table))
    assert (finding["job"], finding["verdict"]) == (DEAD, "roll-back")
    assert sorted(finding["steps"]) == sorted(
        f"remove k=1/.direct-{DEAD}-{attempt}.part-{DEAD}.csv" for attempt in range(25)
    )
    assert {step.strip() for step in said[1:21]} < set(finding["steps"])
    assert leftovers(table) == []
    assert output_of(table) == f"{table}: no interrupted writes\n"
    assert ours.call("write_calls:values", path=table) == [["old", 2]]


def test_of_a_driver_that_may_still_run(ours, tmp_path):
    table = str(tmp_path / "table")
    ours.call("write_calls:fill", path=table, value="old", partitions=2, mode="append")
    ours.call("write_calls:abandon", path=table, job=DEAD)
    # It was killed just now: its lease was renewed then, and it has not said that it gives up.
    Path(table, ".direct-writes", f"_{DEAD}.abandoned").unlink(missing_ok=True)
    for entry in Path(table, ".direct-writes").glob(f"_{DEAD}.*"):
        os.utime(entry)
    done = recover_command(table)
    assert done.returncode == 3, (done.stdout, done.stderr[-3000:])
    assert "counts as running; left alone: run this again" in done.stdout
    assert leftovers(table) != []


def test_of_nothing(tmp_path):
    nowhere = str(tmp_path / "no such")
    assert f"millstream: {nowhere}: there is no such directory\n" in output_of(nowhere, status=1)
    assert not os.path.exists(nowhere)
    file = tmp_path / "file"
    file.touch()
    assert f"millstream: {file}: this is a file, " in output_of(str(file), status=1)
    assert "millstream: : the name of a table or a path is required\n" in output_of("", status=1)
    with DerbyMetastore(tmp_path) as metastore:
        said = output_of(
            "default.nowhere", conf={**metastore.spark_conf(), "spark.sql.warehouse.dir": str(tmp_path)}, status=1
        )
    assert "millstream: default.nowhere: " in said and "cannot be found" in said and "\tat " not in said


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--in-place", "a"]])
def test_wrong_arguments(arguments):
    assert "Try 'millstream --help'" in output_of(*arguments, status=1)


def test_of_a_table_by_its_full_name_and_of_what_has_no_files(tmp_path):
    with DerbyMetastore(tmp_path) as metastore:
        conf = {**metastore.spark_conf(), "spark.sql.warehouse.dir": str(tmp_path)}
        session = driver(tmp_path / "driver", metastore)
        try:
            made = [
                "create table t (a int) stored as textfile",
                "insert into t values (1)",
                "create view v as select a from t",
            ]
            assert session.call("lost_row_calls:run", statements=made) == [None] * len(made)
        finally:
            session.close()
        assert output_of("spark_catalog.default.t", conf=conf) == "spark_catalog.default.t: no interrupted writes\n"
        assert "millstream: default.v: this is a view, which has no files" in output_of(
            "default.v", conf=conf, status=1
        )
        assert "millstream: far.default.t: not a table of spark_catalog" in output_of(
            "far.default.t", conf=conf, status=1
        )


def test_of_a_path_without_its_file_system():
    said = output_of("s3a://bucket/table", status=1)
    assert (
        "millstream: s3a://bucket/table: Hadoop's file system for s3a: is not on the class path" in said
        and "\tat " not in said.split("millstream: ")[1]
    ), said


def test_of_leftovers_of_a_job_that_is_over(ours, tmp_path):
    table = str(tmp_path / "table")
    ours.call("write_calls:fill", path=table, value="old", partitions=2, mode="append")
    Path(table, "k=1", f".direct-{DEAD}-7.part-{DEAD}.csv").touch()
    assert (
        f"job {DEAD} of unknown has ended; leftover files of its attempts, which were never part of it, are removed"
        in output_of(table)
    )
    assert leftovers(table) == []
