"""The holes of one ticker's feed: which are open, and which time was lost for good."""

from __future__ import annotations

import msgspec

from spark_jobs.jobs.bars.engine.values import GapNotice, GapState

__all__ = ["ENDLESS_NS", "GapBook"]

ENDLESS_NS = 2**63 - 1
"""Later than any time."""


class _OpenGap(msgspec.Struct, frozen=True):
    first: int
    last: int | None
    from_ns: int
    to_ns: int


class GapBook(msgspec.Struct):
    """Takes notices in the order of the log; times are inclusive: the trades around a hole stand at its ends."""

    open: list[_OpenGap] = msgspec.field(default_factory=list)
    lost: list[tuple[int, int]] = msgspec.field(default_factory=list)
    known_from_ns: int = 0
    """Before it nothing of the ticker is known; 0 until something is."""

    def begin(self, time_ns: int) -> None:
        """Something is known from this time on."""
        if self.known_from_ns == 0 or time_ns < self.known_from_ns:
            self.known_from_ns = time_ns

    def take(self, gap: GapNotice) -> tuple[int, int] | None:
        """Take a notice; return the time whose buckets it changes, None when it changes none."""
        first = -1 if gap.first is None else gap.first
        if gap.state is GapState.OPEN:
            to_ns = ENDLESS_NS if gap.last is None else gap.to_ns
            opened = _OpenGap(first, gap.last, gap.from_ns, to_ns)
            if opened not in self.open:
                self.open.append(opened)
            return None
        closed = [gap_ for gap_ in self.open if _closes(first, gap.last, gap_)]
        self.open = [gap_ for gap_ in self.open if gap_ not in closed]
        from_ns = min([gap.from_ns, *(gap_.from_ns for gap_ in closed)])
        if gap.state is GapState.UNFILLABLE:
            self._lose(gap.from_ns, gap.to_ns)
        return from_ns, max(gap.to_ns, from_ns)

    def is_open(self, start_ns: int, end_ns: int) -> bool:
        """Return whether trades of [start, end) may still be missing."""
        return any(gap.from_ns < end_ns and gap.to_ns >= start_ns for gap in self.open)

    def is_incomplete(self, start_ns: int, end_ns: int) -> bool:
        """Return whether part of [start, end) was not seen, as far as is known now."""
        if start_ns < self.known_from_ns or self.is_open(start_ns, end_ns):
            return True
        return any(from_ns < end_ns and to_ns >= start_ns for from_ns, to_ns in self.lost)

    def forget(self, before_ns: int) -> None:
        """Forget what was lost before a time that nobody asks for any more."""
        if self.lost and self.lost[0][1] < before_ns:
            self.lost = [span for span in self.lost if span[1] >= before_ns]

    def _lose(self, from_ns: int, to_ns: int) -> None:
        self.lost.append((from_ns, to_ns))
        self.lost.sort()
        joined: list[tuple[int, int]] = []
        for span in self.lost:
            if joined and span[0] <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(joined[-1][1], span[1]))
            else:
                joined.append(span)
        self.lost = joined


def _closes(first: int, last: int | None, gap: _OpenGap) -> bool:
    if gap.last is None:
        return first <= gap.first
    return last is not None and first <= gap.first and gap.last <= last
