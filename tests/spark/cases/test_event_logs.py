"""Event logs describe Millstream's scans as they describe Spark's, for the tools that read them."""

import json

import pytest
from sessions import Session

FORMATS = ("text", "csv", "json", "parquet", "orc")
# The facts that tools read from the logs; the others are also as in Spark, except for the name of the index.
FACTS = ("Format", "ReadSchema", "PushedFilters", "DataFilters", "PartitionFilters", "Batched")


def nodes(plan):
    yield plan
    for child in plan["children"]:
        yield from nodes(child)


def scans(home, logs):
    """Name and metadata of the last scan that the log of a session has for each query."""
    session = Session(
        home,
        millstream=home.name == "ours",
        conf={
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{logs}",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        },
    )
    try:
        assert session.call("session_calls:scan_each", formats=FORMATS, directory=str(home / "data")) is None
    finally:
        session.close()
    (log,) = logs.iterdir()
    found = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        for node in nodes(event["sparkPlanInfo"]) if "sparkPlanInfo" in event else ():
            if "Scan" in node["nodeName"] and node["metadata"].get("Location"):
                found[event["executionId"]] = (node["nodeName"], node["metadata"])
    return list(found.values())


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    found = {}
    for name in ("stock", "ours"):
        top = tmp_path_factory.mktemp("event-logs")
        (top / "logs").mkdir()
        found[name] = scans(top / name, top / "logs")
    return found


def facts(metadata):
    """Without the numbers of columns."""
    return {key: "".join(c for c in metadata[key] if not c.isdigit()) for key in FACTS}


def test_names_begin_as_those_of_sparks_scans(logged):
    assert [name.strip() for name, _ in logged["stock"]] == [f"Scan {kind}" for kind in FORMATS]
    kinds = {"text": "NativeTextScan"}
    assert [name for name, _ in logged["ours"]] == [
        f"Scan {kind} ({kinds.get(kind, 'PackedFileScan')})" for kind in FORMATS
    ]


def test_metadata_are_those_of_sparks_scans(logged):
    for (_, theirs), (name, ours) in zip(logged["stock"], logged["ours"], strict=True):
        assert facts(ours) == facts(theirs), name
        assert theirs.keys() <= ours.keys(), name
        index, _, root = ours["Location"].partition("(")
        assert index == "CompactFileIndex" and root.startswith("1 paths)[file:/"), name
