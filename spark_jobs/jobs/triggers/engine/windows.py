"""What is remembered of a ticker's ticks: extremes, prices and sums of amounts over any recent span of time.

One window serves all conditions of a ticker, whatever their lengths: each asks for its own start.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import msgspec

__all__ = ["Extremes", "History", "Reach", "TickWindow"]

_COMPACT_MIN = 64


class Reach(NamedTuple):
    """How far conditions look back to extremes and to single ticks; 0 for not at all."""

    extremes_ns: int = 0
    history_ns: int = 0


class Extremes(msgspec.Struct, omit_defaults=True):
    """Highest (sign 1) or lowest (sign -1) value since any time; a later one that is as extreme hides others."""

    sign: int
    times: list[int] = msgspec.field(default_factory=list)
    values: list[int] = msgspec.field(default_factory=list)
    """Of each time its value times the sign, falling."""
    head: int = 0

    def push(self, time_ns: int, value: int) -> None:
        """Add a value; times do not fall. Amortised constant."""
        signed, times, values = value * self.sign, self.times, self.values
        while len(values) > self.head and values[-1] <= signed:
            times.pop()
            values.pop()
        times.append(time_ns)
        values.append(signed)

    def since(self, start_ns: int) -> int | None:
        """Return the extreme of all values from a time on."""
        place = bisect_left(self.times, start_ns, lo=self.head)
        return self.values[place] * self.sign if place < len(self.times) else None

    def trim(self, start_ns: int, entries_max: int) -> int:
        """Forget what lies before a time, and what is over the bound; return how many went because of that."""
        self.head = bisect_left(self.times, start_ns, lo=self.head)
        over = max(0, len(self.times) - self.head - entries_max)
        self.head += over
        if self.head >= _COMPACT_MIN and self.head * 2 >= len(self.times):
            del self.times[: self.head], self.values[: self.head]
            self.head = 0
        return over


class History(msgspec.Struct, omit_defaults=True):
    """Prices and running sums of amounts by time.

    Attributes:
        times, prices, sums: of each tick; a sum includes all amounts up to and with its tick.
        before: sum before the first one held.
    """

    times: list[int] = msgspec.field(default_factory=list)
    prices: list[int] = msgspec.field(default_factory=list)
    sums: list[int] = msgspec.field(default_factory=list)
    before: int = 0
    head: int = 0

    def push(self, time_ns: int, price: int, amount: int) -> None:
        """Add a tick; times do not fall."""
        self.times.append(time_ns)
        self.prices.append(price)
        self.sums.append((self.sums[-1] if self.sums else self.before) + amount)

    def first_since(self, start_ns: int) -> int | None:
        """Return the oldest price from a time on."""
        place = bisect_left(self.times, start_ns, lo=self.head)
        return self.prices[place] if place < len(self.times) else None

    def amount(self, start_ns: int, end_ns: int) -> int:
        """Return the sum of the amounts of [start, end)."""
        return self._sum_before(end_ns) - self._sum_before(start_ns)

    def trim(self, start_ns: int, entries_max: int) -> int:
        """Forget what lies before a time, and what is over the bound; return how many went because of that."""
        self.head = bisect_left(self.times, start_ns, lo=self.head)
        over = max(0, len(self.times) - self.head - entries_max)
        self.head += over
        if self.head >= _COMPACT_MIN and self.head * 2 >= len(self.times):
            self.before = self.sums[self.head - 1]
            del self.times[: self.head], self.prices[: self.head], self.sums[: self.head]
            self.head = 0
        return over

    def _sum_before(self, time_ns: int) -> int:
        place = bisect_left(self.times, time_ns, lo=self.head)
        return self.sums[place - 1] if place else self.before


class TickWindow(msgspec.Struct, omit_defaults=True):
    """All that is remembered of one ticker; parts that no condition needs are None.

    How far back each part reaches is not part of the state: conditions say it anew.
    """

    lows: Extremes | None = None
    highs: Extremes | None = None
    history: History | None = None

    def grow(self, reach: Reach) -> None:
        """Keep from now on what conditions need."""
        if reach.extremes_ns and self.lows is None:
            self.lows, self.highs = Extremes(-1), Extremes(1)
        if reach.history_ns and self.history is None:
            self.history = History()

    def shrink(self, reach: Reach) -> None:
        """Keep no longer what no condition needs."""
        if not reach.extremes_ns:
            self.lows = self.highs = None
        if not reach.history_ns:
            self.history = None

    def is_positive(self) -> bool:
        """Return whether the lowest price held is above 0; False when lowest prices are not held."""
        lows = self.lows
        return lows is not None and lows.head < len(lows.values) and lows.values[lows.head] < 0

    def push(self, time_ns: int, price: int, amount: int, reach: Reach, entries_max: int) -> int:
        """Add a tick and forget what is older than the reach; return how many entries left too early."""
        over = 0
        if self.lows is not None and self.highs is not None:
            start_ns = time_ns - reach.extremes_ns + 1
            self.lows.push(time_ns, price)
            self.highs.push(time_ns, price)
            over += self.lows.trim(start_ns, entries_max) + self.highs.trim(start_ns, entries_max)
        if self.history is not None:
            self.history.push(time_ns, price, amount)
            over += self.history.trim(time_ns - reach.history_ns + 1, entries_max)
        return over
