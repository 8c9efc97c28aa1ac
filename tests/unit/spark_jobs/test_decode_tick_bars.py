"""Bars made from ticks, one log record each: checked as strictly as batches; what is no good costs itself only."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.v1 import market_pb2
from relay.tables.schema import OHLC_COLUMNS, TICK_BARS_COLUMNS
from spark_jobs.jobs.history.decode import decode_records
from tests.support.batches import BASE_NS, BTC, FETCHED_NS, MINUTE_NS, batch, record, tick_bar

NOW_US = FETCHED_NS // 1000 + 60 * 10**6
DAY = 86_400


def records(*values: bytes, key: bytes | None = BTC.encode()) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "topic": ["market-ohlc"] * count,
            "partition": pa.array([3] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "key": pa.array([key] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def _altered(**fields: object) -> market_pb2.OHLC:
    made = tick_bar(1)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _made_at(time_ns: int) -> market_pb2.OHLC:
    made = tick_bar(1)
    made.stamp.published_at = time_ns
    return made


def test_each_bar_is_one_row_for_both_tables_and_none_for_coverage():
    whole = tick_bar(0, quote_volume="63.195", buy_volume="1", sell_volume="0.5", first_trade_id="7", last_trade_id="9")
    part = tick_bar(1, revision=2, made_at=5, incomplete=True, source=market_pb2.OHLC.ROLLUP)
    found = decode_records(records(record(whole), record(part)), seen_at_us=NOW_US)
    assert (found.bars.schema, found.tick_bars.schema) == (OHLC_COLUMNS, TICK_BARS_COLUMNS)
    assert (len(found.coverage), len(found.quarantine), len(found.markets)) == (0, 0, 0)
    first, second = found.tick_bars.to_pylist()
    assert first == {
        "ticker": BTC,
        "period_seconds": 60,
        "start": first["start"],
        **dict.fromkeys(("open", "high", "low", "close"), Decimal("42.13")),
        "volume": Decimal("1.5"),
        "quote_volume": Decimal("63.195"),
        "buy_volume": Decimal(1),
        "sell_volume": Decimal("0.5"),
        "trades": 7,
        "first_trade_id": "7",
        "last_trade_id": "9",
        "source": "TICKS",
        "incomplete": False,
        "revision": 0,
        "made_at_ns": FETCHED_NS + 1,
        "log_partition": 3,
        "log_offset": 0,
    }
    assert (second["source"], second["incomplete"], second["revision"]) == ("ROLLUP", True, 2)
    assert second["quote_volume"] is None
    assert found.bars["is_fetched"].to_pylist() == [False, False]
    assert found.bars["fetched_at_ns"].to_pylist() == [FETCHED_NS + 1, FETCHED_NS + 5]
    assert found.tick_bars["start"].cast(pa.int64()).to_pylist() == [BASE_NS // 1000, (BASE_NS + MINUTE_NS) // 1000]


def test_batches_and_bars_made_from_ticks_lie_in_one_log():
    found = decode_records(records(record(batch(range(2))), record(tick_bar(5))), seen_at_us=NOW_US)
    assert found.bars["is_fetched"].to_pylist() == [True, True, False]
    assert (len(found.tick_bars), len(found.coverage)) == (1, 1)


@pytest.mark.parametrize(
    "made",
    [
        _altered(source=market_pb2.OHLC.EXCHANGE),
        _altered(source=99),
        _altered(is_final=False),
        _altered(revision=2**31),
        _altered(ticker="../../etc/x"),
        _altered(ticker="ETH/USDT.BINANCE"),
        _altered(ticker=""),
        _altered(period_seconds=0),
        _altered(period_seconds=2**32 - 1),
        _altered(period_seconds=7 * DAY),
        _altered(timestamp=BASE_NS + 1),
        _altered(timestamp=0),
        _altered(timestamp=2**64 - 1),
        _altered(timestamp=FETCHED_NS + 10 * MINUTE_NS),
        _altered(low=0),
        _altered(open=-5),
        _altered(high=4_212),
        _altered(low=4_214),
        _altered(close=4_214),
        _altered(volume=""),
        _altered(volume="-1"),
        _altered(volume="1e5"),
        _altered(volume="NaN"),
        _altered(volume="9" * 21),
        _altered(quote_volume="-0.1"),
        _altered(buy_volume=str(2**128 + 5)),
        _altered(trades=2**63),
        _altered(price_decimals=19),
        _altered(price_decimals=2**32 - 1),
        _made_at(0),
        _made_at(2**64 - 1),
        _made_at((NOW_US + 3_600 * 10**6) * 1000),
        _made_at(BASE_NS - 3_600 * 10**9),
    ],
    ids=lambda made: str(made).replace("\n", " ")[:60],
)
def test_a_bar_that_cannot_be_believed_is_quarantined_and_costs_itself_only(made):
    good = record(tick_bar(0))
    found = decode_records(records(good, record(made), good), seen_at_us=NOW_US)
    assert [(row["offset"], row["reason"]) for row in found.quarantine.to_pylist()] == [(1, "invalid_field")]
    assert found.quarantine["detail"][0].as_py()
    assert found.bars["log_offset"].to_pylist() == found.tick_bars["log_offset"].to_pylist() == [0, 2]


def test_weeks_start_on_monday_and_a_bar_under_another_key_is_quarantined():
    monday = 1_699_833_600 * 10**9
    week = _altered(timestamp=monday, period_seconds=7 * DAY)
    assert len(decode_records(records(record(week)), seen_at_us=NOW_US).tick_bars) == 1
    for key in (None, b"", b"ETH/USDT.BINANCE"):
        found = decode_records(records(record(tick_bar(0)), key=key), seen_at_us=NOW_US)
        assert (len(found.tick_bars), len(found.bars), len(found.quarantine)) == (0, 0, 1)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits_never_stop_the_decoder_nor_cost_another_record(flips):
    good = record(tick_bar(0, quote_volume="63.1950", first_trade_id="10", last_trade_id="16"))
    bad = bytearray(good)
    for place, bit in flips:
        bad[place % len(bad)] ^= 1 << bit
    found = decode_records(records(good, bytes(bad), good), seen_at_us=NOW_US)
    assert {0, 2} <= set(found.tick_bars["log_offset"].to_pylist())
    rows = len(found.tick_bars) + len(found.coverage) + len(found.markets) + len(found.quarantine)
    assert (rows, len(found.bars)) == (3, len(found.tick_bars))
