"""Hundreds of queries in one application leave no memory, open files or threads. Run with `make test-group
GROUP=reads-extreme`.
"""

from sessions import Session

ROUNDS, TIMES = 6, 6
"""With 16 queries each time, 576 in all. After two rounds the allocator has what it needs."""
MUCH_KB = 15_000
"""The JVM's stacks and code, of which it counts what it may use, change it by 4,000."""
COUNTED = "-XX:NativeMemoryTracking=summary -Xms1g -XX:+AlwaysPreTouch"


def test_hundreds_of_queries_leave_nothing(top):
    session = Session(top / "leaks", millstream=True, conf={"spark.driver.extraJavaOptions": COUNTED})
    try:
        session.call("leak_calls:make", top=str(top / "leaking"))
        found = session.call("leak_calls:remains", top=str(top / "leaking"), rounds=ROUNDS, times=TIMES)
    finally:
        session.close()
    print(found)
    assert isinstance(found, list), found
    assert len({tuple(one["results"]) for one in found}) == 1 and len(found[0]["results"]) == 1, found
    assert all(one["threads"] == 0 for one in found), found
    assert found[-1]["files"] <= found[1]["files"] + 2, found
    assert found[-1]["kb"] - found[1]["kb"] < MUCH_KB, found
