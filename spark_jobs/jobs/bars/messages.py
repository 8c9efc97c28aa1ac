"""Bars of the engine as OHLC messages, in one canonical form: equal bars have equal bytes. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from relay.protocol.scaled import INT64_MAX, decimals_needed, from_scaled, is_storable, plain_text, to_scaled
from relay.protocol.v1 import market_pb2
from spark_jobs.jobs.bars.engine.values import MadeBar

__all__ = ["BarKey", "is_same_bar", "key_of", "message_of_bar", "message_of_row", "revised"]

BarKey = tuple[str, int, int]
"""Ticker, period in seconds, start in ns."""
_PRICES = ("open", "high", "low", "close")


def key_of(message: market_pb2.OHLC) -> BarKey:
    """Return which bucket a bar is of."""
    return (message.ticker, message.period_seconds, message.timestamp)


def message_of_bar(bar: MadeBar) -> market_pb2.OHLC:
    """Return a bar as a message, with the fewest decimals at which its prices are exact.

    A quote volume of more than 18 decimals, or of more than 20 digits before the point, is left out: no table could
    hold it.

    Raises:
        ValueError: a price does not fit 64 bits, or the tables could not hold the volume.
    """
    decimals, prices = bar.price_decimals, (bar.open, bar.high, bar.low, bar.close)
    while decimals > 0 and all(price % 10 == 0 for price in prices):
        decimals, prices = decimals - 1, (prices[0] // 10, prices[1] // 10, prices[2] // 10, prices[3] // 10)
    if max(prices) > INT64_MAX:
        raise ValueError(f"{bar.ticker}: a price of {max(prices)} x 10^-{decimals} does not fit 64 bits")
    volume = from_scaled(bar.buy + bar.sell, bar.amount_decimals)
    if not is_storable(volume):
        raise ValueError(f"{bar.ticker}: expected a volume of at most 20 digits before the point, got {volume:f}")
    quote = from_scaled(bar.quote, bar.quote_decimals)
    return market_pb2.OHLC(
        ticker=bar.ticker,
        timestamp=bar.start_ns,
        period_seconds=bar.period_seconds,
        open=prices[0],
        high=prices[1],
        low=prices[2],
        close=prices[3],
        price_decimals=decimals,
        volume=plain_text(volume),
        buy_volume=_text(bar.buy, bar.amount_decimals),
        sell_volume=_text(bar.sell, bar.amount_decimals),
        quote_volume=plain_text(quote) if is_storable(quote) else None,
        trades=bar.trades,
        first_trade_id=str(bar.first_number),
        last_trade_id=str(bar.last_number),
        is_final=bar.is_final,
        incomplete=bar.incomplete,
        revision=bar.revision,
        source=market_pb2.OHLC.TICKS,
    )


def message_of_row(row: dict[str, Any]) -> market_pb2.OHLC:
    """Return a row of ``market.tick_bars`` (its start in microseconds) as the message that it was made of."""
    prices: list[Decimal] = [row[name] for name in _PRICES]
    decimals = decimals_needed(prices)
    units = [to_scaled(price, decimals) for price in prices]
    return market_pb2.OHLC(
        ticker=row["ticker"],
        timestamp=row["start"] * 1000,
        period_seconds=row["period_seconds"],
        open=units[0],
        high=units[1],
        low=units[2],
        close=units[3],
        price_decimals=decimals,
        volume=plain_text(row["volume"]),
        buy_volume=_optional(row["buy_volume"]),
        sell_volume=_optional(row["sell_volume"]),
        quote_volume=_optional(row["quote_volume"]),
        trades=row["trades"],
        first_trade_id=row["first_trade_id"],
        last_trade_id=row["last_trade_id"],
        is_final=True,
        incomplete=row["incomplete"],
        revision=row["revision"],
        source=row["source"],
    )


def is_same_bar(one: market_pb2.OHLC, other: market_pb2.OHLC) -> bool:
    """Return whether two bars say the same, whatever their revisions and stamps."""
    return _said(one) == _said(other)


def revised(bar: market_pb2.OHLC, last: market_pb2.OHLC | None) -> market_pb2.OHLC:
    """Return the bar under the revision that it has after the last final one: the same when they say the same."""
    bar.revision = 0 if last is None else last.revision + (not is_same_bar(bar, last))
    return bar


def _said(bar: market_pb2.OHLC) -> bytes:
    said = market_pb2.OHLC()
    said.CopyFrom(bar)
    said.revision = 0
    said.ClearField("stamp")
    return said.SerializeToString(deterministic=True)


def _text(units: int, decimals: int) -> str:
    return plain_text(from_scaled(units, decimals))


def _optional(number: Decimal | None) -> str | None:
    return None if number is None else plain_text(number)
