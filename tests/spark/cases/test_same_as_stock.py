"""Every case gives the same answer with and without Millstream, and uses the expected index."""

import pytest
import queries
from answers import told_apart

CASE_NAMES = list(queries.CASES)


def own_directory(session, name):
    own = session.home / "scratch" / str(CASE_NAMES.index(name))
    own.mkdir(parents=True)
    return str(own)


def answers_of(stock, ours, name, data, own=own_directory):
    """The answers of both sessions, which run the case at once; `own` gives each a directory to write to."""
    for session in (stock, ours):
        session.ask("answers:run_case", name=name, data=str(data), scratch=own(session, name))
    return stock.answer(), ours.answer()


def check(case, expected, actual):
    """Compares the answers of stock Spark and of Millstream, and how ours was found with what the case expects."""
    assert "crash" not in expected, expected["crash"]
    is_frame = "index" in actual
    index, native = told_apart(expected, actual)
    assert actual == expected
    if is_frame:
        assert index == case.index
    if case.native is not None:
        assert native == [case.native]


@pytest.mark.parametrize("name", CASE_NAMES)
def test_same_as_stock(stock, ours, data, name):
    check(queries.CASES[name], *answers_of(stock, ours, name, data))
