"""Every condition at its exact edges."""

from __future__ import annotations

import pytest

from relay_client.pattern_builder import CLOSE, HIGH, LOW, OPEN, TRADES, VOLUME, n_of, when
from tests.unit.spark_jobs.triggers.market import BTC, ETH, Market

END = 1000


def fired(pattern, *prices, **options):
    return Market(pattern, **options).prices(*prices).mark(END).fired()


@pytest.mark.parametrize(
    ("method", "prices", "seconds"),
    [
        ("crosses_above", [49, 51], [1]),
        ("crosses_above", [49, 50, 51], [2]),
        ("crosses_above", [49, 50, 50, 49], []),
        ("crosses_above", [49, 50, "50.00", "50.01"], [3]),
        ("crosses_above", [51, 52, 50, 51], []),
        ("crosses_above", [51, 49, 51, 49, 51], [2, 4]),
        ("crosses_above", [50, 51, 49, 51], [3]),
        ("crosses_above", [51], []),
        ("crosses_below", [51, 50, 49], [2]),
        ("crosses_below", [51, 50, 51], []),
        ("crosses_below", [49, 50, 49], []),
        ("crosses", [49, 51, 50, 50, 49], [1, 4]),
        ("crosses", [50, 50, 50], []),
        ("crosses_above", ["49.999999999999999999", "50.000000000000000001"], [1]),
    ],
)
def test_a_threshold_is_crossed_from_one_side_to_the_other_and_touching_it_is_not_crossing(method, prices, seconds):
    assert fired(getattr(when(BTC), method)("50"), *prices) == seconds


def test_a_threshold_of_a_negative_price_is_crossed_too():
    assert fired(when(BTC).crosses_below("-37.63"), "0", "-37.63", "-37.64") == [2]


def test_what_was_before_the_start_crosses_nothing():
    market = Market(when(BTC).crosses_above("50"), since=1)
    assert market.prices(49, 51, 52).mark(END).fired() == []
    assert market.prices(49, 51, start=END + 1).mark(2 * END).fired() == [END + 2]


def test_a_side_that_was_left_before_the_start_is_not_known():
    market = Market(when(BTC).crosses_below("1"))
    market.add(when(BTC).crosses_above("50"), trigger_id="later", since=1)
    assert market.prices(49, 50, 51).mark(END).fired("later") == []
    assert market.prices(50, 49, 50, 51, start=END).mark(2 * END).fired("later") == [END + 3]


def test_thresholds_of_many_triggers_at_one_level_fire_together():
    market = Market(when(BTC).crosses_above("50"))
    ids = [f"{n:08d}-1111-4111-8111-111111111111" for n in range(5)]
    for trigger_id in ids:
        market.add(when(BTC).crosses("50"), trigger_id=trigger_id)
    market.prices(49, 51, 52, 49).mark(END)
    assert market.fired() == [1]
    assert all(market.fired(trigger_id) == [1, 3] for trigger_id in ids)


@pytest.mark.parametrize(
    ("pattern", "prices", "seconds"),
    [
        # 100 to 110 is 10 % exactly.
        (when(BTC).rises("10", in_last="1m"), [100, 110], [1]),
        (when(BTC).rises("10.000001", in_last="1m"), [100, 110], []),
        (when(BTC).rises("10", in_last="1m"), [100, "109.999999"], []),
        # Once while it lasts, again when it has become so again.
        (when(BTC).rises("10", in_last="1m"), [100, 110, 111, 109, 110], [1, 4]),
        # What is exactly as old as the window is outside.
        (when(BTC).rises("10", in_last="2s"), [100, 109, 110], []),
        (when(BTC).rises("10", in_last="2001ms"), [100, 109, 110], [2]),
        # From the lowest of the window, or from its first.
        (when(BTC).rises("10", in_last="1m"), [110, 100, 110], [2]),
        (when(BTC).rises("10", in_last="1m", from_first=True), [110, 100, 110, 121], [3]),
        (when(BTC).falls("10", in_last="1m"), [100, 120, 108], [2]),
        (when(BTC).falls("10", in_last="1m", from_first=True), [100, 120, 108, 90], [3]),
        (when(BTC).falls("100", in_last="1m"), [100, 0], [1]),
        (when(BTC).moves("10", in_last="1m"), [100, 110, 99], [1]),
        (when(BTC).moves("10", in_last="3s"), [100, 110, 105, 104, 103, 93], [1, 5]),
        # A third is no decimal number: compared exactly all the same.
        (when(BTC).rises("33.333333", in_last="1m"), [3, 4], [1]),
        (when(BTC).rises("33.333334", in_last="1m"), [3, 4], []),
        # Nothing is a percentage of nothing.
        (when(BTC).moves("1", in_last="1m"), [0, 5], []),
    ],
)
def test_a_move_is_reached_at_exactly_its_percentage(pattern, prices, seconds):
    assert fired(pattern, *prices) == seconds


