"""The mark behind which a next attempt resumes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ingestors.engine.logged_mark import NOT_LOGGED, Logged, LoggedMark


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


def test_the_time_is_that_of_the_marks_trade_or_of_one_before_it() -> None:
    mark = LoggedMark(10, 1_000)
    assert mark.logged == Logged("10", 1_000)
    for number in (11, 12, 14):
        mark.saw(number, 100 * number)
    mark.settle(12, 12)
    assert mark.logged == Logged("10", 1_000)
    mark.settle(11, 11)
    assert mark.logged == Logged("12", 1_200)
    mark.settle(13, 13)
    assert mark.logged == Logged("13", 1_200), "13 was given up, and nothing is known of its time"
    mark.settle(14, 14)
    assert mark.logged == Logged("14", 1_400)
    assert LoggedMark().logged == NOT_LOGGED == Logged("", 0)


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
