"""Where bars begin: fixed periods from an origin, and calendar months."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from relay.protocol.periods import NANOSECONDS

__all__ = ["FixedGrid", "Grid", "MonthGrid"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Grid(Protocol):
    """The starts of a period's bars."""

    def floor_ns(self, time_ns: int) -> int:
        """Return the start of the bar that holds a time."""

    def step_ns(self, start_ns: int, count: int) -> int:
        """Return the start of the bar ``count`` bars later (or earlier) than the one at ``start_ns``."""

    def ceil_ns(self, time_ns: int) -> int:
        """Return the first start that is not before a time."""

    def edges_ns(self, start_ns: int, end_ns: int) -> list[int]:
        """Return the starts in [start_ns, end_ns), then the end of the last bar; empty when there is no start."""


class _Edges:
    """What every grid derives from its floor and step."""

    __slots__ = ()

    def floor_ns(self, time_ns: int) -> int:
        raise NotImplementedError

    def step_ns(self, start_ns: int, count: int) -> int:
        raise NotImplementedError

    def ceil_ns(self, time_ns: int) -> int:
        floor = self.floor_ns(time_ns)
        return floor if floor == time_ns else self.step_ns(floor, 1)

    def edges_ns(self, start_ns: int, end_ns: int) -> list[int]:
        edges = [self.ceil_ns(start_ns)]
        if edges[0] >= end_ns:
            return []
        while edges[-1] < end_ns:
            edges.append(self.step_ns(edges[-1], 1))
        return edges


@dataclass(frozen=True, slots=True)
class FixedGrid(_Edges):
    """Bars of a fixed period.

    Attributes:
        period_seconds: length of a bar.
        origin_seconds: some bar's start (whole weeks from a Monday: 345600; a zone offset shifts it).
    """

    period_seconds: int
    origin_seconds: int = 0

    def floor_ns(self, time_ns: int) -> int:
        """Return the start of the bar that holds a time."""
        origin_ns = self.origin_seconds * NANOSECONDS
        period_ns = self.period_seconds * NANOSECONDS
        return (time_ns - origin_ns) // period_ns * period_ns + origin_ns

    def step_ns(self, start_ns: int, count: int) -> int:
        """Return the start ``count`` bars later."""
        return start_ns + count * self.period_seconds * NANOSECONDS


@dataclass(frozen=True, slots=True)
class MonthGrid(_Edges):
    """Calendar months of a zone with a fixed offset.

    Attributes:
        offset_seconds: the zone's offset from UTC.
    """

    offset_seconds: int = 0

    def floor_ns(self, time_ns: int) -> int:
        """Return the start of the month that holds a time."""
        local = _EPOCH + timedelta(seconds=time_ns // NANOSECONDS + self.offset_seconds)
        return self._start_ns(local.year * 12 + local.month - 1)

    def step_ns(self, start_ns: int, count: int) -> int:
        """Return the start ``count`` months later."""
        local = _EPOCH + timedelta(seconds=start_ns // NANOSECONDS + self.offset_seconds)
        return self._start_ns(local.year * 12 + local.month - 1 + count)

    def _start_ns(self, months: int) -> int:
        start = datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC) - _EPOCH
        return (start // timedelta(seconds=1) - self.offset_seconds) * NANOSECONDS
