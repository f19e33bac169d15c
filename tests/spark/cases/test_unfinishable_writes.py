"""Statements that could not be finished after their commit are refused before it: they change nothing, and block
nothing.
"""

import os
import socket
import subprocess
from itertools import count

import pytest
from sessions import Session
from test_random_statements import CONF

NUMBERS = count()
OTHER = 12345
TABLES = {
    "serde": "create external table {name} (a int) partitioned by (k string) stored as textfile location '{folder}'",
    "deep serde": "create external table {name} (a int) partitioned by (k string, l string, m string, n string) stored as textfile location '{folder}'",
    "source": "create table {name} (a int, k string) using parquet partitioned by (k) location '{folder}'",
    "flat serde": "create external table {name} (a int) stored as textfile location '{folder}'",
}
FIRST = {"flat serde": "select 0", "deep serde": "partition(k, l, m, n) select 0, 'k', 'l', 'm', 'n'"}
DYNAMIC = "insert overwrite {name} partition(k) select 7, k from values ('1'), ('3') v(k)"
STATIC = "insert overwrite {name} partition(k='1') select 7"
WHOLE = "insert overwrite {name} partition(k) select 7, '3'"


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    assert os.geteuid() == 0, "run as root: files are given to another user"
    # Like another user, this root may neither remove other users' files from a sticky directory nor write to their
    # directories.
    within = ("setpriv", "--bounding-set=-fowner,-chown", "--inh-caps=-fowner,-chown")
    session = Session(tmp_path_factory.mktemp("refused") / "home", millstream=True, conf=CONF, within=within)
    yield session
    session.close()


class Table:
    """A new table with the partitions 1 and 2."""

    def __init__(self, session, folder, kind, **conf):
        self.session, self.folder, self.name, self.kind = session, folder, f"t{next(NUMBERS)}", kind
        self.conf = {f"fs.millstream.write.{key}": value for key, value in conf.items()}
        self.works(TABLES[kind].format(name=self.name, folder=folder))
        self.works("insert into {name} " + FIRST.get(kind, "partition(k) select 0, k from values ('1'), ('2') v(k)"))

    def run(self, statement, **conf):
        (error,) = self.session.call(
            "lost_row_calls:run", statements=[statement.format(name=self.name)], conf={**self.conf, **conf}
        )
        return error

    def state(self):
        files = sorted(
            str(path.relative_to(self.folder))
            for path in self.folder.rglob("*")
            if path.is_file() and ".direct-writes" not in path.parts
        )
        return files, self.session.call("lost_row_calls:rows", table=self.name)

    def refused(self, statement, *texts, **conf):
        """The statement fails, changes nothing and leaves nothing to recover, and the next one works."""
        before = self.state()
        error = self.run(statement, **conf)
        assert error and "nothing is written" in error and all(text in error for text in texts), error
        assert self.state() == before
        assert self.session.call("lost_row_calls:recover", target=self.name) == []

    def works(self, statement):
        error = self.run(statement)
        assert error is None, error


def give(path, mode=None):
    """Gives a directory and its files to another user, except for a journal."""
    for each in [path, *path.rglob("*")]:
        if ".direct-writes" not in each.parts:
            os.chown(each, OTHER, OTHER)
    if mode is not None:
        path.chmod(mode)


STICKY = [
    ("serde", DYNAMIC, "in-place"),
    ("serde", STATIC, "in-place"),
    ("source", STATIC, "exchange"),
    ("source", DYNAMIC, "in-place"),
    ("source", WHOLE, "exchange"),
]


@pytest.mark.parametrize("kind, statement, visibility", STICKY)
def test_an_overwrite_of_other_users_files_in_a_sticky_directory(session, tmp_path, kind, statement, visibility):
    table = Table(session, tmp_path / "t", kind, visibility=visibility)
    give(table.folder / "k=1", 0o1777)
    conf = {"spark.sql.sources.partitionOverwriteMode": "static"} if statement == WHOLE else {}
    table.refused(statement, "k=1/part-", f"belongs to {OTHER}", "chmod -t", **conf)
    table.works("insert into {name} partition(k='1') select 1")
    table.works("insert overwrite {name} partition(k='2') select 2")
    assert [row[0] for row in table.state()[1]] == [0, 1, 2]
    (table.folder / "k=1").chmod(0o777)
    table.works(statement)


