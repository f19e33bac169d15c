"""Random sequences of statements whose drivers are killed within their commits, on local files, S3 and HDFS: as soon as
another statement or a recovery has finished what was committed, tables and directories are as if stock Spark had run
the committed statements.

A killed INSERT counts as run if its journal has the commit record. Drivers that stay alive and drivers to be killed
share a metastore on PostgreSQL; stock Spark has another one. MILLSTREAM_SEQUENCES is the number of sequences for
each store and visibility, MILLSTREAM_SEED the seed of the first. Run with `make test-group GROUP=kills`.
"""

import os
import select
import signal
from collections import Counter
from contextlib import ExitStack
from itertools import count

import pytest
import random_statements
from faults import PostgresMetastore, StepTrap
from sessions import Session
from slow_kills_at_commit import S3, Hdfs, HdfsBed, Local, S3Bed
from slow_random_statements import CASES, S3A
from test_random_statements import (
    CONF,
    START_WITHIN_S,
    Pair,
    home_below,
    is_of_the_server,
    logical,
    repeated_by,
    seeds,
    told_apart,
)

# The metastore is shared, and a sequence that fails leaves its database.
RUNS = count()
LEASE = {
    "spark.hadoop.fs.millstream.write.lease.ms": "1500",
    "spark.hadoop.fs.millstream.write.help.after.ms": "500",
    # Steps run one after the other, so that they can be distinguished.
    "spark.hadoop.fs.millstream.write.threads": "1",
}


class Victim:
    """An INSERT for slow_kills_at_commit.py's stores."""

    def __init__(self, statement, home, database, settings):
        kill = statement["kill"]
        self.location = kill["location"].replace("{home}", home)
        self.part, self.is_after, self.files, self.deletes = (
            kill["part"],
            kill["is_after"],
            kill["files"],
            kill["deletes"],
        )
        self._statements = [
            f"use {database}",
            *(f"set {key}={value}" for key, value in settings.items()),
            statement["text"].replace("{home}", home),
        ]

    def statements(self):
        return self._statements


class KillingPair(Pair):
    """A stock session, a session with direct writes, and drivers to kill. A spare driver starts while the others work."""

    def __init__(self, top, conf, metastore, place, kills):
        self.metastore, self.place, self.kills = metastore, place, kills
        super().__init__(top, conf)
        self.spare = self.victim()

    def conf_of(self, name):
        if name == "stock":
            return self.conf
        path = ":".join(filter(None, [str(self.metastore.driver_jar()), self.conf.get("spark.driver.extraClassPath")]))
        return {**self.conf, **LEASE, **self.metastore.spark_conf(), "spark.driver.extraClassPath": path}

    def victim(self):
        environment = self.place.environment.settings() if self.place.environment else None
        return Session(
            self.top / f"victim-{next(self.homes)}", millstream=True, conf=self.conf_of("ours"), environment=environment
        )

    def run_and_kill(self, victim):
        """Runs a statement until its driver dies within the commit; returns whether it is committed, and its error if
        it ended before.
        """
        session, self.spare = self.spare, self.victim()
        ours = self.sessions["ours"]
        pid = session.call("write_calls:driver")
        before = set(ours.call("lost_row_calls:journal", root=victim.location))
        self.place.run_to(session, victim)
        has_ended = bool(select.select([session.process.stdout], [], [], 0)[0])
        error = session.answer()[-1] if has_ended else None
        self.kills[type(self.place).__name__] += not has_ended
        os.kill(pid, signal.SIGKILL)
        session.process.kill()
        session.process.wait()
        self.place.release()
        added = set(ours.call("lost_row_calls:journal", root=victim.location)) - before
        is_committed = any(name.endswith(".commit") or name.startswith("done-") for name in added)
        return is_committed or (has_ended and error is None), error

    def close(self):
        self.spare.process.kill()
        self.spare.process.wait()
        super().close()


@pytest.fixture(scope="module")
def metastore():
    with PostgresMetastore() as metastore:
        yield metastore


