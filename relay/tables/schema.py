"""The tables' columns: one definition for Iceberg, Arrow and Spark.

Prices and volumes are decimal(38,18), times are microseconds UTC (``*_ns`` where the exact nanosecond counts).
What an exchange does not send is null, never zero. Specification: ``proto/spec/0004-tables.md``.
"""

from __future__ import annotations

import pyarrow as pa

__all__ = [
    "COVERAGE_COLUMNS",
    "COVERAGE_TABLE",
    "GAPS_COLUMNS",
    "GAPS_TABLE",
    "NAMESPACE",
    "OHLC_COLUMNS",
    "OHLC_KEY",
    "OHLC_TABLE",
    "QUARANTINE_COLUMNS",
    "QUARANTINE_TABLE",
    "STORED_NUMBER",
    "STORED_TIME",
    "SYMBOL_CHANGES_TABLE",
    "SYMBOL_COLUMNS",
    "SYMBOL_TABLE",
    "TABLE_COLUMNS",
    "TICKS_COLUMNS",
    "TICKS_TABLE",
    "TICK_BARS_COLUMNS",
    "TICK_BARS_TABLE",
    "fitted",
]

NAMESPACE = "market"
OHLC_TABLE = "ohlc"
COVERAGE_TABLE = "coverage"
SYMBOL_TABLE = "symbol_metadata"
SYMBOL_CHANGES_TABLE = "symbol_changes"
QUARANTINE_TABLE = "quarantine"
TICKS_TABLE = "ticks"
GAPS_TABLE = "gaps"
TICK_BARS_TABLE = "tick_bars"

STORED_NUMBER = pa.decimal128(38, 18)
STORED_TIME = pa.timestamp("us", tz="UTC")
_RANGES = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("start_ns", pa.int64(), nullable=False), pa.field("end_ns", pa.int64(), nullable=False)]),
        nullable=False,
    )
)


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


