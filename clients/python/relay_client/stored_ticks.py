"""Ticks at rest: what ``market.ticks`` holds of a ticker and span, as Arrow, pandas, polars or :class:`Tick` values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from relay.protocol.ranges import Range
from relay.protocol.scaled import decimals_needed
from relay.protocol.v1 import market_pb2
from relay_client.engine.completeness import Completeness
from relay_client.engine.items import Origin, Tick
from relay_client.extras import extra

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["StoredTicks"]

_ROWS_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class StoredTicks:
    """Stored trades of one ticker, ascending by exchange time and id.

    Attributes:
        ticker: ``BASE/QUOTE.EXCHANGE``.
        span: exchange times, half open, nanoseconds.
        completeness: ids expected and stored, gaps with causes, share of time covered. With a ``limit`` it is about
            the stored ticks of the whole span.
    """

    ticker: str
    span: Range
    completeness: Completeness
    _rows: pa.Table

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __iter__(self) -> Iterator[Tick]:
        for batch in self._rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield _tick(row)

    def __repr__(self) -> str:
        return f"StoredTicks({self.ticker}: {len(self)} ticks, {self.completeness.missing_count} ids missing)"

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table: price and amount are decimal(38,18), time is a UTC timestamp."""
        return self._rows

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame indexed by time (UTC), numbers as Arrow-backed decimals.

        Raises:
            SettingsError: MISSING_EXTRA; pandas is not installed.
        """
        pandas = extra("pandas")
        frame = self._rows.to_pandas(types_mapper=pandas.ArrowDtype)
        return frame.set_index("time")

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame with decimals.

        Raises:
            SettingsError: MISSING_EXTRA; polars is not installed.
        """
        return extra("polars").from_arrow(self._rows)


def _tick(row: Mapping[str, Any]) -> Tick:
    """Return a row as a live tick looks, with as few decimals as hold its numbers."""
    price, price_decimals = _scaled(row["price"])
    amount, amount_decimals = _scaled(row["amount"])
    message = market_pb2.Tick(
        trade_id=str(row["trade_number"]),
        ticker=row["ticker"],
        timestamp=row["time_ns"],
        price=price,
        amount=amount,
        price_decimals=price_decimals,
        amount_decimals=amount_decimals,
        taker_buy=row["taker_buy"],
        backfill=row["backfill"],
        received_at=row["received_ns"],
        sequence=row["sequence"],
    )
    if row["quote_amount"] is not None:
        message.quote_amount, message.quote_decimals = _scaled(row["quote_amount"])
    return Tick(message, Origin.HISTORY)


def _scaled(number: Decimal) -> tuple[int, int]:
    decimals = decimals_needed((number,))
    return int(number.scaleb(decimals)), decimals
