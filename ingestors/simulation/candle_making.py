"""Candles out of trades and out of smaller candles, exactly."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby

from ingestors.simulation.records import Candle, Trade

__all__ = ["candles_of_trades", "flat_candle", "rolled_up", "telling"]


def candles_of_trades(trades: Iterable[Trade], edges_ns: Sequence[int]) -> list[Candle]:
    """Return one candle for each bar that holds a trade.

    Args:
        trades: ascending by (time, id); those outside the edges are left out.
        edges_ns: starts of the bars and the end of the last one.
    """
    if not edges_ns:
        return []
    inside = (trade for trade in trades if edges_ns[0] <= trade.time_ns < edges_ns[-1])
    bars = groupby(inside, key=lambda trade: bisect_right(edges_ns, trade.time_ns) - 1)
    return [_candle(edges_ns[bar], list(group)) for bar, group in bars]


def _candle(start_ns: int, trades: Sequence[Trade]) -> Candle:
    prices = [trade.price_units for trade in trades]
    bought = [trade for trade in trades if trade.taker_buy]
    return Candle(
        start_ns=start_ns,
        open_units=prices[0],
        high_units=max(prices),
        low_units=min(prices),
        close_units=prices[-1],
        volume_units=sum(trade.size_units for trade in trades),
        quote_units=sum(trade.price_units * trade.size_units for trade in trades),
        trades=len(trades),
        buy_volume_units=sum(trade.size_units for trade in bought),
        buy_quote_units=sum(trade.price_units * trade.size_units for trade in bought),
    )


def rolled_up(candles: Iterable[Candle], edges_ns: Sequence[int]) -> list[Candle]:
    """Return longer candles made by time (not by count) of ascending shorter ones."""
    if not edges_ns:
        return []
    inside = (candle for candle in candles if edges_ns[0] <= candle.start_ns < edges_ns[-1])
    bars = groupby(inside, key=lambda candle: bisect_right(edges_ns, candle.start_ns) - 1)
    return [_joined(edges_ns[bar], list(group)) for bar, group in bars]


def telling(parts: Sequence[Candle]) -> Sequence[Candle]:
    """Return the candles that make the prices of a longer one: those with trades, or all where none has any."""
    return [part for part in parts if part.is_traded] or parts


def _joined(start_ns: int, parts: Sequence[Candle]) -> Candle:
    told = telling(parts)
    return Candle(
        start_ns=start_ns,
        open_units=told[0].open_units,
        high_units=max(part.high_units for part in told),
        low_units=min(part.low_units for part in told),
        close_units=told[-1].close_units,
        volume_units=sum(part.volume_units for part in parts),
        quote_units=_sum_known(part.quote_units for part in parts),
        trades=_sum_known(part.trades for part in parts),
        buy_volume_units=_sum_known(part.buy_volume_units for part in parts),
        buy_quote_units=_sum_known(part.buy_quote_units for part in parts),
    )


def _sum_known(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def flat_candle(start_ns: int, price_units: int) -> Candle:
    """Return the row some exchanges send for a bar without trades: the last price four times, nothing traded."""
    return Candle(
        start_ns=start_ns,
        open_units=price_units,
        high_units=price_units,
        low_units=price_units,
        close_units=price_units,
        volume_units=0,
        quote_units=0,
        trades=0,
        buy_volume_units=0,
        buy_quote_units=0,
    )
