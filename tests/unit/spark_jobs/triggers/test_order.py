"""When an event counts: marks, lateness, repeats, sources that stand still."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from relay_client.pattern_builder import CLOSE, when
from spark_jobs.jobs.triggers.engine.values import MatcherRules
from tests.unit.spark_jobs.triggers import worlds
from tests.unit.spark_jobs.triggers.market import BTC, ETH, ID, RULES, Market, S
from tests.unit.spark_jobs.triggers.oracle import World

A = when(BTC).crosses_above("50")
B = when(ETH).crosses_above("60")
STRICT = A.then_next(B)
LATE = RULES._replace(lateness_ns=2 * S)
HOLDING = RULES._replace(hold_ns=30 * S)


def held(market: Market) -> int:
    """Return how many hits all triggers hold back."""
    return sum(len(run.state.queue) for run in market.matcher._runs.values())


def trail(market: Market) -> int:
    """Return how many of BTC's ticks are kept for triggers that ask which event was next."""
    return len(market.matcher._sources[(BTC, 0)].state.trail)


def test_an_event_counts_when_the_mark_has_passed_it_by_the_lateness():
    market = Market(A, rules=LATE).prices(49, 51)
    assert market.mark(3).fired() == []
    assert market.mark("3.000000001").fired() == [1]


def test_a_tick_at_the_frontier_is_not_late_and_one_before_it_is():
    market = Market(A).tick(0, 49).mark(10)
    market.tick("9.999999999", 51).tick(10, 52).mark(20)
    assert market.fired() == [10]
    assert market.matcher.counts == {"late": 1}


def test_a_mark_never_goes_back():
    market = Market(A).tick(0, 49).mark(10).mark(5).tick(7, 51).mark(20)
    assert market.fired() == []
    assert market.matcher.counts["late"] == 1


def test_what_a_mark_has_said_stays_known():
    market = Market(A.then_not(B, within="5s")).prices(49, 51).mark(100, ETH).mark(1, ETH)
    assert market.mark(100, BTC).fired() == [6]


def test_ticks_of_one_time_count_by_their_number_not_by_its_text_or_their_arrival():
    market = Market(A).tick(1, 51, number=10).tick(1, 49, number=9).mark(5)
    assert [f.matched[0].item.number for f in market.firings()] == [10]


def test_a_repeat_is_dropped_before_and_after_it_was_evaluated_also_with_another_time():
    market = Market(A).tick(0, 49, number=1).tick(1, 51, number=2).tick(1, 51, number=2).mark(5)
    market.tick(1, 51, number=2).tick(6, 49, number=1).tick(7, 51, number=2).mark(10)
    assert market.fired() == [1]
    assert market.matcher.counts == {"repeats": 4}


def test_a_revision_counts_until_the_bar_is_evaluated_and_never_after():
    up = when(BTC).bar("1m", CLOSE.above("10"))
    market = Market(up).bar(0, c=11, revision=1).bar(0, c=9, revision=0).bar(60, c=9).mark(200)
    market.bar(60, c=11, revision=1).mark(300)
    assert market.fired() == [60]
    assert market.matcher.counts == {"repeats": 2}


def test_bars_and_ticks_may_have_marks_of_their_own():
    market = Market(A.then(when(BTC).bar("1m", CLOSE.above("1")))).prices(49, 51)
    market.mark(100, period=0).bar(0)
    assert market.fired() == []
    assert market.mark(100, period=60).fired() == [60]


def test_a_trigger_of_several_tickers_waits_for_the_slowest():
    market = Market(A.then(B)).prices(49, 51).tick(0, 59, ticker=ETH).tick(5, 61, ticker=ETH)
    assert market.mark(100, ETH).fired() == []
    assert market.mark(5, BTC).fired() == []
    assert market.mark(6, BTC).fired() == [5]


def test_a_source_that_stands_still_is_waited_for_so_long_and_no_longer():
    market = Market(A.then(B), rules=HOLDING).tick(0, 49, ticker=BTC).tick(0, 59, ticker=ETH).tick(5, 61, ticker=ETH)
    market.mark(2).tick(3, 51)
    assert market.mark(35, ETH).fired() == []
    market.mark(36, ETH)  # BTC is more than 30 s behind what was evaluated: ETH's crossing counts without it
    market.mark(10, BTC).tick(11, 49).tick(12, 51).tick(13, 70, ticker=ETH)
    assert market.mark(40).fired() == []
    assert market.matcher.counts["left_behind"] == 1
    market.tick(50, 59, ticker=ETH).tick(51, 61, ticker=ETH)
    assert market.mark(60).matched() == [[12, 51]]


