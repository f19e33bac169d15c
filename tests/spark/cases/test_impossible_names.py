"""Partitions whose directories cannot be created, or have no name in the driver's locale, end as in stock Spark (issue
36, row W2).
"""

import pytest
from sessions import Session

CONF = {
    "spark.millstream.write.enabled": "true",
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
}
POSIX = ("env", "LC_ALL=C", "PYTHONUTF8=1")
NAMES = {"long": "x" * 300, "nul": r"a\0b", "umlaut": "ü"}
CASES = [("text", "static"), ("text", "dynamic"), ("datasource", "static overwrite"), ("datasource", "dynamic")]


@pytest.fixture(scope="module", params=["utf-8", "posix"])
def sessions(request, tmp_path_factory):
    top = tmp_path_factory.mktemp(request.param)
    within = POSIX if request.param == "posix" else ()
    found = [Session(top / name, millstream=name == "ours", conf=CONF, within=within) for name in ("ours", "stock")]
    yield found
    for session in found:
        session.close()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind, how", CASES)
def test_a_partition_that_may_not_have_a_directory_ends_as_in_stock(sessions, tmp_path, kind, how, name):
    table = f"t_{kind}_{how.replace(' ', '_')}_{name}"
    found = []
    for session, of in zip(sessions, ("ours", "stock")):
        answer = session.call(
            "impossible_calls:write", name=table, kind=kind, folder=str(tmp_path / of), value=NAMES[name], how=how
        )
        assert "crash" not in answer, answer["crash"]
        again = session.call("impossible_calls:write_again", name=table)
        assert again[0] is None, again
        found.append([answer, again[1]])
    assert found[0] == found[1]
