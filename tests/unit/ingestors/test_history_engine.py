from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestors.engine.batches import BatchLimits
from ingestors.engine.commands import FetchBars
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import BadRow, Bar, BarsPage, Capabilities, Trade, TradesPage
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, subtract
from relay.protocol.scaled import from_scaled
from relay.protocol.v1 import market_pb2
from tests.support.ingestors import (
    BINANCE_LIKE,
    COINBASE_LIKE,
    KRAKEN_LIKE,
    MINUTE_NS,
    T0,
    Script,
    covered,
    history,
    minute,
    minutes,
    rows,
    serving,
    serving_periods,
)

PARTIAL = market_pb2.OHLCBatch.PARTIAL
Answer = Callable[[FetchBars], BarsPage]


def test_pages_join_without_a_seam_and_the_last_batch_counts_them() -> None:
    bars = [minute(i) for i in range(2_500)]
    script = Script(serving(bars))
    found, end = script.play(history(minutes(0, 2_500)))
    assert [row.timestamp for row in rows(found)] == [bar.start_ns for bar in bars]
    assert [batch.batch_index for batch in found] == list(range(len(found)))
    assert [batch.is_last for batch in found].count(True) == 1
    assert (found[-1].is_last, found[-1].total_rows, end.rows) == (True, 2_500, 2_500)
    assert max(len(batch.rows) for batch in found) <= 1_000
    assert covered(found) == [minutes(0, 2_500)]


def test_the_first_bar_is_there_when_the_range_starts_at_it_case_20_case_21() -> None:
    """Cases 20 and 21: bounds are half open whatever the endpoint's own bounds are."""
    found, _ = Script(serving([minute(i) for i in range(200)])).play(history(minutes(0, 100)))
    assert rows(found)[0].timestamp == T0
    assert len(rows(found)) == 100


def test_an_outage_hour_is_asked_for_again_then_covered_and_paging_goes_on_case_19() -> None:
    """Case 19: rows at minutes 0 to 2, then from minute 63 on."""
    bars = [minute(i) for i in (0, 1, 2, *range(63, 66))]
    script = Script(serving(bars))
    engine = history(minutes(0, 66))
    found, end = script.play(engine)
    assert [row.timestamp for row in rows(found)] == [bar.start_ns for bar in bars]
    windows = [command.wanted.window for command in script.asked]
    assert any(window.end_ns == minutes(3, 63).end_ns for window in windows)
    assert any(window.start_ns == minutes(3, 63).start_ns and window.end_ns > T0 + 63 * MINUTE_NS for window in windows)
    assert covered(found) == [minutes(0, 66)]
    assert (end.success, engine.counts.holes) == (True, 1)


def test_a_jump_is_refetched_in_smaller_windows_before_it_is_believed_case_25() -> None:
    """Case 25: the rows were there, only the wide window hid them."""
    bars = [minute(i) for i in range(300)]

    def answer(command: FetchBars) -> BarsPage:
        window = command.wanted.window
        inside = [bar for bar in bars if window.start_ns <= bar.start_ns < window.end_ns]
        if len(inside) > 150:
            inside = [*inside[:50], *inside[200:]]
        return BarsPage(tuple(reversed(inside)))

    script = Script(answer)
    found, _ = script.play(history(minutes(0, 300), capabilities=COINBASE_LIKE))
    assert [row.timestamp for row in rows(found)] == [bar.start_ns for bar in bars]
    assert all(c.wanted.window.end_ns - c.wanted.window.start_ns < 300 * MINUTE_NS for c in script.asked[1:])


def test_an_endpoint_that_ignores_the_start_raises_no_progress_case_23() -> None:
    """Case 23: the newest 150 rows come whatever is asked."""
    newest = tuple(minute(i) for i in range(10_000, 10_150))
    found, end = Script(lambda _: BarsPage(newest)).play(history(minutes(0, 500)))
    assert (end.success, end.code) == (False, "NO_PROGRESS")
    assert [(b.status, b.is_last, len(b.rows)) for b in found] == [(market_pb2.OHLCBatch.ERROR, True, 0)]


