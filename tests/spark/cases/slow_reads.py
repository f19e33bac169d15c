"""Expensive reads: a line of a gigabyte, and executors with another locale than the driver's. Run with `make test-group
GROUP=reads`.
"""

import os

import pytest
from sessions import Session

GIGABYTE = 1 << 30


@pytest.fixture(scope="module")
def session(top):
    session = Session(top / "slow", millstream=True, conf={"spark.driver.memory": "1g"})
    yield session
    session.close()


def write_long_line(path, length):
    block = b"x" * (1 << 20)
    with path.open("wb") as file:
        file.write(b"short\n")
        for _ in range(length // len(block)):
            file.write(block)
        file.write(b"\n")


def test_a_line_of_a_gigabyte_is_read_with_a_gigabyte_of_heap(session, top):
    path = top / "gigabyte"
    write_long_line(path, GIGABYTE)
    try:
        got = session.call("read_calls:long_line", path=str(path))
        assert got == {"count": 2, "longest": GIGABYTE, "found": 1, "filtered": "short"}
    finally:
        path.unlink()


def test_the_error_for_a_too_long_line_names_its_file(session, top):
    path = top / "too-long"
    with path.open("wb") as file:
        file.truncate(2 * GIGABYTE + 1)
    try:
        messages = " ".join(session.call("read_calls:why_not", path=str(path)))
        assert str(path) in messages and "a line of more than 2 GB" in messages and "line.maxlength" in messages, (
            messages
        )
    finally:
        path.unlink()


def test_file_names_are_bytes_if_the_executor_has_another_locale(top):
    """Java cannot express `é` there; native code gets the bytes of the name, and rows have the file name that the
    driver has listed.
    """
    directory = top / "names-é"
    directory.mkdir()
    names = ["plain", "é", "漢 字", "a+b é%"]
    for name in names:
        (directory / name).write_text(f"in {name}\n")
    conf = {"spark.master": "local-cluster[1,2,1024]", "spark.executor.memory": "1g", "spark.executorEnv.LC_ALL": "C"}
    session = Session(top / "other-locale", millstream=True, conf=conf)
    try:
        got = session.call("read_calls:names_in_executors", path=str(directory))
    finally:
        session.close()
    assert "crash" not in got, got
    assert got["encoding"] == "ANSI_X3.4-1968"
    assert got["lines"] == sorted(f"in {name}" for name in names)
    for rows in got["frames"]:
        assert [row[0] for row in rows] == sorted(f"in {name}" for name in names)
        assert [os.path.basename(row[1].replace("%20", " ").replace("%25", "%")) for row in rows] == [
            row[0][3:] for row in rows
        ]
