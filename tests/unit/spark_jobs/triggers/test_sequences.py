"""How steps follow each other: contiguity, negation, windows, what a match ends."""

from __future__ import annotations

import pytest

from relay_client.pattern_builder import CLOSE, n_of, when
from tests.unit.spark_jobs.triggers.market import BTC, ETH, RULES, Market

A, B, C = when(BTC).crosses_above("50"), when(BTC).crosses_above("60"), when(BTC).crosses_above("70")
FALL = when(BTC).crosses_below("50")
END = 1000


def run(pattern, *prices, **options):
    return Market(pattern, **options).prices(*prices).mark(END)


def test_relaxed_contiguity_passes_over_what_does_not_match():
    assert run(A.then(B), 49, 51, 52, 53, 61).matched() == [[1, 4]]


def test_strict_contiguity_takes_the_very_next_event_only():
    assert run(A.then_next(B), 49, 51, 52, 61).matched() == []
    assert run(A.then_next(B), 49, 51, 61).matched() == [[1, 2]]


def test_strict_contiguity_sees_the_events_of_every_source_of_the_trigger_and_of_no_other():
    pattern = A.then_next(when(ETH).crosses_above("60"))
    market = Market(pattern).prices(49, 51).tick(0, 59, ticker=ETH).tick(5, 61, ticker=ETH).mark(END)
    assert market.matched() == [[1, 5]]
    market = Market(pattern).prices(49, 51, 52).tick(0, 59, ticker=ETH).tick(5, 61, ticker=ETH).mark(END)
    assert market.matched() == []
    lonely = Market(A.then_next(B)).prices(49, 51).tick(1.5, 5, ticker=ETH).tick(2, 61).mark(END)
    assert lonely.matched() == [[1, 2]]


def test_one_event_is_never_two_steps_of_one_match():
    assert run(A.then(B), 49, 61, 49, 61).matched() == [[1, 3]]


@pytest.mark.parametrize(
    ("prices", "matched"),
    [
        ([49, 51, 71], [[1, 2]]),
        ([49, 51, 61, 59, 71], []),
        # What breaks it and what completes it in one event: nothing lay between.
        ([49, 51, 59, 71], [[1, 3]]),
    ],
)
def test_nothing_of_a_kind_lies_between(prices, matched):
    assert run(A.then_not(B).then(C), *prices).matched() == matched


def test_the_very_next_event_is_not_of_a_kind():
    pattern = A.then_not_next(B).then(C)
    assert run(pattern, 49, 51, 61, 71).matched() == []
    assert run(pattern, 49, 51, 52, 61, 71).matched() == [[1, 4]]
    assert run(pattern, 49, 51, 71).matched() == []  # it crosses 60 as well
    assert run(A.then_not_next(B).then_next(FALL), 49, 51, 49).matched() == [[1, 2]]


@pytest.mark.parametrize(
    ("second", "is_fired"), [("5.999999999", False), (6, True), (7, True)], ids=["inside", "at its end", "after"]
)
def test_a_negation_at_the_end_is_complete_when_its_window_is_over(second, is_fired):
    market = Market(A.then_not(FALL, within="5s")).prices(49, 51).tick(second, 49)
    assert market.mark(100).fired() == ([6] if is_fired else [])
    assert market.matched() == ([[1]] if is_fired else [])


def test_a_negation_at_the_end_waits_for_the_mark():
    market = Market(A.then_not(FALL).within("5s")).prices(49, 51)
    assert market.mark("5.999999999").fired() == []
    assert market.mark(6).fired() == [6]


def test_the_earlier_window_ends_a_negation():
    pattern = A.then(B).then_not(FALL, within="5s").within("7s")
    assert Market(pattern).prices(49, 51).tick(3, 61).mark(END).fired() == [8]
    assert Market(pattern).prices(49, 51).tick(2, 61).mark(END).fired() == [7]


