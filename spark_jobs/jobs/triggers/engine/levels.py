"""Conditions sorted by their level: a value that moves meets only those that lie in its way."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from relay.engine.pattern_values import RATIO_DECIMALS, Direction, Move, Reference, TickSurge
from spark_jobs.jobs.triggers.engine.listeners import Hits, Listener
from spark_jobs.jobs.triggers.engine.windows import TickWindow

__all__ = ["CrossIndex", "MoveSeries", "RatioSeries", "SurgeSeries", "series_of"]

Entry = tuple[Listener, int, Direction]
"""Whose condition, the mask of its signal, which way."""

_MULTIPLE: int = 10**RATIO_DECIMALS
_PERCENT: int = 100 * _MULTIPLE
_INFINITE: int = 10**100


class _Levels:
    """Parallel lists of levels, ascending, and entries."""

    def __init__(self) -> None:
        self.levels: list[int] = []
        self.entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self.levels)

    def add(self, level: int, entry: Entry) -> None:
        place = bisect_right(self.levels, level)
        self.levels.insert(place, level)
        self.entries.insert(place, entry)

    def remove(self, level: int, listener: Listener) -> None:
        """Take a listener's entries of a level out, if there are any."""
        low, high = bisect_left(self.levels, level), bisect_right(self.levels, level)
        kept = [entry for entry in self.entries[low:high] if entry[0] is not listener]
        self.levels[low:high] = [level] * len(kept)
        self.entries[low:high] = kept

    def collect(self, low: int, high: int, way: Direction, hits: Hits) -> None:
        """Note the entries of some places as hits, except those that wait for the other way."""
        for listener, mask, direction in self.entries[low:high]:
            if direction is way or direction is Direction.EITHER:
                hits[listener] = hits.get(listener, 0) | mask


class CrossIndex(_Levels):
    """Thresholds of one ticker.

    A level is crossed when the price is beyond it and the last price that differed from it was on the other side; so
    only the last price and the last one that differed from that are needed, for all thresholds together.
    """

    def cross(self, before: int | None, last: int, price: int, hits: Hits) -> None:
        """Note what is crossed when the price goes from ``last`` to another one.

        Args:
            before: the last price that was not ``last``; None when there was none.
            last: the last price.
            price: the new one.
            hits: takes what is crossed.
        """
        levels = self.levels
        if price > last:
            came_from_below = before is not None and before < last
            low = bisect_left(levels, last) if came_from_below else bisect_right(levels, last)
            self.collect(low, bisect_left(levels, price), Direction.UP, hits)
        else:
            came_from_above = before is not None and before > last
            high = bisect_right(levels, last) if came_from_above else bisect_left(levels, last)
            self.collect(bisect_right(levels, price), high, Direction.DOWN, hits)


class RatioSeries(_Levels):
    """A number that is computed anew at each tick; conditions hold while it is at least their level.

    Attributes:
        value: at the last tick; None when it had none.
        reach_ns: how far back it looks.
        needs_whole: whether the whole reach must lie behind the start of a trigger; else the number means nothing.
        grows_with_reach: whether, above 0, looking back less far never gives a higher number.
    """

    reach_ns = 0
    needs_whole = False
    grows_with_reach = False

    def __init__(self) -> None:
        super().__init__()
        self.value: int | None = None

    def may_reach(self, level: int, time_ns: int, start_ns: int, *, is_positive: bool) -> bool:
        """Return whether the number at the last tick can be at least a level, for one that looks back to a start.

        Args:
            level: the level.
            time_ns: of the last tick.
            start_ns: how far back it looks.
            is_positive: whether all prices of the window are above 0.
        """
        if self.needs_whole and time_ns - self.reach_ns + 1 < start_ns:
            return False
        is_bound = self.grows_with_reach and is_positive
        return not is_bound or (self.value is not None and self.value >= level)

    def at(self, window: TickWindow, time_ns: int, price: int, start_ns: int) -> int | None:
        """Return the number at a tick, looking back no further than to a start."""
        raise NotImplementedError

    def move(self, value: int | None, hits: Hits) -> None:
        """Take the number of the next tick; note the conditions that hold and did not at the tick before."""
        before, self.value = self.value, value
        if value is None or not self.levels or (before is not None and value <= before):
            return
        low = 0 if before is None else bisect_right(self.levels, before)
        self.collect(low, bisect_right(self.levels, value), Direction.EITHER, hits)


class MoveSeries(RatioSeries):
    """How far the price has moved: percent x 10^RATIO_DECIMALS, rounded down: exact against whole levels."""

    def __init__(self, window_ns: int, direction: Direction, reference: Reference) -> None:
        super().__init__()
        self.reach_ns = window_ns
        self.grows_with_reach = reference is Reference.EXTREME
        self._is_up, self._is_down = direction is not Direction.DOWN, direction is not Direction.UP

    def at(self, window: TickWindow, time_ns: int, price: int, start_ns: int) -> int | None:
        """Return the move up to a tick; None without a reference above 0."""
        start_ns = max(start_ns, time_ns - self.reach_ns + 1)
        low = high = None
        if not self.grows_with_reach:
            low = high = window.history.first_since(start_ns) if window.history else None
        elif window.lows is not None and window.highs is not None:
            low = window.lows.since(start_ns) if self._is_up else None
            high = window.highs.since(start_ns) if self._is_down else None
        rise = (price - low) * _PERCENT // low if self._is_up and low is not None and low > 0 else None
        fall = (high - price) * _PERCENT // high if self._is_down and high is not None and high > 0 else None
        return fall if rise is None or (fall is not None and fall > rise) else rise


class SurgeSeries(RatioSeries):
    """Amount of a window against the mean of those before it: times 10^RATIO_DECIMALS, rounded up, less 1.

    A multiple is exceeded when it is below the number rounded up, that is at most that less 1.
    """

    needs_whole = True

    def __init__(self, window_ns: int, count: int) -> None:
        super().__init__()
        self.reach_ns = window_ns * (count + 1)
        self._window_ns, self._count = window_ns, count

    def at(self, window: TickWindow, time_ns: int, price: int, start_ns: int) -> int | None:  # noqa: ARG002
        """Return the number at a tick, as if all windows lay behind the start; None when nothing was traded in them."""
        if window.history is None:
            return None
        first_ns = time_ns - self.reach_ns + 1
        middle_ns = time_ns - self._window_ns + 1
        amount = window.history.amount(middle_ns, time_ns + 1)
        base = window.history.amount(first_ns, middle_ns)
        if base > 0:
            return -(-amount * self._count * _MULTIPLE // base) - 1
        return _INFINITE if amount > 0 else None


def series_of(leaf: Move | TickSurge) -> RatioSeries:
    """Return a new series for a condition; conditions that differ in their level alone share one."""
    if isinstance(leaf, Move):
        return MoveSeries(leaf.window_ns, leaf.direction, leaf.reference)
    return SurgeSeries(leaf.window_ns, leaf.count)
