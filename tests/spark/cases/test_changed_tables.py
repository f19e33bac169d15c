"""A table is emptied, renamed, or loses a partition, while a committed write to it is not finished (issue 36)."""

from itertools import count

import pytest
from faults import DerbyMetastore, StepTrap
from test_lost_rows import DELETE, PUBLISH, SHORT_LEASE, SWAP, Drivers, in_partition

NUMBERS = count()


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    top = tmp_path_factory.mktemp("changed")
    with DerbyMetastore(top) as metastore, StepTrap() as trap:
        found = Drivers(top, metastore, trap, kills=4)
        yield found
        found.close()


class Torn:
    """A managed table with the rows 0 to 9 in partition 1. Then its driver is killed within the commit of another 40."""

    def __init__(self, drivers, top, how, step, at, **conf):
        self.drivers, self.name, self.folder = drivers, f"c{next(NUMBERS)}", top / "db" / "t"
        drivers.run(
            f"create database d{self.name} location '{self.folder.parent}'",
            f"use d{self.name}",
            "create table t (a int) partitioned by (p string) stored as textfile",
            "insert into t partition(p='1') select id from range(10)",
        )
        drivers.kill_at(
            step.format(self.folder),
            at,
            f"insert {how} d{self.name}.t partition(p) select /*+ repartition(8) */ id, '1' from range(100, 140)",
            **conf,
        )
        drivers.run(f"use d{self.name}")


@pytest.mark.parametrize(
    "how, step, at, conf",
    [
        ("into", PUBLISH, 3, {}),
        ("overwrite", DELETE, 1, {}),
        # Readers leave a swap to its driver for the whole lease.
        ("overwrite", "link {}/*.published", 1, {**SWAP, **SHORT_LEASE}),
    ],
)
def test_a_table_that_is_emptied_stays_empty_and_can_be_written(drivers, tmp_path, how, step, at, conf):
    torn = Torn(drivers, tmp_path, how, step, at, **conf)
    drivers.run("truncate table t", **conf)
    drivers.run("insert into t partition(p='1') select 1000", **conf)
    assert drivers.rows("t") == in_partition("1", 1000)
    assert drivers.call("recover", target=f"d{torn.name}.t") == []


def test_a_renamed_table_has_all_rows_and_a_dropped_partition_none(drivers, tmp_path):
    Torn(drivers, tmp_path, "into", PUBLISH, 3)
    drivers.run("alter table t rename to u", "insert into u partition(p='2') select 1000")
    assert drivers.rows("u") == in_partition("1", *range(10), *range(100, 140)) + in_partition("2", 1000)
    drivers.run("alter table u drop partition (p='1')", "msck repair table u")
    assert drivers.rows("u") == in_partition("2", 1000)
