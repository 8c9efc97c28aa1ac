"""Log records of live feeds → rows of ``market.ticks`` and ``market.gaps``. Pure: no Spark, no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from relay.errors import PeerError
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeError, decode_record
from relay.protocol.periods import NANOSECONDS
from relay.protocol.scaled import INT64_MAX, STORED_DECIMALS
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import TIME_NS_MAX
from relay.protocol.v1 import market_pb2
from relay.tables.schema import GAPS_COLUMNS, QUARANTINE_COLUMNS, TICKS_COLUMNS
from spark_jobs.jobs.records import Record, quarantine_row, records_of
from spark_jobs.jobs.stored_numbers import stored_numbers_of_units

__all__ = ["AHEAD_NS_MAX", "DecodedTicks", "check_tick", "check_ticker", "decode_ticks", "quote_of", "trade_number"]

_TIME_NS_MIN = 473_385_600_000_000_000
"""1985: nothing was traded on any exchange we know before."""
AHEAD_NS_MAX = 600 * NANOSECONDS
"""So far an exchange's clock may be ahead of an ingestor's; a trade of far ahead would hold up all bars before it."""
_TICKERS_MAX = 65_536

_TICK_NAMES = (
    "ticker",
    "trade_number",
    "time_ns",
    "price",
    "price_decimals",
    "amount",
    "amount_decimals",
    "quote_amount",
    "quote_decimals",
    "taker_buy",
    "backfill",
    "received_ns",
    "sequence",
    "log_partition",
    "log_offset",
)


@dataclass(frozen=True, slots=True)
class DecodedTicks:
    """Rows of one micro-batch for each table (columns in ``relay.tables.schema``)."""

    ticks: pa.Table
    gaps: pa.Table
    quarantine: pa.Table


def decode_ticks(records: pa.Table, *, seen_at_us: int) -> DecodedTicks:
    """Decode log records; beats are passed over, what is no good goes to quarantine with its reason.

    Args:
        records: columns :data:`~spark_jobs.jobs.records.RECORD_COLUMNS`.
        seen_at_us: time for quarantine rows, microseconds since the epoch.
    """
    ticks: list[tuple[Any, ...]] = []
    gaps, quarantine = [], []
    for record in records_of(records):
        try:
            _, message = decode_record(record.value or b"")
            if isinstance(message, market_pb2.Tick):
                ticks.append(_tick(message, record, check_tick(message, record.key or b"")))
            elif isinstance(message, market_pb2.Gap):
                gaps.append(_gap(message, record))
            elif not isinstance(message, market_pb2.Heartbeat):
                raise EnvelopeError(RejectReason.WRONG_TOPIC, f"expected Tick or Gap, got {type(message).__name__}")
        except EnvelopeError as error:
            quarantine.append(quarantine_row(record, str(error.reason), error, seen_at_us=seen_at_us))
        except (ValueError, PeerError) as error:
            quarantine.append(quarantine_row(record, str(RejectReason.INVALID_FIELD), error, seen_at_us=seen_at_us))
    return DecodedTicks(
        ticks=_table(ticks),
        gaps=pa.Table.from_pylist(gaps, schema=GAPS_COLUMNS),
        quarantine=pa.Table.from_pylist(quarantine, schema=QUARANTINE_COLUMNS),
    )


def check_tick(tick: market_pb2.Tick, key: bytes) -> int:
    """Return a tick's trade number.

    Raises:
        ValueError, PeerError: it cannot be true; with what was expected and what it was.
    """
    check_ticker(tick.ticker, key)
    if tick.price <= 0 or tick.amount <= 0:
        raise ValueError(f"expected price and amount above zero, got {tick.price} and {tick.amount}")
    if tick.quote_amount < 0:
        raise ValueError(f"expected a quote amount of zero or more, got {tick.quote_amount}")
    if not _TIME_NS_MIN <= tick.timestamp <= TIME_NS_MAX:
        raise ValueError(f"expected a time between 1985 and 2100, got {tick.timestamp} ns")
    published_ns = tick.stamp.published_at
    if published_ns and tick.timestamp > published_ns + AHEAD_NS_MAX:
        raise ValueError(f"expected a trade before it was published at {published_ns} ns, got {tick.timestamp} ns")
    if tick.price_decimals > STORED_DECIMALS or tick.amount_decimals > STORED_DECIMALS:
        raise ValueError(
            f"expected at most {STORED_DECIMALS} decimals, got {tick.price_decimals} {tick.amount_decimals}"
        )
    if tick.received_at > INT64_MAX or tick.sequence > INT64_MAX:
        raise ValueError("expected received_at and sequence within 63 bits")
    number = trade_number(tick.trade_id)
    if number < 0:
        raise ValueError(f"expected a numeric trade id, got {tick.trade_id[:40]!r}")
    return number


def check_ticker(ticker: str, key: bytes) -> None:
    """Check that a record is of the ticker that its key is: by the key it was placed, and so it stays in order.

    Raises:
        ValueError, PeerError: it is no ticker in its one form, or another than the key.
    """
    # By the key, not by the text: a text of the message is made anew each time, and has to be hashed each time.
    if _ticker_of(key) != ticker:
        parse_ticker(ticker)
        raise ValueError(f"expected the ticker as the record's key, got {ticker!r} under {key[:80]!r}")


def quote_of(tick: market_pb2.Tick) -> tuple[int | None, int]:
    """Return a tick's quote amount and its decimals; None where price and amount have to stand for it.

    That is where it was not sent, or without its decimals, or with more than a stored number can hold.
    """
    is_there = tick.HasField("quote_amount") and tick.HasField("quote_decimals")
    return (
        (tick.quote_amount, tick.quote_decimals) if is_there and tick.quote_decimals <= STORED_DECIMALS else (None, 0)
    )


@lru_cache(_TICKERS_MAX)
def _ticker_of(key: bytes) -> str | None:
    """Return the ticker that a key is; None when it is none in its one form. Remembered: keys come again and again."""
    try:
        text = key.decode()
        return text if str(parse_ticker(text)) == text else None
    except (UnicodeDecodeError, PeerError):
        return None


def _tick(tick: market_pb2.Tick, record: Record, number: int) -> tuple[Any, ...]:
    """Return the values of :data:`_TICK_NAMES`."""
    return (
        tick.ticker,
        number,
        tick.timestamp,
        tick.price,
        tick.price_decimals,
        tick.amount,
        tick.amount_decimals,
        *quote_of(tick),
        tick.taker_buy,
        tick.backfill,
        tick.received_at,
        tick.sequence if tick.HasField("sequence") else None,
        record.partition,
        record.offset,
    )


def trade_number(trade_id: str) -> int:
    """Return the id as a number, -1 when it is none."""
    is_number = trade_id.isascii() and trade_id.isdigit() and len(trade_id) <= 18
    return int(trade_id) if is_number else -1


def _gap(gap: market_pb2.Gap, record: Record) -> dict[str, Any]:
    check_ticker(gap.ticker, record.key or b"")
    if max(gap.from_time, gap.to_time, gap.stamp.published_at) > TIME_NS_MAX:
        raise ValueError("expected times before 2100")
    first, last = trade_number(gap.from_trade_id), trade_number(gap.to_trade_id)
    return {
        "ticker": gap.ticker,
        "state": market_pb2.Gap.State.Name(gap.state),
        "cause": market_pb2.Gap.Cause.Name(gap.cause),
        "first_number": first if first >= 0 else None,
        "last_number": last if last >= 0 else None,
        "from_ns": gap.from_time,
        "to_ns": gap.to_time,
        "said_ns": gap.stamp.published_at,
        "log_partition": record.partition,
        "log_offset": record.offset,
    }


def _table(ticks: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*ticks, strict=True) if ticks else ((),) * len(_TICK_NAMES)
    values = dict(zip(_TICK_NAMES, columns, strict=True))
    times = pa.array(values["time_ns"], pa.int64())
    made: dict[str, Any] = {
        "time": pa.array(np.asarray(values["time_ns"], dtype=np.int64) // 1000, pa.timestamp("us", tz="UTC")),
        "time_ns": times,
        "price": stored_numbers_of_units(values["price"], values["price_decimals"]),
        "amount": stored_numbers_of_units(values["amount"], values["amount_decimals"]),
        "quote_amount": stored_numbers_of_units(values["quote_amount"], values["quote_decimals"]),
    }
    return pa.table(
        {f.name: made.get(f.name, values.get(f.name)) for f in TICKS_COLUMNS},
        schema=TICKS_COLUMNS,
    )
