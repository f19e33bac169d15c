"""Files that are deleted or replaced while a task reads: no file is read in part, and none in two versions. Run with
`make test-group GROUP=reads-extreme`.

A task returns data that it has read ahead, so Millstream and stock Spark may read different versions of a file; the
same rules hold for both.
"""

import os
import time

import pytest
from sessions import Session

FORMATS = ("text", "csv", "json", "parquet", "orc")
FILES, ROWS, WIDTH = 60, 5, 100_000
"""Much more than what is on its way to Python when the first row is there."""
CHANGED = range(FILES // 2, FILES)
PATIENCE_S = 120


class Data:
    """A directory of files in their first version, and one with their second version, which have the same sizes."""

    def __init__(self, session, top, format_name):
        self.top = top
        for version in ("old", "new"):
            session.call(
                "changed_calls:write_files",
                path=str(top / f"{version}-written"),
                format_name=format_name,
                version=version,
                files=FILES,
                rows=ROWS,
                width=WIDTH,
            )
            (top / version).mkdir()
            for number, file in enumerate(sorted((top / f"{version}-written").glob("part-*"))):
                file.rename(self.path(number, version))
        assert {self.path(number, "old").stat().st_size for number in range(FILES)} == {
            self.path(number, "new").stat().st_size for number in range(FILES)
        }

    def path(self, number, version="old"):
        return self.top / version / f"{number:03d}"

    def change(self, how):
        for number in CHANGED:
            if how == "deleted":
                self.path(number).unlink()
            else:
                os.utime(self.path(number, "new"), (2_000_000_000, 2_000_000_000))
                self.path(number, "new").rename(self.path(number))


@pytest.fixture(scope="module")
def sessions(top):
    """With little memory between the reader and Python."""
    found = {
        name: Session(top / f"{name}-changing", millstream=name == "ours", conf={"spark.master": "local[1]"})
        for name in ("stock", "ours")
    }
    yield found
    for session in found.values():
        session.close()


def wait_for(path):
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def changed_while_read(session, data, how, format_name, metadata, **options):
    """The answer of a read within which files are changed, and their times before that."""
    times = {f"{number:03d}": data.path(number).stat().st_mtime_ns // 1_000_000 for number in range(FILES)}
    marks = data.top / "marks"
    marks.mkdir()
    session.ask(
        "changed_calls:read_in_steps",
        path=str(data.top / "old"),
        format_name=format_name,
        marks=str(marks),
        metadata=metadata,
        options=options,
    )
    wait_for(marks / "begun")
    data.change(how)
    (marks / "go").touch()
    return session.answer(), times


def check(answer, how, ignores, metadata, times):
    """Checks that a read is valid: each file is read in one version, as a whole. Returns the number of files of which
    nothing is read.
    """
    assert "crash" not in answer, answer["crash"]
    if "error" in answer:
        assert how == "deleted" and not ignores, answer
        assert "FileNotFoundException" in answer["error"] or "FILE_NOT_EXIST" in answer["error"], answer
        assert any(f"/{number:03d}" in answer["error"] for number in CHANGED), answer
        return None
    versions = {}
    for file, version, *described, count in answer["rows"]:
        assert file not in versions, (file, answer["rows"])
        versions[file] = version
        assert count == ROWS, (file, version, count)
        if metadata:
            name, size, start, time_ms = described
            assert (name, start) == (file.removeprefix("f"), "0")
            assert int(time_ms) == times[name], "that of the listing, as in stock Spark"
            assert int(size) > ROWS * WIDTH
    unchanged = {f"f{number:03d}" for number in range(FILES) if number not in CHANGED}
    assert {file for file in unchanged if versions.get(file) == "old"} == unchanged
    if how == "replaced":
        assert len(versions) == FILES
    return FILES - len(versions)


@pytest.mark.parametrize("metadata", [False, True], ids=["rows", "metadata"])
@pytest.mark.parametrize("how, ignores", [("deleted", False), ("deleted", True), ("replaced", False)])
@pytest.mark.parametrize("format_name", FORMATS)
def test_files_that_change_while_a_task_reads(sessions, tmp_path, format_name, how, ignores, metadata):
    lacking = {}
    for name, session in sessions.items():
        (tmp_path / name).mkdir()
        data = Data(sessions["stock"], tmp_path / name, format_name)
        answer, times = changed_while_read(session, data, how, format_name, metadata, ignoreMissingFiles=ignores)
        lacking[name] = check(answer, how, ignores, metadata, times)
    if how == "deleted":
        # Otherwise nothing was deleted that had yet to be read.
        assert lacking["ours"] is None if not ignores else lacking["ours"] > 0, lacking
        assert lacking["stock"] is None if not ignores else lacking["stock"] > 0, lacking


@pytest.mark.parametrize("how", ["deleted", "replaced"])
@pytest.mark.parametrize("format_name", ["text", "csv", "parquet"])
def test_the_file_that_a_task_reads_is_read_to_its_end(sessions, tmp_path, format_name, how):
    """It is open, so its first version is there as long as it is read."""
    for name, session in sessions.items():
        top = tmp_path / name
        top.mkdir()
        for version in ("old", "new"):
            sessions["stock"].call(
                "changed_calls:write_files",
                path=str(top / version),
                format_name=format_name,
                version=version,
                files=1,
                rows=500,
                width=WIDTH,
            )
        (old,), (new,) = ([*(top / version).glob("part-*")] for version in ("old", "new"))
        (top / "marks").mkdir()
        session.ask(
            "changed_calls:read_in_steps", path=str(top / "old"), format_name=format_name, marks=str(top / "marks")
        )
        wait_for(top / "marks/begun")
        old.unlink() if how == "deleted" else new.replace(old)
        (top / "marks/go").touch()
        assert session.answer() == {"rows": [["f000", "old", 500]]}, name
