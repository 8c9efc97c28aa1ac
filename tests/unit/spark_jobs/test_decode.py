"""Decoding of log records into table rows, exact and without a float; poison goes to quarantine."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import PeerError
from relay.protocol.envelope import encode_record
from relay.protocol.periods import parse_period
from relay.protocol.v1 import common_pb2, market_pb2
from relay.tables.schema import COVERAGE_COLUMNS, OHLC_COLUMNS, QUARANTINE_COLUMNS
from spark_jobs.jobs.history.decode import decode_records
from spark_jobs.jobs.stored_numbers import stored_numbers_of_text, stored_numbers_of_units
from tests.support.batches import BASE_NS, BTC, FETCHED_NS, MINUTE_NS, bar, batch, record, tick_bar

NOW_US = FETCHED_NS // 1000 + 60 * 10**6


def records(*values: bytes | None, topic: str = "market-ohlc", key: bytes | None = BTC.encode()) -> pa.Table:
    return pa.table(
        {
            "topic": [topic] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([key] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def _altered(**fields: object) -> market_pb2.OHLC:
    row = bar(1)
    for name, value in fields.items():
        setattr(row, name, value)
    return row


def test_a_batch_becomes_bars_and_one_coverage_row():
    found = decode_records(records(record(batch(range(3)))), seen_at_us=NOW_US)
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
@given(st.lists(st.tuples(st.none() | st.integers(-(2**63), 2**63 - 1), st.integers(0, 18)), max_size=20))
def test_scaled_integers_of_any_scale_are_stored_exactly(numbers):
    units, decimals = [u for u, _ in numbers], [d for _, d in numbers]
    expected = [None if u is None else Decimal(u).scaleb(-d) for u, d in numbers]
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
    found = decode_records(records(good, value, good), seen_at_us=NOW_US)
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
        _altered(low=0),
        _altered(open=-5),
        _altered(high=4_212),
        _altered(low=4_214),
        _altered(close=4_214),
        _altered(open=4_212),
        _altered(volume="-1"),
        _altered(quote_volume="-0.1"),
        _altered(volume="1e5"),
        _altered(volume="+1"),
        _altered(volume="1_0"),
        _altered(volume=" 1"),
        _altered(volume="1."),
        _altered(volume=".5"),
        _altered(volume="0x10"),
        _altered(volume="9" * 21),
        _altered(volume="9" * 39),
        _altered(volume="9" * 100_000),
        _altered(buy_volume=str(2**128 + 5)),
        _altered(trades=2**63),
        _altered(revision=2**31),
        _altered(price_decimals=2**32 - 1),
        _altered(timestamp=0),
        _altered(timestamp=BASE_NS + 1_440 * MINUTE_NS),
        _altered(timestamp=BASE_NS - MINUTE_NS),
        _altered(source=99),
    ],
)
def test_a_batch_with_a_wrong_row_is_quarantined_whole_and_covers_nothing(row):
    wrong = batch(range(2))
    wrong.rows.append(row)
    found = decode_records(records(record(wrong)), seen_at_us=NOW_US)
    assert len(found.bars) == 0
    assert len(found.coverage) == 0
    assert found.quarantine["reason"].to_pylist() == ["invalid_field"]


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_at_all_stop_the_decoder(value):
    found = decode_records(records(value, b"\x01\x0c" + value, b"\x01\x06" + value), seen_at_us=NOW_US)
    assert len(found.quarantine) + len(found.coverage) + len(found.markets) == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"ticker": "../../etc/x"},
        {"ticker": "btc/usdt.binance"},
        {"ticker": "ETH/USDT.BINANCE"},
        {"period_seconds": 0},
        {"period_seconds": 2**31},
        {"period_seconds": 2**32 - 1},
        {"attempt": 2**32 - 1},
        {"batch_index": 2**31},
        {"total_rows": 2**63},
        {"fetched_at": 2**63},
        {"fetched_at": 1},
        {"fetched_at": (NOW_US + 3_600 * 10**6) * 1000},
        {"status": 99},
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [0, 2])
def test_a_batch_that_cannot_be_believed_costs_itself_only(fields, rows):
    wrong, good = batch(range(rows)), record(batch(range(2)))
    for name, value in fields.items():
        setattr(wrong, name, value)
    if "period_seconds" in fields:
        del wrong.rows[:]
    found = decode_records(records(good, record(wrong), good), seen_at_us=NOW_US)
    assert found.quarantine["offset"].to_pylist() == [1]
    assert (len(found.bars), len(found.coverage)) == (4, 2)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (BASE_NS, FETCHED_NS + 3_600 * 10**9),
        (0, BASE_NS + 2 * MINUTE_NS),
        (BASE_NS, 2**64 - 1),
        (BASE_NS + MINUTE_NS, BASE_NS),
        (BASE_NS, BASE_NS + MINUTE_NS),
    ],
)
def test_a_range_of_the_future_or_of_no_time_or_without_its_bars_is_not_covered(start, end):
    wrong = batch(range(2), covered=[common_pb2.TimeRange(start=start, end=end)])
    found = decode_records(records(record(wrong)), seen_at_us=NOW_US)
    assert (len(found.bars), len(found.coverage), len(found.quarantine)) == (0, 0, 1)


def test_a_record_under_another_markets_key_is_quarantined():
    for key in (None, b"", b"ETH/USDT.BINANCE"):
        found = decode_records(records(record(batch(range(2))), key=key), seen_at_us=NOW_US)
        assert (len(found.coverage), len(found.quarantine)) == (0, 1)


def test_a_batch_of_more_bars_than_a_record_may_hold_is_quarantined():
    found = decode_records(records(record(batch(range(1_001)))), seen_at_us=NOW_US)
    assert (len(found.bars), found.quarantine["reason"].to_pylist()) == (0, ["invalid_field"])


@pytest.mark.parametrize("name", ["tick_denom", "base_denom", "quote_denom", "history_start", "updated_at"])
def test_a_market_with_a_number_too_large_costs_itself_only(name):
    wrong, good = market_pb2.Market(market_id=BTC, exchange_id="BINANCE"), _market()
    setattr(wrong, name, 2**63)
    values = [record(good), record(wrong), record(batch(range(2)))]
    found = decode_records(records(*values), seen_at_us=NOW_US)
    assert (len(found.markets), len(found.coverage), found.quarantine["offset"].to_pylist()) == (1, 1, [1])


@pytest.mark.parametrize(
    ("hour", "what"),
    [(5, "a day at 05:00 UTC, case 11"), (22, "17:00 in Chicago in summer, case 12"), (23, "and in winter, case 12")],
)
def test_a_daily_bar_of_another_grid_is_refused_and_never_taken_for_the_utc_day_case_11_12(hour, what):
    day = BASE_NS // (86_400 * 10**9) * 86_400 * 10**9
    start = day + hour * 3_600 * 10**9
    of_session = batch(range(1), total_rows=1)
    of_session.ClearField("covered")
    of_session.period_seconds, of_session.start_time, of_session.end_time = 86_400, start, start + 86_400 * 10**9
    of_session.covered.add(start=start, end=start + 86_400 * 10**9)
    of_session.rows[0].timestamp = start
    made = tick_bar(0)
    made.period_seconds, made.timestamp, made.stamp.published_at = 86_400, start, start + 86_400 * 10**9
    found = decode_records(records(record(of_session), record(made)), seen_at_us=NOW_US)
    assert (len(found.bars), len(found.coverage), len(found.tick_bars)) == (0, 0, 0), what
    assert ["is not on the grid of 86400 s" in detail for detail in found.quarantine["detail"].to_pylist()] == [
        True
    ] * 2


@pytest.mark.parametrize("text", ["1d@05:00", "1d America/Chicago", "1d+5h", "session", "1M"])
def test_a_period_with_an_origin_a_zone_or_a_session_is_refused_in_words_case_11_12(text):
    with pytest.raises(PeerError, match=r"expected a period such as|calendar months"):
        parse_period(text)


def test_a_market_of_the_far_future_is_refused_so_that_it_blocks_no_later_change():
    ahead, slightly = _market(), _market()
    ahead.updated_at, slightly.updated_at = (NOW_US + 301 * 10**6) * 1000, (NOW_US + 299 * 10**6) * 1000
    found = decode_records(records(record(ahead), record(slightly), topic="market-symbols"), seen_at_us=NOW_US)
    assert found.markets["updated_at_ns"].to_pylist() == [slightly.updated_at]
    [row] = found.quarantine.to_pylist()
    assert (row["offset"], row["reason"]) == (0, "invalid_field")
    assert "updated_at up to the present" in row["detail"]


def _market() -> market_pb2.Market:
    return market_pb2.Market(market_id=BTC, exchange_id="BINANCE")


def _values(field) -> st.SearchStrategy:
    kind = field.cpp_type
    if kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        bits = 32 if kind == field.CPPTYPE_UINT32 else 64
        return st.one_of(st.sampled_from([0, 1, 2 ** (bits - 1), 2**bits - 1]), st.integers(0, 2**bits - 1))
    if kind == field.CPPTYPE_INT64:
        return st.integers(-(2**63), 2**63 - 1)
    if kind == field.CPPTYPE_ENUM:
        return st.integers(0, 200)
    if kind == field.CPPTYPE_BOOL:
        return st.booleans()
    return st.one_of(st.text(max_size=8), st.from_regex(r"-?[0-9]{1,60}(\.[0-9]{1,40})?(e[0-9])?", fullmatch=True))


def _plain_fields(message) -> list:
    return [f for f in message.DESCRIPTOR.fields if f.message_type is None and not f.is_repeated]


@st.composite
def _bent(draw, message):
    for field in draw(st.lists(st.sampled_from(_plain_fields(message)), max_size=3)):
        setattr(message, field.name, draw(_values(field)))
    return message


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_no_field_value_at_all_stops_the_decoder_or_costs_another_record(data):
    bad = batch(range(3))
    for row in bad.rows:
        data.draw(_bent(row))
    bad.covered.append(common_pb2.TimeRange(start=data.draw(st.integers(0, 2**64 - 1)), end=FETCHED_NS))
    values = [record(batch(range(2))), record(data.draw(_bent(bad))), record(data.draw(_bent(_market())))]
    found = decode_records(records(*values), seen_at_us=NOW_US)
    assert 0 in found.coverage["log_offset"].to_pylist()
    assert found.bars["log_offset"].to_pylist().count(0) == 2
    assert len(found.coverage) + len(found.markets) + len(found.quarantine) == 3


@settings(deadline=None, max_examples=300)
@given(st.from_regex(r"-?[0-9]{1,45}(\.[0-9]{1,30})?", fullmatch=True))
def test_a_decimal_text_is_stored_exactly_or_refused(text):
    with localcontext(prec=200):
        exact = Decimal(text)
        fits = abs(exact) < Decimal(10) ** 20 and exact == exact.quantize(Decimal("1e-18"))
    try:
        stored = stored_numbers_of_text([text, "1"])
    except ValueError:
        assert not fits
    else:
        assert fits
        assert stored.to_pylist() == [exact, Decimal(1)]


def test_a_market_becomes_a_row_and_back():
    from relay.tables.markets import market_of_row

    market = market_pb2.Market(
        market_id=BTC, exchange_id="BINANCE", native_symbol="BTCUSDT", tick_denom=100, supported_periods=[60, 300]
    )
    found = decode_records(records(record(market), topic="symbol-metadata"), seen_at_us=NOW_US)
    assert market_of_row(found.markets.to_pylist()[0]) == market
