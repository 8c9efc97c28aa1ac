"""The result of a history call: bars as Arrow, pandas, polars, DuckDB or typed values, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from relay.errors import SettingsError
from relay.protocol.ranges import Range
from relay.protocol.scaled import plain_text
from relay_client.engine.plan import HistoryQuery
from relay_client.extras import extra
from relay_client.outcome import Outcome, RequestStatus
from relay_client.rolling import Origin, roll_up
from relay_client.times import from_ns

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["Bar", "History", "Numbers"]

Numbers = Literal["exact", "decimal", "float"]
_ROWS_AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of [start, start + period). What the exchange does not send is None, never zero."""

    ticker: str
    period_seconds: int
    start: datetime
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    quote_volume: Decimal | None
    buy_volume: Decimal | None
    sell_volume: Decimal | None
    trades: int | None
    first_trade_id: str | None
    last_trade_id: str | None
    source: str
    is_final: bool
    incomplete: bool
    revision: int


BAR_COLUMNS = Bar.__slots__
_NUMBERS = ("open", "high", "low", "close", "volume", "quote_volume", "buy_volume", "sell_volume")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class History:
    """Bars of one ticker and period, ascending by start.

    Attributes:
        query: what was asked.
        status: OK; NOT_FOUND without any bar; PARTIAL when something that could have been fetched is missing.
        coverage: ranges of the question that have been fetched; a covered minute without a bar had no trade.
        missing: ranges that have not: bars that are open or in the future, and what could not be fetched.
        warning: why something is missing; empty when all is well.
        snapshot_id: of ``market.ohlc``, at which the bars were read; 0 without a table.
        requests: ends of the requests that were needed; empty when everything was there.
    """

    query: HistoryQuery
    status: RequestStatus
    coverage: tuple[Range, ...]
    missing: tuple[Range, ...]
    warning: str
    snapshot_id: int
    requests: tuple[Outcome, ...]
    _bars: pa.Table

    def __len__(self) -> int:
        return int(self._bars.num_rows)

    def __iter__(self) -> Iterator[Bar]:
        for batch in self._bars.to_batches(max_chunksize=_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield _bar(row)

    def __repr__(self) -> str:
        query = self.query
        return (
            f"History({query.ticker}, {query.period_seconds} s, {from_ns(query.start_ns)} to {from_ns(query.end_ns)}: "
            f"{len(self)} bars, {self.status}, {len(self.missing)} ranges missing)"
        )

    def head(self, count: int) -> list[Bar]:
        """Return the first bars."""
        return [_bar(row) for row in self._bars.slice(0, count).to_pylist()]

    def tail(self, count: int) -> list[Bar]:
        """Return the last bars, ascending."""
        return [_bar(row) for row in self._bars.slice(max(0, len(self) - count)).to_pylist()]

    def rolled_up(self, period: str | int, *, origin: Origin | None = None) -> History:
        """Return bars of a longer period that these bars cover whole, with what is missing for others.

        A bucket is made by time, never by counting bars; a covered stretch without a bar had no trade. A session of an
        exchange that follows daylight saving time is no fixed grid and cannot be asked for.

        Args:
            period: a multiple of this history's period (``1d`` out of ``1h``).
            origin: where its grid lies: so much later than the usual one (``5h``: days begin at 05:00 UTC; weeks
                usually on Monday); less than the period, a multiple of this history's period.

        Raises:
            SettingsError: INVALID_PERIOD: period or origin are not allowed.
        """
        return roll_up(self, period, origin)

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table: prices and volumes are decimal(38,18), start is a UTC timestamp."""
        return self._bars

    def to_pandas(self, *, numbers: Numbers = "exact") -> pd.DataFrame:
        """Return a DataFrame indexed by start (UTC).

        Args:
            numbers: ``exact``: Arrow-backed decimals; ``decimal``: Python Decimals; ``float``: 64-bit floats, which
                round, for plots and statistics.

        Raises:
            SettingsError: MISSING_EXTRA; pandas is not installed.
        """
        pandas = extra("pandas")
        table = _with_floats(self._bars) if numbers == "float" else self._bars
        if numbers not in ("exact", "decimal", "float"):
            raise SettingsError(f"expected numbers 'exact', 'decimal' or 'float', got {numbers!r}")
        arrow_backed = {table.schema.field(n).type: pandas.ArrowDtype(table.schema.field(n).type) for n in _NUMBERS}
        frame = table.to_pandas(types_mapper=arrow_backed.get if numbers == "exact" else None)
        return frame.set_index("start")

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame with decimals.

        Raises:
            SettingsError: MISSING_EXTRA; polars is not installed.
        """
        return extra("polars").from_arrow(self._bars)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return a DuckDB relation over the bars, without a copy.

        Args:
            connection: to query it with; else DuckDB's default one.

        Raises:
            SettingsError: MISSING_EXTRA; duckdb is not installed.
        """
        module = extra("duckdb")
        return (connection or module).from_arrow(self._bars)


def _bar(row: dict[str, Any]) -> Bar:
    for name in _NUMBERS:
        if row[name] is not None:
            row[name] = Decimal(plain_text(row[name]))
    return Bar(**row)


def _with_floats(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    kinds = [pa.field(f.name, pa.float64() if f.name in _NUMBERS else f.type) for f in table.schema]
    return table.cast(pa.schema(kinds))
