"""What was once lost, or missing without an error (issue 13, rows F1 to F7), on local tables. On S3: slow_lost_rows_servers.py.

Drivers run one after the other on one metastore, as Derby has it. One that a test kills, at a step of its commit, leaves everything to the next.
"""

import os
import shutil
import signal
from itertools import count
from pathlib import Path

import pytest
from faults import DerbyMetastore, StepTrap, driver, end

PATIENCE_S = 120
# Nobody's lease runs out while a test runs; what is committed is finished by others soon.
CONF = {
    "spark.hadoop.fs.millstream.write.lease.ms": "120000",
    "spark.hadoop.fs.millstream.write.help.after.ms": "200",
    # The steps of a commit come one after the other.
    "spark.hadoop.fs.millstream.write.threads": "1",
    "spark.sql.hive.convertMetastoreParquet": "false",
}
SWAP = {"fs.millstream.write.visibility": "metastore-swap"}
KILLS = 3
NUMBERS = count()
RECORD, PUBLISH, DELETE, DONE = "link {}/*.commit", "rename {}/p=*", "unlink {}/p=1/[!.]*", "link {}/*done-*"


class Drivers:
    """The driver at work, and the next one, which starts meanwhile and leaves the metastore alone until then."""

    def __init__(self, top, metastore, trap):
        self._top, self._metastore, self._trap = top, metastore, trap
        self._started = count()
        self.current = self._start()
        self._next = self._start()

    def _start(self):
        return driver(self._top / f"driver{next(self._started)}", self._metastore, self._trap, **CONF)

    def call(self, call, **arguments):
        answer = self.current.call(f"lost_row_calls:{call}", **arguments)
        assert not isinstance(answer, dict) or "crash" not in answer, answer["crash"]
        return answer

    def run(self, *statements, **conf):
        assert self.call("run", statements=statements, conf=conf) == [None] * len(statements)

    def run_stock(self, *statements):
        assert self.call("run_stock", statements=statements) == [None] * len(statements)

    def rows(self, table):
        return self.call("rows", table=table)

    def kill_at(self, pattern, at, statement, **conf):
        """Runs a statement until its driver is killed before a step; the next one is at work then."""
        self._trap.set(pattern, at=at, number=signal.SIGKILL)
        self.current.ask("lost_row_calls:run", statements=[statement], conf=conf)
        assert self._trap.wait(PATIENCE_S), (pattern, self.current.answer())
        end(self.current)
        self._trap.set("")
        self.current, self._next = self._next, self._start() if next(self._started) <= KILLS else None

    def stop_at(self, pattern, at, statement, meanwhile):
        """Runs a statement, and something else while its driver is stopped before a step; the statement's error."""
        self._trap.set(pattern, at=at)
        self.current.ask("lost_row_calls:run", statements=[statement])
        assert self._trap.wait(PATIENCE_S), (pattern, self.current.answer())
        pid = self._trap.pid
        self._trap.set("")
        try:
            meanwhile()
        finally:
            os.kill(pid, signal.SIGCONT)
        (error,) = self.current.answer()
        return error

    def close(self):
        for session in (self.current, self._next):
            if session:
                session.close()


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    top = tmp_path_factory.mktemp("lost rows")
    with DerbyMetastore(top) as metastore, StepTrap() as trap:
        found = Drivers(top, metastore, trap)
        yield found
        found.close()
