"""When "no row" means "nothing happened": enough answers of different shape that prove themselves.

An answer speaks about a bucket without a row only when it holds some row of the window that was asked for: an empty
answer, or one about another time, is no evidence. A bucket is believed to be empty when so many such answers agree.
Each is asked with another window, so that one fault of the endpoint cannot hide the same bucket twice::

    main      |rrrrr.....rrrrr|            a hole is found
    fine      |rrrrrrrrrr.....|            it lies at the end of the window
    fine               |.....rrrrrrrrrr|   it lies at its beginning
    coarse    |R  R  R  R  .  R  R  R|     a longer period with rows far around: for holes longer than a window

Where the exchange sends a row for buckets without trades too, a hole is an outage, and one answer more must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingestors.engine.values import Capabilities
from relay.protocol.periods import NANOSECONDS, align_down_ns, align_up_ns
from relay.protocol.ranges import Range, intersect, union

__all__ = ["Absence", "Ladder", "Question", "pause_ns", "probe_question"]

_ANSWERS, _DENSE_ANSWERS = 2, 3
_COARSE_FACTOR_MIN = 8
_FINE_SHAPES = {1: (2, 0), 4: (0, 2), 7: (1, 1)}
"""Fine rounds, and how many halves of a window's free room lie before the hole; the other way round behind it.

The first of the two stands for endpoints that take an end, the second for those whose answers go on up to now."""
_WIDE_SHAPES = {1: (2, 0), 4: (1, 1), 7: (2, 0)}
"""Likewise for holes that fill the stretch: of the first and of the second half of it."""

_HOLES_ONE_BY_ONE_MAX = 8
"""More holes are asked for as one."""
_PAUSES_NS = (0, 0, 0, NANOSECONDS, 0, 5 * NANOSECONDS, 15 * NANOSECONDS)
"""Before each round: a fault that passes has passed by the last one."""


@dataclass(frozen=True, slots=True)
class Question:
    """A window of one period to be asked for."""

    period_seconds: int
    window: Range


class Absence:
    """How often each time was denied by an answer that proved itself.

    Args:
        is_dense: the exchange sends rows for buckets without trades too.
    """

    def __init__(self, *, is_dense: bool) -> None:
        self._levels: list[list[Range]] = [[] for _ in range(_DENSE_ANSWERS if is_dense else _ANSWERS)]

    @property
    def proven(self) -> list[Range]:
        """What is believed to hold no row."""
        return self._levels[-1]

    def deny(self, empties: Sequence[Range]) -> None:
        """Count one answer that held rows, but none in these ranges."""
        for level in range(len(self._levels) - 1, 0, -1):
            again = [part for empty in empties for part in intersect(empty, self._levels[level - 1])]
            self._levels[level] = union([*self._levels[level], *again])
        self._levels[0] = union([*self._levels[0], *empties])

    def forget_before(self, time_ns: int) -> None:
        """Drop what is not asked about any more."""
        rest = Range(time_ns, 2**63)
        self._levels = [intersect(rest, level) for level in self._levels]


class Ladder:
    """Which windows of which period are asked for in which round; a longer period when a shorter one says nothing.

    Args:
        period_seconds: of the buckets in question.
        capabilities: of the exchange.
    """

    def __init__(self, period_seconds: int, capabilities: Capabilities) -> None:
        self._period_seconds = period_seconds
        self._capabilities = capabilities
        natives = sorted(capabilities.native_periods)
        longer = [native for native in natives if native > period_seconds and native % period_seconds == 0]
        self._coarser = [native for native in longer if native >= _COARSE_FACTOR_MIN * period_seconds] or longer
        self._index = 0
        self._is_again = False

    @property
    def longest(self) -> int | None:
        """The exchange's longest period whose buckets are made of whole ones of this period."""
        return self._coarser[-1] if self._coarser else None

    def note(self, period_seconds: int, *, has_spoken: bool) -> None:
        """Take the outcome of an answer: after silence a longer period is next, else the same in the other shape."""
        if period_seconds == self._period_seconds:
            return
        self._is_again = has_spoken and not self._is_again
        self._index += not has_spoken

    def questions(self, round_number: int, holes: Sequence[Range], *, is_silent: bool) -> list[Question]:
        """Return what to ask about holes in a round, counted from 1; nothing when the round does not fit them.

        ``is_silent`` says that an answer of the own period has held no row.
        """
        if round_number in _FINE_SHAPES:
            return _fine_questions(holes, self._period_seconds, self._capabilities, round_number)
        # Longer periods only help where shorter windows lie in the hole; each is asked in two shapes.
        if not (is_silent or self._is_again):
            return []
        for period_seconds in self._coarser[self._index :]:
            found = _coarse_questions(holes, period_seconds, self._capabilities, is_first=not self._is_again)
            if found:
                return found
            self._index += 1
        return []


