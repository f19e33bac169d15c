"""Buckets that keep the versions of their objects are read as by stock Spark while objects are overwritten and deleted.

A GET without a version has the newest one, and a deleted object has a version that says so. Run with `make test-group
GROUP=remote-changes`.
"""

import re
import time

import pytest
from access_bed import KEYS, Buckets, S3Bed

SMALL = 40
WORDS = {"old": "old line", "new": "new line"}
# S3A itself reads the version that it has found when it opened an object, even if there is a newer one by then.
BY_VERSION = {"change.detection.source": "versionid", "change.detection.mode": "server"}
BUCKETS = {"plain": KEYS, "by-version": {**KEYS, **BY_VERSION}}
READS = {
    "text": "spark.read.text({path!r})",
    "text, missing ones ignored": "spark.read.option('ignoreMissingFiles', True).text({path!r})",
    "csv": "spark.read.schema('value string').csv({path!r})",
    "csv, missing ones ignored": "spark.read.option('ignoreMissingFiles', True).schema('value string').csv({path!r})",
    "json": "spark.read.json({path!r})",
    "metadata": "spark.read.text({path!r}).selectExpr('value', '_metadata.file_name', '_metadata.file_size')",
    "binary": "spark.read.format('binaryFile').load({path!r}).selectExpr('length', 'hex(content)')",
}
PATIENCE_S = 60


class Versions:
    """Two sessions on buckets that keep versions, and one that changes objects while those read."""

    def __init__(self, bed, scratch):
        self.bed = bed
        buckets = Buckets(bed, scratch, BUCKETS)
        for bucket in BUCKETS:
            (bed.data / bucket).mkdir()
        self.stock, self.ours, self.writer = (
            buckets.session(name, millstream=name == "ours") for name in ("stock", "ours", "writer")
        )
        for bucket in BUCKETS:
            assert self.writer.call("remote_calls:keep_versions", path=f"s3a://{bucket}/") is None

    def sessions(self):
        return {"stock": self.stock, "ours": self.ours}

    def put(self, path, word, first=0, count=SMALL, more=0):
        """Objects of a few lines, by another client than those that read them."""
        files = {
            f"part-{i:05d}.json": "".join(f'{{"word": "{WORDS[word]} {i} {line}"}}\n' for line in range(3 + more))
            for i in range(first, first + count)
        }
        assert self.writer.call("remote_calls:put", root=path, files=files) is None

    def close(self):
        for session in (self.stock, self.ours, self.writer):
            session.close()


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    with S3Bed(versions=True) as bed:
        found = Versions(bed, tmp_path_factory.mktemp("versions"))
        yield found
        found.close()


def changed(versions, path, change):
    """Changes some of the objects at a path."""
    match change:
        case "overwritten":
            versions.put(path, "new", first=10, count=20)
        case "overwritten by longer ones":
            versions.put(path, "new", first=10, count=20, more=4)
        case "overwritten twice":
            versions.put(path, "new", first=10, count=20)
            versions.put(path, "old", first=10, count=20)
        case "deleted":
            assert (
                versions.writer.call("remote_calls:delete", paths=[f"{path}/part-{i:05d}.json" for i in range(10, 30)])
                is None
            )
        case "deleted and written again":
            changed(versions, path, "deleted")
            versions.put(path, "new", first=10, count=20)


CHANGES = ["overwritten", "overwritten by longer ones", "overwritten twice", "deleted", "deleted and written again"]


@pytest.mark.parametrize("bucket", BUCKETS)
@pytest.mark.parametrize("change", CHANGES)
def test_objects_that_change_once_they_are_listed(versions, change, bucket):
    answers = {}
    for name, session in versions.sessions().items():
        path = f"s3a://{bucket}/{name}/{change.replace(' ', '-')}"
        versions.put(path, "old")
        for read, code in READS.items():
            session.call("remote_calls:keep", name=read, code=code.format(path=path))
        changed(versions, path, change)
        assert any(
            version != "null"
            for version in versions.writer.call("remote_calls:versions", path=f"{path}/part-00010.json")
        )
        answers[name] = {read: without_names(session.call("remote_calls:count", name=read), name) for read in READS}
    for read in READS:
        assert answers["ours"][read] == answers["stock"][read], read
        assert (change == "deleted" and "ignored" not in read) or "value" in answers["ours"][read], answers["ours"][
            read
        ]


