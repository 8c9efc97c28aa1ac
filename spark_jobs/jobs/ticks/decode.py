"""Log records of live feeds → rows of ``market.ticks`` and ``market.gaps``. Pure: no Spark, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relay.errors import PeerError
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeError, decode_record
from relay.protocol.scaled import INT64_MAX, STORED_DECIMALS
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import TIME_NS_MAX
from relay.protocol.v1 import market_pb2
from relay.tables.schema import GAPS_COLUMNS, QUARANTINE_COLUMNS, STORED_NUMBER, TICKS_COLUMNS

__all__ = ["DecodedTicks", "decode_ticks"]

_QUARANTINED_BYTES_MAX = 64 * 1024
_TIME_NS_MIN = 473_385_600_000_000_000
"""1985: nothing was traded on any exchange we know before."""


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


@dataclass(slots=True)
class _Columns:
    """Column lists of ticks, as the records come."""

    values: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _TICK_NAMES})

    def add(self, tick: market_pb2.Tick, partition: int, offset: int) -> None:
        values = (
            tick.ticker,
            _number(tick.trade_id),
            tick.timestamp,
            tick.price,
            tick.price_decimals,
            tick.amount,
            tick.amount_decimals,
            tick.quote_amount if tick.HasField("quote_amount") else None,
            tick.quote_decimals,
            tick.taker_buy,
            tick.backfill,
            tick.received_at,
            tick.sequence if tick.HasField("sequence") else None,
            partition,
            offset,
        )
        for name, value in zip(_TICK_NAMES, values, strict=True):
            self.values[name].append(value)


def decode_ticks(records: pa.Table, *, seen_at_us: int) -> DecodedTicks:
    """Decode log records; beats are passed over, what is no good goes to quarantine with its reason.

    Args:
        records: columns topic, partition, offset, key, value.
        seen_at_us: time for quarantine rows, microseconds since the epoch.
    """
    columns, gaps, quarantine = _Columns(), [], []
    names = ("topic", "partition", "offset", "key", "value")
    for topic, partition, offset, key, value in zip(*(records[n].to_pylist() for n in names), strict=True):
        try:
            _, message = decode_record(value or b"")
            if isinstance(message, market_pb2.Tick):
                _check_tick(message, key or b"")
                columns.add(message, partition, offset)
            elif isinstance(message, market_pb2.Gap):
                gaps.append(_gap(message, partition, offset))
            elif not isinstance(message, market_pb2.Heartbeat):
                raise EnvelopeError(RejectReason.WRONG_TOPIC, f"expected Tick or Gap, got {type(message).__name__}")
        except EnvelopeError as error:
            quarantine.append(_quarantined(topic, partition, offset, key, value, str(error.reason), str(error)))
        except (ValueError, PeerError) as error:
            reason = RejectReason.INVALID_FIELD
            quarantine.append(_quarantined(topic, partition, offset, key, value, str(reason), str(error)))
    for row in quarantine:
        row["seen_at"] = seen_at_us
    return DecodedTicks(
        ticks=_table(columns.values),
        gaps=pa.Table.from_pylist(gaps, schema=GAPS_COLUMNS),
        quarantine=pa.Table.from_pylist(quarantine, schema=QUARANTINE_COLUMNS),
    )


def _check_tick(tick: market_pb2.Tick, key: bytes) -> None:
    if str(parse_ticker(tick.ticker)) != tick.ticker or tick.ticker.encode() != key:
        raise ValueError(f"expected the ticker as the record's key, got {tick.ticker!r} under {key[:80]!r}")
    if tick.price <= 0 or tick.amount <= 0:
        raise ValueError(f"expected price and amount above zero, got {tick.price} and {tick.amount}")
    if not _TIME_NS_MIN <= tick.timestamp <= TIME_NS_MAX:
        raise ValueError(f"expected a time between 1985 and 2100, got {tick.timestamp} ns")
    if max(tick.price_decimals, tick.amount_decimals) > STORED_DECIMALS:
        raise ValueError(
            f"expected at most {STORED_DECIMALS} decimals, got {tick.price_decimals} {tick.amount_decimals}"
        )
    if max(tick.received_at, tick.sequence) > INT64_MAX:
        raise ValueError("expected received_at and sequence within 63 bits")
    if _number(tick.trade_id) < 0:
        raise ValueError(f"expected a numeric trade id, got {tick.trade_id[:40]!r}")


def _number(trade_id: str) -> int:
    """Return the id as a number, -1 when it is none."""
    is_number = trade_id.isascii() and trade_id.isdigit() and len(trade_id) <= 18
    return int(trade_id) if is_number else -1


def _gap(gap: market_pb2.Gap, partition: int, offset: int) -> dict[str, Any]:
    if str(parse_ticker(gap.ticker)) != gap.ticker:
        raise ValueError(f"expected a ticker, got {gap.ticker[:80]!r}")
    if max(gap.from_time, gap.to_time, gap.stamp.published_at) > TIME_NS_MAX:
        raise ValueError("expected times before 2100")
    first, last = _number(gap.from_trade_id), _number(gap.to_trade_id)
    return {
        "ticker": gap.ticker,
        "state": market_pb2.Gap.State.Name(gap.state),
        "cause": market_pb2.Gap.Cause.Name(gap.cause),
        "first_number": first if first >= 0 else None,
        "last_number": last if last >= 0 else None,
        "from_ns": gap.from_time,
        "to_ns": gap.to_time,
        "said_ns": gap.stamp.published_at,
        "log_partition": partition,
        "log_offset": offset,
    }


def _table(values: dict[str, list[Any]]) -> pa.Table:
    times = pa.array(values["time_ns"], pa.int64())
    made: dict[str, Any] = {
        "time": pa.array(np.asarray(values["time_ns"], dtype=np.int64) // 1000, pa.timestamp("us", tz="UTC")),
        "time_ns": times,
        "price": _exact(values["price"], values["price_decimals"]),
        "amount": _exact(values["amount"], values["amount_decimals"]),
        "quote_amount": _exact(values["quote_amount"], values["quote_decimals"]),
    }
    return pa.table(
        {f.name: made.get(f.name, values.get(f.name)) for f in TICKS_COLUMNS},
        schema=TICKS_COLUMNS,
    )


def _exact(units: Sequence[int | None], decimals: Sequence[int]) -> pa.Array:
    """Return ``units x 10^-decimals`` as stored numbers, null where there is none or 18 decimals do not hold it."""
    scales = np.asarray(decimals, dtype=np.int64)
    is_there = np.asarray([u is not None for u in units], dtype=bool) & (scales <= STORED_DECIMALS)
    result = pa.nulls(len(units), STORED_NUMBER)
    if not len(units):
        return result
    numbers = np.asarray([u or 0 for u in units], dtype=np.int64)
    for scale in np.unique(scales[is_there]).tolist():
        chosen = is_there & (scales == scale)
        # A decimal128 is a 16-byte little-endian integer: widening int64 to it needs no arithmetic, only the sign.
        words = np.empty((len(units), 2), dtype=np.int64)
        words[:, 0] = np.where(chosen, numbers, 0)
        words[:, 1] = words[:, 0] >> 63
        column = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [None, pa.py_buffer(words)])
        result = pc.if_else(pa.array(chosen), column.cast(STORED_NUMBER), result)
    return result


def _quarantined(
    topic: str, partition: int, offset: int, key: bytes | None, value: bytes | None, reason: str, detail: str
) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": offset,
        "reason": reason,
        "detail": detail[:2000],
        "key": key,
        "value": (value or b"")[:_QUARANTINED_BYTES_MAX],
        "size_bytes": len(value or b""),
    }