def test_a_cursor_that_stands_still_ends_the_loop_case_28() -> None:
    """Case 28: the same trades and the same cursor again and again."""
    page = TradesPage((_trade(1, 0),), "5", is_end=False)
    found, end = Script(trades=lambda _: page).play(_old_kraken(minutes(0, 10)))
    assert (end.success, end.code) == (False, "NO_PROGRESS")
    assert found[-1].status == market_pb2.OHLCBatch.ERROR


def test_empty_answers_that_no_row_proves_are_no_data_but_nothing_is_covered_case_34() -> None:
    """Case 34: only answers that prove themselves count."""
    script = Script(lambda _: BarsPage(()))
    found, end = script.play(history(minutes(0, 10)))
    assert len({(c.wanted.period_seconds, c.wanted.window) for c in script.asked}) > 4
    assert len(script.asked) <= 10
    assert sum(script.waited_ns) >= 15 * NANOSECONDS
    assert (found[-1].status, found[-1].error_code) == (market_pb2.OHLCBatch.NOT_FOUND, "NO_DATA")
    assert covered(found) == []
    assert end.success


@pytest.mark.parametrize("capabilities", [BINANCE_LIKE, COINBASE_LIKE])
@pytest.mark.parametrize("empties", [1, 2, 3, 5])
def test_empty_answers_in_a_row_lose_nothing_case_34(capabilities: Capabilities, empties: int) -> None:
    """Case 34: the rows were there all the time."""
    bars = [minute(i) for i in range(-400, 1_500)]
    script = Script(_lying(serving_periods(bars), range(1, 1 + empties), lambda _: BarsPage(())), listed_ns=0)
    found, end = script.play(history(minutes(0, 1_200), capabilities=capabilities))
    assert [row.timestamp for row in rows(found)] == [T0 + i * MINUTE_NS for i in range(1_200)]
    assert (covered(found), end.code) == ([minutes(0, 1_200)], "")


@pytest.mark.parametrize("capabilities", [BINANCE_LIKE, COINBASE_LIKE])
@pytest.mark.parametrize("holed", [1, 2, 3])
def test_answers_with_holes_in_a_row_lose_nothing_case_25(capabilities: Capabilities, holed: int) -> None:
    """Case 25: each answer lacks its middle third."""
    bars = [minute(i) for i in range(-400, 1_500)]
    script = Script(_lying(serving_periods(bars), range(1, 1 + holed), _without_middle), listed_ns=0)
    found, _ = script.play(history(minutes(0, 1_200), capabilities=capabilities))
    assert [row.timestamp for row in rows(found)] == [T0 + i * MINUTE_NS for i in range(1_200)]
    assert covered(found) == [minutes(0, 1_200)]


@pytest.mark.parametrize("share", [2, 3])
def test_a_market_that_is_always_answered_emptily_in_part_is_never_believed_to_be_empty(share: int) -> None:
    bars = [minute(i) for i in range(-400, 1_500)]
    script = Script(_lying(serving_periods(bars), range(0, 10_000, share), lambda _: BarsPage(())), listed_ns=0)
    found, _ = script.play(history(minutes(0, 1_200), capabilities=COINBASE_LIKE))
    assert [row.timestamp for row in rows(found)] == [T0 + i * MINUTE_NS for i in range(1_200)]


