"""Random sequences of statements: after each statement, tables and directories are the same as with stock Spark.

Runs a few sequences on local files, different ones each time; MILLSTREAM_SEQUENCES is their number for each visibility,
and MILLSTREAM_SEED the seed of the first. With `metastore-swap` files are elsewhere than in stock, so that only rows and
partitions of tables are compared. If the sessions differ, the test prints both answers, the statements, a minimal
sequence that still differs, and the variables that repeat the sequence alone.
"""

import os
import random
import re
import select
import time
from itertools import count

import pytest
import random_statements
from sessions import Session
from test_direct_writes import HIVE, differences

CONF = {
    **HIVE,
    # Statements are small, so optimisations for long jobs cost more than they save.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The metastores need no durability.
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
    # No wait is longer than the time limit of a statement.
    "spark.hadoop.hive.hmshandler.retry.attempts": "1",
    "spark.hadoop.fs.millstream.write.lock.wait.ms": "30000",
    "spark.hadoop.fs.millstream.write.lease.ms": "10000",
}
VISIBILITIES = ("in-place", "exchange", random_statements.SWAP)
START_WITHIN_S = 300
ANSWER_WITHIN_S = 120
SHRINK_WITHIN_S = 120


def seeds(number):
    """Seeds of the sequences to run: consecutive ones."""
    first = int(os.environ.get("MILLSTREAM_SEED") or random.randrange(2**32))
    return [first + place for place in range(int(os.environ.get("MILLSTREAM_SEQUENCES") or number))]


def repeated_by(seed):
    """The variables with which a test runs this sequence alone."""
    return f"MILLSTREAM_SEED={seed} MILLSTREAM_SEQUENCES=1"


class Hung(Exception):
    """A session did not answer."""