def test_a_young_trigger_looks_back_to_its_start_and_shares_the_window_of_the_old_ones():
    market = Market(when(BTC).rises("10", in_last="1h"))
    other = "22222222-2222-4222-8222-222222222222"
    market.add(when(BTC).rises("10", in_last="1h"), trigger_id=other, since=1)
    market.prices(100, 105, 110, "115.5").mark(END)
    assert market.fired() == [2]
    assert market.fired(other) == [3]


def test_the_old_window_is_shared_only_when_all_of_it_lies_behind_the_start():
    market = Market(when(BTC).rises("15", in_last="1s"))
    market.add(when(BTC).rises("15", in_last="1s"), trigger_id="later", since="1.000000001")
    market.tick(1, 100).tick("1.999999999", 110).tick("1.999999999", 120).mark(END)
    assert market.fired("later") == []
    assert len(market.fired()) == 1


def test_a_young_trigger_is_not_hindered_by_older_prices_below_nothing():
    market = Market(when(BTC).rises("10", in_last="1h"))
    market.add(when(BTC).moves("10", in_last="1h"), trigger_id="later", since=2)
    assert market.prices(-5, 0, 100, 110).mark(END).fired() == []
    assert market.fired("later") == [3]


def test_the_oldest_tick_of_a_window_is_one_nanosecond_inside():
    market = Market(when(BTC).rises("10", in_last="2s", from_first=True))
    assert market.tick("0.000000001", 100).tick(1, 105).tick(2, 110).mark(END).fired() == [2]


def test_a_later_trigger_averages_bars_from_its_own_start():
    market = Market(when(BTC).volume_above("1", average_of=2, period="1m")).bar(0).bar(60).mark(130)
    market.add(when(BTC).volume_above("1", average_of=2, period="1m"), trigger_id="later")
    market.bar(120, v="2").bar(180, v="3").bar(240, v="4").mark(END)
    assert market.fired() == [180, 240, 300]
    assert market.fired("later") == [300]


def test_a_restart_does_not_forget_that_a_move_or_a_surge_lasts():
    market = Market(when(BTC).rises("10", in_last="2s"))
    market.add(when(BTC).volume_above("2", average_of=1, window="2s"), trigger_id="surge")
    market.prices(100, 100, 100, 100, 100, 120).tick("5.1", 121, "9").mark(6)
    assert len(market.fired("surge")) == len(market.fired()) == 1
    market.restart().tick(6, 120, "1").mark(END)
    assert len(market.fired("surge")) == len(market.fired()) == 1


def test_a_bars_volume_is_compared_with_the_mean_of_the_bars_before_it():
    market = Market(when(BTC).volume_above("2", average_of=2, period="1m"))
    for minute, volume in enumerate(["1", "3", "4", "7", "11.000000000000000001", "99"]):
        market.bar(minute * 60, v=volume)
    # 4 = 2 x mean(1, 3) is not above; 7 = 2 x 3.5 neither; then above 2 x 5.5 by a hair.
    assert market.mark(END).fired() == [5 * 60, 6 * 60]


def test_bars_without_a_volume_neither_fire_nor_count():
    market = Market(when(BTC).volume_above("1", average_of=1, period="1m"))
    for minute, volume in enumerate(["5", None, "6", None]):
        market.bar(minute * 60, v=volume)
    assert market.mark(END).fired() == [3 * 60]


def test_the_volume_of_ticks_is_compared_with_the_windows_before():
    market = Market(when(BTC).volume_above("2", average_of=2, window="10s"))
    market.tick(0, 1, "3").tick(9, 1, "1").tick(10, 1, "2")
    # At 29: (19, 29] against half of (-1, 19], which begins before the start.
    market.tick(29, 1, "6")
    # At 30: (20, 30] holds 6 + 0.1; (0, 20] without what came at 0 holds 3.
    market.tick(30, 1, "0.1").tick(31, 1, "1").tick(45, 1, "7.1").mark(END)
    assert market.fired() == [30]


