"""An exchange's 24 h statistics: rows as adapters read them, and the log records made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

from ingestors.engine.batches import BatchLimits
from ingestors.engine.usd_rates import UsdRate, usd_rates, usd_volume
from relay.protocol.scaled import plain_text
from relay.protocol.tickers import Ticker
from relay.protocol.v1 import market_pb2

__all__ = ["DayStatistics", "StatisticsPage", "statistics_records"]

_ROUNDING = Context(prec=130, rounding=ROUND_HALF_EVEN)
_PERCENT_STEP = Decimal("0.001")
_PERCENT_DIGITS_MAX = 20
_PART_NUMBERS_BYTES = 16
"""Room for the numbers of the part, which are known only when all parts are."""


@dataclass(frozen=True, slots=True)
class DayStatistics:
    """One market's last 24 hours. What the exchange does not send is None, never zero.

    Attributes:
        time_ns: end of the 24 hours; when the exchange answered, where it names no time.
        last: price of the last trade.
        change_percent: of the price, in percent; None where it is to be made of open and last.
        volume: of the base asset.
        quote_volume: of the quote asset.
    """

    ticker: Ticker
    time_ns: int
    last: Decimal | None = None
    change_percent: Decimal | None = None
    quote_volume: Decimal | None = None
    bid: Decimal | None = None
    ask: Decimal | None = None
    open: Decimal | None = None
    high: Decimal | None = None
    low: Decimal | None = None
    volume: Decimal | None = None
    trades: int | None = None


@dataclass(frozen=True, slots=True)
class StatisticsPage:
    """One answer; ``bad_count`` rows of it could not be read, or are of markets that are not listed."""

    rows: tuple[DayStatistics, ...]
    bad_count: int = 0


def statistics_records(
    exchange: str, rows: Iterable[DayStatistics], *, generated_at_ns: int, limits: BatchLimits
) -> list[market_pb2.Ticker24h]:
    """Return the log records of an exchange's statistics: every row is in exactly one of them.

    Args:
        exchange: upper-case name.
        rows: one a market; of a ticker that comes twice the later row counts.
        generated_at_ns: when the exchange answered; the same in all records, which belong together by it.
        limits: a record holds no more rows and no more bytes.

    Returns:
        Parts 0 … n - 1, rows ascending by ticker; at least one. The rates are in part 0.
    """
    by_ticker = {str(row.ticker): row for row in rows}
    ordered = [by_ticker[ticker] for ticker in sorted(by_ticker)]
    rates = usd_rates(ordered, known_at_ns=generated_at_ns)
    head = market_pb2.Ticker24h(exchange_id=exchange, generated_at=generated_at_ns)
    first = market_pb2.Ticker24h()
    first.CopyFrom(head)
    first.rates.extend(_rate(rates[currency]) for currency in sorted(rates))
    parts = [first]
    size = first.ByteSize() + _PART_NUMBERS_BYTES
    for row in ordered:
        message = _row(row, rates.get(row.ticker.quote))
        added = message.ByteSize()
        added += 1 + (1 if added < 128 else 2 if added < 16_384 else 3)
        part = parts[-1]
        is_full = len(part.tickers) >= limits.rows_max or size + added > limits.bytes_max
        if is_full and (part.tickers or part.rates):
            part = market_pb2.Ticker24h()
            part.CopyFrom(head)
            parts.append(part)
            size = part.ByteSize() + _PART_NUMBERS_BYTES
        part.tickers.append(message)
        size += added
    for index, part in enumerate(parts):
        part.part_index, part.part_count = index, len(parts)
    return parts


def _row(row: DayStatistics, rate: UsdRate | None) -> market_pb2.TickerStats:
    message = market_pb2.TickerStats(
        ticker=str(row.ticker),
        exchange_id=row.ticker.exchange,
        base_asset=row.ticker.base,
        quote_asset=row.ticker.quote,
        last_price=_text(row.last),
        price_change_pct=_text(_change_percent(row)),
        quote_volume_24h=_text(row.quote_volume),
        timestamp=row.time_ns,
        num_trades=row.trades,
    )
    for name in ("bid", "ask", "open", "high", "low", "volume"):
        number: Decimal | None = getattr(row, name)
        if number is not None:
            setattr(message, name, plain_text(number))
    if row.quote_volume is not None and rate is not None:
        message.std_quote_volume = plain_text(usd_volume(row.quote_volume, rate))
    return message


def _change_percent(row: DayStatistics) -> Decimal | None:
    """Return the change as sent, else from open to last, rounded half to even to 3 decimals.

    None without both, or where it would fit no column of the tables.
    """
    if row.change_percent is not None or row.open is None or row.last is None or row.open <= 0:
        return row.change_percent
    change = _ROUNDING.divide(_ROUNDING.multiply(_ROUNDING.subtract(row.last, row.open), Decimal(100)), row.open)
    return change.quantize(_PERCENT_STEP, context=_ROUNDING) if change.adjusted() < _PERCENT_DIGITS_MAX else None


def _rate(rate: UsdRate) -> market_pb2.QuoteCurrencyRate:
    return market_pb2.QuoteCurrencyRate(
        currency=rate.currency,
        usd_rate=plain_text(rate.rate),
        source_ticker=",".join(rate.path),
        timestamp=rate.time_ns,
    )


def _text(number: Decimal | None) -> str:
    return "" if number is None else plain_text(number)
