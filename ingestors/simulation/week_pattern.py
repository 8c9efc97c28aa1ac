"""The repeating week of trades behind a model market: counts, times, price offsets, sizes and sides by minute.

A week repeats so that ids are closed form (week times total plus a prefix sum) and a minute's candle needs no
trade: only the price anchor and the size factor change from week to week.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ingestors.simulation.listings import ModelMarket

__all__ = ["MINUTE_NS", "WEEK_MINUTES", "Integers", "WeekPattern", "draw", "purpose_key", "week_pattern"]

Integers = npt.NDArray[np.int64]

MINUTE_NS = 60 * 10**9
WEEK_MINUTES = 10_080
_MILLISECOND_NS = 10**6
_SPREAD = 3


def purpose_key(seed: int, symbol: str, purpose: str) -> int:
    """Return a 64-bit key for one stream of draws."""
    return int.from_bytes(blake2b(f"{seed}/{symbol}/{purpose}".encode(), digest_size=8).digest(), "big")


def draw(key: int, numbers: Integers, bound: int) -> Integers:
    """Return a whole number in [0, bound) for each number: a pure function of both (splitmix64)."""
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return (x % np.uint64(bound)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class WeekPattern:
    """Columns of one week.

    Attributes:
        count, first: trades of a minute, and trades of the week before it (one entry more than minutes).
        open, high, low, close: price offsets of a minute's candle.
        size, size_offset, buy_size, buy_size_offset: sums over a minute of sizes, and of sizes times offsets.
        minute_of, offset_ns, price_offset, trade_size, taker_buy: of each trade.
    """

    count: Integers
    first: Integers
    open: Integers
    high: Integers
    low: Integers
    close: Integers
    size: Integers
    size_offset: Integers
    buy_size: Integers
    buy_size_offset: Integers
    minute_of: Integers
    offset_ns: Integers
    price_offset: Integers
    trade_size: Integers
    taker_buy: Integers

    @property
    def total(self) -> int:
        """Trades of the week."""
        return int(self.first[-1])


def week_pattern(market: ModelMarket, *, seed: int, symbol: str) -> WeekPattern:
    """Return the week of a market."""

    def random(purpose: str, numbers: Integers, bound: int) -> Integers:
        return draw(purpose_key(seed, symbol, purpose), numbers, bound)

    minutes = np.arange(WEEK_MINUTES, dtype=np.int64)
    quiet = random("quiet", minutes, 100) < market.quiet_percent
    count = np.where(quiet, 0, 1 + random("count", minutes, 2 * market.busy - 1))
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
    minute_of = np.repeat(minutes, count)
    trades = np.arange(int(first[-1]), dtype=np.int64)
    offset_ns = _offsets(random("time", trades, MINUTE_NS), minute_of)
    on_the_edge = (count > 0) & (random("edge", minutes, 40) == 0)
    offset_ns[first[:-1][on_the_edge]] = 0
    _pair_up(offset_ns, minute_of, random("pair", trades, 8) == 0)
    step = max(1, market.price_units // 30_000)
    price_offset = (random("price", trades, 2 * _SPREAD + 1) - _SPREAD) * step
    price_offset = np.maximum(price_offset, -(market.price_units // 4))
    trade_size = 1 + random("size", trades, market.size_units)
    trade_size = np.where(random("large", trades, 29) == 0, trade_size * 15, trade_size)
    taker_buy = random("side", trades, 2)

    busy = count > 0
    starts = first[:-1][busy]

    def by_minute(values: Integers) -> Integers:
        column = np.zeros(WEEK_MINUTES, np.int64)
        column[busy] = values
        return column

    return WeekPattern(
        count=count,
        first=first,
        open=by_minute(price_offset[starts]),
        high=by_minute(np.maximum.reduceat(price_offset, starts)),
        low=by_minute(np.minimum.reduceat(price_offset, starts)),
        close=by_minute(price_offset[first[1:][busy] - 1]),
        size=by_minute(np.add.reduceat(trade_size, starts)),
        size_offset=by_minute(np.add.reduceat(trade_size * price_offset, starts)),
        buy_size=by_minute(np.add.reduceat(trade_size * taker_buy, starts)),
        buy_size_offset=by_minute(np.add.reduceat(trade_size * taker_buy * price_offset, starts)),
        minute_of=minute_of,
        offset_ns=offset_ns,
        price_offset=price_offset,
        trade_size=trade_size,
        taker_buy=taker_buy,
    )


def _offsets(drawn_ns: Integers, minute_of: Integers) -> Integers:
    order = np.lexsort((drawn_ns, minute_of))
    return drawn_ns[order]


def _pair_up(offset_ns: Integers, minute_of: Integers, chosen: npt.NDArray[np.bool_]) -> None:
    """Move chosen trades into the millisecond of the one before, in place, so that ties by millisecond exist."""
    late = np.flatnonzero(chosen[1:] & (minute_of[1:] == minute_of[:-1])) + 1
    late = late[late % 2 == 1]  # never two in a row: a pair's first must stay where it is
    before = offset_ns[late - 1]
    room = _MILLISECOND_NS - 1 - before % _MILLISECOND_NS
    movable = room > 1_000
    late, before, room = late[movable], before[movable], room[movable]
    offset_ns[late] = np.minimum(offset_ns[late], before + 1 + room // 2)
