"""The parts around the bar engine: messages, stored bars, decoding, wanted periods, state on disk."""

from __future__ import annotations

import errno
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import RetryableError
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import market_pb2, work_pb2
from relay.tables.schema import GAPS_COLUMNS, TICKS_COLUMNS
from spark_jobs.jobs.bars.decode import PeriodsWanted, bar_event, bar_events
from spark_jobs.jobs.bars.engine.accumulator import Accumulator
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import BarTrade, Beat, GapNotice, MadeBar
from spark_jobs.jobs.bars.messages import is_same_bar, message_of_bar, message_of_row
from spark_jobs.jobs.bars.state import BarsState
from spark_jobs.jobs.bars.stored_bar import bar_of_ticks, gap_book_of
from spark_jobs.jobs.bars.wanted import WantedPeriods
from spark_jobs.jobs.records import Record
from spark_jobs.jobs.state_store import StateStore

TICKER = "BTC/USDT.BINANCE"
START = 1_700_000_040 * 10**9


def made(**changes: Any) -> MadeBar:
    numbers = (2, 6_100, 6_200, 6_000, 6_150, 3, 1_500, 250, 5, 107_000, 4, 11, 14)
    return MadeBar(TICKER, 60, START, *numbers, False, True, 3)._replace(**changes)


def test_a_bar_has_the_fewest_decimals_that_are_exact_and_volumes_in_plain_notation() -> None:
    message = message_of_bar(made())
    assert (message.price_decimals, message.open, message.high, message.low, message.close) == (1, 610, 620, 600, 615)
    assert (message.volume, message.buy_volume, message.sell_volume) == ("1.75", "1.5", "0.25")
    assert (message.quote_volume, message.trades, message.revision) == ("1.07", 4, 3)
    assert (message.first_trade_id, message.last_trade_id) == ("11", "14")


def test_a_quote_volume_that_no_table_holds_is_absent_and_a_price_over_64_bits_is_refused() -> None:
    assert not message_of_bar(made(quote_decimals=19, quote=1)).HasField("quote_volume")
    assert message_of_bar(made(quote_decimals=30, quote=10**12)).quote_volume == "0.000000000000000001"
    assert message_of_bar(made(quote_decimals=0, quote=10**20 - 1)).quote_volume == "9" * 20
    assert not message_of_bar(made(quote_decimals=0, quote=10**20)).HasField("quote_volume")
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        message_of_bar(made(high=10**19 + 1, price_decimals=0))