def without_names(answer, name):
    """Which of the deleted objects is found first is random, and each session has separate objects."""
    return {
        key: value if key == "value" else re.sub(r"part-\d+", "part", value).replace(f"/{name}/", "/session/")
        for key, value in answer.items()
    }


@pytest.mark.parametrize("bucket", BUCKETS)
def test_transport(versions, bucket):
    """If S3A is configured to follow versions, its own client reads."""
    path = f"s3a://{bucket}/transport"
    versions.put(path, "old")
    plan = versions.ours.call("remote_calls:plan", path=path)
    assert plan["transport"] == (
        "native" if bucket == "plain" else "S3A's client: fs.s3a.change.detection.source is set"
    )


@pytest.mark.parametrize("change", ["overwritten", "deleted"])
@pytest.mark.parametrize("ignores", [False, True])
def test_objects_that_change_while_they_are_read(versions, change, ignores):
    """A request is held until objects have been changed: each is read in one version, as a whole."""
    for name, session in versions.sessions().items():
        path = f"s3a://plain/held/{change}-{ignores}/{name}"
        versions.put(path, "old")
        code = f"spark.read.option('ignoreMissingFiles', {ignores}).json({path!r}, schema='word string')"
        session.call("remote_calls:keep", name="kept", code=code)
        versions.bed.inject({"operation": "GetObject", "path": "part-00015", "do": "hold"})
        try:
            session.ask("remote_calls:count", name="kept")
            deadline = time.monotonic() + PATIENCE_S
            while versions.bed.held() < 1:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            changed(versions, path, change)
        finally:
            versions.bed.inject()
        answer = session.answer()
        if "value" not in answer:
            # The size and the ETag of the old version were already known.
            assert ("FILE_NOT_EXIST" if change == "deleted" else "Status Code: 412") in str(answer), (name, answer)
            assert not (change == "deleted" and ignores), (name, answer)
            continue
        rows = answer["value"]
        for number in range(SMALL):
            counts = {
                word: sum(rows.count(f"{text} {number} {line}'") for line in range(3)) for word, text in WORDS.items()
            }
            is_gone = ignores and change == "deleted" and 10 <= number < 30 and counts == {"old": 0, "new": 0}
            assert sorted(counts.values()) == [0, 3] or is_gone, (name, number, counts)
            assert counts["new"] == 0 or 10 <= number < 30, (name, number, counts)


@pytest.mark.parametrize("bucket", BUCKETS)
@pytest.mark.parametrize("change", ["overwritten", "deleted"])
def test_a_large_object_that_changes_while_it_is_read(versions, bucket, change):
    """Its rows are all of one version, or there is an error."""
    lines = 400_000
    for name, session in versions.sessions().items():
        path = f"s3a://{bucket}/large/{change}/{name}"
        versions.writer.call("remote_calls:put_lines", path=f"{path}/a.txt", line="old " + "x" * 95 + "\n", count=lines)
        session.call(
            "remote_calls:keep",
            name="kept",
            code=f"spark.read.text({path!r}).selectExpr('left(value, 3) word').groupBy('word').count()",
        )
        versions.bed.set_bandwidth(total_bytes_per_s=8_000_000)
        try:
            session.ask("remote_calls:count", name="kept")
            time.sleep(1.5)
            if change == "overwritten":
                versions.writer.call(
                    "remote_calls:put_lines", path=f"{path}/a.txt", line="new " + "x" * 95 + "\n", count=lines
                )
            else:
                versions.writer.call("remote_calls:delete", paths=[f"{path}/a.txt"])
            answer = session.answer()
        finally:
            versions.bed.set_bandwidth()
        whole = [repr([f"Row(word='{word}', count={lines})"]) for word in WORDS]
        assert answer.get("value") in whole or "FAILED_READ_FILE" in str(answer.get("condition", answer)), (
            name,
            answer,
        )