class Pair:
    """A stock session and one with direct writes, recreated when one has ended or hangs."""

    def __init__(self, top, conf):
        self.top, self.conf = top, conf
        self.homes, self.runs = count(), count()
        self.start()

    def start(self):
        home = self.top / f"sessions-{next(self.homes)}"
        self.sessions = {
            name: Session(home / name, millstream=name == "ours", conf=self.conf_of(name)) for name in ("stock", "ours")
        }

    def conf_of(self, name):
        return self.conf

    def call(self, function, arguments, within_s=ANSWER_WITHIN_S):
        """Calls a function in both sessions; returns their answers by name."""
        for name, session in self.sessions.items():
            session.ask(f"random_statements:{function}", **arguments[name])
        deadline = time.monotonic() + within_s
        return {name: self.answer(name, session, within_s, deadline) for name, session in self.sessions.items()}

    def answer(self, name, session, within_s, deadline):
        ready, _, _ = select.select([session.process.stdout], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise Hung(f"{name}: no answer within {within_s} s")
        return session.answer()

    def restart(self):
        self.kill()
        self.start()

    def kill(self):
        for session in self.sessions.values():
            session.process.kill()
            session.process.wait()

    def close(self):
        for session in self.sessions.values():
            session.close()


def local_home(name, session, run):
    return str(session.home / "home" / run)


def home_below(root):
    # Names of equal length, because messages are truncated.
    return lambda name, session, run: f"{root}/{name:_<5}/{run}"


def difference(pair, home_of, sequence, statements):
    """Runs statements in both sessions until they differ; returns the number of statements run and the difference, or
    None.
    """
    run = f"run{next(pair.runs)}"
    common = {name: {"home": home_of(name, session, run), "database": run} for name, session in pair.sessions.items()}
    files = {name: {**common[name], "files": str(session.home / "files")} for name, session in pair.sessions.items()}
    number, are_counted = 0, True
    try:
        begun = pair.call(
            "begin", {name: {**files[name], "settings": sequence.settings} for name in files}, START_WITHIN_S
        )
        assert begun == {"stock": None, "ours": None}, begun
        for number, statement in enumerate(statements, 1):
            are_counted = are_counted and statement["counted"]
            answers = pair.call(
                "run", {name: {**files[name], "statement": statement, "paths": sequence.paths} for name in files}
            )
            found = told_apart(answers, are_counted, sequence.visibility)
            is_on_s3 = any(of["home"].startswith("s3a:") for of in common.values())
            if found and is_on_s3 and (is_documented(statement, answers) or is_of_the_server(statement, answers)):
                break
            if found:
                pair.call("end", common)
                return number, found
        pair.call("end", common)
    except (Hung, RuntimeError, OSError) as error:
        pair.restart()
        return number, [str(error)]


def told_apart(answers, are_counted, visibility):
    ours, stock = answers["ours"], answers["stock"]
    if "crash" in ours or "crash" in stock:
        return [f"{name}: {answer['crash']}" for name, answer in answers.items() if "crash" in answer]
    if visibility == random_statements.SWAP:
        ours, stock = logical(ours), logical(stock)
    if not are_counted:
        # The distribution of a table's files among tasks depends on their names, which are random.
        ours, stock = ({**answer, "files": sorted(answer["files"])} for answer in (ours, stock))
    return differences(ours, stock)


def logical(answer):
    """An answer without what a swap changes: where the files of tables are."""
    tables = {name: {key: table[key] for key in ("rows", "partitions")} for name, table in answer["tables"].items()}
    files = {directory: number for directory, number in answer["files"].items() if re.match(r"p\d", directory)}
    return {**answer, "tables": tables, "files": files}


def is_documented(statement, answers):
    """An overwrite keeps the markers of directories that were empty before, which stock removes; MSCK REPAIR adds
    partitions for them.
    """
    if "msck repair" not in statement["text"] or any("crash" in answer for answer in answers.values()):
        return False
    ours, stock = ({**answer, "tables": dict(answer["tables"])} for answer in (answers["ours"], answers["stock"]))
    for name, known in stock["tables"].items():
        table = ours["tables"].get(name)
        if table and known["partitions"] is not None:
            empty = [
                place
                for place in table["locations"]
                if place not in known["locations"] and place[1].strip("/") not in ours["files"]
            ]
            left = [place for place in table["locations"] if place not in empty]
            if len(table["partitions"]) - len(known["partitions"]) == len(empty) and set(known["partitions"]) <= set(
                table["partitions"]
            ):
                ours["tables"][name] = {**table, "partitions": known["partitions"], "locations": left}
    return ours == stock


def is_of_the_server(statement, answers):
    """The tests' S3 server cannot copy the marker of an empty directory; where the journal has an entry in it, S3A
    copies no marker.
    """
    errors = [str(answer.get("error")) for answer in answers.values()]
    return " rename to " in statement["text"] and any(
        "failed to move data due to: 'copyFile(" in error for error in errors
    )


def shortest(pair, home_of, sequence, statements):
    """Removes every statement that is not needed for the last one to make a difference."""
    deadline = time.monotonic() + SHRINK_WITHIN_S
    at = len(statements) - 2
    while at >= 0 and time.monotonic() < deadline:
        fewer = statements[:at] + statements[at + 1 :]
        found = difference(pair, home_of, sequence, fewer)
        if found and found[0] == len(fewer):
            statements = fewer
        at -= 1
    return statements


def check(pair, home_of, seed, visibility):
    sequence = random_statements.sequence(seed, visibility)
    found = difference(pair, home_of, sequence, sequence.statements)
    if not found:
        return
    number, how = found
    so_far = sequence.statements[:number]
    least = shortest(pair, home_of, sequence, so_far)
    answers = "\n".join(how)
    pytest.fail(
        f"{repeated_by(seed)} ({visibility}): not as stock Spark after statement {number}\n\n{answers}\n\n"
        f"The sequence so far:\n{sequence.script(so_far)}\n\nThe fewest that differ:\n{sequence.script(least)}",
        pytrace=False,
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    pair = Pair(tmp_path_factory.mktemp("statements"), CONF)
    yield pair
    pair.close()


@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("statements_seed", seeds(1))
def test_random_statements(pair, statements_seed, visibility, capsys):
    with capsys.disabled():
        print(f" {repeated_by(statements_seed)} ({visibility}) ", end="", flush=True)
    check(pair, local_home, statements_seed, visibility)