def test_an_overwrite_of_a_sticky_table_without_partitions(session, tmp_path):
    table = Table(session, tmp_path / "t", "flat serde")
    give(table.folder, 0o1777)
    table.refused("insert overwrite {name} select 7", "part-", "chmod -t")
    table.works("insert into {name} select 1")


def test_own_files_in_a_sticky_directory_are_replaced(session, tmp_path):
    table = Table(session, tmp_path / "t", "serde")
    os.chown(table.folder / "k=1", OTHER, OTHER)
    (table.folder / "k=1").chmod(0o1777)
    table.works(STATIC)
    give(table.folder / "k=2")
    os.chown(table.folder / "k=2", 0, 0)
    (table.folder / "k=2").chmod(0o1777)
    table.works("insert overwrite {name} partition(k='2') select 8")
    assert table.state()[1] == [[7, "1"], [8, "2"]]


def test_an_overwrite_of_files_in_a_directory_that_is_not_writable(session, tmp_path):
    table = Table(session, tmp_path / "t", "source")
    give(table.folder / "k=1", 0o755)
    table.refused(
        WHOLE, "k=1 belongs to", "Permission denied", **{"spark.sql.sources.partitionOverwriteMode": "static"}
    )
    table.works("insert into {name} partition(k='2') select 1")


def test_another_users_success_mark_in_an_emptied_directory_stays(session, tmp_path):
    table = Table(session, tmp_path / "t", "source")
    inner = table.folder / "k=1/inner"
    inner.mkdir()
    (inner / "_SUCCESS").touch()
    give(inner, 0o1777)
    table.works(STATIC)
    assert table.state()[1] == [[0, "2"], [7, "1"]]
    assert (inner / "_SUCCESS").exists()


