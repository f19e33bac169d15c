"""Cuts a list of tests into parts that take about as long."""

from itertools import accumulate

# Tests that take no time belong to a part, too.
LEAST_S = 0.01


def parts_of(costs: list[float], parts: int) -> list[int]:
    """The part of each test, from 0 on, given the seconds that each takes: all parts are runs of consecutive tests."""
    costs = [max(cost, LEAST_S) for cost in costs]
    ends = list(accumulate(costs))
    return [min(parts - 1, int((end - cost / 2) / ends[-1] * parts)) for cost, end in zip(costs, ends)]