def pause_ns(round_number: int, *, is_dense: bool) -> int:
    """Return how long to wait before a round, counted from 1; an outage is looked at over some time."""
    return max(_PAUSES_NS[min(round_number, len(_PAUSES_NS)) - 1], NANOSECONDS if is_dense else 0)


def probe_question(start_ns: int, period_seconds: int, capabilities: Capabilities) -> Question:
    """Return the largest window of a period from a time on."""
    start_ns = align_down_ns(start_ns, period_seconds)
    rows_max = capabilities.window_rows_max or capabilities.page_rows_max
    return Question(period_seconds, Range(start_ns, start_ns + rows_max * period_seconds * NANOSECONDS))


def _fine_questions(
    holes: Sequence[Range], period_seconds: int, capabilities: Capabilities, round_number: int
) -> list[Question]:
    """Return windows around holes, so long that rows beside the hole come along, and smaller than the first one.

    Only where holes are everywhere (a sparse market) or fill the stretch, they are asked for in two wide windows.
    """
    period_ns = period_seconds * NANOSECONDS
    rows_max = capabilities.window_rows_max or capabilities.page_rows_max
    hull = Range(holes[0].start_ns, holes[-1].end_ns)
    if len(holes) > _HOLES_ONE_BY_ONE_MAX or any(_rows(hole, period_ns) > rows_max // 2 for hole in holes):
        middle_ns = hull.start_ns + (_rows(hull, period_ns) + 1) // 2 * period_ns
        parts = [Range(hull.start_ns, middle_ns), Range(middle_ns, hull.end_ns)]
        shapes = zip(parts, _WIDE_SHAPES[round_number], strict=True)
        windows = [_window(part, rows_max, halves, period_ns) for part, halves in shapes if part]
    else:
        halves = _FINE_SHAPES[round_number][0 if capabilities.bounds_end else 1]
        piece_ns = max(1, rows_max // 6) * period_ns
        starts = [(ns, hole.end_ns) for hole in holes for ns in range(hole.start_ns, hole.end_ns, piece_ns)]
        pieces = [Range(start_ns, min(start_ns + piece_ns, end_ns)) for start_ns, end_ns in starts]
        windows = [_window(piece, max(1, rows_max // 2), halves, period_ns) for piece in pieces]
    return [Question(period_seconds, window) for window in windows]


def _rows(span: Range, period_ns: int) -> int:
    return (span.end_ns - span.start_ns) // period_ns


def _window(part: Range, rows: int, halves_before: int, period_ns: int) -> Range:
    """Return a window of so many rows around a part of the time."""
    room = max(0, rows - _rows(part, period_ns))
    start_ns = max(0, part.start_ns - room * halves_before // 2 * period_ns)
    return Range(start_ns, start_ns + rows * period_ns)


def _coarse_questions(
    holes: Sequence[Range], period_seconds: int, capabilities: Capabilities, *, is_first: bool
) -> list[Question]:
    """Return one window of a longer period around all holes, a third or two thirds of it before them."""
    rows_max = capabilities.window_rows_max or capabilities.page_rows_max
    period_ns = period_seconds * NANOSECONDS
    hull = Range(align_down_ns(holes[0].start_ns, period_seconds), align_up_ns(holes[-1].end_ns, period_seconds))
    spare = rows_max - (hull.end_ns - hull.start_ns) // period_ns
    if spare < 2:
        return []
    before = spare // 3 if is_first else spare - spare // 3
    start_ns = max(0, hull.start_ns - before * period_ns)
    return [Question(period_seconds, Range(start_ns, start_ns + rows_max * period_ns))]
