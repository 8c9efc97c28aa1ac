"""Cooldown, one-shot, expiry; triggers that come and go."""

from __future__ import annotations

import pytest

from relay.engine.patterns import PatternError
from relay_client.pattern_builder import CLOSE, n_of, when
from spark_jobs.jobs.triggers.engine.values import Ended, EndReason, Trigger
from tests.unit.spark_jobs.triggers.market import BTC, ETH, ID, RULES, Market

A = when(BTC).crosses_above("50")
FALL = when(BTC).crosses_below("50")
OTHER = "22222222-2222-4222-8222-222222222222"


def test_a_cooldown_is_over_exactly_after_its_time_and_counts_from_the_last_firing():
    market = Market(A, cooldown=4).prices(*[49, 51] * 5).mark(100)
    assert market.fired() == [1, 5, 9]
    assert market.matcher.counts["cooled_down"] == 2


def test_a_one_shot_fires_once_and_is_over_also_when_it_is_added_again():
    market = Market(A, one_shot=True).prices(49, 51, 49, 51).mark(100)
    assert market.fired() == [1]
    assert market.outcomes[-1] == Ended(ID, EndReason.ONE_SHOT)
    assert not market.matcher.triggers
    assert not market.matcher.sources
    assert market.add(A, one_shot=True) is False
    market.restart()
    assert market.add(A, one_shot=True) is False
    assert market.matcher.ended == {ID: EndReason.ONE_SHOT}
    assert market.matcher.remove(ID)
    assert market.add(A, one_shot=True) is True


def test_how_many_are_remembered_as_over_is_bounded():
    market = Market(A, one_shot=True, rules=RULES._replace(ended_max=2))
    for number in range(4):
        market.add(A, trigger_id=str(number), one_shot=True)
    market.prices(49, 51).mark(10)
    assert len(market.firings("3")) == 1
    assert list(market.matcher.ended) == ["2", "3"]


@pytest.mark.parametrize(("second", "fires"), [("9.999999999", True), (10, False)])
def test_events_from_the_expiry_on_do_not_exist(second, fires):
    market = Market(A, expires=10).tick(0, 49).tick(second, 51).mark(100)
    assert len(market.firings()) == fires
    assert market.outcomes[-1] == Ended(ID, EndReason.EXPIRED)


@pytest.mark.parametrize(("expires", "fired"), [(6, []), ("6.000000001", [6])])
def test_a_window_that_ends_with_the_expiry_fires_nothing(expires, fired):
    market = Market(A.then_not(FALL, within="5s"), expires=expires).prices(49, 51).mark(100)
    assert market.fired() == fired


def test_a_trigger_expires_by_its_evaluation_not_before():
    market = Market(A.then(when(ETH).crosses("1")), expires=10).mark(100, BTC)
    assert market.outcomes == []
    market.mark(10, ETH)
    assert market.outcomes == [Ended(ID, EndReason.EXPIRED)]


def test_a_trigger_that_is_added_later_sees_nothing_of_what_was_evaluated():
    market = Market(FALL).prices(49, 51).mark(2)
    market.add(A, trigger_id=OTHER, since=0)
    market.tick(2, 52).mark(10)
    assert market.fired(OTHER) == []
    assert market.prices(49, 51, start=20).mark(30).fired(OTHER) == [21]


def test_a_known_trigger_stays_as_it_is_and_a_changed_one_begins_anew():
    market = Market(A).tick(0, 49)
    assert market.add(A, since=1) is True
    assert market.tick(1, 51).mark(2).fired() == [1]
    market.tick(3, 49).mark(4)
    assert market.add(A, cooldown=1) is True
    assert market.tick(5, 51).mark(10).fired() == [1]


def test_a_removed_trigger_fires_no_more_and_leaves_the_others_alone():
    builders = [
        A,
        when(BTC).rises("1", in_last="5m"),
        when(BTC).rises("2", in_last="5m", from_first=True),
        when(BTC).volume_above("1", average_of=2, window="1s"),
        when(BTC).volume_above("1", average_of=2, period="1m"),
        when(BTC).bar("1m", CLOSE.above("1")),
        when(BTC).silent_for("10s"),
        n_of(1, A, when(ETH).crosses("1"), in_last="1m"),
        A.then_next(FALL),
        A.times(2, of_last=3),
    ]
    market = Market(A)
    for place, builder in enumerate(builders):
        for copy in "ab":
            market.add(builder, trigger_id=f"{place}{copy}")

    def happen(start):
        market.prices(49, 51, 49, 51, start=start, ticker=ETH).prices(49, 51, 49, 51, start=start).bar(start - 60)
        market.bar(start, v="2").bar(start + 60, v="3").mark(start + 200)

    happen(60)
    fired = {place: market.fired(f"{place}a") for place in range(len(builders))}
    assert all(fired.values())
    for place in range(len(builders)):
        assert market.matcher.remove(f"{place}a")
        assert not market.matcher.remove(f"{place}a")
    happen(600)
    for place in range(len(builders)):
        assert market.fired(f"{place}a") == fired[place]
        assert len(market.fired(f"{place}b")) > len(fired[place])
        market.matcher.remove(f"{place}b")
    market.matcher.remove(ID)
    assert not market.matcher.sources
    assert not market.matcher._periods
    assert not market.matcher._users


def test_a_wrong_pattern_is_refused_and_changes_nothing():
    market = Market(A)
    for pattern in (b"", b"\xff\xff", b"\x0a\x02\x1a\x00"):
        with pytest.raises(PatternError):
            market.matcher.add(Trigger(OTHER, pattern, 0))
        with pytest.raises(PatternError):
            market.matcher.add(Trigger(ID, pattern, 0))
    assert set(market.matcher.triggers) == {ID}
