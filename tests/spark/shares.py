"""Cuts a list of tests into parts that take about as long."""

from itertools import accumulate


def parts_of(costs: list[float], parts: int) -> list[int]:
    """The part of each test, from 0 on, given the seconds that each takes: all parts are runs of consecutive tests."""
    ends = list(accumulate(costs))
    return [int((end - cost / 2) / ends[-1] * parts) for cost, end in zip(costs, ends)]
