"""Bars from ticks: when they are final, what revises them, and what is said of time that was not seen."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from relay.errors import StorageError
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, GapNotice, GapState, MadeBar
from tests.unit.spark_jobs.bars.log_world import DAY, SECOND, TICKER, LogWorld, beat, begins, told, trade


def gap(state: GapState, first: int | None, last: int | None, from_s: float, to_s: float) -> GapNotice:
    return GapNotice(state, first, last, DAY + round(from_s * SECOND), DAY + round(to_s * SECOND))


def warm(periods: tuple[int, ...] = (60,), **rules: int) -> LogWorld:
    """A ticker that has been live since ten seconds after midnight, and is at 00:01:00."""
    world = LogWorld(periods, BarRules(**rules))
    world.read([*begins(1, 10), trade(1, 10), beat(10), beat(60)])
    return world


def numbers(bar: MadeBar) -> tuple[int, ...]:
    return (bar.open, bar.high, bar.low, bar.close, bar.buy, bar.sell, bar.quote, bar.trades)


def test_the_first_bucket_is_incomplete_and_made_from_the_store() -> None:
    world = warm()
    assert told(world.said) == [(0, 0, True)]
    assert [r.start_ns for r in world.recomputed] == [DAY]


def test_a_bucket_is_final_when_the_tickers_own_time_has_passed_it() -> None:
    world = warm()
    world.read([trade(2, 61, 110, 5), trade(3, 119.999, 90, 7, taker_buy=False), trade(4, 121), beat(119.999)])
    assert told(world.said) == [(0, 0, True)]
    world.read([beat(120)])
    assert told(world.said[1:]) == [(60, 0, False)]
    assert numbers(world.said[-1]) == (110, 110, 90, 90, 5, 7, 110 * 5 + 90 * 7, 2)
    assert (world.said[-1].first_number, world.said[-1].last_number) == (2, 3)


def test_lateness_waits_longer() -> None:
    world = warm(lateness_ns=2 * SECOND)
    world.read([trade(2, 61), beat(121.999)])
    assert told(world.said) == [(0, 0, True)]
    world.read([beat(122)])
    assert told(world.said) == [(0, 0, True), (60, 0, False)]


def test_only_clock_time_makes_no_bar_case_1() -> None:
    world = warm()
    world.read([beat(seconds) for seconds in range(61, 700)])
    assert told(world.said) == [(0, 0, True)]


def test_backfilled_trades_of_one_second_fall_into_their_own_buckets_case_3() -> None:
    world = LogWorld((60, 300))
    world.read(begins(1, 0))
    world.read(trade(number + 1, number * 60) for number in range(500))
    world.read([beat(500 * 60)])
    assert len([bar for bar in world.last.values() if bar.period_seconds == 300]) == 100


def test_a_bucket_inside_an_open_gap_waits_and_is_whole_after_the_fill_case_5_59() -> None:
    world = warm()
    world.read([trade(2, 61), gap(GapState.OPEN, 3, None, 61, 0), beat(200)])
    assert told(world.said) == [(0, 0, True)]
    world.read([trade(9, 250), gap(GapState.OPEN, 3, 8, 61, 250), gap(GapState.FILLED, 3, 2, 61, 250), beat(251)])
    assert told(world.said) == [(0, 0, True)]
    world.read([*(trade(number, 40 * number - 40) for number in range(3, 9)), beat(252)])
    world.read([gap(GapState.FILLED, 3, 8, 61, 250), beat(300)])
    assert told(world.said[1:]) == [(60, 0, False), (120, 0, False), (180, 0, False), (240, 0, False)]


def test_a_bucket_with_lost_trades_is_final_and_incomplete() -> None:
    world = warm()
    world.read([trade(2, 61), gap(GapState.OPEN, 3, 3, 61, 70), trade(4, 70), beat(130)])
    assert told(world.said) == [(0, 0, True)]
    world.read([gap(GapState.UNFILLABLE, 3, 3, 61, 70), beat(131)])
    assert told(world.said[1:]) == [(60, 0, True)]


def test_a_late_trade_makes_a_revision_and_a_repeat_makes_none() -> None:
    world = warm()
    world.read([trade(2, 61), trade(4, 63), beat(120), trade(3, 62, 120), trade(3, 62, 120), beat(121), beat(122)])
    assert told(world.said[1:]) == [(60, 0, False), (60, 1, False)]
    assert world.said[-1].high == 120
    assert world.book.tickers[TICKER].repeats == 1


def test_a_trade_later_than_what_is_kept_is_revised_from_the_store() -> None:
    world = warm(keep_ns=60 * SECOND)
    world.read([trade(2, 61), trade(4, 300), beat(400)])
    recomputed = len(world.recomputed)
    world.read([trade(3, 62, 130), beat(401)])
    assert len(world.recomputed) == recomputed + 1
    assert told(world.said)[-1] == (60, 1, False)
    assert world.said[-1].high == 130


def test_equal_times_are_ordered_by_the_trades_number_in_both_orders_of_arrival_case_14() -> None:
    for order in ([2, 3], [3, 2]):
        world = warm()
        world.read([*(trade(n, 61, {2: 4835, 3: 4832}[n]) for n in order), beat(120)])
        assert (world.said[-1].open, world.said[-1].close) == (4835, 4832)


def test_numbers_are_compared_as_numbers_not_as_text_case_14() -> None:
    world = LogWorld()
    world.read([*begins(1, 0), trade(8, 1), beat(60)])
    world.read([trade(10, 61, 200), trade(9, 61, 100), beat(120)])
    assert (world.said[-1].open, world.said[-1].close) == (100, 200)


def test_a_trade_on_the_boundary_opens_the_next_bar() -> None:
    world = warm()
    world.read([trade(2, 60, 100), trade(3, 120, 200), beat(180)])
    assert [(bar.start_ns - DAY) // SECOND for bar in world.said] == [0, 60, 120]
    assert world.said[1].close == 100


def test_weeks_begin_on_monday_case_10() -> None:
    world = LogWorld((604_800,))
    world.read([*begins(1, 0), trade(1, 0), beat(1_209_600)])
    start_s = world.said[0].start_ns // SECOND
    assert (start_s // 86_400 + 3) % 7 == 0
    assert world.said[0].incomplete


def test_minutes_1_2_and_60_roll_up_by_time_case_7() -> None:
    world = warm((120,))
    world.read([trade(2, 60), trade(3, 120), trade(4, 3600), beat(4000)])
    assert [(bar.start_ns - DAY) // SECOND for bar in world.said] == [0, 120, 3600]


def test_the_first_trade_opens_a_bar_not_the_close_before_it_case_8() -> None:
    world = warm()
    world.read([trade(2, 61, 500), trade(3, 125, 700), beat(200)])
    assert [bar.open for bar in world.said] == [100, 500, 700]


def test_a_feed_that_stops_ends_its_last_bucket_as_incomplete_and_a_filled_stop_revises_it() -> None:
    world = warm()
    world.read([trade(2, 61), gap(GapState.OPEN, 3, None, 61, 0), beat(61, is_down=True)])
    world.clock(119)
    assert told(world.said[1:]) == []
    world.clock(120)
    assert told(world.said[1:]) == [(60, 0, True)]
    world.clock(121)
    world.read([gap(GapState.OPEN, 3, None, 61, 0), trade(3, 62, 99), gap(GapState.FILLED, 3, 2, 61, 62)])
    world.read([trade(4, 130), beat(131, attempt=2)])
    assert told(world.said[2:]) == [(60, 1, False)]
    assert world.said[-1].low == 99


def test_the_clock_ends_no_bucket_of_a_feed_that_goes_on() -> None:
    world = warm()
    world.read([trade(2, 61), beat(62)])
    world.clock(100_000)
    assert told(world.said) == [(0, 0, True)]


def test_beats_of_an_attempt_that_was_replaced_are_ignored() -> None:
    world = warm()
    world.read([trade(2, 61), beat(62, attempt=3), beat(500, attempt=2)])
    assert told(world.said) == [(0, 0, True)]


def test_running_bars_are_shown_once_for_each_change_and_never_as_final() -> None:
    world = warm((60, 3600))
    world.read([trade(2, 61)])
    shown = world.book.running()
    assert [(bar.period_seconds, bar.is_final, bar.incomplete) for bar in shown] == [
        (60, False, False),
        (3600, False, True),
    ]
    assert world.book.running() == []
    world.read([trade(3, 62)])
    # The hour began before the first beat: what came earlier is in the store, and added when the bar is final.
    assert [bar.trades for bar in world.book.running()] == [2, 2]


def test_another_ticker_makes_nothing_final() -> None:
    world = warm()
    world.read([trade(2, 61)])
    made = world.book.on_beat("ETH/USDT.BINANCE", beat(5000))
    assert made == []
    assert told(world.said) == [(0, 0, True)]


def test_a_period_that_is_asked_for_later_has_its_first_bucket_from_the_store() -> None:
    world = warm()
    world.read([trade(2, 61, 300)])
    world.periods = (60, 120)
    world.book.want(TICKER)
    world.read([trade(3, 100, 200), beat(240)])
    longer = [bar for bar in world.said if bar.period_seconds == 120]
    assert [(bar.open, bar.close, bar.trades, bar.incomplete) for bar in longer] == [(100, 200, 3, True)]


def test_numbers_of_other_scales_are_brought_together_exactly() -> None:
    world = warm()
    world.read([trade(2, 61, 101), trade(3, 62)._replace(price=1_005, price_decimals=3, amount=5, amount_decimals=8)])
    world.read([beat(120)])
    bar = world.said[-1]
    assert (bar.price_decimals, bar.open, bar.close, bar.amount_decimals) == (3, 1010, 1005, 8)
    assert bar.buy == 10**6 + 5
    assert (bar.quote_decimals, bar.quote) == (11, 101 * 10**7 + 1_005 * 5)


def test_after_records_that_are_missing_what_was_not_final_comes_from_the_store() -> None:
    world = warm()
    world.read([trade(2, 61), beat(62)])
    lost = trade(3, 63, 777)._replace(offset=world.offset)
    world.stored[3], world.offset = lost, world.offset + 1
    world.book.doubt(TICKER)
    world.read([trade(4, 64), beat(65), trade(5, 130), beat(180)])
    assert told(world.said[1:]) == [(60, 0, False), (120, 0, False)]
    assert (world.said[1].high, world.said[1].trades) == (777, 3)


def test_state_that_is_cut_or_damaged_is_refused() -> None:
    world = warm()
    world.read([trade(2, 61), gap(GapState.OPEN, 3, 3, 61, 70), trade(4, 70)])
    state = world.book.encode()
    for length in range(len(state)):
        with pytest.raises(StorageError):
            BarBook(BarRules(), lambda _: ()).restore(state[:length])
    for place in range(len(state)):
        bent = bytearray(state)
        bent[place] ^= 0x10
        with pytest.raises(StorageError):
            BarBook(BarRules(), lambda _: ()).restore(bytes(bent))


def test_sums_beyond_64_bits_are_in_the_state() -> None:
    world = LogWorld()
    world.read([beat(0), *(trade(n, 60 + n, price=6 * 10**12, amount=10**10) for n in range(3))])
    world.restart()
    [running] = world.book.running()
    assert (running.quote, running.quote > 2**64) == (18 * 10**22, True)


def older_state(price: int, amount: int) -> dict[str, Any]:
    """A ticker as it was written with the whole of a closed bucket's bar: two trades at 61 and 62 s, one at 131 s."""

    def sums(first_s: int, last_s: int, trades: int) -> dict[str, Any]:
        ends = {"first": [DAY + first_s * SECOND, first_s - 60, 1], "last": [DAY + last_s * SECOND, last_s - 60, 2]}
        scales = {"price_decimals": 2, "amount_decimals": 2, "quote_decimals": 4}
        prices = dict.fromkeys(("open", "high", "low", "close"), price)
        buy = amount * trades
        return {**scales, **ends, **prices, "buy": buy, "sell": 0, "quote": price * buy, "trades": trades}

    closed, running = sums(61, 62, 2), sums(131, 131, 1)
    start_ns = DAY + 60 * SECOND
    bar = MadeBar(TICKER, 60, start_ns, 2, *[price] * 4, 2, 2 * amount, 0, 4, closed["quote"], 2, 1, 2, True, True, 3)
    series = {
        "ticker": TICKER,
        "period_seconds": 60,
        "active_ns": DAY + 1,
        "floor_ns": DAY,
        "open": {DAY + 120 * SECOND: {"sums": running, "published": None}},
        "closed": {start_ns: {"sums": closed, "published": bar}},
        "touched": [],
        "stored": [],
        "moving": [DAY + 120 * SECOND],
    }
    return {
        "ticker": TICKER,
        "numbers": {"firsts": [1], "lasts": [2], "forgotten": 0},
        "gaps": {"open": [], "lost": [], "known_from_ns": DAY + 61 * SECOND},
        "series": {60: series},
        "reached_ns": DAY + 130 * SECOND,
        "newest_ns": DAY + 131 * SECOND,
        "trade_offset": 4,
        "gap_offset": -1,
        "attempt": 1,
        "repeats": 0,
        "is_down": False,
    }


