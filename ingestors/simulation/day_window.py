"""A market's last 24 hours, and how each exchange's REST interface writes them."""

from __future__ import annotations

from dataclasses import dataclass

from ingestors.simulation.candle_making import telling
from ingestors.simulation.grids import FixedGrid
from ingestors.simulation.number_text import fixed_text, ratio_units, shortest_text
from ingestors.simulation.records import Listing, MarketSource, Visible
from relay.protocol.periods import NANOSECONDS

__all__ = ["DayWindow", "binance_day", "coinbase_day", "day_window", "kraken_day"]

_DAY_NS = 86_400 * NANOSECONDS
_MINUTE = FixedGrid(60)
_PLACES = 8
_PERCENT_PLACES = 3


@dataclass(frozen=True, slots=True)
class DayWindow:
    """Sums of the whole minutes of 24 hours and of the running one, in units of the listing's decimals.

    Attributes:
        end_ns: the exchange's time.
        last_units: price of the last trade before it; 0 without any.
        today_open_units: first price of the UTC day, or the last price.
    """

    listing: Listing
    end_ns: int
    open_units: int
    high_units: int
    low_units: int
    last_units: int
    today_open_units: int
    volume_units: int
    quote_units: int
    trades: int
    first_id: int
    last_id: int


def day_window(source: MarketSource, *, now_ns: int) -> DayWindow:
    """Return the window that ends now."""
    start_ns, visible = _MINUTE.floor_ns(now_ns - _DAY_NS), Visible(now_ns)
    rows = source.candles(_MINUTE, start_ns=start_ns, end_ns=now_ns, visible=visible)
    end = source.position_at(now_ns)
    newest = source.trades(end - 1, end)
    last_units = newest[-1].price_units if newest else rows[-1].close_units if rows else 0
    midnight_ns = now_ns // _DAY_NS * _DAY_NS
    told, today = telling(rows), telling([row for row in rows if row.start_ns >= midnight_ns])
    count = sum(row.trades or 0 for row in rows)
    return DayWindow(
        listing=source.listing,
        end_ns=now_ns,
        open_units=told[0].open_units if told else last_units,
        high_units=max((row.high_units for row in told), default=last_units),
        low_units=min((row.low_units for row in told), default=last_units),
        last_units=last_units,
        today_open_units=today[0].open_units if today else last_units,
        volume_units=sum(row.volume_units for row in rows),
        quote_units=sum(row.quote_units or 0 for row in rows),
        trades=count,
        first_id=end - count + 1 if count else -1,
        last_id=end if count else -1,
    )


def binance_day(day: DayWindow) -> dict[str, object]:
    """Return a row of ``ticker/24hr``."""
    listing = day.listing
    price, size = listing.price_decimals, listing.size_decimals
    change = day.last_units - day.open_units
    percent = ratio_units(change * 10 ** (_PERCENT_PLACES + 2), day.open_units)
    return {
        "symbol": listing.symbol.replace("/", ""),
        "priceChange": fixed_text(change, price, _PLACES),
        "priceChangePercent": fixed_text(percent, _PERCENT_PLACES),
        "weightedAvgPrice": fixed_text(ratio_units(day.quote_units, day.volume_units), price, _PLACES),
        "prevClosePrice": fixed_text(day.open_units, price, _PLACES),
        "lastPrice": fixed_text(day.last_units, price, _PLACES),
        "lastQty": fixed_text(1, size, _PLACES),
        "bidPrice": fixed_text(day.last_units, price, _PLACES),
        "bidQty": fixed_text(1, size, _PLACES),
        "askPrice": fixed_text(day.last_units + 1, price, _PLACES),
        "askQty": fixed_text(1, size, _PLACES),
        "openPrice": fixed_text(day.open_units, price, _PLACES),
        "highPrice": fixed_text(day.high_units, price, _PLACES),
        "lowPrice": fixed_text(day.low_units, price, _PLACES),
        "volume": fixed_text(day.volume_units, size, _PLACES),
        "quoteVolume": fixed_text(day.quote_units, listing.quote_decimals, _PLACES),
        "openTime": (day.end_ns - _DAY_NS) // 10**6,
        "closeTime": day.end_ns // 10**6,
        "firstId": day.first_id,
        "lastId": day.last_id,
        "count": day.trades,
    }


def kraken_day(day: DayWindow) -> dict[str, object]:
    """Return an entry of ``Ticker``; today's numbers, which come before those of 24 hours, are the same here."""
    price, size = day.listing.price_decimals, day.listing.size_decimals
    vwap = fixed_text(ratio_units(day.quote_units, day.volume_units), price)
    volume = fixed_text(day.volume_units, size, _PLACES)
    last = fixed_text(day.last_units, price)
    return {
        "a": [fixed_text(day.last_units + 1, price), "1", "1.000"],
        "b": [last, "1", "1.000"],
        "c": [last, fixed_text(1, size, _PLACES)],
        "v": [volume, volume],
        "p": [vwap, vwap],
        "t": [day.trades, day.trades],
        "l": [fixed_text(day.low_units, price)] * 2,
        "h": [fixed_text(day.high_units, price)] * 2,
        "o": fixed_text(day.today_open_units, price),
    }


def coinbase_day(day: DayWindow) -> dict[str, object]:
    """Return ``products/{id}/stats``."""
    price, size = day.listing.price_decimals, day.listing.size_decimals
    return {
        "open": shortest_text(day.open_units, price),
        "high": shortest_text(day.high_units, price),
        "low": shortest_text(day.low_units, price),
        "last": shortest_text(day.last_units, price),
        "volume": shortest_text(day.volume_units, size),
        "volume_30day": shortest_text(day.volume_units * 30, size),
    }
