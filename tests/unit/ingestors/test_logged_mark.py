"""The mark behind which a next attempt resumes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.logged_mark import LoggedMark


def test_the_mark_stops_before_an_id_that_is_still_open() -> None:
    mark = LoggedMark(10)
    mark.settle(11, 12)
    mark.settle(14, 20)
    assert mark.number == 12
    mark.settle(13, 13)
    assert mark.number == 20


def test_nothing_is_known_before_the_first_trade() -> None:
    mark = LoggedMark()
    mark.settle(5, 6)
    assert mark.number is None
    mark.begin(4)
    mark.begin(1)
    assert mark.number == 6


@given(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=30))
def test_the_mark_is_the_end_of_what_is_settled_without_a_break(base: int, spans: list[tuple[int, int]]) -> None:
    mark, settled = LoggedMark(base), set(range(base + 1))
    for first, length in spans:
        mark.settle(first, first + length - 1)
        settled |= set(range(first, first + length))
    expected = base
    while expected + 1 in settled:
        expected += 1
    assert mark.number == expected
