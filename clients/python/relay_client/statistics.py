"""24 h statistics of an exchange: typed rows with exact numbers, as Arrow or pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from relay.protocol.v1 import market_pb2
from relay_client.extras import extra
from relay_client.times import from_ns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

__all__ = ["ROW_COLUMNS", "ExchangeStatistics", "TickerStatistics", "UsdRate", "statistics_of"]

_NUMBERS = ("last", "change_percent", "quote_volume", "bid", "ask", "open", "high", "low", "volume", "usd_volume")


@dataclass(frozen=True, slots=True)
class TickerStatistics:
    """One market's last 24 hours. What the exchange does not send is None, never zero.

    Attributes:
        time: end of the 24 hours, at microsecond resolution.
        last: price of the last trade.
        change_percent: of the price, in percent; made of open and last where the exchange sends both but no change.
        volume, quote_volume: of the base and of the quote asset.
        usd_volume: the quote volume in USD, at 8 decimals; None where no way to USD is known.
    """

    ticker: str
    exchange: str
    base: str
    quote: str
    time: datetime
    last: Decimal | None
    change_percent: Decimal | None
    open: Decimal | None
    high: Decimal | None
    low: Decimal | None
    bid: Decimal | None
    ask: Decimal | None
    volume: Decimal | None
    quote_volume: Decimal | None
    usd_volume: Decimal | None
    trades: int | None


ROW_COLUMNS = TickerStatistics.__slots__


@dataclass(frozen=True, slots=True)
class UsdRate:
    """USD for one unit of a quote currency.

    Attributes:
        path: tickers of the markets that led to USD; empty for USD and stable coins, which count 1.
        time: of the oldest price on the path.
    """

    currency: str
    rate: Decimal
    path: tuple[str, ...]
    time: datetime


@dataclass(frozen=True, slots=True, repr=False)
class ExchangeStatistics:
    """The 24 h statistics of an exchange, ascending by ticker.

    Attributes:
        generated_at_ns: when the exchange answered.
        rates: by quote currency.
    """

    exchange: str
    generated_at_ns: int
    rows: tuple[TickerStatistics, ...]
    rates: Mapping[str, UsdRate]

    @property
    def generated_at(self) -> datetime:
        """When the exchange answered, at microsecond resolution."""
        return from_ns(self.generated_at_ns)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TickerStatistics]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"ExchangeStatistics({self.exchange}: {len(self)} markets, {self.generated_at})"

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table, one row a market: numbers are decimal(38,18), time is a UTC timestamp.

        Raises:
            SettingsError: MISSING_EXTRA; pyarrow is not installed.
            pyarrow.ArrowInvalid: a number has more than 18 decimals; the rows themselves hold it exactly.
        """
        arrow: Any = extra("pyarrow")
        number = arrow.decimal128(38, 18)
        kinds = {"time": arrow.timestamp("us", tz="UTC"), "trades": arrow.int64()} | dict.fromkeys(
            ("last", *_NUMBERS), number
        )
        columns = arrow.schema([(name, kinds.get(name, arrow.string())) for name in ROW_COLUMNS])
        values = {name: [getattr(row, name) for row in self.rows] for name in ROW_COLUMNS}
        return arrow.table(values, schema=columns)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame indexed by ticker, numbers as Arrow-backed decimals.

        Raises:
            SettingsError: MISSING_EXTRA; pandas is not installed.
        """
        pandas: Any = extra("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype).set_index("ticker")
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame.

        Raises:
            SettingsError: MISSING_EXTRA; polars is not installed.
        """
        polars: Any = extra("polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame


def statistics_of(parts: Iterable[market_pb2.Ticker24h]) -> ExchangeStatistics:
    """Return the value of all parts of an exchange's statistics; at least one."""
    messages = sorted(parts, key=lambda part: part.part_index)
    rates = [
        UsdRate(r.currency, Decimal(r.usd_rate), _path(r), from_ns(r.timestamp)) for m in messages for r in m.rates
    ]
    return ExchangeStatistics(
        exchange=messages[0].exchange_id,
        generated_at_ns=messages[0].generated_at,
        rows=tuple(_row(row) for message in messages for row in message.tickers),
        rates={rate.currency: rate for rate in rates},
    )


def _path(rate: market_pb2.QuoteCurrencyRate) -> tuple[str, ...]:
    return tuple(filter(None, rate.source_ticker.split(",")))


def _row(row: market_pb2.TickerStats) -> TickerStatistics:
    return TickerStatistics(
        ticker=row.ticker,
        exchange=row.exchange_id,
        base=row.base_asset,
        quote=row.quote_asset,
        time=from_ns(row.timestamp),
        last=_number(row.last_price),
        change_percent=_number(row.price_change_pct),
        open=_number(row.open),
        high=_number(row.high),
        low=_number(row.low),
        bid=_number(row.bid),
        ask=_number(row.ask),
        volume=_number(row.volume),
        quote_volume=_number(row.quote_volume_24h),
        usd_volume=_number(row.std_quote_volume),
        trades=row.num_trades if row.HasField("num_trades") else None,
    )


def _number(text: str) -> Decimal | None:
    return Decimal(text) if text else None
