"""Rolls bars of a divisor period up to the wanted one: by time, never by count, and only when all parts are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from ingestors.engine.bars_reader import Settled
from ingestors.engine.values import EXACT, Bar, BarSource
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, subtract, union

__all__ = ["Roller"]


class Roller:
    """Collects settled stretches of the divisor period and gives back those of the wanted period.

    Args:
        period_seconds: the wanted period.
        start_ns: where the first stretch begins, aligned to the wanted period.
    """

    def __init__(self, period_seconds: int, *, start_ns: int) -> None:
        self._period_seconds = period_seconds
        self._period_ns = period_seconds * NANOSECONDS
        self._start_ns = start_ns
        self._bars: list[Bar] = []
        self._covered: list[Range] = []
        self._bad: dict[int, str] = {}
        self._unplaced: list[str] = []

    def add(self, part: Settled) -> Settled | None:
        """Take a stretch; return the whole buckets that it completes, or None when there are none."""
        if part.span.start_ns > self._start_ns and not self._bars and not self._covered and not self._bad:
            self._start_ns = align_down_ns(part.span.start_ns, self._period_seconds)
        self._bars.extend(part.bars)
        self._covered = union([*self._covered, *part.covered])
        self._bad.update(part.bad)
        self._unplaced.extend(part.unplaced)
        until_ns = align_down_ns(part.span.end_ns, self._period_seconds)
        return self._roll(Range(self._start_ns, until_ns)) if until_ns > self._start_ns else None

    def _roll(self, span: Range) -> Settled:
        unknown = {align_down_ns(r.start_ns, self._period_seconds): "" for r in self._holes(span)}
        bad = {align_down_ns(b, self._period_seconds): reason for b, reason in self._bad.items() if b < span.end_ns}
        groups: dict[int, list[Bar]] = {}
        for bar in self._bars:
            if bar.start_ns < span.end_ns:
                groups.setdefault(align_down_ns(bar.start_ns, self._period_seconds), []).append(bar)
        bars = tuple(_merge(start_ns, group) for start_ns, group in sorted(groups.items()) if start_ns not in unknown)
        covered = subtract(span, [Range(b, b + self._period_ns) for b in unknown])
        settled = Settled(span, bars, bad, tuple(covered), tuple(self._unplaced))
        self._start_ns = span.end_ns
        self._bars = [bar for bar in self._bars if bar.start_ns >= span.end_ns]
        self._covered = [Range(max(r.start_ns, span.end_ns), r.end_ns) for r in self._covered if r.end_ns > span.end_ns]
        self._bad = {b: reason for b, reason in self._bad.items() if b >= span.end_ns}
        self._unplaced = []
        return settled

    def _holes(self, span: Range) -> list[Range]:
        """Return what is not proven, cut at bucket bounds so that each piece names its bucket."""
        pieces = []
        for hole in subtract(span, self._covered):
            cursor_ns = hole.start_ns
            while cursor_ns < hole.end_ns:
                next_ns = align_down_ns(cursor_ns, self._period_seconds) + self._period_ns
                pieces.append(Range(cursor_ns, min(next_ns, hole.end_ns)))
                cursor_ns = next_ns
        return pieces


def _merge(start_ns: int, group: Sequence[Bar]) -> Bar:
    told = [bar for bar in group if bar.is_traded] or group
    first, last = told[0], told[-1]
    return replace(
        first,
        start_ns=start_ns,
        close=last.close,
        high=max(bar.high for bar in told),
        low=min(bar.low for bar in told),
        volume=_total([bar.volume for bar in group]) or Decimal(0),
        quote_volume=_total([bar.quote_volume for bar in group]),
        buy_volume=_total([bar.buy_volume for bar in group]),
        sell_volume=_total([bar.sell_volume for bar in group]),
        trades=None if any(bar.trades is None for bar in group) else sum(bar.trades or 0 for bar in group),
        source=BarSource.ROLLUP,
        last_trade_id=last.last_trade_id,
        incomplete=any(bar.incomplete for bar in group),
    )


def _total(numbers: Sequence[Decimal | None]) -> Decimal | None:
    """Return the exact sum, or None when a part is absent."""
    total = Decimal(0)
    for number in numbers:
        if number is None:
            return None
        total = EXACT.add(total, number)
    return total
