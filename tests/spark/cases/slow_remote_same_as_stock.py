"""The cases of test_same_as_stock.py, on S3 and on HDFS.

Run with `make test-group GROUP=remote-cases-s3` and `GROUP=remote-cases-hdfs`.
"""

import hashlib
import os
import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyspark
import pytest
import queries
from remote_places import KINDS
from s3_bed import BUCKET
from test_same_as_stock import CASE_NAMES, answers_of, check

# Patterns of the cases that do not run, by the reason.
LOCAL_ALONE = {
    "there are no links": ["refresh after a loop of links has appeared", "a loop of links.*", "select from .*/loop`"],
    "the sessions may read everything": [
        "refresh after a directory was forbidden",
        "a file that may not be read among many",
        "file forbidden after planning.*",
    ],
    "there are no files with checksums": [
        "checksums that Spark has written, of a file changed since",
        "(csv|json): checksums are (right|wrong)",
    ],
}
NOT_ON = {
    "s3": {
        "the server does not encode a key's control characters": [
            "file names below directories",
            "file names of any characters",
        ],
        "the time of an object cannot be set": ["a stream, files that are too old"],
    },
    "hdfs": {},
}
if pyspark.__version__.startswith("4.0."):
    NOT_ON["s3"]["a hidden object that is the root is listed, as in later versions"] = ["a hidden file as the root"]
# Cases with other expectations than on local files.
CASES = {
    # Directories that are named as Parquet's summaries are left to Spark.
    ("s3", "hidden names recursive"): replace(queries.CASES["hidden names recursive"], index=queries.STOCK),
}


def patterns(kind: str) -> list[str]:
    return [pattern for table in (LOCAL_ALONE, NOT_ON[kind]) for some in table.values() for pattern in some]


def runs(kind: str, name: str) -> bool:
    return not any(re.fullmatch(pattern, name, re.DOTALL) for pattern in patterns(kind))


RUN = [(kind, name) for kind in KINDS for name in CASE_NAMES if runs(kind, name)]


def copy(data: Path, target: Path, is_left_out=lambda path: False) -> None:
    """Copies files with their times, without links, and what the sessions may not read or Java cannot name: there are
    none elsewhere.
    """

    def ignored(directory, names):
        paths = [Path(directory, name) for name in names]
        return [
            path.name
            for path in paths
            if path.is_symlink() or path.name in ("forbidden", "undecodable") or is_left_out(path)
        ]

    shutil.copytree(data, target, ignore=ignored)


def put_into_bucket(data: Path, bucket: Path) -> None:
    """Copies files to where the server has its objects, and marks them as it does; as requests, it would take minutes."""
    copy(data, bucket)
    for directory, directories, files in os.walk(bucket):
        for name in files:
            path = Path(directory, name)
            os.setxattr(path, "user.etag", f'"{hashlib.md5(path.read_bytes()).hexdigest()}"'.encode())
        if not directories and not files:
            os.setxattr(directory, "user.etag", f'"{hashlib.md5(b"").hexdigest()}"'.encode())


@pytest.fixture(scope="module")
def place_of(places, data, tmp_path_factory):
    """Sessions on S3 or HDFS by kind; the data of the cases is written there on first use."""

    @cache
    def place_of(kind):
        found = places[kind]
        if kind == "s3":
            put_into_bucket(data, found.bed.data / BUCKET / "cases")
            return found
        copied = tmp_path_factory.mktemp("for-hdfs") / "data"
        copy(
            data, copied, lambda path: ":" in path.name or path.name == ".bad.crc"
        )  # no name on HDFS, and an error for who copies it
        times = {
            str(path.relative_to(copied)): path.stat().st_mtime_ns // 1_000_000
            for path in copied.rglob("*")
            if path.is_file()
        }
        assert (
            found.stock.call("remote_calls:put_tree", source=str(copied), target=f"{found.url}/cases", times=times)
            is None
        )
        return found

    return place_of


@pytest.mark.parametrize("kind, name", RUN)
def test_same_as_stock(place_of, kind, name):
    place = place_of(kind)

    def own_directory(session, name):
        return f"{place.url}/{session.home.name}/{CASE_NAMES.index(name)}"

    answers = answers_of(place.stock, place.ours, name, f"{place.url}/cases", own_directory)
    check(CASES.get((kind, name), queries.CASES[name]), *answers)


@pytest.mark.parametrize("kind", NOT_ON)
def test_cases_that_do_not_run_exist(kind):
    for pattern in patterns(kind):
        assert any(re.fullmatch(pattern, name, re.DOTALL) for name in queries.CASES), pattern