def test_nothing_fires_on_an_absence_that_is_not_known():
    pattern = A.then_not(B, within="5s")
    market = Market(pattern, rules=HOLDING).prices(49, 51).mark(1, ETH)
    assert market.mark(100, BTC).fired() == []
    assert market.matcher.counts["unsure"] == 1
    known = Market(pattern, rules=HOLDING).prices(49, 51).mark(6, ETH).mark(100, BTC)
    assert known.fired() == [6]


def test_the_very_next_event_is_not_known_either_while_a_source_stands_still():
    pattern = A.then_next(when(BTC).crosses_below("50"))
    both = A.then_next(when(BTC).crosses_below("50")).then(B)
    market = Market(both, rules=HOLDING)
    market.add(pattern, trigger_id="22222222-2222-4222-8222-222222222222")
    market.prices(49, 51, 49).mark(1, ETH).mark(100, BTC)
    assert market.matcher.counts["unsure"] == 1
    assert market.fired("22222222-2222-4222-8222-222222222222") == [2]


def test_a_silent_mark_makes_no_silence():
    market = Market(when(BTC).silent_for("5s")).tick(0, 1)
    for second in range(100):
        market.tick(second, 1, ticker=ETH).mark(second, ETH)
    assert market.fired() == []


def test_what_waits_for_a_mark_is_bounded_and_the_oldest_is_evaluated_without():
    market = Market(A, rules=RULES._replace(waiting_max=8)).prices(*([49, 51] * 10))
    assert market.fired()
    assert market.matcher.counts["forced"] > 0
    assert len(market.matcher._sources[next(iter(market.matcher.sources))].state.intake.waiting) <= 8
    assert market.mark(100).fired() == [float(second) for second in range(1, 20, 2)]


def test_no_silence_is_told_of_time_that_no_mark_has_passed():
    market = Market(when(BTC).silent_for("3s"), rules=RULES._replace(waiting_max=2))
    market.tick(0, 1).tick(10, 1).tick(20, 1).tick(30, 1)
    assert market.fired() == []
    assert market.matcher.counts["unsure"] > 0


def test_what_a_trigger_holds_back_is_bounded():
    market = Market(A.then(B), rules=RULES._replace(queue_max=4)).mark(0)
    for second in range(0, 40, 2):
        market.tick(second, 49).tick(second + 1, 51).mark(second + 2, BTC)
    run = market.matcher._runs[next(iter(market.matcher.triggers))]
    assert len(run.state.queue) <= 4
    assert market.matcher.counts["forced"] == 16
    market.tick(30, 59, ticker=ETH).tick(50, 61, ticker=ETH)
    assert len(market.mark(100).firings()) == 20


def test_events_between_hits_are_kept_once_for_all_triggers_and_no_longer_than_they_are_waited_for():
    market = Market(STRICT).mark(0)
    for number in range(100):
        market.add(STRICT, trigger_id=str(number))
    for second in range(50):
        market.tick(second, 40).mark(second + 1, BTC)
    assert (held(market), trail(market)) == (0, 50)
    market.mark(60, ETH).mark(61, BTC)
    assert (held(market), trail(market)) == (0, 0)


def test_a_trail_is_forgotten_with_the_last_trigger_that_follows_it():
    market = Market(STRICT)
    market.add(A, trigger_id="other")
    market.prices(40, 41, 42).mark(9, BTC)
    assert trail(market) == 3
    market.matcher.remove(ID)
    assert trail(market) == 0


def test_an_event_of_a_source_that_was_slow_still_breaks_a_strict_sequence():
    pattern = A.then_next(when(BTC).crosses_below("50")).then(B)
    for second, expected in (("1.5", []), ("0.5", [6]), (2, [6]), ("2.5", [6])):
        market = Market(pattern).prices(49, 51, 49).mark(9, BTC)
        market.tick(second, 1, ticker=ETH).tick(5, 59, ticker=ETH).tick(6, 61, ticker=ETH)
        assert market.restart().mark(9).fired() == expected, second


