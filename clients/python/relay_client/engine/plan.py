"""What of a history must be asked for: gaps between what is covered, as few requests as the bounds allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relay.errors import SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns, align_up_ns, bar_count
from relay.protocol.ranges import Range, subtract
from relay.protocol.times import format_ns

__all__ = ["HistoryQuery", "merge_closest", "plan_requests", "split_long"]


@dataclass(frozen=True, slots=True)
class HistoryQuery:
    """What the user asks for.

    Attributes:
        ticker: in the unified form.
        period_seconds: of the bars.
        start_ns, end_ns: bars that start in [start, end).
        limit: the first N bars from start; None for all.
    """

    ticker: str
    period_seconds: int
    start_ns: int
    end_ns: int
    limit: int | None = None

    @property
    def wanted(self) -> Range:
        """From the first bar start that is in the range, to its end."""
        return Range(align_up_ns(self.start_ns, self.period_seconds), self.end_ns)

    def check(self, *, rows_max: int) -> None:
        """Raise when no bar can start in the range, or the limit is out of bounds.

        Raises:
            SettingsError: INVALID_RANGE or INVALID_LIMIT.
        """
        if not bar_count(self.wanted.start_ns, self.end_ns, self.period_seconds):
            raise SettingsError(
                f"no bar of {self.period_seconds} s starts in [{format_ns(self.start_ns)}, {format_ns(self.end_ns)}); "
                "widen the range",
                code=ErrorCode.INVALID_RANGE,
            )
        if self.limit is not None and not 1 <= self.limit <= rows_max:
            raise SettingsError(f"expected a limit of 1 to {rows_max}, got {self.limit}", code=ErrorCode.INVALID_LIMIT)


def plan_requests(
    query: HistoryQuery, covered: Iterable[Range], *, now_ns: int, requests_max: int, rows_max: int
) -> list[Range]:
    """Return the ranges to submit, ascending; none when nothing that can be fetched is missing.

    A bar that is still open at ``now_ns`` cannot be fetched, so a gap that holds only open and future bars is no
    reason to ask; one that begins before is left whole, and the manager clips it by its own clock.
    """
    closed_ns = align_down_ns(now_ns, query.period_seconds)
    gaps = [gap for gap in subtract(query.wanted, covered) if gap.start_ns < closed_ns]
    if not gaps:
        return []
    if query.limit is not None:
        # One request for the rest: only the manager can tell where the N-th bar will be.
        return [Range(gaps[0].start_ns, query.end_ns)]
    merged = merge_closest(gaps, count_max=requests_max)
    return [part for gap in merged for part in split_long(gap, query.period_seconds, closed_ns, rows_max=rows_max)]


def merge_closest(gaps: Sequence[Range], *, count_max: int) -> list[Range]:
    """Merge neighbours until there are few enough, those with the least covered time between them first."""
    if len(gaps) <= count_max:
        return list(gaps)
    between = sorted(range(1, len(gaps)), key=lambda i: gaps[i].start_ns - gaps[i - 1].end_ns)
    joined = set(between[: len(gaps) - count_max])
    merged: list[Range] = []
    for index, gap in enumerate(gaps):
        if index in joined:
            merged[-1] = Range(merged[-1].start_ns, gap.end_ns)
        else:
            merged.append(gap)
    return merged


def split_long(gap: Range, period_seconds: int, closed_ns: int, *, rows_max: int) -> list[Range]:
    """Split a gap into parts of at most ``rows_max`` closed bars; the open end stays with the last part."""
    step_ns = rows_max * period_seconds * NANOSECONDS
    parts: list[Range] = []
    start_ns = gap.start_ns
    while min(gap.end_ns, closed_ns) - start_ns > step_ns:
        parts.append(Range(start_ns, start_ns + step_ns))
        start_ns += step_ns
    return [*parts, Range(start_ns, gap.end_ns)]
