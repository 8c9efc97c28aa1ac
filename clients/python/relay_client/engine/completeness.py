"""How complete the stored ticks of a ticker and span are: ids expected and stored, gaps and causes, time covered.

Pure: rows in, a report out. The present state of a gap is what was said last (``proto/spec/0008-live.md``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from relay.engine.gap_rules import GapIds
from relay.protocol.ranges import Range, intersect, subtract, union

__all__ = ["Completeness", "KnownGap", "MissingIds", "fold_gaps", "measure", "past_of"]


@dataclass(frozen=True, slots=True)
class KnownGap:
    """A row of ``market.gaps``, or a gap as it stands: OPEN (fetched, or interrupted until now) or UNFILLABLE.

    Ids are None where unknown; ``to_ns`` is 0 where the end is not known.
    """

    state: str
    cause: str
    first: int | None
    last: int | None
    from_ns: int
    to_ns: int

    @property
    def ids(self) -> GapIds:
        """Its ids."""
        return GapIds.of(self.first, self.last)

    @property
    def is_before_all(self) -> bool:
        """Whether it is no loss but the time before anything was recorded of the ticker."""
        return self.first is None and self.cause == "DISCONNECT"


@dataclass(frozen=True, slots=True)
class MissingIds:
    """Trade ids that are not stored, inclusive; ``cause`` is the gap's, or UNEXPLAINED."""

    first: int
    last: int
    cause: str

    @property
    def count(self) -> int:
        """How many."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Completeness:
    """The report of one ticker and span.

    Attributes:
        span: exchange times, half open, nanoseconds; it ends now at the latest, for what is to come is not covered.
        first, last: lowest and highest id stored in the span; None without any.
        expected, stored: ids from first to last, and how many of them are stored.
        missing: the rest, by ranges.
        gaps: gaps that touch the span and are not filled.
        covered_ns: time of the span that was recorded: it lies in no such gap, and not before the first trade ever
            recorded; 0 when nothing was.
    """

    ticker: str
    span: Range
    first: int | None
    last: int | None
    expected: int
    stored: int
    missing: tuple[MissingIds, ...]
    gaps: tuple[KnownGap, ...]
    covered_ns: int

    @property
    def missing_count(self) -> int:
        """Ids between first and last that are not stored."""
        return self.expected - self.stored

    @property
    def is_complete(self) -> bool:
        """Whether the whole span was recorded: nothing is missing and no gap touches it."""
        return self.stored > 0 and not self.missing and not self.gaps

    @property
    def is_lossless(self) -> bool:
        """Whether something is stored and nothing was lost: as complete, but the first recording may begin inside."""
        return self.stored > 0 and not self.missing and all(gap.is_before_all for gap in self.gaps)

    @property
    def covered_parts_per_million(self) -> int:
        """Share of the span's time that was recorded."""
        length = self.span.end_ns - self.span.start_ns
        return self.covered_ns * 1_000_000 // length if length else 0


def fold_gaps(said: Iterable[KnownGap]) -> list[KnownGap]:
    """Return the gaps that are still open or will never be filled, from everything that was said in its order."""
    open_gaps: list[KnownGap] = []
    for_ever: list[KnownGap] = []
    for word in said:
        if word.state == "OPEN":
            if word.last is None:
                open_gaps = _interrupted(open_gaps, word)
            elif word not in open_gaps:
                open_gaps.append(word)
            continue
        is_of_hole = any(word.ids.is_part_of(gap.ids) for gap in open_gaps)
        open_gaps = [gap for gap in open_gaps if not word.ids.closes(gap.ids, is_of_hole=is_of_hole)]
        if word.state == "UNFILLABLE":
            for_ever.append(word)
    return [*for_ever, *open_gaps]


def past_of(span: Range, now_ns: int) -> Range:
    """Return what of a span has passed; an empty one at its start where nothing has."""
    return Range(span.start_ns, max(span.start_ns, min(span.end_ns, now_ns)))


def measure(ticker: str, span: Range, runs: Sequence[tuple[int, int]], gaps: Iterable[KnownGap]) -> Completeness:
    """Return the report.

    Args:
        ticker: of all rows.
        span: exchange times that have passed, as :func:`past_of` returns them.
        runs: stored ids of the span, first and last of each run without a hole, ascending.
        gaps: from :func:`fold_gaps`.
    """
    known = list(gaps)
    touching = [gap for gap in known if gap.from_ns < span.end_ns and _end_ns(gap, span) > span.start_ns]
    before = Range(span.start_ns, max(span.start_ns, _began_ns(span, runs, known)))
    unseen = union([before, *(Range(gap.from_ns, _end_ns(gap, span)) for gap in touching)])
    covered = subtract(span, intersect(span, unseen))
    missing = _missing(runs, touching)
    first, last = (runs[0][0], runs[-1][1]) if runs else (None, None)
    expected = 0 if first is None or last is None else last - first + 1
    return Completeness(
        ticker=ticker,
        span=span,
        first=first,
        last=last,
        expected=expected,
        stored=sum(last - first + 1 for first, last in runs),
        missing=tuple(missing),
        gaps=tuple(touching),
        covered_ns=sum(r.end_ns - r.start_ns for r in covered),
    )


def _interrupted(open_gaps: list[KnownGap], word: KnownGap) -> list[KnownGap]:
    """An interruption replaces what reaches to its first id or behind."""
    behind = [gap.from_ns for gap in open_gaps if gap.ids.first >= word.ids.first]
    begun = replace(word, from_ns=min([word.from_ns or max(behind, default=0), *behind]))
    return [*(gap for gap in open_gaps if not word.ids.replaces(gap.ids)), begun]


def _began_ns(span: Range, runs: Sequence[tuple[int, int]], gaps: Sequence[KnownGap]) -> int:
    """Since when the ticker is recorded: its first recording ever says so by a gap; never, when nothing is known."""
    if not runs and not gaps:
        return span.end_ns
    return min((gap.to_ns for gap in gaps if gap.is_before_all), default=span.start_ns)


def _end_ns(gap: KnownGap, span: Range) -> int:
    """The end of a gap; one without an end reaches over the whole rest."""
    return gap.to_ns or max(span.end_ns, gap.from_ns)


def _missing(runs: Sequence[tuple[int, int]], gaps: Sequence[KnownGap]) -> list[MissingIds]:
    found: list[MissingIds] = []
    for (_, before), (after, _) in pairwise(runs):
        at = before + 1
        while at < after:
            inside = next((g for g in gaps if _holds(g, at)), None)
            if inside is not None:
                end = after - 1 if inside.last is None else min(after - 1, inside.last)
                found.append(MissingIds(at, end, inside.cause))
            else:
                starts = [g.first for g in gaps if g.first is not None and at < g.first < after]
                end = min(starts, default=after) - 1
                found.append(MissingIds(at, end, "UNEXPLAINED"))
            at = end + 1
    return found


def _holds(gap: KnownGap, number: int) -> bool:
    return (gap.first is None or gap.first <= number) and (gap.last is None or number <= gap.last)