def test_a_trail_is_bounded_and_its_followers_go_on_without_the_slow_source():
    market = Market(STRICT, rules=RULES._replace(trail_max=8)).mark(0)
    for second in range(40):
        market.tick(second, 40).mark(second + 1, BTC)
    assert trail(market) <= 8
    assert market.matcher.counts["forced"] > 0


def test_what_all_triggers_hold_back_is_bounded_and_those_that_hold_most_go_on():
    market = Market(A.then(B), rules=RULES._replace(held_max=40)).mark(0)
    for number in range(20):
        market.add(A.then(B), trigger_id=f"flood {number:02}")
    market.add(when(BTC).crosses_above("1000").then(B), trigger_id="few")
    market.tick(0, 900).tick(1, 1001).tick(2, 49).mark(3, BTC)
    for second in range(4, 40, 2):
        market.tick(second, 51).tick(second + 1, 49).mark(second + 2, BTC)
        assert held(market) == market.matcher.held <= 40
    assert market.matcher.counts["held_overflow"] > 0
    market.tick(3, 59, ticker=ETH).tick(3.5, 61, ticker=ETH).mark(100)
    assert market.fired("few") == [3.5]
    assert market.matcher.counts["left_behind"] > 0


def test_begun_matches_of_all_triggers_are_bounded_and_those_go_that_have_most():
    pattern = A.then(when(BTC).crosses_above("1000"))
    market = Market(pattern, rules=RULES._replace(begun_max=200))
    for number in range(20):
        market.add(pattern, trigger_id=f"flood {number:02}")
    market.add(when(BTC).crosses_above("900").then(when(BTC).crosses_above("1000")), trigger_id="few")
    market.tick(0, 49).tick(1, 901).tick(2, 49).mark(3)
    for second in range(4, 40, 2):
        market.tick(second, 51).tick(second + 1, 49).mark(second + 2)
        assert market.matcher.begun == sum(len(r.partials) for r in market.matcher._runs.values()) <= 200
    assert market.matcher.counts["begun_overflow"] > 0
    assert market.restart().tick(50, 1001).mark(60).fired("few") == [50]


def test_nothing_fires_on_an_absence_that_was_left_out_because_of_the_bound():
    pattern = A.then_not(B, within="5s")
    market = Market(pattern, rules=RULES._replace(held_max=1)).prices(49, 51, 49, 51).mark(9, BTC)
    market.tick("2.5", 59, ticker=ETH).tick("2.6", 61, ticker=ETH).mark(100)
    assert [second for second in market.fired() if second < 8] == []
    assert market.matcher.counts["unsure"] > 0


def test_events_that_nobody_waits_for_leave_nothing_behind():
    market = Market(A).tick(0, 1, ticker=ETH).bar(0).mark(5, ETH)
    assert market.matcher.sources == {(BTC, 0)}
    assert not market.matcher.counts


def test_an_impossible_scale_is_counted_and_passed_over():
    market = Market(A)
    tick = market.tick(0, 49).matcher._sources[(BTC, 0)].state.intake.waiting[1]
    for broken in (tick._replace(number=2, price_decimals=31), tick._replace(number=3, amount_decimals=-1)):
        assert market.matcher.on_tick(broken) == []
    assert market.matcher.counts == {"unreadable": 2}


@settings(max_examples=25, deadline=None)
@given(wanted=st.lists(worlds.wanteds(), min_size=1, max_size=3), seed=st.integers(0, 2**32))
def test_under_every_bound_too_batches_and_restarts_change_nothing(wanted, seed):
    """Marks that stand still, late events, bounds that are reached: the same input gives the same firings."""
    rng = random.Random(seed)
    last = dict.fromkeys(worlds.TICKERS, worlds.BASE + 40 * worlds.HALF)
    world = World(worlds.ticks(rng, 30), worlds.bars(rng, 30), worlds.known_at(last))
    sent = worlds.arrival(world, last, rng)
    rng.shuffle(sent)
    rules = MatcherRules(lateness_ns=S, hold_ns=2 * S, waiting_max=12, queue_max=6, partials_max=3, window_ticks_max=8)
    rules = rules._replace(
        held_max=rng.choice([5, 500]), begun_max=rng.choice([4, 500]), trail_max=rng.choice([4, 500])
    )
    triggers = [worlds.trigger_of(f"{n:08d}", w) for n, w in enumerate(wanted)]
    whole = worlds.run(triggers, sent, random.Random(1), rules)
    assert worlds.run(triggers, sent, random.Random(2), rules, restarts=0.2) == whole