def test_a_negation_of_the_next_event_at_the_end_needs_that_event():
    market = Market(A.then_not_next(FALL)).prices(49, 51)
    assert market.mark(10).fired() == []
    assert market.tick(20, 52).mark(END).fired() == [20]
    assert market.matched() == [[1]]
    assert run(A.then_not_next(FALL), 49, 51, 49).fired() == []
    assert Market(A.then_not_next(FALL, within="5s")).prices(49, 51).tick(6, 52).mark(END).fired() == []


@pytest.mark.parametrize(("second", "is_matched"), [("5.999999999", True), (6, False)])
@pytest.mark.parametrize("pattern", [A.then(B).within("5s"), A.then(B, within="5s")], ids=["whole", "step"])
def test_a_window_is_open_at_its_end(pattern, second, is_matched):
    assert Market(pattern).prices(49, 51).tick(second, 61).mark(END).matched() == (
        [[1, float(second)]] if is_matched else []
    )


def test_the_whole_window_counts_from_the_first_event_and_a_steps_from_the_one_before():
    steps = A.then(B, within="5s").then(C, within="5s")
    ticks = [(0, 49), (1, 51), (5, 61), (9, 71)]
    for pattern, matched in ((steps, [[1, 5, 9]]), (steps.within("8s"), []), (steps.within("8001ms"), [[1, 5, 9]])):
        market = Market(pattern)
        for second, price in ticks:
            market.tick(second, price)
        assert market.mark(END).matched() == matched


def test_every_beginning_makes_its_match_unless_a_match_ends_the_others():
    prices = [49, 51, 49, 51, 61, 49, 51, 61]
    assert run(A.then(B), *prices).matched() == [[1, 4], [3, 4], [6, 7]]
    assert run(A.then(B).skip_past_last_event(), *prices).matched() == [[1, 4], [6, 7]]


def test_a_match_ends_what_began_with_its_last_event_when_it_is_told_to():
    pattern = when(BTC).crosses("50").then(when(BTC).crosses("50"))
    assert run(pattern, 49, 51, 49, 51).matched() == [[1, 2], [2, 3]]
    assert run(pattern.skip_past_last_event(), 49, 51, 49, 51, 49).matched() == [[1, 2], [3, 4]]


def test_what_began_after_the_last_event_outlives_the_match():
    pattern = A.then_not(B, within="10s").skip_past_last_event()
    assert run(pattern, 49, 51, 49, 51, 49).fired() == [11, 13]


def test_a_silence_is_a_step_like_any_other():
    pattern = A.then_next(when(BTC).silent_for("5s")).then(FALL)
    assert Market(pattern).prices(49, 51).tick(10, 49).mark(END).matched() == [[1, 6, 10]]
    assert Market(pattern).prices(49, 51, 52).tick(10, 49).mark(END).matched() == []


def test_no_trade_after_something_is_a_negated_n_of_m_or_a_silence():
    anything = n_of(1, when(BTC).crosses("50"), when(ETH).crosses("50"), in_last="1s")
    market = Market(A.then_not(anything, within="5s")).prices(49, 51).tick(0, 49, ticker=ETH).tick(4, 51, ticker=ETH)
    assert market.mark(END).fired() == []


def test_a_bar_comes_before_a_tick_of_the_time_of_its_end_and_after_those_before():
    up = when(BTC).bar("1m", CLOSE.above("1"))
    late = Market(A.then(up)).tick(0, 49).tick(60, 51).bar(0).bar(60).mark(END)
    assert late.matched() == [[60, 120]]
    early = Market(up.then(A)).tick(0, 49).tick(60, 51).bar(0).mark(END)
    assert early.matched() == [[60, 60]]


def test_the_oldest_begun_match_is_dropped_over_the_bound():
    market = Market(A.then(B), rules=RULES._replace(partials_max=2))
    market.prices(49, 51, 49, 51, 49, 51, 61).mark(END)
    assert market.matched() == [[3, 6], [5, 6]]
    assert market.matcher.counts["partials_overflow"] == 1


def test_matches_whose_window_is_over_do_not_count_for_the_bound():
    market = Market(A.then(B, within="2s"), rules=RULES._replace(partials_max=1))
    market.prices(49, 51, 49, 51, 61).mark(END)
    assert market.matched() == [[3, 4]]
    assert not market.matcher.counts
