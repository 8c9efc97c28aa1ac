"""Sets of whole numbers kept as spans: compact where numbers are mostly contiguous, as sequences and trade ids are."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

__all__ = ["Span", "SpanSet"]

Span = tuple[int, int]
"""First and last number, inclusive."""


class SpanSet:
    """A set of numbers; adding above the highest costs nothing that grows.

    Args:
        spans_max: beyond it the lowest span is forgotten, and everything up to its end counts as held; None for no
            bound.
    """

    __slots__ = ("_firsts", "_floor", "_lasts", "_spans_max")

    def __init__(self, *, spans_max: int | None = None) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._spans_max = spans_max
        self._floor = -1

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._firsts, number) - 1
        return number <= self._floor or (index >= 0 and number <= self._lasts[index])

    @property
    def spans(self) -> list[Span]:
        """All spans, ascending."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def add(self, number: int) -> bool:
        """Add a number; return whether it was not there."""
        lasts = self._lasts
        if lasts and number == lasts[-1] + 1:
            lasts[-1] = number
            return True
        if number in self:
            return False
        self.add_span(number, number)
        return True

    def add_span(self, first: int, last: int) -> None:
        """Add the numbers from first to last."""
        if last < first:
            return
        firsts, lasts = self._firsts, self._lasts
        low, high = bisect_left(lasts, first - 1), bisect_right(firsts, last + 1)
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high], lasts[low:high] = [first], [last]
        if self._spans_max is not None and len(firsts) > self._spans_max:
            self._floor = max(self._floor, lasts[0])
            del firsts[0], lasts[0]

    def remove(self, number: int) -> bool:
        """Take a number out; return whether it was there."""
        index = bisect_right(self._firsts, number) - 1
        if index < 0 or number > self._lasts[index]:
            return False
        first, last = self._firsts[index], self._lasts[index]
        rest = [span for span in ((first, number - 1), (number + 1, last)) if span[0] <= span[1]]
        self._firsts[index : index + 1] = [span[0] for span in rest]
        self._lasts[index : index + 1] = [span[1] for span in rest]
        return True

    def remove_span(self, first: int, last: int) -> int:
        """Take all numbers from first to last out; return how many were there."""
        gone = self.present(first, last)
        for low, high in gone:
            self._cut(low, high)
        return sum(high - low + 1 for low, high in gone)

    def present(self, first: int, last: int) -> list[Span]:
        """Return which numbers from first to last are there."""
        low, high = bisect_left(self._lasts, first), bisect_right(self._firsts, last)
        return [(max(first, self._firsts[i]), min(last, self._lasts[i])) for i in range(low, high)]

    def absent(self, first: int, last: int) -> list[Span]:
        """Return which numbers from first to last are not there."""
        found: list[Span] = []
        next_number = max(first, self._floor + 1)
        for low, high in self.present(first, last):
            if low > next_number:
                found.append((next_number, low - 1))
            next_number = max(next_number, high + 1)
        if next_number <= last:
            found.append((next_number, last))
        return found

    def count(self, first: int, last: int) -> int:
        """Return how many numbers from first to last are there."""
        return sum(high - low + 1 for low, high in self.present(first, last))

    def _cut(self, low: int, high: int) -> None:
        index = bisect_right(self._firsts, low) - 1
        first, last = self._firsts[index], self._lasts[index]
        rest = [span for span in ((first, low - 1), (high + 1, last)) if span[0] <= span[1]]
        self._firsts[index : index + 1] = [span[0] for span in rest]
        self._lasts[index : index + 1] = [span[1] for span in rest]
