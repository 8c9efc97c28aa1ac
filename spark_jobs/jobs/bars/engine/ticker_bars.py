"""All bars of one ticker.

Final bars depend on the log alone, never on how it was cut into batches: they are decided when the ticker's own time
(its beat in the log) has passed a bucket, and what is decided by a record is the same whenever it is read again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from relay.protocol.periods import NANOSECONDS
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.series import Series
from spark_jobs.jobs.bars.engine.trade_numbers import TradeNumbers
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, MadeBar, Recompute

__all__ = ["TickerBars"]

_ANEW_NS = 600 * NANOSECONDS


class TickerBars(msgspec.Struct):
    """State of one ticker; takes its records in the order of the log."""

    ticker: str
    numbers: TradeNumbers = msgspec.field(default_factory=TradeNumbers)
    gaps: GapBook = msgspec.field(default_factory=GapBook)
    series: dict[int, Series] = msgspec.field(default_factory=dict)
    reached_ns: int = 0
    newest_ns: int = 0
    trade_offset: int = -1
    gap_offset: int = -1
    attempt: int = -1
    repeats: int = 0
    is_down: bool = False

    def want(self, periods: Iterable[int]) -> None:
        """Make these periods, and no others; a new one begins with the next beat."""
        wanted = set(periods)
        for period in set(self.series) - wanted:
            del self.series[period]
        for period in wanted - set(self.series):
            self.series[period] = Series(self.ticker, period)

    def on_trade(self, trade: BarTrade, rules: BarRules) -> None:
        """Take a trade; a repeat is dropped by its number."""
        self.trade_offset = trade.offset
        if not self.numbers.take(trade.number, spans_max=rules.spans_max):
            self.repeats += 1
            return
        time_ns = trade.time_ns
        self.gaps.begin(time_ns)
        self.newest_ns = max(self.newest_ns, time_ns)
        limit_ns = self.reached_ns - rules.lateness_ns
        for series in self.series.values():
            series.add(trade, limit_ns=limit_ns)

    def on_gap(self, gap: GapNotice, *, offset: int) -> None:
        """Take a notice of a hole."""
        self.gap_offset = offset
        self._reconsider(self.gaps.take(gap))

    def on_beat(self, beat: Beat, rules: BarRules) -> list[MadeBar | Recompute]:
        """Take a beat; return the bars that are final by it. Those of an attempt that was replaced mean nothing.

        But a manager that has forgotten a job (idle for days, or a lost store) counts its attempts anew: a lower one
        that is far ahead is the one that lives.
        """
        if beat.attempt < self.attempt and beat.reached_ns <= self.reached_ns + _ANEW_NS:
            return []
        if beat.attempt != self.attempt and self.attempt >= 0:
            self._reconsider(self.gaps.begin_attempt())
        self.attempt = beat.attempt
        self.reached_ns = max(self.reached_ns, beat.reached_ns)
        self.is_down = beat.is_down
        if self.reached_ns:
            for series in self.series.values():
                series.begin(max(self.reached_ns, self.newest_ns))
        return self._settle(self.reached_ns - rules.lateness_ns, rules)

    def on_clock(self, now_ns: int, rules: BarRules) -> list[MadeBar | Recompute]:
        """Of a feed that has stopped, return what is over by the clock: its own time stands still."""
        return self._settle(now_ns - rules.lateness_ns, rules) if self.is_down else []

    def _reconsider(self, changed: tuple[int, int] | None) -> None:
        if changed is not None:
            for series in self.series.values():
                series.reconsider(*changed)

    def _settle(self, limit_ns: int, rules: BarRules) -> list[MadeBar | Recompute]:
        made: list[MadeBar | Recompute] = []
        holes = [gap.from_ns for gap in self.gaps.open] if rules.keeps_holes else []
        kept_ns = min([limit_ns - rules.keep_ns, *holes])
        for period in sorted(self.series):
            made += self.series[period].settle(
                self.gaps,
                limit_ns=limit_ns,
                keep_ns=limit_ns - kept_ns,
                is_down=self.is_down,
                offsets=(self.trade_offset, self.gap_offset),
            )
        if self.gaps.lost:
            needed = [s for series in self.series.values() for s in (*series.open, *series.closed)]
            self.gaps.forget(min([kept_ns, *needed]))
        return made

    def running(self) -> list[MadeBar]:
        """Return the open bars that have changed since the last call."""
        return [bar for period in sorted(self.series) for bar in self.series[period].running(self.gaps)]
