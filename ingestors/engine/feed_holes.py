"""The declared holes of one ticker: which ids are missing, and how far fetching them has come."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from ingestors.engine.feed_values import LostCause

__all__ = ["Hole", "HoleBook"]


@dataclass(slots=True, eq=False)
class Hole:
    """A declared range of ids; ``missing`` shrinks as they come, ascending and disjoint."""

    first: int
    last: int
    from_ns: int
    to_ns: int
    cause: LostCause
    opened_ns: int
    missing: list[tuple[int, int]] = field(default_factory=list)
    is_filling: bool = False
    failures: int = 0
    retry_ns: int = 0

    def __post_init__(self) -> None:
        self.missing = [(self.first, self.last)]

    @property
    def count(self) -> int:
        """How many ids are still missing."""
        return sum(last - first + 1 for first, last in self.missing)

    def take(self, number: int) -> bool:
        """Note that an id has come; return False when it was not missing."""
        place = bisect_right(self.missing, (number, self.last + 1)) - 1
        if place < 0:
            return False
        first, last = self.missing[place]
        if not first <= number <= last:
            return False
        rest = [(first, number - 1), (number + 1, last)]
        self.missing[place : place + 1] = [span for span in rest if span[0] <= span[1]]
        return True


class HoleBook:
    """Holes that are neither filled nor given up, ascending by their first ids; what was dropped may overlap others."""

    def __init__(self) -> None:
        self._holes: list[Hole] = []

    def __contains__(self, hole: Hole) -> bool:
        return hole in self._holes

    def __iter__(self) -> Iterator[Hole]:
        return iter(tuple(self._holes))

    def __len__(self) -> int:
        return len(self._holes)

    def add(self, hole: Hole) -> None:
        """Declare a hole."""
        self._holes.append(hole)
        self._holes.sort(key=lambda h: h.first)

    def drop(self, hole: Hole) -> None:
        """Forget a hole that is closed."""
        self._holes.remove(hole)
