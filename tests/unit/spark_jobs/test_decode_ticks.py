"""Records of live feeds into rows: exact numbers, and every bad record set aside alone."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.envelope import encode_record
from relay.protocol.v1 import common_pb2, market_pb2
from spark_jobs.jobs.bars.decode import bar_event
from spark_jobs.jobs.bars.engine.values import BarTrade
from spark_jobs.jobs.records import Record
from spark_jobs.jobs.ticks.decode import decode_ticks

BTC = "BTC/USDT.BINANCE"
T0 = 1_700_000_000_123_456_789


def tick(number: int = 7, **fields: object) -> market_pb2.Tick:
    values: dict[str, object] = {
        "trade_id": str(number),
        "ticker": BTC,
        "timestamp": T0,
        "price": 4213,
        "price_decimals": 2,
        "amount": 5,
        "amount_decimals": 8,
        "taker_buy": True,
        "received_at": T0 + 1,
        **fields,
    }
    return market_pb2.Tick(**values)  # type: ignore[arg-type]


def records(*values: bytes, key: bytes = BTC.encode()) -> pa.Table:
    return pa.table(
        {
            "topic": ["market-tick"] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([key] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )


def test_numbers_are_exact_at_any_scale_and_what_was_not_sent_is_null() -> None:
    smallest = tick(1, price=1, price_decimals=18, amount=2**63 - 1, amount_decimals=0)
    quoted = tick(2, quote_amount=21065, quote_decimals=10, sequence=9, backfill=True)
    decoded = decode_ticks(records(encode_record(smallest), encode_record(quoted)), seen_at_us=1)
    first, second = decoded.ticks.to_pylist()
    assert (first["price"], first["amount"]) == (Decimal("0.000000000000000001"), Decimal(2**63 - 1))
    assert (first["quote_amount"], first["sequence"], first["backfill"]) == (None, None, False)
    assert second["quote_amount"] == Decimal("0.0000021065")
    assert (second["trade_number"], second["time_ns"], second["sequence"], second["backfill"]) == (2, T0, 9, True)
    assert len(decoded.quarantine) == 0


@pytest.mark.parametrize("decimals", [None, 1, 18, 19])
def test_the_archive_and_the_engine_take_the_same_quote_amount(decimals: int | None) -> None:
    value = encode_record(tick(quote_amount=777, quote_decimals=decimals))
    (row,) = decode_ticks(records(value), seen_at_us=1).ticks.to_pylist()
    event = bar_event(Record("market-tick", 0, 5, BTC.encode(), value))
    assert event is not None
    assert isinstance(event.said, BarTrade)
    quote = None if event.said.quote is None else Decimal(event.said.quote).scaleb(-event.said.quote_decimals)
    assert row["quote_amount"] == quote
    assert (quote is None) == (decimals in (None, 19))


def test_a_market_whose_denominators_change_keeps_the_meaning_of_its_numbers() -> None:
    before, after = tick(1, price=4213, price_decimals=2), tick(2, price=421300, price_decimals=4)
    decoded = decode_ticks(records(encode_record(before), encode_record(after)), seen_at_us=1)
    assert {row["price"] for row in decoded.ticks.to_pylist()} == {Decimal("42.13")}


@pytest.mark.parametrize(
    "bad",
    [
        tick(price=0),
        tick(amount=-1),
        tick(quote_amount=-1, quote_decimals=2),
        tick(timestamp=0),
        tick(timestamp=2**63),
        tick(timestamp=T0 + 601 * 10**9, stamp=common_pb2.PublishStamp(published_at=T0)),
        tick(price_decimals=19),
        tick(trade_id="abc"),
        tick(trade_id="9" * 30),
        tick(ticker="ETH/USDT.BINANCE"),
        tick(ticker="../etc"),
        tick(received_at=2**64 - 1),
        tick(sequence=2**64 - 1),
        market_pb2.Gap(ticker="nonsense"),
        market_pb2.Gap(ticker="ETH/USDT.BINANCE"),
        market_pb2.Gap(ticker=BTC, from_time=2**64 - 1),
        market_pb2.Market(market_id=BTC),
    ],
)
def test_a_record_that_makes_no_sense_is_set_aside_and_the_others_go_on_case_115(bad: object) -> None:
    values = [encode_record(tick(1)), encode_record(bad), encode_record(tick(2))]  # type: ignore[arg-type]
    decoded = decode_ticks(records(*values), seen_at_us=5)
    assert decoded.ticks["trade_number"].to_pylist() == [1, 2]
    (row,) = decoded.quarantine.to_pylist()
    assert (row["offset"], bool(row["detail"])) == (1, True)


def test_an_exchange_whose_clock_is_a_little_ahead_is_heard() -> None:
    ahead = tick(timestamp=T0 + 600 * 10**9, stamp=common_pb2.PublishStamp(published_at=T0))
    decoded = decode_ticks(records(encode_record(ahead)), seen_at_us=1)
    assert (len(decoded.ticks), len(decoded.quarantine)) == (1, 0)


def test_beats_are_passed_over_and_gaps_keep_what_was_said() -> None:
    gap = market_pb2.Gap(
        ticker=BTC,
        from_trade_id="4",
        from_time=T0,
        cause=market_pb2.Gap.SEQUENCE,
        state=market_pb2.Gap.OPEN,
        stamp=common_pb2.PublishStamp(published_at=T0 + 5),
    )
    decoded = decode_ticks(records(encode_record(market_pb2.Heartbeat(ticker=BTC)), encode_record(gap)), seen_at_us=1)
    (row,) = decoded.gaps.to_pylist()
    assert (row["state"], row["cause"], row["first_number"], row["last_number"]) == ("OPEN", "SEQUENCE", 4, None)
    assert row["said_ns"] == T0 + 5
    assert len(decoded.ticks) == len(decoded.quarantine) == 0


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=5), st.randoms(use_true_random=False))
def test_any_bytes_cost_nothing_but_themselves(junk: list[bytes], order: object) -> None:
    good = encode_record(tick(3))
    bent = [good[: len(good) // 2], good[:5] + b"\xff" + good[6:]]
    decoded = decode_ticks(records(*junk, *bent, good), seen_at_us=1)
    assert 3 in decoded.ticks["trade_number"].to_pylist()
    assert len(decoded.ticks) + len(decoded.gaps) + len(decoded.quarantine) <= len(junk) + 3


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "timestamp": st.integers(0, 2**64 - 1),
            "price": st.integers(-(2**63), 2**63 - 1),
            "amount": st.integers(-(2**63), 2**63 - 1),
            "quote_amount": st.integers(-(2**63), 2**63 - 1),
            "price_decimals": st.integers(0, 2**32 - 1),
            "amount_decimals": st.integers(0, 2**32 - 1),
            "quote_decimals": st.integers(0, 2**32 - 1),
            "received_at": st.integers(0, 2**64 - 1),
            "sequence": st.integers(0, 2**64 - 1),
            "trade_id": st.text(max_size=25),
        }
    )
)
def test_any_field_values_are_a_row_or_a_quarantined_record(fields: dict[str, object]) -> None:
    decoded = decode_ticks(records(encode_record(tick(**fields)), encode_record(tick(5))), seen_at_us=1)  # type: ignore[arg-type]
    assert len(decoded.ticks) + len(decoded.quarantine) == 2
    for row in decoded.ticks.to_pylist()[:-1]:
        assert row["price"].scaleb(int(fields["price_decimals"])) == fields["price"]  # type: ignore[call-overload]