def test_any_user_of_a_sticky_table_may_remove_journal_entries(session, tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    folder.chmod(0o1777)
    table = Table(session, folder, "serde")
    assert (folder / ".direct-writes").stat().st_mode & 0o7777 == 0o777
    table.works(DYNAMIC)


def test_an_overwrite_that_executors_carry_out(session, tmp_path):
    table = Table(session, tmp_path / "t", "serde", **{"distribute.files": 1})
    give(table.folder / "k=1", 0o1777)
    table.refused(STATIC, "k=1/part-", "chmod -t")
    (table.folder / "k=1").chmod(0o777)
    table.works(STATIC)


LONG = "insert into {name} partition(k, l, m, n) select 1, " + ", ".join(f"'{letter * 240}'" for letter in "klmn")
# Derby treats 'x' and 'x ' as equal, and stores no partition name longer than 767 characters.
NAMES = {
    "two new ones": (
        [],
        "insert overwrite {name} partition(k) select 1, k from values ('x'), ('x ') v(k)",
        "'x'",
        "'x '",
    ),
    "one is there": (
        ["insert into {name} partition(k='x') select 0"],
        "insert into {name} partition(k) select 1, 'x '",
        "'x'",
        "'x '",
    ),
    "one is there and written": (
        ["insert into {name} partition(k='x') select 0"],
        "insert into {name} partition(k) select 1, k from values ('x '), ('x') v(k)",
        "'x '",
    ),
    "too long": ([], LONG, "the metastore cannot add 'k=kkk"),
}


@pytest.mark.parametrize("visibility", ["in-place", "metastore-swap"])
@pytest.mark.parametrize("case", NAMES)
def test_partitions_that_the_metastore_confuses_or_cannot_store(session, tmp_path, case, visibility):
    before, statement, *texts = NAMES[case]
    table = Table(session, tmp_path / "t", "deep serde" if case == "too long" else "serde", visibility=visibility)
    for each in before:
        table.works(each)
    known = session.call("lost_row_calls:partition_names", table=table.name)
    table.refused(
        statement.replace("insert into", "insert overwrite") if visibility == "metastore-swap" else statement, *texts
    )
    assert session.call("lost_row_calls:partition_names", table=table.name) == known
    table.works(
        "insert into {name} partition(k) select 2, 'y'"
        if case != "too long"
        else "insert into {name} partition(k, l, m, n) select 2, 'y', 'l', 'm', 'n'"
    )


def test_partitions_whose_names_are_only_doubtful(session, tmp_path):
    table = Table(session, tmp_path / "t", "serde")
    values = ["x", "X", "é", "e\u0301", "日本", "x" * 240, "x" * 239 + "X"]
    table.works(
        "insert into {name} partition(k) select 1, k from values "
        + ", ".join(f"('{value}')" for value in values)
        + " v(k)"
    )
    assert table.state()[1] == sorted([[0, "1"], [0, "2"], *([1, value] for value in values)])


@pytest.mark.parametrize(
    "kind, visibility",
    [("serde", "in-place"), ("source", "in-place"), ("source", "exchange"), ("source", "metastore-swap")],
)
def test_an_overwrite_removes_links_and_special_files(session, tmp_path, kind, visibility):
    """In and below a partition; links are removed, but not their targets."""
    table = Table(session, tmp_path / "t", kind, visibility=visibility, **{"replaced.keep.ms": 0})
    other, partition = tmp_path / "other", table.folder / "k=1"
    other.mkdir()
    (other / "kept").write_text("1\n")
    inside = [partition] if kind == "serde" else [partition, partition / "inner"]
    for directory in inside:
        directory.mkdir(exist_ok=True)
        for name, target in {
            "dangling": "missing",
            "loop": "loop",
            "around": "around2",
            "around2": "around",
            "directory": other,
            "file": other / "kept",
        }.items():
            (directory / name).symlink_to(target)
        os.mkfifo(directory / "fifo")
        # A socket's path may have 107 bytes.
        opened = os.open(directory, os.O_PATH)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{opened}/socket")
        os.close(opened)
    table.works(STATIC)
    assert (
        not partition.exists()
        or [path.name for path in partition.iterdir() if not path.name.startswith((".", "_", "part-"))] == []
    )
    assert table.state()[1] == [[0, "2"], [7, "1"]]
    assert [path.name for path in other.iterdir()] == ["kept"]


def test_a_whole_overwrite_removes_links_that_lead_nowhere(session, tmp_path):
    table = Table(session, tmp_path / "t", "source")
    (table.folder / "k=8").symlink_to("k=8")
    (table.folder / "k=9").symlink_to(tmp_path / "missing")
    assert table.run(WHOLE, **{"spark.sql.sources.partitionOverwriteMode": "static"}) is None
    assert sorted(path.name for path in table.folder.iterdir() if path.name[0] not in "._") == ["k=3"]


@pytest.fixture
def small_disk(tmp_path):
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=300", "tmpfs", path], check=True)
    yield path
    subprocess.run(["umount", path], check=True)


@pytest.mark.parametrize("visibility", ["in-place", "metastore-swap"])
def test_a_disk_without_inodes(session, small_disk, visibility):
    """However many inodes are left, a statement is committed, or certainly not."""
    table = Table(session, small_disk / "t", "serde", visibility=visibility)
    outcomes = []
    for left in range(5, 24):
        fillers = [small_disk / f"filler{number}" for number in range(os.statvfs(small_disk).f_favail - left)]
        for filler in fillers:
            filler.touch()
        error = table.run(f"insert overwrite {{name}} partition(k) select {left}, '1'")
        for filler in fillers:
            filler.unlink()
        assert error is None or "not known whether" not in error, (left, error)
        outcomes.append(error is None)
        table.works(f"insert overwrite {{name}} partition(k) select {left}, '2'")
    assert outcomes[-1] and not outcomes[0]
