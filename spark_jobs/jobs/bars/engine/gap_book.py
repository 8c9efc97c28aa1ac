"""The holes of one ticker's feed: which are open, and which time was lost for good."""

from __future__ import annotations

import msgspec

from relay.engine.gap_rules import GapIds
from spark_jobs.jobs.bars.engine.values import GapNotice, GapState

__all__ = ["ENDLESS_NS", "GapBook"]

ENDLESS_NS = 2**63 - 1
"""Later than any time."""


class _OpenGap(msgspec.Struct, frozen=True):
    first: int
    last: int | None
    from_ns: int
    to_ns: int

    @property
    def ids(self) -> GapIds:
        return GapIds(self.first, self.last)


class GapBook(msgspec.Struct):
    """Takes notices in the order of the log; times are inclusive: the trades around a hole stand at its ends.

    A notice without a begin in time (0: an attempt that knows no trade before its own) begins at the newest trade that
    is known here.
    """

    open: list[_OpenGap] = msgspec.field(default_factory=list)
    lost: list[tuple[int, int]] = msgspec.field(default_factory=list)
    known_from_ns: int = 0
    """Before it nothing of the ticker is known; 0 until something is."""
    newest_ns: int = 0
    """Of the newest trade that was seen or stands at an end of a gap."""

    def begin(self, time_ns: int) -> None:
        """A trade of this time is known; 0 is none."""
        if time_ns == 0:
            return
        if self.known_from_ns == 0 or time_ns < self.known_from_ns:
            self.known_from_ns = time_ns
        self.newest_ns = max(self.newest_ns, time_ns)

    def take(self, gap: GapNotice) -> tuple[int, int] | None:
        """Take a notice; return the time whose buckets it changes, None when it changes none."""
        ids = GapIds.of(gap.first, gap.last)
        from_ns = gap.from_ns or self.newest_ns
        self.begin(gap.from_ns)
        if gap.state is GapState.OPEN:
            return self._open(_OpenGap(ids.first, ids.last, from_ns, ENDLESS_NS if gap.last is None else gap.to_ns))
        self.begin(gap.to_ns)
        closed = self._closed_by(ids)
        self.open = [gap_ for gap_ in self.open if gap_ not in closed]
        begins = [gap_.from_ns for gap_ in closed]
        changed_ns = min([from_ns if gap.from_ns else gap.to_ns, *begins])
        if gap.state is GapState.UNFILLABLE:
            own = [gap_.from_ns for gap_ in closed if gap.from_ns == 0 or gap.first is None]
            self._lose(min([gap.from_ns or gap.to_ns, *own]), gap.to_ns)
        return changed_ns, max(gap.to_ns, changed_ns)

    def _open(self, opened: _OpenGap) -> tuple[int, int] | None:
        """An interruption replaces what reaches to its first id or behind."""
        if opened.last is not None:
            if opened not in self.open:
                self.open.append(opened)
            return None
        replaced = [gap for gap in self.open if opened.ids.replaces(gap.ids)]
        behind = [gap.from_ns for gap in replaced if gap.first >= opened.first]
        opened = msgspec.structs.replace(opened, from_ns=min([opened.from_ns, *behind]))
        self.open = [*(gap for gap in self.open if gap not in replaced), opened]
        before_ns = min((gap.from_ns for gap in replaced), default=opened.from_ns)
        return (before_ns, opened.from_ns) if before_ns < opened.from_ns else None

    def begin_attempt(self) -> tuple[int, int] | None:
        """Another attempt lives, which has opened an interruption: up to there everything is in the log or given up.

        Holes that the attempt before had opened are closed by nobody any more. Returns the time whose buckets it
        changes.
        """
        if not self.open or self.open[-1].last is not None:
            return None
        ended = self.open[:-1]
        del self.open[:-1]
        return (min(gap.from_ns for gap in ended), max(gap.to_ns for gap in ended)) if ended else None

    def _closed_by(self, ids: GapIds) -> list[_OpenGap]:
        is_of_hole = any(ids.is_part_of(gap.ids) for gap in self.open)
        return [gap for gap in self.open if ids.closes(gap.ids, is_of_hole=is_of_hole)]

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
