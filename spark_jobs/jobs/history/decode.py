"""Log records → table rows, over Arrow batches. Pure: no Spark, no I/O, so that driver and executors share it.

A record that is no good (bytes, version, type, numbers) becomes a quarantine row with its place and reason; the
others go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeError, decode_record
from relay.protocol.ranges import from_wire
from relay.protocol.v1 import market_pb2
from relay.tables.markets import row_of_market
from relay.tables.schema import (
    COVERAGE_COLUMNS,
    OHLC_COLUMNS,
    QUARANTINE_COLUMNS,
    STORED_TIME,
    SYMBOL_COLUMNS,
)
from spark_jobs.jobs.history.bar_columns import bars_table, source_names
from spark_jobs.jobs.history.checks import check_batch, check_market, check_tick_bar, checked_starts_ns
from spark_jobs.jobs.history.tick_bars import WRONG_VALUE, tick_bars_of, tick_bars_table
from spark_jobs.jobs.records import Record, quarantine_row, records_of

__all__ = ["Decoded", "decode_records"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows of one micro-batch for each table (columns in ``relay.tables.schema``).

    Attributes:
        bars: for ``market.ohlc``: fetched ones, and those made from ticks.
        tick_bars: the latter once more, for ``market.tick_bars``.
    """

    bars: pa.Table
    tick_bars: pa.Table
    coverage: pa.Table
    markets: pa.Table
    quarantine: pa.Table


def decode_records(records: pa.Table, *, seen_at_us: int) -> Decoded:
    """Decode log records.

    Args:
        records: columns :data:`~spark_jobs.jobs.records.RECORD_COLUMNS`.
        seen_at_us: time for quarantine rows, microseconds since the epoch.

    Cost: about 6 µs a bar of a batch, a third of it for the checks; measured by ``python -m benchmarks decode_merge``.
    """
    bars: list[pa.Table] = []
    made: list[tuple[market_pb2.OHLC, Record]] = []
    coverage: list[pa.Table] = []
    markets: list[pa.Table] = []
    quarantine: list[dict[str, Any]] = []
    for record in records_of(records):
        try:
            _, message = decode_record(record.value or b"")
            # Whatever a record can be wrong by shows here, where it costs this record only.
            if isinstance(message, market_pb2.OHLCBatch):
                check_batch(message, record.key, seen_at_us=seen_at_us)
                rows = _bars(message, record)
                coverage.append(pa.Table.from_pylist([_coverage(message, record)], schema=COVERAGE_COLUMNS))
                if rows is not None:
                    bars.append(rows)
            elif isinstance(message, market_pb2.OHLC):
                check_tick_bar(message, record.key, seen_at_us=seen_at_us)
                made.append((message, record))
            elif isinstance(message, market_pb2.Market):
                check_market(message, seen_at_us=seen_at_us)
                markets.append(pa.Table.from_pylist([_market(message, record)], schema=SYMBOL_COLUMNS))
            else:
                raise EnvelopeError(
                    RejectReason.WRONG_TOPIC, f"expected OHLCBatch, OHLC or Market, got {type(message).__name__}"
                )
        except WRONG_VALUE as error:
            quarantine.append(_quarantine(record, error, seen_at_us))
    from_ticks, wrong = tick_bars_of(made)
    quarantine += [_quarantine(record, error, seen_at_us) for record, error in wrong]
    return Decoded(
        bars=pa.concat_tables([OHLC_COLUMNS.empty_table(), *bars, from_ticks]),
        tick_bars=tick_bars_table(from_ticks),
        coverage=pa.concat_tables(coverage) if coverage else COVERAGE_COLUMNS.empty_table(),
        markets=pa.concat_tables(markets) if markets else SYMBOL_COLUMNS.empty_table(),
        quarantine=pa.Table.from_pylist(quarantine, schema=QUARANTINE_COLUMNS),
    )


def _quarantine(record: Record, error: Exception, seen_at_us: int) -> dict[str, Any]:
    reason = error.reason if isinstance(error, EnvelopeError) else RejectReason.INVALID_FIELD
    return quarantine_row(record, str(reason), error, seen_at_us=seen_at_us)


def _bars(batch: market_pb2.OHLCBatch, record: Record) -> pa.Table | None:
    rows = list(batch.rows)
    if not rows:
        return None
    count = len(rows)
    return bars_table(
        rows,
        ticker=pa.repeat(pa.scalar(batch.ticker), count),
        period_seconds=pa.repeat(pa.scalar(batch.period_seconds, pa.int32()), count),
        start=pa.array(checked_starts_ns(batch, rows) // 1000).cast(STORED_TIME),
        fetched_at_ns=pa.repeat(pa.scalar(batch.fetched_at, pa.int64()), count),
        log_partition=pa.repeat(pa.scalar(record.partition, pa.int32()), count),
        log_offset=pa.repeat(pa.scalar(record.offset, pa.int64()), count),
        is_fetched=pa.repeat(pa.scalar(True), count),
    )


def _coverage(batch: market_pb2.OHLCBatch, record: Record) -> dict[str, Any]:
    covered = from_wire(batch.covered)
    return {
        "job_id": batch.job_id,
        "attempt": batch.attempt,
        "batch_index": batch.batch_index,
        "is_last": batch.is_last,
        "status": market_pb2.OHLCBatch.Status.Name(batch.status),
        "ticker": batch.ticker,
        "period_seconds": batch.period_seconds,
        "covered": [{"start_ns": r.start_ns, "end_ns": r.end_ns} for r in covered],
        "covered_from": covered[0].start_ns // 1000 if covered else None,
        "covered_to": -(-covered[-1].end_ns // 1000) if covered else None,
        "rows": len(batch.rows),
        "total_rows": batch.total_rows,
        "source": _source(batch),
        "fetched_at_ns": batch.fetched_at,
        "error_code": batch.error_code or None,
        "error_message": batch.error_message or None,
        "log_partition": record.partition,
        "log_offset": record.offset,
    }


def _source(batch: market_pb2.OHLCBatch) -> str:
    exchange = batch.ticker.rpartition(".")[2]
    kinds = sorted(set(source_names([row.source for row in batch.rows])))
    return ":".join([exchange, *kinds])


def _market(market: market_pb2.Market, record: Record) -> dict[str, Any]:
    return {**row_of_market(market), "log_partition": record.partition, "log_offset": record.offset}
