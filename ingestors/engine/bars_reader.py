"""Reads one leg of candles page by page. The paging contract for every exchange is enforced here, once.

A stretch is settled when each bucket has a row, or is believed to be empty (:mod:`ingestors.engine.absence`), or
could not be proven in so many rounds::

    MAIN window ──answer──► rows ──hole?──► round 1 … n of other windows ──► settled: rows, proven holes, unproven ones
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ingestors.engine.absence import (
    Absence,
    Ladder,
    Question,
    pause_ns,
    probe_question,
)
from ingestors.engine.plan import Leg
from ingestors.engine.rows import PlacedRows, place_rows
from ingestors.engine.values import Bar, BarsPage, Capabilities
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, subtract
from relay.protocol.times import format_ns

__all__ = ["BarsReader", "BarsWanted", "ReadCounts", "Settled"]

_ROUNDS_MAX = 7
_MAIN_ANSWERS_MAX = 2
_HOLE_BUCKETS_MIN = 60
"""A believed hole of so many buckets is worth counting where buckets without trades have no row."""


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
    unproven: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """A stretch of time about which everything is known that can be.

    Attributes:
        span: the stretch.
        bars: ascending, one a bucket.
        bad: reason by bucket start; those buckets are not proven.
        covered: what of the span is proven.
        unplaced: reasons that no single bucket stands for: rows of unknown time, emptiness that is not proven.
    """

    span: Range
    bars: tuple[Bar, ...]
    bad: dict[int, str]
    covered: tuple[Range, ...]
    unplaced: tuple[str, ...] = ()


@dataclass(slots=True)
class _Stretch:
    """What is known of the stretch in work."""

    span: Range
    bars: dict[int, Bar] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    unplaced: list[str] = field(default_factory=list)
    answers: int = 0
    rounds: int = 0
    spoken: set[Question] = field(default_factory=set)
    is_silent: bool = False


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
        self._ladder = Ladder(leg.fetch_period_seconds, capabilities)
        self._counts = counts
        self._cursor_ns = leg.span.start_ns
        self._end_ns = leg.span.end_ns
        self._absence = Absence(is_dense=capabilities.sends_empty_buckets)
        self._questions: deque[Question] = deque()
        self._stretch: _Stretch | None = None
        self._pause_ns = 0
        self._is_lost = False
        self._probe: Question | None = None
        self._probes = 0
        self.begins_empty = False
        """Whether the first answer lacked the leg's first bucket: the market may not have been listed yet."""
        self.unserved: Range | None = None
        """What the endpoint turned out not to reach back to; the caller reads it another way, then the rest anew."""

    @property
    def is_done(self) -> bool:
        """Whether the leg has been read to its end."""
        return self._cursor_ns >= self._end_ns and self._stretch is None

    def skip_to(self, time_ns: int) -> None:
        """Go on at a bucket start; a stretch in work is begun anew from there."""
        if time_ns <= self._cursor_ns:
            return
        self._cursor_ns = min(time_ns, self._end_ns)
        self._stretch = None
        self._questions.clear()

    def take_pause_ns(self) -> int:
        """Return how long to wait before the next request."""
        taken, self._pause_ns = self._pause_ns, 0
        return taken

    def wanted(self, *, rows_hint: int | None = None) -> BarsWanted:
        """Return the next request; ``rows_hint`` when fewer rows than a page are wanted."""
        rows_max = self._capabilities.page_rows_max
        if self._is_lost and self._ladder.longest is not None:
            self._probe = probe_question(self._cursor_ns, self._ladder.longest, self._capabilities)
            return BarsWanted(self._probe.period_seconds, self._probe.window, rows_max)
        if self._stretch is None:
            self._stretch = _Stretch(self._main_window())
        if self._questions:
            return BarsWanted(self._questions[0].period_seconds, self._questions[0].window, rows_max)
        if rows_hint is not None and self._capabilities.window_rows_max is None:
            rows_max = max(1, min(rows_max, rows_hint))
        return BarsWanted(self._period_seconds, self._stretch.span, rows_max)

    def on_page(self, page: BarsPage, wanted: BarsWanted) -> Settled | None:
        """Take an answer; return a settled stretch, or None when more must be asked first.

        Raises:
            PeerError: NO_PROGRESS, the endpoint does not serve what it is asked for.
        """
        placed = place_rows(page, wanted.window, wanted.period_seconds)
        probe, self._probe = self._probe, None
        if probe is not None:
            self._probes += 1
            return self._on_probe(placed, probe)
        stretch = self._stretch
        if stretch is None:
            return None
        is_main = not self._questions
        self._count(placed, is_main=is_main)
        if is_main:
            if not self._check_served(stretch, placed) or self._is_cut_off(stretch, placed):
                return None
            self._begin(stretch, placed, wanted)
        else:
            self._questions.popleft()
        if wanted.period_seconds == self._period_seconds:
            self._take_rows(stretch, placed)
        self._weigh(stretch, placed, wanted)
        return None if self._questions or self._ask_again(stretch) else self._settle(stretch)

    def _main_window(self) -> Range:
        rows = self._capabilities.window_rows_max or self._capabilities.page_rows_max
        return Range(self._cursor_ns, min(self._end_ns, self._cursor_ns + rows * self._period_ns))

    def _check_served(self, stretch: _Stretch, placed: PlacedRows) -> bool:
        """Return False when the answer is asked for once more; raise when it is not what was asked."""
        if placed.buckets or not placed.before + placed.after:
            return True
        is_natural = (not placed.after or not self._capabilities.bounds_end) and (
            not placed.before or self._capabilities.sends_rows_before_start
        )
        if is_natural:
            return True
        stretch.answers += 1
        if stretch.answers < _MAIN_ANSWERS_MAX:
            return False
        raise PeerError(
            f"asked for bars of [{format_ns(stretch.span.start_ns)}, {format_ns(stretch.span.end_ns)}), got "
            f"{placed.raw} rows and none of them inside, twice; the endpoint ignores the range, no progress",
            code=ErrorCode.NO_PROGRESS,
        )

    def _is_cut_off(self, stretch: _Stretch, placed: PlacedRows) -> bool:
        """Return whether the endpoint's short history begins inside the window: what lies before was not looked at."""
        rows_max = self._capabilities.history_rows
        if rows_max is None or placed.raw < rows_max or placed.before:
            return False
        first_ns = min(placed.buckets, default=stretch.span.end_ns)
        if first_ns > stretch.span.start_ns:
            self.unserved = Range(stretch.span.start_ns, first_ns)
            self._stretch = None
        return self.unserved is not None

    def _begin(self, stretch: _Stretch, placed: PlacedRows, wanted: BarsWanted) -> None:
        self.begins_empty = stretch.span.start_ns not in placed.buckets
        # A full page ends at its last row; what was asked for beyond is the next page's.
        stretch.span = Range(stretch.span.start_ns, self._reach_ns(placed, wanted))

    def _reach_ns(self, placed: PlacedRows, wanted: BarsWanted) -> int:
        """Return up to where an answer speaks."""
        buckets = placed.buckets
        is_full = self._capabilities.window_rows_max is None and placed.raw >= wanted.rows_max
        if not buckets or not is_full or placed.after:
            return wanted.window.end_ns
        return min(buckets[-1] + wanted.period_seconds * NANOSECONDS, wanted.window.end_ns)

    def _from_ns(self, placed: PlacedRows, wanted: BarsWanted) -> int:
        """Return from where on an answer speaks: a short history says nothing about what lies before it."""
        rows_max = self._capabilities.history_rows
        is_short = rows_max is not None and placed.raw >= rows_max and not placed.before
        return placed.buckets[0] if is_short else wanted.window.start_ns

    def _take_rows(self, stretch: _Stretch, placed: PlacedRows) -> None:
        span = stretch.span
        inside = {b: bar for b, bar in placed.bars.items() if span.start_ns <= b < span.end_ns}
        stretch.bars.update(inside)
        stretch.bad.update({b: reason for b, reason in placed.bad.items() if span.start_ns <= b < span.end_ns})
        stretch.unplaced.extend(placed.unplaced)

    def _weigh(self, stretch: _Stretch, placed: PlacedRows, wanted: BarsWanted) -> None:
        """Count what the answer denies, if it proves itself; a row of unknown time could belong anywhere."""
        buckets = placed.buckets
        if not buckets:
            self._counts.empty_answers += not placed.unplaced
            stretch.is_silent |= wanted.period_seconds == self._period_seconds
            self._ladder.note(wanted.period_seconds, has_spoken=False)
            return
        self._ladder.note(wanted.period_seconds, has_spoken=True)
        question = Question(wanted.period_seconds, wanted.window)
        if placed.unplaced or question in stretch.spoken:
            return
        stretch.spoken.add(question)
        speaks = Range(self._from_ns(placed, wanted), self._reach_ns(placed, wanted))
        length_ns = wanted.period_seconds * NANOSECONDS
        self._absence.deny(subtract(speaks, [Range(b, b + length_ns) for b in buckets]))

    def _holes(self, stretch: _Stretch) -> list[Range]:
        known = [Range(b, b + self._period_ns) for b in (*stretch.bars, *stretch.bad)]
        return subtract(stretch.span, [*known, *self._absence.proven])

    def _ask_again(self, stretch: _Stretch) -> bool:
        """Plan the next round; return False when nothing is left to ask."""
        holes = self._holes(stretch)
        while holes and stretch.rounds < _ROUNDS_MAX:
            stretch.rounds += 1
            self._questions.extend(self._ladder.questions(stretch.rounds, holes, is_silent=stretch.is_silent))
            if self._questions:
                self._pause_ns = pause_ns(stretch.rounds, is_dense=self._capabilities.sends_empty_buckets)
                return True
        return False

    def _on_probe(self, placed: PlacedRows, probe: Question) -> Settled | None:
        """Leap over what no answer speaks about, up to the first row of the longest period."""
        first_ns = min(placed.buckets, default=None)
        if first_ns is None and self._probes == 1:
            return None
        self._probes, self._is_lost = 0, first_ns is None
        until_ns = probe.window.end_ns if first_ns is None else align_down_ns(first_ns, self._period_seconds)
        span = Range(self._cursor_ns, min(until_ns, self._end_ns))
        if not span:
            return None
        self._cursor_ns = span.end_ns
        return Settled(span, (), {}, (), (self._unproven(span),))

    def _settle(self, stretch: _Stretch) -> Settled:
        span = stretch.span
        holes = self._holes(stretch)
        bars = tuple(stretch.bars[b] for b in sorted(stretch.bars))
        bad = {b: reason for b, reason in sorted(stretch.bad.items()) if b not in stretch.bars}
        reasons = tuple(stretch.unplaced) if holes else ()
        self._counts.quarantined += len(bad) + len(reasons)
        if holes and not reasons:
            reasons = tuple(self._unproven(hole) for hole in holes[:1])
        covered = subtract(span, [*holes, *(Range(b, b + self._period_ns) for b in bad)])
        self._count_believed(covered, stretch)
        self._is_lost = bool(holes) and not stretch.spoken and bool(self._ladder.longest)
        self._cursor_ns, self._stretch = span.end_ns, None
        self._absence.forget_before(self._cursor_ns)
        return Settled(span, bars, bad, tuple(covered), reasons)

    def _unproven(self, hole: Range) -> str:
        self._counts.unproven += 1
        return (
            f"no row at [{format_ns(hole.start_ns)}, {format_ns(hole.end_ns)}), and the answers do not prove that "
            "there is none; ask again later"
        )

    def _count_believed(self, covered: list[Range], stretch: _Stretch) -> None:
        least_ns = self._period_ns * (1 if self._capabilities.sends_empty_buckets else _HOLE_BUCKETS_MIN)
        known = [Range(b, b + self._period_ns) for b in stretch.bars]
        believed = [hole for part in covered for hole in subtract(part, known)]
        self._counts.holes += sum(hole.end_ns - hole.start_ns >= least_ns for hole in believed)

    def _count(self, placed: PlacedRows, *, is_main: bool) -> None:
        self._counts.off_grid += placed.off_grid if is_main else 0
        self._counts.doubled += placed.doubled
        self._counts.outside += placed.before + placed.after if is_main else 0
