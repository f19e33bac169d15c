"""Tables whose directories are symbolic links, or are inside each other: after each statement rows and files are the
same as with stock Spark (issue 36). Torn commits that are read through links: test_guarded_paths.py.
"""

from itertools import count

import pytest
from sessions import Session
from test_random_statements import CONF

NUMBERS = count()
STATEMENTS = [
    "insert into a partition(p) select id, cast(id % 3 as string) from range(6)",
    "insert overwrite a partition(p='1') select 10",
    "insert into a partition(p='1') select 11",
    "insert overwrite a partition(p) select 12, p from values ('0'), ('new') v(p)",
]
BOTH = [
    *STATEMENTS,
    "insert into b select 20",
    "insert into a partition(p='1') select a + 100 from b",
    "insert overwrite b select a + 200 from a",
]
# Directories and links, then tables.
LAYOUTS = {
    "the table's directory is a link": ([["link", "real/a", "a"], ["table", "{kind}", "a", "a"]], STATEMENTS),
    "a directory above is a link": ([["link", "real", "top"], ["table", "{kind}", "a", "top/a"]], STATEMENTS),
    "two tables, one by a link": (
        [["link", "real/a", "linked"], ["table", "{kind}", "a", "real/a"], ["table", "{kind}", "b", "linked"]],
        [
            *STATEMENTS[:3],
            "msck repair table b",
            "insert into b partition(p='1') select 21",
            "insert overwrite b partition(p='2') select 22",
            "insert overwrite a partition(p='1') select a + 100 from b where p = '2'",
            "insert overwrite a partition(p) select a + 200, p from b where p < 2",
        ],
    ),
    "a partition in another partition": (
        [["table", "{kind}", "a", "a"]],
        [
            STATEMENTS[0],
            "alter table a add partition(p='in') location '{home}/a/p=1/inner'",
            "insert into a partition(p='in') select 30",
            "insert into a partition(p='1') select 31",
            "insert overwrite a partition(p='2') select 32",
            "insert overwrite a partition(p='1') select 33",
            "insert into a partition(p) select 34, p from values ('1'), ('in') v(p)",
        ],
    ),
    "a partition in another table": (
        [["table", "{kind}", "a", "a"], ["table", "{kind}", "b", "b"]],
        [
            STATEMENTS[0],
            "alter table b add partition(p='a1') location '{home}/a/p=1'",
            "insert into b partition(p='a1') select 40",
            "insert into b partition(p='own') select 41",
            "insert overwrite a partition(p='1') select 42",
            "insert overwrite b partition(p='a1') select 43",
            "insert into a partition(p='1') select a + 100 from b",
        ],
    ),
    "a table in a partition": ([["table", "{kind}", "a", "a"], ["table", "flat {kind}", "b", "a/p=1/inner"]], BOTH),
    "a table in another table": ([["table", "{kind}", "a", "a"], ["table", "flat {kind}", "b", "a/inner"]], BOTH),
    "a link to another table in a partition": (
        [["table", "{kind}", "a", "a"], ["table", "flat {kind}", "b", "b"]],
        [
            STATEMENTS[0],
            "insert into b select 20",
            ["link", "b", "a/p=1/link"],
            "insert into a partition(p='1') select 50",
            "insert overwrite a partition(p='1') select 51",
            ["link", "b", "a/p=2/link"],
            "insert overwrite a partition(p) select 52, '2'",
        ],
    ),
    "a link to another table in a table": (
        [["table", "flat {kind}", "a", "a"], ["table", "flat {kind}", "b", "b"]],
        ["insert into a select 1", "insert into b select 20", ["link", "b", "a/link"], "insert overwrite a select 51"],
    ),
    "a table around another table": ([["table", "flat {kind}", "b", "b"], ["table", "{kind}", "a", "b/inner"]], BOTH),
}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    session = Session(tmp_path_factory.mktemp("linked") / "home", millstream=True, conf=CONF)
    yield session
    session.close()


def results(session, top, layout, kind, is_stock, visibility):
    before, statements = LAYOUTS[layout]
    steps = [[part.replace("{kind}", kind) for part in step] for step in before] + statements
    answer = session.call(
        "linked_calls:run",
        database=f"d{next(NUMBERS)}",
        home=str(top / ("stock" if is_stock else "ours")),
        steps=steps,
        tables=["a", "b"],
        is_stock=is_stock,
        conf={"fs.millstream.write.visibility": visibility},
    )
    assert not isinstance(answer, dict), answer["crash"]
    return answer


CASES = [(layout, "serde", "in-place") for layout in LAYOUTS] + [(layout, "source", "exchange") for layout in LAYOUTS]


@pytest.mark.parametrize("layout, kind, visibility", CASES)
def test_linked_and_nested_locations(session, tmp_path, layout, kind, visibility):
    stock, ours = (results(session, tmp_path, layout, kind, is_stock, visibility) for is_stock in (True, False))
    for expected, found in zip(stock, ours):
        assert found == expected
