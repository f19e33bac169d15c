"""A driver killed during its commits, and `millstream recover` from the shell. Longer tests: slow_direct_writes.py,
slow_write_faults.py.
"""

import json
import signal

from faults import (
    KINDS,
    OLD,
    STATEMENTS,
    DerbyMetastore,
    StepTrap,
    after,
    check,
    driver,
    end,
    recover_command,
    recovered,
)


def test_a_driver_killed_while_it_commits(tmp_path):
    with DerbyMetastore(tmp_path) as metastore, StepTrap() as trap:
        location = f"{tmp_path}/tables here"
        killed = driver(tmp_path / "killed", metastore, trap)
        killed.call("fault_calls:make", database="d", location=location)
        trap.set(f"rename {location}/text/k=*", at=3, number=signal.SIGKILL)
        killed.ask("fault_calls:insert", statements=[STATEMENTS["dynamic"].format(table=f"d.{kind}") for kind in KINDS])
        end(killed)
        assert trap.pid, "it was not killed"

        done = recover_command("--json", "d.text", conf=metastore.spark_conf())
        assert done.returncode == 0, done.stderr[-3000:]
        assert [finding["verdict"] for finding in json.loads(done.stdout)] == ["roll-forward"]

        looking = driver(tmp_path / "looking", metastore)
        try:
            for kind, allowed in (
                ("text", [after("dynamic")]),
                ("parquet", [OLD, after("dynamic")]),
                ("datasource", [OLD, after("dynamic")]),
            ):
                found = recovered(looking, f"d.{kind}", f"{location}/{kind}")
                assert kind != "text" or found == []
                check(looking.call("fault_calls:state", table=f"d.{kind}"), *allowed)
        finally:
            looking.close()