OHLC_KEY = ("ticker", "period_seconds", "start")
OHLC_COLUMNS = pa.schema(
    [
        _required("ticker", pa.string()),
        _required("period_seconds", pa.int32()),
        _required("start", STORED_TIME),
        _required("open", STORED_NUMBER),
        _required("high", STORED_NUMBER),
        _required("low", STORED_NUMBER),
        _required("close", STORED_NUMBER),
        _required("volume", STORED_NUMBER),
        pa.field("quote_volume", STORED_NUMBER),
        pa.field("buy_volume", STORED_NUMBER),
        pa.field("sell_volume", STORED_NUMBER),
        pa.field("trades", pa.int64()),
        pa.field("first_trade_id", pa.string()),
        pa.field("last_trade_id", pa.string()),
        _required("source", pa.string()),
        _required("is_final", pa.bool_()),
        _required("incomplete", pa.bool_()),
        _required("revision", pa.int32()),
        _required("fetched_at_ns", pa.int64()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
        pa.field("is_fetched", pa.bool_()),
    ]
)
"""One row a bar. ``is_fetched``: it came in a batch that was fetched from the exchange, so it stands before a bar made
from live ticks, whose ``fetched_at_ns`` is when it was made. Null, in rows older than the column, means fetched."""
COVERAGE_COLUMNS = pa.schema(
    [
        _required("job_id", pa.string()),
        _required("attempt", pa.int32()),
        _required("batch_index", pa.int32()),
        _required("is_last", pa.bool_()),
        _required("status", pa.string()),
        _required("ticker", pa.string()),
        _required("period_seconds", pa.int32()),
        pa.field("covered", _RANGES, nullable=False),
        pa.field("covered_from", STORED_TIME),
        pa.field("covered_to", STORED_TIME),
        _required("rows", pa.int64()),
        _required("total_rows", pa.int64()),
        _required("source", pa.string()),
        _required("fetched_at_ns", pa.int64()),
        pa.field("error_code", pa.string()),
        pa.field("error_message", pa.string()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
    ]
)
SYMBOL_COLUMNS = pa.schema(
    [
        _required("ticker", pa.string()),
        _required("exchange", pa.string()),
        _required("native_symbol", pa.string()),
        _required("base_asset", pa.string()),
        _required("quote_asset", pa.string()),
        pa.field("settle_asset", pa.string()),
        _required("market_type", pa.string()),
        _required("status", pa.string()),
        _required("tick_denom", pa.int64()),
        _required("base_denom", pa.int64()),
        _required("quote_denom", pa.int64()),
        _required("min_amount", pa.string()),
        _required("min_notional", pa.string()),
        _required("price_increment", pa.string()),
        _required("amount_increment", pa.string()),
        pa.field("supported_periods", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("history_start_ns", pa.int64()),
        pa.field("alias_of", pa.string()),
        _required("updated_at_ns", pa.int64()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
        pa.field("listing_id", pa.string()),
        pa.field("listing_count", pa.int64()),
        pa.field("valid_from_ns", pa.int64()),
    ]
)
"""One row a market: what is known of it now. ``valid_from_ns``: since when its facts are these; null in rows older than
the column. The same columns are those of ``market.symbol_changes``: one row for each change of a market's facts."""
QUARANTINE_COLUMNS = pa.schema(
    [
        _required("topic", pa.string()),
        _required("partition", pa.int32()),
        _required("offset", pa.int64()),
        _required("reason", pa.string()),
        _required("detail", pa.string()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        _required("size_bytes", pa.int64()),
        _required("seen_at", STORED_TIME),
    ]
)
TICKS_COLUMNS = pa.schema(
    [
        _required("ticker", pa.string()),
        _required("trade_number", pa.int64()),
        _required("time", STORED_TIME),
        _required("time_ns", pa.int64()),
        _required("price", STORED_NUMBER),
        _required("amount", STORED_NUMBER),
        pa.field("quote_amount", STORED_NUMBER),
        _required("taker_buy", pa.bool_()),
        _required("backfill", pa.bool_()),
        _required("received_ns", pa.int64()),
        pa.field("sequence", pa.int64()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
    ]
)
"""One row a trade, unique by (ticker, trade_number): the exchange's id as a number."""
GAPS_COLUMNS = pa.schema(
    [
        _required("ticker", pa.string()),
        _required("state", pa.string()),
        _required("cause", pa.string()),
        pa.field("first_number", pa.int64()),
        pa.field("last_number", pa.int64()),
        _required("from_ns", pa.int64()),
        _required("to_ns", pa.int64()),
        _required("said_ns", pa.int64()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
    ]
)
"""What feeds said about holes, in the order of the log: the present state of a gap is what was said last."""
TICK_BARS_COLUMNS = pa.schema(
    [
        *(OHLC_COLUMNS.field(name) for name in OHLC_COLUMNS.names[: OHLC_COLUMNS.get_field_index("source") + 1]),
        _required("incomplete", pa.bool_()),
        _required("revision", pa.int32()),
        _required("made_at_ns", pa.int64()),
        _required("log_partition", pa.int32()),
        _required("log_offset", pa.int64()),
    ]
)
"""One row for each final bar, and each revision of one, that was made from live ticks, in the order of the log."""
TABLE_COLUMNS = {
    OHLC_TABLE: OHLC_COLUMNS,
    COVERAGE_TABLE: COVERAGE_COLUMNS,
    SYMBOL_TABLE: SYMBOL_COLUMNS,
    SYMBOL_CHANGES_TABLE: SYMBOL_COLUMNS,
    QUARANTINE_TABLE: QUARANTINE_COLUMNS,
    TICKS_TABLE: TICKS_COLUMNS,
    GAPS_TABLE: GAPS_COLUMNS,
    TICK_BARS_TABLE: TICK_BARS_COLUMNS,
}


def fitted(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Return rows in exactly these columns, whatever the age of the table they were read from.

    Args:
        rows: as read; a column that an older table lacks becomes null, one that a newer table added is left out.
        columns: one of this module's schemas.

    Raises:
        ValueError: a column that may not be null is missing.
    """
    for column in columns:
        if column.name not in rows.column_names:
            if not column.nullable:
                raise ValueError(f"expected a column {column.name}, got {rows.column_names}: is it another table?")
            rows = rows.append_column(column, pa.nulls(len(rows), column.type))
    return rows.select(columns.names).cast(columns)
