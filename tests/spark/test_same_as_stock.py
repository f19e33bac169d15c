"""Every case gives the same answer with and without Millstream, and uses the expected index."""

import pytest

import cases
from answers import told_apart

CASE_NAMES = list(cases.CASES)


def ask(session, name, data):
    scratch = session.home / "scratch"
    scratch.mkdir(exist_ok=True)
    own = scratch / str(CASE_NAMES.index(name))
    own.mkdir()
    session.ask("answers:run_case", name=name, data=str(data), scratch=str(own))


@pytest.mark.parametrize("name", CASE_NAMES)
def test_same_as_stock(stock, ours, data, name):
    for session in (stock, ours):
        ask(session, name, data)
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected, expected["crash"]
    is_frame = "index" in actual
    index, native = told_apart(expected, actual)
    assert actual == expected
    if is_frame:
        assert index == cases.CASES[name].index
    if cases.CASES[name].native is not None:
        assert native == [cases.CASES[name].native]
