"""The permitted results of failed INSERTs: exactly the old rows or exactly the new ones, and a metastore that agrees.

The tables are those of fault_calls.make: one of each kind, with partitions 1 to 4 of old rows.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from metastore_bed import DerbyMetastore, PostgresMetastore  # noqa: F401
from sessions import Session
from step_trap import StepTrap  # noqa: F401

KINDS = ("text", "parquet", "datasource")
STATEMENTS = {
    "into": "insert into {table} partition(k) select id, 'new', cast(id % 4 + 3 as string) from range(0, 8, 1, 2)",
    "dynamic": "insert overwrite {table} partition(k) select id, 'new', cast(id % 4 + 3 as string) from range(0, 8, 1, 2)",
    "static": "insert overwrite {table} partition(k='3') select id, 'new' from range(0, 8, 1, 2)",
    "nothing": "insert overwrite {table} partition(k='3') select id, 'new' from range(0, 8, 1, 2) where id < 0",
}
# Drivers do little before they die, so optimisations for long jobs cost more than they save.
CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.millstream.write.enabled": "true",
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    # The metastore's client fails at once instead of after 20 s.
    "spark.hadoop.hive.hmshandler.retry.attempts": "1",
    "spark.hadoop.fs.millstream.write.lease.ms": "3000",
}


def rows(value, first):
    """The rows of the statements in four partitions from `first` on."""
    found = {}
    for a in range(8):
        found.setdefault(str(a % 4 + first), []).append([a, value])
    return found


OLD = rows("old", 1)


def after(statement, before=OLD):
    """The rows after a statement, given those before it."""
    new = (
        {"3": [[a, "new"] for a in range(8)]}
        if statement == "static"
        else {"3": []}
        if statement == "nothing"
        else rows("new", 3)
    )
    if statement == "into":
        new = {k: sorted(before.get(k, []) + some) for k, some in new.items()}
    return {k: some for k, some in {**before, **new}.items() if some}


def check(state, *allowed):
    """Checks that the rows are one of the allowed sets, and that the metastore has exactly their partitions with
    correct sizes. Returns which set.
    """
    assert "crash" not in state, state
    assert state["rows"] in allowed, (state["rows"], allowed)
    assert set(state["partitions"]) == set(OLD) | set(state["rows"]), state
    for k, partition in state["partitions"].items():
        assert partition["told"] == partition["files"], (k, state)
    return allowed.index(state["rows"])


def leftovers(location):
    """Hidden files of jobs, and unresolved jobs, below a directory."""
    names = [name for _, _, names in os.walk(location) for name in names]
    return [name for name in names if ".direct-" in name or name.endswith(".begin")]


def recovered(session, target, location, within_s=60):
    """Recovers until no job counts as alive; a dry run before reports the same and changes nothing."""
    deadline = time.monotonic() + within_s
    while True:
        before = tree(location)
        dry = session.call("write_calls:recover", target=target, dry_run=True)
        assert "crash" not in dry, dry
        if all(finding["verdict"] != "alive" for finding in dry):
            break
        assert time.monotonic() < deadline, dry
        time.sleep(0.3)
    assert tree(location) == before
    found = session.call("write_calls:recover", target=target)
    assert "crash" not in found, found
    assert [(finding["job"], finding["verdict"]) for finding in found] == [
        (finding["job"], finding["verdict"]) for finding in dry
    ]
    assert leftovers(location) == []
    return [finding["verdict"] for finding in found]


def settle(session, target, within_s=300):
    """Recovers until no job counts as alive."""
    deadline = time.monotonic() + within_s
    while any(finding["verdict"] == "alive" for finding in session.call("write_calls:recover", target=target)):
        assert time.monotonic() < deadline
        time.sleep(0.5)


def tree(location):
    return sorted((directory, name) for directory, folders, names in os.walk(location) for name in folders + names)


def driver(home: Path, metastore, trap=None, within=(), **conf) -> Session:
    """A session with direct writes on a metastore of testbed/metastore."""
    jar = {"spark.driver.extraClassPath": str(metastore.driver_jar())} if hasattr(metastore, "driver_jar") else {}
    java = {"spark.driver.defaultJavaOptions": f"-Djava.io.tmpdir={home / 'tmp'}"}
    settings = {**CONF, **java, **metastore.spark_conf(), **jar, **conf}
    return Session(home, millstream=True, conf=settings, environment=trap.settings() if trap else None, within=within)


def end(session, within_s=0):
    """Cleans up a session whose driver is dead, or must end by itself within that time."""
    try:
        session.answer()
        session.process.stdin.close()
        session.process.wait(within_s)
    except (RuntimeError, subprocess.TimeoutExpired):
        pass
    session.process.kill()
    session.process.wait()


def recover_command(*arguments, conf=None):
    """Runs `millstream recover` in the environment of these tests."""
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", **(conf or {})}
    folder = Path(sys.executable).parent
    command = [
        folder / "millstream",
        "recover",
        "--master=local[2]",
        *(f"--conf={key}={value}" for key, value in settings.items()),
        *arguments,
    ]
    environment = {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "SPARK_HOME": "",
        "PYSPARK_PYTHON": sys.executable,
    }
    return subprocess.run(command, env=environment, capture_output=True, text=True)
