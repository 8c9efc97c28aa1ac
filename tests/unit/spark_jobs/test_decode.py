"""Decoding of log records into table rows, exact and without a float; poison goes to quarantine."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.envelope import encode_record
from relay.protocol.v1 import market_pb2
from relay.tables.schema import COVERAGE_COLUMNS, OHLC_COLUMNS, QUARANTINE_COLUMNS
from spark_jobs.jobs.history.decode import decode_records
from spark_jobs.jobs.history.numbers import stored_numbers_of_text, stored_numbers_of_units
from tests.support.batches import BASE_NS, BTC, MINUTE_NS, bar, batch, record


def records(*values: bytes | None, topic: str = "market-ohlc") -> pa.Table:
    return pa.table(
        {
            "topic": [topic] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([b"k"] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def test_a_batch_becomes_bars_and_one_coverage_row():
    found = decode_records(records(record(batch(range(3)))), seen_at_us=1)
    assert found.bars.schema == OHLC_COLUMNS
    assert found.coverage.schema == COVERAGE_COLUMNS
    assert found.bars["close"].to_pylist() == [Decimal("42.13")] * 3
    assert found.bars["trades"].to_pylist() == [None] * 3
    assert found.bars["quote_volume"].to_pylist() == [None] * 3
    row = found.coverage.to_pylist()[0]
    assert (row["rows"], row["total_rows"], row["status"], row["source"]) == (3, 3, "OK", "BINANCE:EXCHANGE")
    assert row["covered"] == [{"start_ns": BASE_NS, "end_ns": BASE_NS + 3 * MINUTE_NS}]


@pytest.mark.parametrize("text", ["0.0000001", "0.000000000000000001", "12345678901234567890.123456789012345678"])
def test_small_and_long_numbers_pass_exactly_case_70(text):
    assert stored_numbers_of_text([text])[0].as_py() == Decimal(text)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 18)), min_size=1, max_size=20))
def test_scaled_integers_of_any_scale_are_stored_exactly(numbers):
    units, decimals = zip(*numbers, strict=True)
    expected = [Decimal(u).scaleb(-d) for u, d in numbers]
    assert stored_numbers_of_units(units, decimals).to_pylist() == expected


def test_a_number_finer_than_the_stored_scale_is_refused_and_not_rounded():
    with pytest.raises(ValueError):
        stored_numbers_of_units([1], [19])
    with pytest.raises(ValueError):
        stored_numbers_of_text(["0.0000000000000000001"])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "empty_frame"),
        (None, "empty_frame"),
        (b"\x02\x0c", "wrong_version"),
        (b"\x01\x7f", "unknown_type"),
        (b"\x01\x10", "wrong_channel"),
        (b"\x01\x07", "retired_type"),
        (b"\x01\x0c\xff\xff", "undecodable"),
        (record(batch(range(3)))[:-2], "undecodable"),
        (encode_record(market_pb2.Tick(ticker=BTC)), "wrong_topic"),
        (record(batch(range(2), job_id="")), "invalid_field"),
        (record(batch(range(2), ticker="")), "invalid_field"),
        (bytes(10_000_000), "wrong_version"),
    ],
)
def test_poison_is_quarantined_with_reason_and_place_and_the_others_go_on_case_115(value, reason):
    good = record(batch(range(2)))
    found = decode_records(records(good, value, good), seen_at_us=7)
    assert found.quarantine.schema == QUARANTINE_COLUMNS
    poison = found.quarantine.to_pylist()
    assert [(p["reason"], p["offset"], p["size_bytes"]) for p in poison] == [(reason, 1, len(value or b""))]
    assert len(poison[0]["value"]) <= 64 * 1024
    assert len(found.bars) == 4
    assert len(found.coverage) == 2


@pytest.mark.parametrize(
    "row",
    [
        bar(0, decimals=19),
        market_pb2.OHLC(timestamp=BASE_NS + 1, volume="1"),
        market_pb2.OHLC(timestamp=BASE_NS, volume=""),
        market_pb2.OHLC(timestamp=BASE_NS, volume="1,5"),
        market_pb2.OHLC(timestamp=BASE_NS, volume="NaN"),
        market_pb2.OHLC(timestamp=2**63, volume="1"),
        market_pb2.OHLC(timestamp=BASE_NS, volume="1", ticker="ETH/USDT.BINANCE"),
        market_pb2.OHLC(timestamp=BASE_NS, volume="1", period_seconds=300),
    ],
)
def test_a_batch_with_a_wrong_row_is_quarantined_whole_and_covers_nothing(row):
    wrong = batch(range(2))
    wrong.rows.append(row)
    found = decode_records(records(record(wrong)), seen_at_us=1)
    assert len(found.bars) == 0
    assert len(found.coverage) == 0
    assert found.quarantine["reason"].to_pylist() == ["invalid_field"]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_at_all_stop_the_decoder(value):
    found = decode_records(records(value, b"\x01\x0c" + value, b"\x01\x06" + value), seen_at_us=1)
    assert len(found.quarantine) + len(found.coverage) + len(found.markets) == 3


def test_a_market_becomes_a_row_and_back():
    from relay.tables.markets import market_of_row

    market = market_pb2.Market(
        market_id=BTC, exchange_id="BINANCE", native_symbol="BTCUSDT", tick_denom=100, supported_periods=[60, 300]
    )
    found = decode_records(records(record(market), topic="symbol-metadata"), seen_at_us=1)
    assert market_of_row(found.markets.to_pylist()[0]) == market