@pytest.fixture(scope="module")
def kills():
    """The number of drivers killed within their commits, by store. A sequence may end before it has such a statement;
    all of them do not.
    """
    found = Counter()
    yield found
    print(f"drivers killed within their commits: {dict(found)}")
    assert found.total()


@pytest.fixture(scope="module")
def place(request, metastore, kills, tmp_path_factory):
    top = tmp_path_factory.mktemp(request.param)
    with ExitStack() as servers:
        conf = CONF
        if request.param == "local":
            place = Local(top, servers.enter_context(StepTrap()))
        elif request.param == "s3":
            place = S3(servers.enter_context(S3Bed()))
            conf = {**conf, **place.bed.spark_conf(), **S3A}
        else:
            place = Hdfs(servers.enter_context(HdfsBed()))
        pair = KillingPair(top, conf, metastore, place, kills)
        yield pair
        pair.close()


def expect(answers, are_counted, sequence, done, statement):
    found = told_apart(answers, are_counted, sequence.visibility)
    assert not found, (
        f"{repeated_by(sequence.seed)} ({sequence.visibility}): not as stock Spark after {statement['text']}\n\n"
        + "\n".join(found)
        + f"\n\nThe sequence so far:\n{sequence.script(done)}"
    )


def check_readers(answers, before, sequence, statement):
    """With `metastore-swap`, readers see all of a statement or nothing, also before its commit is finished."""
    seen = logical(answers["ours"])["tables"]
    assert seen in (logical(before)["tables"], logical(answers["stock"])["tables"]), (
        sequence.seed,
        statement["text"],
        seen,
    )


def follow(pair, sequence):
    """Runs a sequence in both sessions, and what was committed of the statements whose driver is killed in stock's."""
    run = f"run{next(RUNS)}"
    home_of = home_below(pair.place.root)
    common = {name: {"home": home_of(name, session, run), "database": run} for name, session in pair.sessions.items()}
    files = {name: {**common[name], "files": str(session.home / "files")} for name, session in pair.sessions.items()}
    begun = pair.call("begin", {name: {**files[name], "settings": sequence.settings} for name in files}, START_WITHIN_S)
    assert begun == {"stock": None, "ours": None}, begun
    settings, before, is_torn, are_counted = dict(sequence.settings), None, False, True
    for number, statement in enumerate(sequence.statements, 1):
        done = sequence.statements[:number]
        are_counted = are_counted and statement["counted"]
        if statement["text"].startswith("set "):
            key, _, value = statement["text"].removeprefix("set ").partition("=")
            settings[key] = value
        statements = {name: statement for name in files}
        if "kill" in statement:
            victim = Victim(statement, common["ours"]["home"], run, settings)
            is_committed, error = pair.run_and_kill(victim)
            print(f"    {statement['text']}: {'committed' if is_committed else error or 'not committed'}", flush=True)
            nothing = {"language": "python", "text": "None", "counted": True}
            statements = {"ours": nothing, "stock": statement if is_committed or error else nothing}
            pair.call("forget_listings", {name: {} for name in files})
            is_torn = True
        answers = pair.call(
            "run", {name: {**files[name], "statement": statements[name], "paths": sequence.paths} for name in files}
        )
        if "kill" in statement:
            # If it fails, the other driver has reported the error.
            answers["stock"]["error"] = None
            if sequence.visibility == random_statements.SWAP and before:
                check_readers(answers, before, sequence, statement)
        elif statement.get("compared", True):
            is_torn = False
        if is_of_the_server(statement, answers):
            break
        if not is_torn:
            expect(answers, are_counted, sequence, done, statement)
        before = answers["stock"]
    pair.call("end", common)


@pytest.mark.parametrize("place, visibility", CASES, indirect=["place"])
@pytest.mark.parametrize("statements_seed", seeds(2))
def test_sequences_with_killed_drivers(place, visibility, statements_seed, capsys):
    with capsys.disabled():
        print(f" {repeated_by(statements_seed)} ({visibility}) ", end="", flush=True)
    follow(place, random_statements.sequence(statements_seed, visibility, kills=True))