@pytest.mark.parametrize(
    ("magic", "encode", "price"),
    [(b"MRBARS1\n", msgspec.msgpack.encode, 777), (b"MRBARS2\n", msgspec.json.encode, 6 * 10**12)],
)
def test_states_of_older_forms_are_read_and_their_closed_bars_revised(
    magic: bytes, encode: Callable[[object], bytes], price: int
) -> None:
    amount = 10**10
    body = encode({TICKER: older_state(price, amount)})
    world = LogWorld()
    world.book.restore(magic + zlib.crc32(body).to_bytes(4, "little") + body)
    world.restart()
    world.book.on_trade(TICKER, trade(3, 63, price=price, amount=amount)._replace(offset=5))
    [bar] = world.book.on_beat(TICKER, beat(135))
    assert isinstance(bar, MadeBar)
    assert (bar.start_ns, bar.revision, bar.trades, bar.quote) == (DAY + 60 * SECOND, 4, 3, 3 * price * amount)
    assert [running.start_ns for running in world.book.running()] == [DAY + 120 * SECOND]


def test_attempts_that_a_manager_counts_anew_are_heard_when_the_others_are_long_past() -> None:
    world = LogWorld()
    world.read([beat(0, attempt=57), trade(1, 61), beat(90, attempt=57), trade(2, 100)])
    world.read([beat(200, attempt=1), beat(689, attempt=1, is_down=True)])
    assert told(world.said) == []
    world.read([beat(691, attempt=1)])
    assert told(world.said) == [(60, 0, True)]
    world.read([trade(3, 700), beat(780, attempt=2), trade(4, 790), beat(900, attempt=1)])
    assert told(world.said) == [(60, 0, True), (660, 0, False)]


def test_open_and_close_do_not_depend_on_which_batch_brought_which_trade_case_15() -> None:
    """The minute's trades come in two batches; no row of one batch survives because it came first."""
    made = []
    for batches in (
        [[trade(4, 62, 400), trade(5, 63, 500)], [trade(3, 61, 300)]],
        [[trade(3, 61, 300), trade(5, 63, 500)], [trade(4, 62, 400)]],
    ):
        world = warm()
        world.read([trade(2, 60, 200)])
        for batch in batches:
            world.read(batch)
        world.read([beat(120)])
        made.append((world.said[-1].open, world.said[-1].high, world.said[-1].close, world.said[-1].trades))
    assert made == [(200, 500, 500, 4)] * 2


def test_a_late_trade_is_never_dropped_however_far_another_ticker_is_ahead_case_138() -> None:
    """No watermark: what comes late revises its bar, in the batch in which it comes."""
    world = warm()
    world.book.on_beat("ETH/USDT.BINANCE", beat(1_000_000))
    world.read([trade(2, 61), beat(120)])
    assert told(world.said)[-1] == (60, 0, False)
    world.read([trade(3, 62, 999), beat(121)])
    assert told(world.said)[-1] == (60, 1, False)
    assert world.said[-1].trades == 2