def test_a_stored_row_is_the_message_that_it_was_made_of() -> None:
    message = message_of_bar(made())
    row = {
        "ticker": TICKER,
        "period_seconds": 60,
        "start": START // 1000,
        **{name: Decimal(getattr(message, name)).scaleb(-1) for name in ("open", "high", "low", "close")},
        **{name: Decimal(getattr(message, name)) for name in ("volume", "quote_volume", "buy_volume", "sell_volume")},
        "trades": 4,
        "first_trade_id": "11",
        "last_trade_id": "14",
        "source": "TICKS",
        "incomplete": False,
        "revision": 9,
    }
    again = message_of_row(row)
    assert is_same_bar(again, message)
    assert again.revision == 9
    assert not is_same_bar(again, message_of_bar(made(incomplete=True)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.integers(1, 10**13),
            st.integers(1, 10**13),
            st.booleans(),
            st.booleans(),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_a_bar_of_stored_ticks_is_the_bar_of_the_same_trades(rows: list[tuple[int, int, int, bool, bool]]) -> None:
    times = sorted(START + seconds * 10**9 for seconds, *_ in rows)
    trades = [
        BarTrade(n, t, price, 8, amount, 8, price * amount if sent else None, 16, is_buy, n)
        for n, (t, (_, price, amount, is_buy, sent)) in enumerate(zip(times, rows, strict=True))
    ]
    sums = Accumulator.of(trades[0])
    for trade in reversed(trades[1:]):
        sums.add(trade)
    expected = sums.bar(TICKER, 60, START, incomplete=False, is_final=True, revision=0)
    found = bar_of_ticks(ticks_table(trades), GapBook(), ticker=TICKER, period_seconds=60, start_ns=START)
    assert found is not None
    assert is_same_bar(message_of_bar(found), message_of_bar(expected))


def ticks_table(trades: list[BarTrade]) -> pa.Table:
    rows = [
        {
            "ticker": TICKER,
            "trade_number": t.number,
            "time": t.time_ns // 1000,
            "time_ns": t.time_ns,
            "price": Decimal(t.price).scaleb(-8),
            "amount": Decimal(t.amount).scaleb(-8),
            "quote_amount": None if t.quote is None else Decimal(t.quote).scaleb(-16),
            "taker_buy": t.taker_buy,
            "backfill": False,
            "received_ns": t.time_ns,
            "sequence": None,
            "log_partition": 0,
            "log_offset": t.offset,
        }
        for t in trades
    ]
    return pa.Table.from_pylist(rows, schema=TICKS_COLUMNS)


def test_no_stored_tick_is_no_bar_and_stored_gaps_make_it_incomplete() -> None:
    assert bar_of_ticks(ticks_table([]), GapBook(), ticker=TICKER, period_seconds=60, start_ns=START) is None
    row = {"ticker": TICKER, "cause": "SEQUENCE", "said_ns": 0, "log_partition": 0}
    span = {"first_number": 2, "last_number": 3, "from_ns": START + 10**9, "to_ns": START + 2 * 10**9}
    gaps = [{**row, **span, "state": state, "log_offset": n} for n, state in enumerate(("OPEN", "UNFILLABLE"))]
    book = gap_book_of(pa.Table.from_pylist(gaps, schema=GAPS_COLUMNS))
    trade = BarTrade(1, START + 5 * 10**9, 1, 8, 1, 8, None, 0, True, 1)
    bar = bar_of_ticks(ticks_table([trade]), book, ticker=TICKER, period_seconds=60, start_ns=START)
    assert bar is not None
    assert bar.incomplete


def records(*messages: object, key: str = TICKER) -> pa.Table:
    return pa.table(
        {
            "topic": ["t"] * len(messages),
            "partition": pa.array([0] * len(messages), pa.int32()),
            "offset": pa.array(range(len(messages)), pa.int64()),
            "key": [key.encode()] * len(messages),
            "value": [m if isinstance(m, bytes) else encode_record(m) for m in messages],  # type: ignore[arg-type]
        }
    )


def test_records_become_events_and_what_is_no_good_is_left_out() -> None:
    tick = market_pb2.Tick(ticker=TICKER, trade_id="5", timestamp=START, price=1, amount=2)
    bad = market_pb2.Tick(ticker=TICKER, trade_id="x", timestamp=START, price=1, amount=2)
    beat = market_pb2.Heartbeat(
        source=market_pb2.Heartbeat.INGESTOR,
        ticker=TICKER,
        exchange_time_reached=START,
        attempt=2,
        state=market_pb2.Heartbeat.DOWN,
    )
    foreign = market_pb2.Heartbeat(source=market_pb2.Heartbeat.MANAGER, ticker=TICKER)
    gap = market_pb2.Gap(ticker=TICKER, from_trade_id="7", from_time=START, state=market_pb2.Gap.OPEN)
    events = list(bar_events(records(tick, bad, b"\x02", beat, foreign, gap)))
    assert [event.offset for event in events] == [0, 3, 5]
    assert isinstance(events[0].said, BarTrade)
    assert events[1].said == Beat(2, START, True)
    assert isinstance(events[2].said, GapNotice)
    assert (events[2].said.first, events[2].said.last) == (7, None)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 7))
def test_no_bytes_break_the_decoder(value: bytes, place: int) -> None:
    tick = bytearray(encode_record(market_pb2.Tick(ticker=TICKER, trade_id="5", timestamp=START, price=1, amount=2)))
    tick[(place * 31) % len(tick)] ^= 1 << place
    list(bar_events(records(value, bytes(tick))))


def test_a_volume_that_no_table_holds_is_refused() -> None:
    assert message_of_bar(made(amount_decimals=0, buy=10**20 - 2, sell=1)).volume == "9" * 20
    with pytest.raises(ValueError, match=r"at most 20 digits before the point, got 1(0){20}$"):
        message_of_bar(made(amount_decimals=0, buy=10**20 - 1, sell=1))


def test_sums_of_stored_ticks_do_not_wrap_around() -> None:
    trades = [BarTrade(n, START + n, 1, 8, 10**27, 8, None, 0, True, n) for n in range(30)]
    bar = bar_of_ticks(ticks_table(trades), GapBook(), ticker=TICKER, period_seconds=60, start_ns=START)
    assert bar is not None
    assert (bar.buy, bar.sell) == (30 * 10**19 * 10**18, 0)


@pytest.mark.parametrize(
    "message",
    [
        market_pb2.Tick(trade_id="5", timestamp=START, price=3, amount=2),
        market_pb2.Gap(state=market_pb2.Gap.OPEN, from_trade_id="5"),
        market_pb2.Heartbeat(source=market_pb2.Heartbeat.INGESTOR, exchange_time_reached=START),
        work_pb2.DataRequest(lease_ms=5, realtime=work_pb2.RealtimeParams(ohlc_period_seconds=[60])),
    ],
)
def test_what_is_no_ticker_or_lies_under_another_key_is_nothing(message: Message) -> None:
    for ticker, key in (("", ""), ("not a ticker", "not a ticker"), ("BINANCE:BTC/USDT", "BINANCE:BTC/USDT")):
        message.ticker = ticker  # type: ignore[attr-defined]
        assert bar_event(Record("t", 0, 5, key.encode(), encode_record(message))) is None
    message.ticker = TICKER  # type: ignore[attr-defined]
    for key, is_good in ((b"ETH/USDT.BINANCE", False), (b"", False), (None, False), (TICKER.encode(), True)):
        assert (bar_event(Record("t", 0, 5, key, encode_record(message))) is not None) == is_good


