"""A bar made anew from stored trades, and what its revision is."""

from __future__ import annotations

from collections.abc import Iterable

from relay.protocol.periods import NANOSECONDS
from spark_jobs.jobs.bars.engine.accumulator import Accumulator
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import BarTrade, MadeBar

__all__ = ["bar_of_trades", "next_revision"]


def bar_of_trades(
    trades: Iterable[BarTrade], gaps: GapBook, *, ticker: str, period_seconds: int, start_ns: int
) -> MadeBar | None:
    """Return the final bar of a bucket with revision 0, or None when nothing was traded in it.

    Args:
        trades: of the ticker, each once; those outside of the bucket are left out.
        gaps: of the ticker, as they are known now.
        ticker, period_seconds, start_ns: the bucket.
    """
    end_ns = start_ns + period_seconds * NANOSECONDS
    sums: Accumulator | None = None
    for trade in trades:
        if not start_ns <= trade.time_ns < end_ns:
            continue
        if sums is None:
            sums = Accumulator.of(trade)
        else:
            sums.add(trade)
    if sums is None:
        return None
    incomplete = gaps.is_incomplete(start_ns, end_ns)
    return sums.bar(ticker, period_seconds, start_ns, incomplete=incomplete, is_final=True, revision=0)


def next_revision(bar: MadeBar, last: MadeBar | None) -> MadeBar:
    """Return the bar under the revision that it has after the last one: the same when they say the same."""
    if last is None:
        return bar._replace(revision=0)
    return bar._replace(revision=last.revision if bar.is_same(last) else last.revision + 1)