def test_over_a_mean_of_nothing_any_amount_is_too_much():
    market = Market(when(BTC).volume_above("1000", average_of=1, window="1s"))
    assert market.tick(0, 1, "1").tick(5, 1, "0").tick(10, 1, "0.0001").mark(END).fired() == [10]


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [
        (CLOSE.above("11"), False),
        (CLOSE.above("10.99"), True),
        (CLOSE.at_least("11"), True),
        (OPEN.below(CLOSE), True),
        (OPEN.at_most("10.0"), True),
        (LOW.below("9"), False),
        (HIGH.equals("12.000"), True),
        (HIGH.differs_from("12.000"), False),
        (VOLUME.at_least("1.5"), True),
        (VOLUME.above("1.5"), False),
        (TRADES.equals("7"), True),
        (TRADES.above(6), True),
    ],
)
def test_a_bar_is_compared_exactly(comparison, holds):
    market = Market(when(BTC).bar("1m", comparison)).bar(0, 10, 12, 9, 11, "1.5", 7).mark(END)
    assert market.fired() == ([60] if holds else [])


def test_a_bar_has_to_fulfil_everything_and_what_is_not_known_fulfils_nothing():
    market = Market(when(BTC).bar("1m", CLOSE.above(OPEN), VOLUME.differs_from("5")))
    market.bar(0, o=10, c=11, v="6").bar(60, o=10, c=9, v="6").bar(120, o=10, c=11, v=None)
    assert market.mark(END).fired() == [60]


def test_bars_of_another_period_are_not_looked_at():
    market = Market(when(BTC).bar("5m", CLOSE.above("1"))).bar(0).bar(60).bar(0, period=300)
    assert market.mark(END).fired() == [300]


def test_a_silence_is_full_when_its_time_has_passed_by_the_tickers_own_mark():
    market = Market(when(BTC).silent_for("10s")).tick(5, 1)
    assert market.mark(1000, ETH).mark(15, BTC).fired() == []
    assert market.mark("15.000000001", BTC).fired() == [15]
    assert market.mark(100, BTC).fired() == [15]
    assert market.tick(200, 1).mark(210, BTC).mark(500, BTC).fired() == [15, 210]
    assert not market.matcher.counts


@pytest.mark.parametrize(("second", "seconds"), [("9.999999999", ["19.999999999"]), (10, [10, 20]), (11, [10, 21])])
def test_a_tick_at_the_very_end_of_a_silence_comes_after_it(second, seconds):
    market = Market(when(BTC).silent_for("10s")).tick(0, 1).tick(second, 1).mark(30)
    assert market.fired() == [float(s) for s in seconds]


def test_a_silence_begins_with_the_trigger_when_nothing_was_traded():
    market = Market(when(BTC).silent_for("10s"), since=3).mark(20)
    assert market.fired() == [13]
    market.add(when(BTC).silent_for("15s"), trigger_id="later", since=3)
    assert market.mark(50).fired("later") == [35]


def test_n_of_m_holds_when_enough_different_ones_lie_in_the_window():
    pattern = n_of(
        2, when(BTC).crosses_above("50"), when(ETH).crosses_above("50"), when(BTC).crosses_above("60"), in_last="10s"
    )
    market = Market(pattern).tick(0, 49).tick(1, 51).tick(2, 49).tick(3, 51)  # the same one twice
    market.tick(1, 49, ticker=ETH).tick(13, 51, ticker=ETH)  # exactly 10 s after the last
    assert market.mark(20).fired() == []
    market.tick(20, 61).mark(30)
    assert market.fired() == [20]


def test_n_of_m_holds_again_when_it_has_become_so_again():
    pattern = n_of(2, when(BTC).crosses_above("50"), when(BTC).crosses_below("50"), in_last="3s")
    assert fired(pattern, 49, 51, 49, 51, 51, 51, 51, 49, 51) == [2, 8]


def test_a_repeat_counts_among_the_last_bars():
    market = Market(when(BTC).bar("1m", CLOSE.above(OPEN)).times(3, of_last=5))
    for minute, close in enumerate([11, 9, 11, 9, 11, 11, 9, 9, 9, 11, 11, 11]):
        market.bar(minute * 60, o=10, c=close)
    # Bars 0, 2, 4 are three of five; bar 5 only keeps it so; bar 11 makes it so again.
    assert market.mark(END).fired() == [5 * 60, 12 * 60]


def test_a_repeat_counts_inside_a_time():
    up = when(BTC).crosses_above("50")
    assert fired(up.times(2, in_last="2s"), 49, 51, 49, 51) == []
    # At 3.001 the first has left, so that the third makes it so again.
    assert fired(up.times(2, in_last="2001ms"), 49, 51, 49, 51, 49, 51) == [3, 5]
    assert fired(up.times(2, in_last="1m"), 49, 51, 49, 51, 49, 51) == [3]
    assert fired(up.times(1, in_last="2s"), 49, 51, 49, 51) == [1, 3]