def test_a_quiet_market_ends_covered_without_a_flood_of_requests() -> None:
    """A week with trades at its ends only, where minutes without trades have no row."""
    week = 7 * 1_440
    bars = [minute(i) for i in (*range(-400, 5), *range(week - 5, week + 400))]
    script = Script(serving_periods(bars), listed_ns=0)
    found, end = script.play(history(minutes(0, week), capabilities=COINBASE_LIKE))
    assert (len(rows(found)), covered(found), end.code) == (10, [minutes(0, week)], "")
    assert len(script.asked) <= 2 * -(-week // 300)
    assert sum(script.waited_ns) <= NANOSECONDS


def test_a_sparse_market_ends_covered_with_few_requests_a_window() -> None:
    bars = [minute(i) for i in range(-400, 3_400, 3)]
    script = Script(serving_periods(bars), listed_ns=0)
    found, end = script.play(history(minutes(0, 3_000), capabilities=COINBASE_LIKE))
    assert (len(rows(found)), covered(found), end.code) == (1_000, [minutes(0, 3_000)], "")
    assert len(script.asked) <= 40
    assert not script.waited_ns


def test_a_market_that_is_gone_is_leapt_over_and_stays_missing() -> None:
    year = 365 * 1_440
    script = Script(serving_periods([minute(i) for i in range(-1_000_000, -900_000, 1_000)]), listed_ns=0)
    found, end = script.play(history(minutes(0, year), capabilities=COINBASE_LIKE))
    assert (covered(found), end.code) == ([], "NO_DATA")
    assert len(script.asked) <= 20


def _lying(sound: Answer, when: Container[int], lie: Callable[[BarsPage], BarsPage]) -> Answer:
    """Bend the answers of these numbers, counted from 1."""
    asked = count(1)

    def answer(command: FetchBars) -> BarsPage:
        page = sound(command)
        return lie(page) if next(asked) in when else page

    return answer


def _without_middle(page: BarsPage) -> BarsPage:
    third = max(1, len(page.rows) // 3)
    return BarsPage(page.rows[:third] + page.rows[2 * third :])


def test_a_descending_page_is_put_in_order_before_the_cursor_moves_case_36() -> None:
    """Case 36: newest first."""
    bars = [minute(i) for i in range(700)]

    def answer(command: FetchBars) -> BarsPage:
        return BarsPage(tuple(reversed(serving(bars)(command).rows)))

    found, _ = Script(answer).play(history(minutes(0, 700), capabilities=COINBASE_LIKE))
    assert [row.timestamp for row in rows(found)] == [bar.start_ns for bar in bars]


def test_a_range_before_the_listing_is_not_covered_case_26() -> None:
    """Case 26: coverage starts with the first real row."""
    bars = [minute(i) for i in range(50, 100)]
    script = Script(serving(bars), listed_ns=bars[0].start_ns)
    found, end = script.play(history(minutes(0, 100)))
    assert (found[-1].status, end.code) == (PARTIAL, "BEFORE_LISTING")
    assert covered(found) == [minutes(50, 100)]
    assert script.asked_listing == 1


def test_years_before_the_listing_cost_no_page_each() -> None:
    first = 1_000_000
    script = Script(serving([minute(i) for i in range(first, first + 10)]), listed_ns=T0 + first * MINUTE_NS)
    found, _ = script.play(history(minutes(0, first + 10), capabilities=COINBASE_LIKE))
    assert len(script.asked) <= 5
    assert covered(found) == [minutes(first, first + 10)]


def test_a_quiet_beginning_after_the_listing_is_covered() -> None:
    script = Script(serving([minute(i) for i in range(5, 10)]), listed_ns=T0 - MINUTE_NS)
    found, end = script.play(history(minutes(0, 10)))
    assert covered(found) == [minutes(0, 10)]
    assert (end.success, end.code) == (True, "")


def test_the_open_candle_is_left_out_by_the_clock_not_by_its_place_case_17() -> None:
    """Case 17: the last row of an answer is open only when its end is not reached."""
    bars = [minute(i) for i in range(10)]
    script = Script(serving(bars), server_ns=T0 + 9 * MINUTE_NS + 40 * NANOSECONDS)
    found, end = script.play(history(minutes(0, 20)))
    assert len(rows(found)) == 9
    assert covered(found) == [minutes(0, 9)]
    assert (found[-1].status, end.code) == (PARTIAL, "NOT_CLOSED_YET")
    complete, _ = Script(serving(bars), server_ns=T0 + 10 * MINUTE_NS).play(history(minutes(0, 10)))
    assert len(rows(complete)) == 10


def test_a_bar_that_closes_within_seconds_is_waited_for() -> None:
    script = Script(serving([minute(i) for i in range(10)]), server_ns=T0 + 10 * MINUTE_NS - 2 * NANOSECONDS)
    found, _ = script.play(history(minutes(0, 10)))
    assert script.waited_ns == [2 * NANOSECONDS]
    assert covered(found) == [minutes(0, 10)]


def test_off_grid_rows_take_their_bucket_by_floor_case_16() -> None:
    """Case 16: open times at :28.115; a row on the grid wins its bucket."""
    late_ns = 28_115_000_000
    bars = [minute(0), *(minute(i, offset_ns=late_ns, price="11") for i in range(1, 5)), minute(3, price="12")]
    engine = history(minutes(0, 5))
    found, _ = Script(lambda c: BarsPage(tuple(bars))).play(engine)
    assert [row.timestamp for row in rows(found)] == [T0 + i * MINUTE_NS for i in range(5)]
    assert [row.incomplete for row in rows(found)] == [False, True, True, False, True]
    assert (engine.counts.off_grid, engine.counts.doubled) == (4, 1)


def test_bars_are_rolled_up_by_time_not_by_count_case_7() -> None:
    """Case 7: minutes 1, 2 and 60 rolled to two minutes."""
    bars = [minute(1, price="1"), minute(2, price="2"), minute(60, price="3")]
    base = T0 // (120 * NANOSECONDS) * (120 * NANOSECONDS)
    shift = (base - T0) // MINUTE_NS
    bars = [replace(bar, start_ns=bar.start_ns + shift * MINUTE_NS) for bar in bars]
    engine = history(Range(base, base + 62 * MINUTE_NS), period_seconds=120)
    script = Script(serving(bars), listed_ns=base)
    found, _ = script.play(engine)
    got = [((row.timestamp - base) // MINUTE_NS, row.open // 1, row.close) for row in rows(found)]
    assert got == [(0, 1, 1), (2, 2, 2), (60, 3, 3)]
    assert {row.source for row in rows(found)} == {market_pb2.OHLC.ROLLUP}


@given(st.sets(st.integers(0, 400), min_size=1), st.integers(60, 300), st.sampled_from([2, 3, 7, 20]))
@settings(max_examples=40, deadline=None)
def test_a_roll_up_of_any_rows_in_any_pages_keeps_volume_and_bounds(
    present: set[int], page_rows: int, factor: int
) -> None:
    around = (*range(-200, -100), *range(600, 700))
    bars = [minute(i, price=str(1 + i % 7), volume=str(abs(i) + 1)) for i in sorted({*present, *around})]
    period = factor * 60
    start = T0 // (period * NANOSECONDS) * period * NANOSECONDS
    span = Range(start, start + 480 * MINUTE_NS // (period * NANOSECONDS) * period * NANOSECONDS)
    capabilities = replace(
        COINBASE_LIKE, native_periods=(60, 900, 3_600, 86_400), window_rows_max=None, page_rows_max=page_rows
    )
    script = Script(serving_periods(bars), listed_ns=0)
    found, _ = script.play(history(span, period_seconds=period, capabilities=capabilities))
    inside = [bar for bar in bars if span.start_ns <= bar.start_ns < span.end_ns]
    assert sum(Decimal(row.volume) for row in rows(found)) == sum(bar.volume for bar in inside)
    buckets = {bar.start_ns // (period * NANOSECONDS) for bar in inside}
    assert [row.timestamp // (period * NANOSECONDS) for row in rows(found)] == sorted(buckets)
    assert covered(found) == [span]


def test_a_row_limit_ends_the_range_after_its_last_bar() -> None:
    script = Script(serving([minute(i) for i in range(0, 100, 2)]), listed_ns=0)
    found, end = script.play(history(minutes(0, 100), limit=7))
    assert (len(rows(found)), end.rows) == (7, 7)
    assert covered(found) == [minutes(0, 13)]
    assert script.asked[0].wanted.rows_max == 7


def test_ranges_of_earlier_attempts_are_not_fetched_again() -> None:
    script = Script(serving([minute(i) for i in range(100)]))
    found, _ = script.play(history(minutes(0, 100), delivered=(minutes(10, 60),)))
    assert covered(found) == [minutes(0, 10), minutes(60, 100)]
    assert all(
        not (minutes(10, 60).start_ns <= c.wanted.window.start_ns < minutes(10, 60).end_ns) for c in script.asked
    )


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (minute(3, price="0"), "not above zero"),
        (minute(3, price="-5"), "not above zero"),
        (minute(3, volume="-1"), "negative"),
        (minute(3, price="1e-19"), "19 decimals"),
        (minute(3, price="92233720368.547758081234"), "does not fit 64 bits"),
        (replace(minute(3), high=Decimal(9)), "below low"),
        (replace(minute(3), open=Decimal(11)), "outside of low"),
        (replace(minute(3), close=Decimal(9)), "outside of low"),
    ],
)
def test_a_row_that_cannot_be_stored_is_left_out_and_its_bucket_not_covered(bad: Bar, reason: str) -> None:
    bars = [bad if i == 3 else minute(i) for i in range(10)]
    engine = history(minutes(0, 10))
    found, end = Script(serving(bars)).play(engine)
    assert len(rows(found)) == 9
    assert covered(found) == [minutes(0, 3), minutes(4, 10)]
    assert (found[-1].status, found[-1].error_code) == (PARTIAL, "BAD_ANSWER")
    assert reason in found[-1].error_message
    assert (end.success, engine.counts.quarantined) == (True, 1)


def test_a_row_of_an_absurd_time_leaves_only_real_rows_covered() -> None:
    sound = serving([minute(i) for i in range(10) if i != 4])
    absurd = replace(minute(4), start_ns=17)
    found, end = Script(lambda c: BarsPage((*sound(c).rows, absurd))).play(history(minutes(0, 10)))
    assert covered(found) == [minutes(0, 4), minutes(5, 10)]
    assert end.code == "BAD_ANSWER"


def test_an_unreadable_row_costs_its_own_bucket_only() -> None:
    page = BarsPage(tuple(minute(i) for i in range(10) if i != 4), (BadRow(T0 + 4 * MINUTE_NS, "NaN"),))
    found, _ = Script(lambda _: page).play(history(minutes(0, 10)))
    assert covered(found) == [minutes(0, 4), minutes(5, 10)]
    assert "NaN" in found[-1].error_message


def test_tiny_and_long_numbers_come_through_exactly_case_70() -> None:
    """Case 70: 0.0000001 and 18 digits, in one batch only when one scale fits both."""
    texts = ["0.0000001", "123456789.123456789", "0.000000000000000001", "999999999999999999"]
    bars = [minute(i, price=text, volume="123456789012345678.000000001") for i, text in enumerate(texts)]
    found, _ = Script(serving(bars)).play(history(minutes(0, 4)))
    got = [from_scaled(row.close, row.price_decimals) for row in rows(found)]
    assert got == [Decimal(text) for text in texts]
    assert {row.volume for row in rows(found)} == {"123456789012345678.000000001"}
    for batch in found:
        assert {10**row.price_decimals for row in batch.rows} <= {batch.market.tick_denom}
    assert covered(found) == [minutes(0, 4)]


def test_batches_stay_below_the_byte_bound_and_prove_their_own_part() -> None:
    bars = [minute(i) for i in range(900)]
    found, _ = Script(serving(bars)).play(history(minutes(0, 900), limits=BatchLimits(1_000, 20_000)))
    assert max(batch.ByteSize() for batch in found) <= 20_000
    assert [batch.batch_index for batch in found] == list(range(len(found)))
    for batch in found:
        (proven,) = covered([batch])
        assert all(proven.start_ns <= row.timestamp < proven.end_ns for row in batch.rows)
    assert covered(found) == [minutes(0, 900)]


def test_what_an_exchange_does_not_send_stays_absent() -> None:
    found, _ = Script(serving([minute(0)])).play(history(minutes(0, 1)))
    (row,) = rows(found)
    absent = ("quote_volume", "buy_volume", "sell_volume", "trades", "first_trade_id")
    assert not any(row.HasField(name) for name in absent)


def _trade(trade_id: int, at_ns: int, *, price: str = "10", amount: str = "1", buy: bool = True) -> Trade:
    return Trade(str(trade_id), T0 + at_ns, Decimal(price), Decimal(amount), buy)


def _old_kraken(span: Range) -> object:
    return history(span, capabilities=KRAKEN_LIKE)


def _pages(trades: list[Trade], size: int):  # type: ignore[no-untyped-def]
    def answer(wanted: TradesWanted) -> TradesPage:
        later = (n for n, trade in enumerate(trades) if trade.time_ns >= wanted.start_ns)
        first = next(later, len(trades)) if wanted.cursor is None else int(wanted.cursor)
        page = trades[first : first + size]
        return TradesPage(tuple(page), str(first + len(page)), is_end=not page)

    return answer


def test_bars_from_trades_need_one_page_of_memory_only_case_33() -> None:
    """Case 33: streaming, page by page; each page's finished bars leave at once."""
    trades = [_trade(i, i * 7 * NANOSECONDS) for i in range(3_000)]
    script = Script(trades=_pages(trades, 100), listed_ns=T0)
    engine = _old_kraken(Range(T0, T0 + 300 * MINUTE_NS))
    found, _ = script.play(engine)
    assert len(script.asked_trades) <= -(-300 * 60 // 7 // 100) + 1
    assert sum(Decimal(row.volume) for row in rows(found)) == sum(1 for t in trades if t.time_ns < T0 + 300 * MINUTE_NS)
    assert {row.source for row in rows(found)} == {market_pb2.OHLC.TICKS}


def test_a_first_page_of_other_trades_proves_nothing() -> None:
    """The endpoint ignored the start once: the newest trades say nothing about the wanted ones."""
    trades = [_trade(i, (i - 100) * 20 * NANOSECONDS) for i in range(3_000)]
    sound, asked = _pages(trades, 100), count(1)
    script = Script(trades=lambda w: sound(w) if next(asked) > 1 else TradesPage(tuple(trades[-100:]), "3000", False))
    found, end = script.play(_old_kraken(minutes(0, 100)))
    assert [Decimal(row.volume) for row in rows(found)] == [Decimal(3)] * 100
    assert (covered(found), end.code) == ([minutes(0, 100)], "")


@pytest.mark.parametrize("page", range(1, 6))
def test_a_hole_in_the_ids_is_asked_for_again(page: int) -> None:
    trades = [_trade(i, (i - 100) * 20 * NANOSECONDS) for i in range(3_000)]
    sound, asked = _pages(trades, 100), count(1)

    def answer(wanted: TradesWanted) -> TradesPage:
        found = sound(wanted)
        holed = found.trades[:33] + found.trades[66:]
        return replace(found, trades=holed) if next(asked) == page else found

    found, end = Script(trades=answer).play(_old_kraken(minutes(0, 100)))
    assert [Decimal(row.volume) for row in rows(found)] == [Decimal(3)] * 100
    assert (covered(found), end.code) == ([minutes(0, 100)], "")


def test_trades_that_stay_lost_cost_their_buckets_and_never_make_a_wrong_bar() -> None:
    trades = [_trade(i, (i - 100) * 20 * NANOSECONDS) for i in range(3_000) if not 130 <= i < 136]
    script = Script(trades=_pages(trades, 100))
    found, end = script.play(_old_kraken(minutes(0, 100)))
    assert {Decimal(row.volume) for row in rows(found)} == {Decimal(3)}
    assert covered(found) == [minutes(0, 9), minutes(13, 100)]
    assert (found[-1].status, end.code) == (PARTIAL, "BAD_ANSWER")
    assert "between 129 and 136" in end.message
    assert script.waited_ns


def test_trades_without_ids_are_believed_when_they_come_twice() -> None:
    """Case 62: what has no number cannot be counted, so two answers must agree."""
    trades = [replace(_trade(i, (i - 100) * 20 * NANOSECONDS), trade_id=f"made:{i}") for i in range(3_000)]
    sound, asked = _pages(trades, 100), count(1)

    def answer(wanted: TradesWanted) -> TradesPage:
        found = sound(wanted)
        return replace(found, trades=found.trades[:50]) if next(asked) % 3 == 0 else found

    found, end = Script(trades=answer).play(_old_kraken(minutes(0, 100)))
    assert [Decimal(row.volume) for row in rows(found)] == [Decimal(3)] * 100
    assert (covered(found), end.code) == ([minutes(0, 100)], "")


def test_trades_of_one_instant_give_the_same_close_in_any_order_case_14() -> None:
    """Case 14: the tie is broken by the numeric trade id."""
    first, second = _trade(9, 5, price="0.4835"), _trade(10, 5, price="0.4832")
    closes = set()
    for order in ([first, second], [second, first]):
        found, _ = Script(trades=_pages(order, 10), listed_ns=T0 + 5).play(_old_kraken(minutes(0, 1)))
        (row,) = rows(found)
        closes.add((from_scaled(row.open, row.price_decimals), from_scaled(row.close, row.price_decimals)))
    assert closes == {(Decimal("0.4835"), Decimal("0.4832"))}


def test_a_minute_without_trades_has_no_bar_but_is_covered_case_1() -> None:
    """Case 1: never the old bar under a new time."""
    trades = [_trade(1, 0), _trade(2, 5 * MINUTE_NS)]
    found, _ = Script(trades=_pages(trades, 1), listed_ns=T0).play(_old_kraken(minutes(0, 10)))
    assert [row.timestamp for row in rows(found)] == [T0, T0 + 5 * MINUTE_NS]
    assert covered(found) == [minutes(0, 10)]


def test_a_candle_history_that_has_moved_on_is_finished_by_trades() -> None:
    """Case 27: the 720 newest rows begin after the asked start; the part before is not taken for empty."""
    moved = [minute(i) for i in range(100, 820)]
    trades = [_trade(i, i * MINUTE_NS) for i in range(100)]
    script = Script(lambda _: BarsPage(tuple(moved)), _pages(trades, 40), listed_ns=T0)
    script.server_ns = T0 + 715 * MINUTE_NS
    found, _ = script.play(history(minutes(0, 715), capabilities=KRAKEN_LIKE))
    assert [row.timestamp for row in rows(found)] == [T0 + i * MINUTE_NS for i in range(715)]
    assert covered(found) == [minutes(0, 715)]


def test_completeness_can_be_read_off_the_answer_case_38() -> None:
    """Case 38: 64 of 78 bars: covered says the whole session, rows say which exist."""
    kept = [minute(i) for i in range(78) if i % 6 != 5]
    found, _ = Script(serving(kept), listed_ns=0).play(history(minutes(0, 78)))
    known = [Range(row.timestamp, row.timestamp + MINUTE_NS) for row in rows(found)]
    assert covered(found) == [minutes(0, 78)]
    assert len(subtract(minutes(0, 78), known)) == 78 - len(kept)
