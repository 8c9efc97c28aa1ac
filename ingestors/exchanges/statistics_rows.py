"""Rows of the exchanges' 24 h statistics, each in its exchange's own shape, read exactly.

A field that is absent, null or empty is None. What an exchange sends as zero stays zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from ingestors.engine.day_statistics import DayStatistics, StatisticsPage
from ingestors.engine.values import EXACT, Listing
from ingestors.exchanges.numbers import optional_number, whole
from relay.errors import PeerError
from relay.protocol.times import from_unit, magnitude_unit

__all__ = [
    "by_native_symbol",
    "read_advanced_product",
    "read_binance_row",
    "read_ccxt_row",
    "read_coinbase_stats",
    "read_kraken_entry",
    "read_statistics",
]

R = TypeVar("R")
Read = Callable[[R, Listing], DayStatistics]
_LAST_24_H = 1
"""Kraken's pairs of numbers are of today and of the last 24 hours."""


def by_native_symbol(listings: Mapping[str, Listing]) -> Mapping[str, Listing]:
    """Return listings by the exchange's own symbols."""
    return {listing.native_symbol: listing for listing in listings.values()}


def read_statistics(entries: Iterable[tuple[str, R]], listings: Mapping[str, Listing], read: Read[R]) -> StatisticsPage:
    """Read entries one by one; one that does not parse or is of no listed market is counted, the others stand.

    Args:
        entries: native symbol and row.
        listings: by native symbol.
        read: reads a row.
    """
    rows, bad_count = [], 0
    for symbol, entry in entries:
        listing = listings.get(symbol)
        try:
            if listing is None:
                raise PeerError(f"{symbol} is not listed")
            rows.append(_checked(read(entry, listing)))
        except (PeerError, LookupError, TypeError, AttributeError, ArithmeticError):
            bad_count += 1
    return StatisticsPage(tuple(rows), bad_count)


def read_binance_row(row: Mapping[str, Any], listing: Listing) -> DayStatistics:
    """Read a row of ``/api/v3/ticker/24hr``."""
    closed = whole(row["closeTime"])
    return DayStatistics(
        ticker=listing.ticker,
        time_ns=from_unit(closed, magnitude_unit(closed)),
        last=optional_number(row.get("lastPrice")),
        change_percent=optional_number(row.get("priceChangePercent")),
        quote_volume=optional_number(row.get("quoteVolume")),
        bid=optional_number(row.get("bidPrice")),
        ask=optional_number(row.get("askPrice")),
        open=optional_number(row.get("openPrice")),
        high=optional_number(row.get("highPrice")),
        low=optional_number(row.get("lowPrice")),
        volume=optional_number(row.get("volume")),
        trades=_count(row.get("count")),
    )


def read_kraken_entry(entry: Mapping[str, Any], listing: Listing, *, time_ns: int) -> DayStatistics:
    """Read an entry of ``/0/public/Ticker``.

    Its opening price is that of the UTC day, not of the 24 hours, so there is neither an open nor a change. The quote
    volume is volume x vwap, which is how vwap is defined; it is as exact as the exchange's rounded vwap.
    """
    volume, vwap = _second(entry, "v"), _second(entry, "p")
    trades = entry.get("t")
    return DayStatistics(
        ticker=listing.ticker,
        time_ns=time_ns,
        last=_first(entry, "c"),
        quote_volume=None if volume is None or vwap is None else EXACT.multiply(volume, vwap),
        bid=_first(entry, "b"),
        ask=_first(entry, "a"),
        high=_second(entry, "h"),
        low=_second(entry, "l"),
        volume=volume,
        trades=_count(trades[_LAST_24_H]) if trades else None,
    )


def read_coinbase_stats(entry: Mapping[str, Any], listing: Listing, *, time_ns: int) -> DayStatistics:
    """Read ``/products/{id}/stats`` of Coinbase Exchange, which knows no quote volume."""
    return DayStatistics(
        ticker=listing.ticker,
        time_ns=time_ns,
        last=optional_number(entry.get("last")),
        open=optional_number(entry.get("open")),
        high=optional_number(entry.get("high")),
        low=optional_number(entry.get("low")),
        volume=optional_number(entry.get("volume")),
    )


def read_advanced_product(entry: Mapping[str, Any], listing: Listing, *, time_ns: int) -> DayStatistics:
    """Read a product of Coinbase Advanced; its quote volume is the exchange's own approximation, as sent."""
    change = entry.get("price_percentage_change_24h")
    return DayStatistics(
        ticker=listing.ticker,
        time_ns=time_ns,
        last=optional_number(entry.get("price")),
        change_percent=optional_number(change.removesuffix("%") if isinstance(change, str) else change),
        quote_volume=optional_number(entry.get("approximate_quote_24h_volume")),
        bid=optional_number(entry.get("best_bid_price")),
        ask=optional_number(entry.get("best_ask_price")),
        volume=optional_number(entry.get("volume_24h")),
    )


def read_ccxt_row(row: Mapping[str, Any], listing: Listing, *, time_ns: int) -> DayStatistics:
    """Read a ticker of ccxt, whose numbers are text."""
    told_ms = row.get("timestamp")
    return DayStatistics(
        ticker=listing.ticker,
        time_ns=time_ns if told_ms is None else from_unit(whole(told_ms), "ms"),
        last=optional_number(row.get("last")),
        change_percent=optional_number(row.get("percentage")),
        quote_volume=optional_number(row.get("quoteVolume")),
        bid=optional_number(row.get("bid")),
        ask=optional_number(row.get("ask")),
        open=optional_number(row.get("open")),
        high=optional_number(row.get("high")),
        low=optional_number(row.get("low")),
        volume=optional_number(row.get("baseVolume")),
    )


def _checked(row: DayStatistics) -> DayStatistics:
    for number in (row.last, row.volume, row.quote_volume):
        if number is not None and number < 0:
            raise PeerError(f"expected no negative price or volume, got {number}")
    return row


def _count(value: object) -> int | None:
    if value is None:
        return None
    count = whole(value)
    if not 0 <= count < 2**63:
        raise PeerError(f"expected a count of trades, got {count}")
    return count


def _first(entry: Mapping[str, Any], name: str) -> Decimal | None:
    values = entry.get(name)
    return optional_number(values[0]) if values else None


def _second(entry: Mapping[str, Any], name: str) -> Decimal | None:
    values = entry.get(name)
    return optional_number(values[_LAST_24_H]) if values else None
