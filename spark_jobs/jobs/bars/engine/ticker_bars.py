"""All bars of one ticker.

Final bars depend on the log alone, never on how it was cut into batches: they are decided when the ticker's own time
(its beat in the log) has passed a bucket, and what is decided by a record is the same whenever it is read again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.series import Series
from spark_jobs.jobs.bars.engine.trade_numbers import TradeNumbers
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, MadeBar, Recompute

__all__ = ["TickerBars"]


class TickerBars(msgspec.Struct):
    """State of one ticker; takes its records in the order of the log."""

    ticker: str
    numbers: TradeNumbers = msgspec.field(default_factory=TradeNumbers)
    gaps: GapBook = msgspec.field(default_factory=GapBook)
    series: dict[int, Series] = msgspec.field(default_factory=dict)
    reached_ns: int = 0
    newest_ns: int = 0
    attempt: int = -1
    repeats: int = 0

    def want(self, periods: Iterable[int]) -> None:
        """Make these periods, and no others; a new one begins with the next beat."""
        wanted = set(periods)
        for period in set(self.series) - wanted:
            del self.series[period]
        for period in wanted - set(self.series):
            self.series[period] = Series(self.ticker, period)

    def on_trade(self, trade: BarTrade, rules: BarRules) -> None:
        """Take a trade; a repeat is dropped by its number."""
        if not self.numbers.take(trade.number, spans_max=rules.spans_max):
            self.repeats += 1
            return
        self.gaps.begin(trade.time_ns)
        if trade.time_ns > self.newest_ns:
            self.newest_ns = trade.time_ns
        limit_ns = self.reached_ns - rules.lateness_ns
        for series in self.series.values():
            series.add(trade, limit_ns=limit_ns)

    def on_gap(self, gap: GapNotice, *, offset: int) -> None:
        """Take a notice of a hole."""
        self.gaps.begin(gap.from_ns)
        changed = self.gaps.take(gap)
        if changed is not None:
            for series in self.series.values():
                series.reconsider(*changed, offset=offset)

    def on_beat(self, beat: Beat, rules: BarRules, *, offset: int) -> list[MadeBar | Recompute]:
        """Take a beat; return the bars that are final by it. Those of an attempt that was replaced mean nothing."""
        if beat.attempt < self.attempt:
            return []
        self.attempt = beat.attempt
        self.reached_ns = max(self.reached_ns, beat.reached_ns)
        limit_ns = self.reached_ns - rules.lateness_ns
        made: list[MadeBar | Recompute] = []
        for period in sorted(self.series):
            if self.reached_ns:
                self.series[period].begin(max(self.reached_ns, self.newest_ns))
            made += self.series[period].settle(
                self.gaps, limit_ns=limit_ns, keep_ns=rules.keep_ns, offset=offset, is_down=beat.is_down
            )
        needed = [s for series in self.series.values() for s in (*series.open, *series.closed)]
        self.gaps.forget(min([limit_ns - rules.keep_ns, *needed]))
        return made

    def running(self) -> list[MadeBar]:
        """Return the open bars that have changed since the last call."""
        return [bar for period in sorted(self.series) for bar in self.series[period].running(self.gaps)]