def test_wanted_periods_are_checked() -> None:
    realtime = work_pb2.RealtimeParams(ohlc_period_seconds=[300, 60, 300])
    good = work_pb2.DataRequest(ticker=TICKER, realtime=realtime, lease_ms=5)
    bad = work_pb2.DataRequest(ticker=TICKER, realtime=work_pb2.RealtimeParams(ohlc_period_seconds=[0]))
    assert [event.said for event in bar_events(records(good, bad))] == [PeriodsWanted((60, 300), 5)]


def test_a_wanted_period_ends_with_its_lease_or_when_it_is_left_out() -> None:
    now = 0.0
    wanted = WantedPeriods([60], clock=lambda: now)
    wanted.tell(TICKER, [5, 10], lease_ms=1_000)
    assert (wanted.of(TICKER), wanted.changed(), wanted.changed()) == (frozenset({5, 10, 60}), {TICKER}, set())
    wanted.tell(TICKER, [5], lease_ms=1_000)
    assert (wanted.of(TICKER), wanted.changed()) == (frozenset({5, 60}), {TICKER})
    now = 1.5
    assert wanted.changed() == {TICKER}
    assert wanted.of(TICKER) == frozenset({60})
    assert wanted.changed() == set()


def test_of_more_periods_than_a_ticker_may_have_those_wanted_before_stay() -> None:
    wanted = WantedPeriods([60], clock=lambda: 0.0, asked_max=2)
    wanted.tell(TICKER, [30, 40], lease_ms=1_000)
    wanted.tell("ETH/USDT.BINANCE", [5], lease_ms=1_000)
    wanted.changed()
    wanted.tell(TICKER, [10, 20, 30, 40], lease_ms=1_000)
    assert (wanted.of(TICKER), wanted.changed(), wanted.refused_count) == (frozenset({30, 40, 60}), set(), 2)
    wanted.tell(TICKER, [10, 20, 40], lease_ms=1_000)
    assert (wanted.of(TICKER), wanted.changed(), wanted.refused_count) == (frozenset({10, 40, 60}), {TICKER}, 1)
    wanted.tell(TICKER, [], lease_ms=0)
    assert wanted.refused_count == 0


STATE = BarsState("cluster", "topic", {0: 5, 1: 7}, {0: 1}, b"book", [(TICKER, 60, START, 4, -1, 0)])


def test_the_newest_state_that_can_be_read_counts_and_old_ones_go(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), BarsState, job="bars")
    assert store.load() is None
    for number in range(4):
        store.save(BarsState("cluster", "topic", {0: number}, {}, b"", []))
    files = sorted((tmp_path / "bars-state").iterdir())
    assert len(files) == 2
    files[-1].write_bytes(files[-1].read_bytes()[:-3])
    found = StateStore(str(tmp_path), BarsState, job="bars").load()
    assert found is not None
    assert found.tick_offsets == {0: 2}


def test_a_state_that_is_cut_or_damaged_is_not_read_as_another(tmp_path: Path) -> None:
    store = StateStore(str(tmp_path), BarsState, job="bars")
    store.save(STATE)
    [file] = (tmp_path / "bars-state").iterdir()
    whole = file.read_bytes()
    assert store.load() == STATE
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert store.load() is None
    for place in range(len(whole)):
        bent = bytearray(whole)
        bent[place] ^= 0x08
        file.write_bytes(bytes(bent))
        assert store.load() is None


def test_a_full_disk_is_told_and_the_state_before_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StateStore(str(tmp_path), BarsState, job="bars")
    store.save(STATE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RetryableError, match="make room"):
        store.save(STATE)
    monkeypatch.undo()
    assert store.load() == STATE


def test_one_record_that_cannot_be_neither_stops_nor_spoils_the_others() -> None:
    huge = {"quote_amount": 5, "quote_decimals": 4_000_000_000}
    tick = market_pb2.Tick(ticker=TICKER, trade_id="5", timestamp=START, price=3, amount=2, **huge)
    late = 2**63 - 1
    beat = market_pb2.Heartbeat(source=market_pb2.Heartbeat.INGESTOR, ticker=TICKER, exchange_time_reached=late)
    gap = market_pb2.Gap(ticker=TICKER, from_time=START, to_time=late, state=market_pb2.Gap.UNFILLABLE)
    [event] = bar_events(records(tick, beat, gap))
    assert isinstance(event.said, BarTrade)
    assert (event.said.quote, event.said.quote_decimals) == (None, 0)
