"""Access control lists on HDFS: files and directories published by a direct write have the same as those of stock
Spark.

Run with `make test-group GROUP=writes-servers`.
"""

from itertools import count

import pytest
from hdfs_bed import HdfsBed
from sessions import Session
from test_direct_writes import creation
from test_random_statements import CONF

NUMBERS = count()
# A success mark belongs to its first writer.
WITHOUT_MARKS = {**CONF, "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
# The access to the directory of the table, and the default below it.
LISTS = {
    "wider below": "user::rwx,group::r-x,other::---,default:user::rwx,default:user:reader:rwx,default:group::r-x,default:mask::rwx,default:other::---",
    "narrower below": "user::rwx,user:reader:rwx,group::rwx,mask::rwx,other::r-x,default:user::rwx,default:user:reader:r-x,default:group::r-x,default:mask::r-x,default:other::---",
    "not below": "user::rwx,user:reader:rwx,group::r-x,mask::rwx,other::---",
}
OF_A_PARTITION = "user::rwx,user:auditor:r-x,group::r-x,mask::r-x,other::---,default:user::rwx,default:user:auditor:r-x,default:group::r-x,default:mask::r-x,default:other::---"
STATEMENTS = {
    "dynamic": "insert {how} t partition(k) select /*+ repartition(2) */ id, 'x', cast(id % 3 as string) from range(9)",
    "static": "insert {how} t partition(k='1') select /*+ repartition(2) */ id, 'x' from range(9)",
}


@pytest.fixture(scope="module")
def bed():
    with HdfsBed() as bed:
        yield bed


@pytest.fixture(scope="module")
def sessions(bed, tmp_path_factory):
    top = tmp_path_factory.mktemp("access")
    pair = {name: Session(top / name, millstream=name == "ours", conf=WITHOUT_MARKS) for name in ("stock", "ours")}
    yield pair
    for session in pair.values():
        session.close()


def access(sessions, bed, steps, database):
    """The access to the partitions of a table in both sessions, and to their files."""
    first = [f"create database {database} location '{{home}}/warehouse'", f"use {database}"]
    for name, session in sessions.items():
        session.ask(
            "server_calls:run_with_access",
            steps=[*first, *steps],
            home=f"{bed.direct_url}/{name}/{database}",
            table="t",
        )
    return {name: session.answer() for name, session in sessions.items()}


def of_directories(found):
    return {name: shown for name, shown in found.items() if not name.endswith("/file")}


def check(found, kind, acl):
    """Compares the access with stock's. With Hive's serdes, stock gives files the permissions of their directory, and
    new directories those of the directory above, even where a default list allows less.
    """
    ours, stock = found["ours"], found["stock"]
    assert set(ours) == set(stock) and all(ours.values()), found
    if kind != "text":
        assert ours == stock
        return
    ours, stock = of_directories(ours), of_directories(stock)
    if acl == "narrower below":
        assert all(shown.startswith("rwxr-x--- ") for shown in ours.values())
        ours, stock = ({name: shown.partition(" ")[2] for name, shown in of.items()} for of in (ours, stock))
    assert ours == stock


@pytest.mark.parametrize("how, visibility", [("into", "in-place"), ("overwrite", "metastore-swap")])
@pytest.mark.parametrize("acl", LISTS)
@pytest.mark.parametrize("kind", ["text", "datasource"])
def test_new_partitions(sessions, bed, kind, acl, how, visibility):
    found = access(
        sessions,
        bed,
        [
            f"set fs.millstream.write.visibility={visibility}",
            creation(kind, "location '{home}/t'"),
            ["{home}/t", LISTS[acl]],
            STATEMENTS["dynamic"].format(how=how),
        ],
        f"d{next(NUMBERS)}",
    )
    check(found, kind, acl)


@pytest.mark.parametrize(
    "how, visibility", [("into", "in-place"), ("overwrite", "in-place"), ("overwrite", "metastore-swap")]
)
@pytest.mark.parametrize("which", STATEMENTS)
@pytest.mark.parametrize("kind", ["text", "datasource"])
def test_partitions_keep_their_own_lists_except_with_a_swap(sessions, bed, kind, which, how, visibility):
    found = access(
        sessions,
        bed,
        [
            f"set fs.millstream.write.visibility={visibility}",
            creation(kind, "location '{home}/t'"),
            ["{home}/t", LISTS["wider below"]],
            STATEMENTS["dynamic"].format(how="into"),
            ["{home}/t/k=1", OF_A_PARTITION],
            STATEMENTS[which].format(how=how),
        ],
        f"d{next(NUMBERS)}",
    )
    if visibility == "metastore-swap":
        check(found, kind, "")
        return
    # Stock replaces the directories of an external table's partitions, and writes files in directories of its own
    # before.
    own = "default:group::r-x default:mask::r-x default:other::--- default:user::rwx default:user:auditor:r-x group::r-x user:auditor:r-x"
    assert found["ours"]["k=1"] == f"rwxr-x--- {own}"
    assert "rw-r----- group::r-x user:auditor:r-x" in found["ours"]["k=1/file"]


def test_every_user_who_may_write_to_a_table_by_its_list_can_write_to_it(sessions, bed, tmp_path):
    other = Session(tmp_path / "other", millstream=True, conf=WITHOUT_MARKS, environment={"HADOOP_USER_NAME": "reader"})
    path = f"{bed.direct_url}/shared"
    try:
        sessions["ours"].call(
            "server_calls:set_access", path=path, entries="user::rwx,user:reader:rwx,group::r-x,mask::rwx,other::r-x"
        )
        assert isinstance(
            sessions["ours"].call("write_calls:fill", path=path, value="old", partitions=2, mode="append"), int
        )
        sessions["ours"].call(
            "server_calls:set_access",
            path=f"{path}/k=0",
            entries="user::rwx,user:reader:rwx,group::r-x,mask::rwx,other::r-x",
        )
        answer = other.call("write_calls:fill", path=path, value="new", partitions=1, mode="append")
        assert isinstance(answer, int), answer["crash"]
        assert other.call("write_calls:values", path=path) == [["new", 1], ["old", 2]]
    finally:
        other.close()
