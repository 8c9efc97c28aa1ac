"""Bars of the wire → columns of ``market.ohlc``: exact, checked, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import pyarrow as pa

from relay.protocol.v1 import market_pb2
from relay.tables.schema import OHLC_COLUMNS
from spark_jobs.jobs.history.checks import check_prices, check_volumes
from spark_jobs.jobs.stored_numbers import stored_numbers_of_text, stored_numbers_of_units

__all__ = ["bars_table", "source_names"]

_PRICES = ("open", "high", "low", "close")
_TEXTS = ("quote_volume", "buy_volume", "sell_volume")


def bars_table(rows: Sequence[market_pb2.OHLC], **given: Any) -> pa.Table:
    """Return bars in the columns of ``market.ohlc``.

    Args:
        rows: at least one; their prices and volumes are checked here.
        given: the columns that a bar does not say itself, or not alone: ticker, period_seconds, start, fetched_at_ns,
            log_partition, log_offset, is_fetched; one value for each row.

    Raises:
        ValueError: prices or volumes that cannot be, a number that does not fit its column, an unknown source.
        ArithmeticError, pyarrow.ArrowException: an integer that does not fit its column.
    """
    columns: dict[str, Any] = {
        **given,
        "volume": stored_numbers_of_text([row.volume for row in rows]),
        "trades": [row.trades if row.HasField("trades") else None for row in rows],
        "first_trade_id": [row.first_trade_id or None for row in rows],
        "last_trade_id": [row.last_trade_id or None for row in rows],
        "source": source_names([row.source for row in rows]),
        "is_final": [row.is_final for row in rows],
        "incomplete": [row.incomplete for row in rows],
        "revision": [row.revision for row in rows],
    }
    decimals = [row.price_decimals for row in rows]
    units = [list(map(attrgetter(name), rows)) for name in _PRICES]
    check_prices(rows, *units)
    for name, column in zip(_PRICES, units, strict=True):
        columns[name] = stored_numbers_of_units(column, decimals)
    for name in _TEXTS:
        columns[name] = stored_numbers_of_text(list(map(attrgetter(name), rows)))
    check_volumes(columns["volume"], *(columns[name] for name in _TEXTS))
    return pa.table({field.name: columns[field.name] for field in OHLC_COLUMNS}, schema=OHLC_COLUMNS)


def source_names(sources: Sequence[int]) -> list[str]:
    """Return the names of sources.

    Raises:
        ValueError: a number without a name.
    """
    names = {source: market_pb2.OHLC.Source.Name(source) for source in set(sources)}
    return [names[source] for source in sources]
