"""Log records → what the bar engine takes, in the order of the log. Pure: no Spark, no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from relay.errors import PeerError
from relay.protocol.envelope import EnvelopeError, decode_record
from relay.protocol.periods import check_period
from relay.protocol.times import TIME_NS_MAX
from relay.protocol.v1 import market_pb2, work_pb2
from spark_jobs.jobs.bars.engine.values import BarTrade, Beat, GapNotice, GapState
from spark_jobs.jobs.records import Record, in_log_order, records_of
from spark_jobs.jobs.ticks.decode import AHEAD_NS_MAX, check_tick, check_ticker, quote_of, trade_number

__all__ = ["BarEvent", "PeriodsWanted", "bar_event", "bar_events"]


class PeriodsWanted(NamedTuple):
    """A manager's word: bars of these periods (seconds) are wanted for so long."""

    periods: tuple[int, ...]
    lease_ms: int


class BarEvent(NamedTuple):
    """One record: its ticker, its place in the log, and what it says."""

    ticker: str
    partition: int
    offset: int
    said: BarTrade | GapNotice | Beat | PeriodsWanted


def bar_events(records: pa.Table) -> Iterator[BarEvent]:
    """Yield what records say, in the order of the log; what is no good is left out (the archive quarantines it).

    Args:
        records: columns :data:`~spark_jobs.jobs.records.RECORD_COLUMNS`, and ``time_ms`` where it is known.
    """
    for record in records_of(in_log_order(records)):
        event = bar_event(record)
        if event is not None:
            yield event


def bar_event(record: Record) -> BarEvent | None:
    """Return what a record says; None when that is nothing for bars, or no good."""
    try:
        return _event(record)
    except (EnvelopeError, ValueError, PeerError):
        return None


def _event(record: Record) -> BarEvent | None:
    _, message = decode_record(record.value or b"")
    if isinstance(message, market_pb2.Tick):
        number = check_tick(message, record.key or b"")
        return BarEvent(message.ticker, record.partition, record.offset, _trade(message, number, record.offset))
    if isinstance(message, market_pb2.Heartbeat):
        if message.source != market_pb2.Heartbeat.INGESTOR:
            return None
        check_ticker(message.ticker, record.key or b"")
        # One word from the end of time would make every later trade a late one.
        _check_time(message.exchange_time_reached, message.stamp.published_at)
        said = Beat(message.attempt, message.exchange_time_reached, message.state == market_pb2.Heartbeat.DOWN)
        return BarEvent(message.ticker, record.partition, record.offset, said)
    if isinstance(message, market_pb2.Gap):
        check_ticker(message.ticker, record.key or b"")
        return BarEvent(message.ticker, record.partition, record.offset, _gap(message))
    if isinstance(message, work_pb2.DataRequest):
        check_ticker(message.ticker, record.key or b"")
        periods = tuple(sorted({check_period(period) for period in message.realtime.ohlc_period_seconds}))
        return BarEvent(message.ticker, record.partition, record.offset, PeriodsWanted(periods, message.lease_ms))
    return None


def _trade(tick: market_pb2.Tick, number: int, offset: int) -> BarTrade:
    # As the archive does, so that both make the same bar.
    quote, quote_decimals = quote_of(tick)
    return BarTrade(
        number,
        tick.timestamp,
        tick.price,
        tick.price_decimals,
        tick.amount,
        tick.amount_decimals,
        quote,
        quote_decimals,
        tick.taker_buy,
        offset,
    )


def _gap(gap: market_pb2.Gap) -> GapNotice:
    _check_time(gap.from_time, gap.stamp.published_at)
    _check_time(gap.to_time, gap.stamp.published_at)
    first, last = trade_number(gap.from_trade_id), trade_number(gap.to_trade_id)
    return GapNotice(
        GapState(market_pb2.Gap.State.Name(gap.state)),
        first if first >= 0 else None,
        last if last >= 0 else None,
        gap.from_time,
        gap.to_time,
    )


def _check_time(time_ns: int, published_ns: int) -> None:
    if time_ns > TIME_NS_MAX:
        raise ValueError(f"expected a time before 2100, got {time_ns} ns")
    if published_ns and time_ns > published_ns + AHEAD_NS_MAX:
        raise ValueError(f"expected a time before it was published at {published_ns} ns, got {time_ns} ns")
