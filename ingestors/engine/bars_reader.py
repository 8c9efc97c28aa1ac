"""Reads one leg of candles page by page. The paging contract for every exchange is enforced here, once.

A page is settled when its holes have been asked for again::

    MAIN window ──page──► rows, reach ──hole?──► RECHECK (smaller, or the same once more) ──► settled
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ingestors.engine.plan import Leg
from ingestors.engine.rows import PlacedRows, place_rows
from ingestors.engine.values import Bar, BarsPage, Capabilities
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, subtract
from relay.protocol.times import format_ns

__all__ = ["BarsReader", "BarsWanted", "ReadCounts", "Settled"]

_RECHECKS_MAX = 8
"""Holes of one page that are asked for one by one; more are asked for as one."""


@dataclass(frozen=True, slots=True)
class BarsWanted:
    """One candle request: bars of ``period_seconds`` that start in ``window``, at most ``rows_max``."""

    period_seconds: int
    window: Range
    rows_max: int


@dataclass(slots=True)
class ReadCounts:
    """What was odd about the answers."""

    off_grid: int = 0
    doubled: int = 0
    outside: int = 0
    quarantined: int = 0
    empty_answers: int = 0
    holes: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """A stretch of time about which everything is known.

    Attributes:
        span: the stretch.
        bars: ascending, one a bucket.
        bad: reason by bucket start; those buckets are not proven.
        covered: what of the span is proven.
        unplaced: reasons of rows whose bucket is unknown.
    """

    span: Range
    bars: tuple[Bar, ...]
    bad: dict[int, str]
    covered: tuple[Range, ...]
    unplaced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Task:
    window: Range
    is_recheck: bool = False
    empty_answers: int = 0


@dataclass(slots=True)
class _Open:
    """What is known of the stretch in work."""

    bars: dict[int, Bar] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    unplaced: list[str] = field(default_factory=list)
    reach_ns: int = 0


class BarsReader:
    """State of one candle leg: :meth:`wanted` says what to ask, :meth:`on_page` takes the answer.

    Args:
        leg: what to read.
        capabilities: of the exchange.
        counts: added to.
    """

    def __init__(self, leg: Leg, capabilities: Capabilities, *, counts: ReadCounts) -> None:
        self._capabilities = capabilities
        self._period_seconds = leg.fetch_period_seconds
        self._period_ns = leg.fetch_period_seconds * NANOSECONDS
        self._counts = counts
        self._cursor_ns = leg.span.start_ns
        self._end_ns = leg.span.end_ns
        self._tasks: deque[_Task] = deque()
        self._open = _Open()
        self.unserved: Range | None = None
        """What the endpoint turned out not to reach back to; the caller reads it another way, then the rest anew."""

    @property
    def is_done(self) -> bool:
        """Whether the leg has been read to its end."""
        return self._cursor_ns >= self._end_ns and not self._tasks

    def skip_to(self, time_ns: int) -> None:
        """Go on at a bucket start; allowed only between settled stretches."""
        self._cursor_ns = max(self._cursor_ns, min(time_ns, self._end_ns))
        self._tasks.clear()

    def wanted(self, *, rows_hint: int | None = None) -> BarsWanted:
        """Return the next request; ``rows_hint`` when fewer rows than a page are wanted."""
        if not self._tasks:
            self._tasks.append(_Task(self._main_window()))
            self._open = _Open(reach_ns=self._tasks[0].window.end_ns)
        task = self._tasks[0]
        rows_max = self._capabilities.page_rows_max
        if rows_hint is not None and self._capabilities.window_rows_max is None and not task.is_recheck:
            rows_max = max(1, min(rows_max, rows_hint))
        return BarsWanted(self._period_seconds, task.window, rows_max)

    def on_page(self, page: BarsPage, wanted: BarsWanted) -> Settled | None:
        """Take an answer; return a settled stretch, or None when more must be asked first.

        Raises:
            PeerError: NO_PROGRESS, the endpoint does not serve what it is asked for.
        """
        task = self._tasks.popleft()
        placed = place_rows(page, task.window, self._period_seconds)
        self._count(placed)
        if not self._check_served(task, placed) or self._is_cut_off(task, placed):
            return None
        self._open.bars.update(placed.bars)
        self._open.bad.update(placed.bad)
        self._open.unplaced.extend(placed.unplaced)
        reach_ns = self._reach(task, placed, wanted)
        self._tasks.extendleft(reversed(self._rechecks(task, placed, reach_ns)))
        return None if self._tasks else self._settle()

    def _main_window(self) -> Range:
        rows = self._capabilities.window_rows_max
        end_ns = self._end_ns if rows is None else min(self._end_ns, self._cursor_ns + rows * self._period_ns)
        return Range(self._cursor_ns, end_ns)

    def _check_served(self, task: _Task, placed: PlacedRows) -> bool:
        """Return False when the answer is asked for once more; raise when it is not what was asked."""
        if placed.buckets or not placed.before + placed.after:
            return True
        is_natural = (not placed.after or not self._capabilities.bounds_end) and (
            not placed.before or self._capabilities.sends_rows_before_start
        )
        if is_natural:
            return True
        if task.empty_answers == 0:
            self._tasks.appendleft(_Task(task.window, task.is_recheck, 1))
            return False
        raise PeerError(
            f"asked for bars of [{format_ns(task.window.start_ns)}, {format_ns(task.window.end_ns)}), got "
            f"{placed.raw} rows and none of them inside, twice; the endpoint ignores the range, no progress",
            code=ErrorCode.NO_PROGRESS,
        )

    def _reach(self, task: _Task, placed: PlacedRows, wanted: BarsWanted) -> int:
        """Return up to where the answer speaks: a full page of a seeking endpoint ends at its last row."""
        buckets = placed.buckets
        if self._capabilities.window_rows_max is not None or placed.raw < wanted.rows_max:
            return task.window.end_ns
        if not buckets:
            return task.window.end_ns
        reach_ns = min(buckets[-1] + self._period_ns, task.window.end_ns)
        if placed.after:
            reach_ns = task.window.end_ns
        if not task.is_recheck:
            self._open.reach_ns = reach_ns
        return reach_ns

    def _is_cut_off(self, task: _Task, placed: PlacedRows) -> bool:
        """Return whether the endpoint's short history begins inside the window: what lies before was not looked at."""
        rows_max = self._capabilities.history_rows
        if rows_max is None or placed.raw < rows_max or placed.before or task.is_recheck:
            return False
        first_ns = min(placed.buckets, default=task.window.end_ns)
        if first_ns > task.window.start_ns:
            self.unserved = Range(task.window.start_ns, first_ns)
        return self.unserved is not None

    def _rechecks(self, task: _Task, placed: PlacedRows, reach_ns: int) -> list[_Task]:
        rest = [_Task(Range(reach_ns, task.window.end_ns), is_recheck=True)] if task.is_recheck else []
        rest = [item for item in rest if item.window]
        if not placed.buckets and not placed.unplaced:
            self._counts.empty_answers += 1
            if task.empty_answers == 0:
                return [_Task(task.window, is_recheck=True, empty_answers=1)]
            return []
        holes = self._suspect_holes(Range(task.window.start_ns, reach_ns), placed)
        if len(holes) > _RECHECKS_MAX:
            holes = [Range(holes[0].start_ns, holes[-1].end_ns)]
        if holes == [task.window]:
            return rest
        return [_Task(part, is_recheck=True) for hole in holes for part in self._halves(hole)] + rest

    def _suspect_holes(self, span: Range, placed: PlacedRows) -> list[Range]:
        known = [Range(bucket_ns, bucket_ns + self._period_ns) for bucket_ns in placed.buckets]
        least_ns = self._capabilities.suspect_gap_buckets * self._period_ns
        return [hole for hole in subtract(span, known) if hole.end_ns - hole.start_ns >= least_ns]

    def _halves(self, hole: Range) -> list[Range]:
        buckets = (hole.end_ns - hole.start_ns) // self._period_ns
        if buckets < 2 or self._capabilities.window_rows_max is None:
            return [hole]
        middle_ns = hole.start_ns + buckets // 2 * self._period_ns
        return [Range(hole.start_ns, middle_ns), Range(middle_ns, hole.end_ns)]

    def _settle(self) -> Settled:
        work = self._open
        span = Range(self._cursor_ns, work.reach_ns)
        self._cursor_ns = span.end_ns
        bars = tuple(work.bars[b] for b in sorted(work.bars) if b < span.end_ns)
        bad = {b: reason for b, reason in sorted(work.bad.items()) if b < span.end_ns and b not in work.bars}
        self._counts.quarantined += len(bad) + len(work.unplaced)
        proven = [Range(bar.start_ns, bar.start_ns + self._period_ns) for bar in bars]
        if work.unplaced:
            # A row of unknown time could belong to any bucket without a row: only the rows themselves are proven.
            covered = subtract(span, subtract(span, proven))
        else:
            covered = subtract(span, [Range(b, b + self._period_ns) for b in bad])
            least_ns = self._capabilities.suspect_gap_buckets * self._period_ns
            self._counts.holes += sum(hole.end_ns - hole.start_ns >= least_ns for hole in subtract(span, proven))
        return Settled(span, bars, bad, tuple(covered), tuple(work.unplaced))

    def _count(self, placed: PlacedRows) -> None:
        self._counts.off_grid += placed.off_grid
        self._counts.doubled += placed.doubled
        self._counts.outside += placed.before + placed.after
