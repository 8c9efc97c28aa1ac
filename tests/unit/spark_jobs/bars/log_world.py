"""A ticker's log and the store behind it, for tests of the bar engine: what the job does, without its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from relay.protocol.periods import NANOSECONDS
from spark_jobs.jobs.bars.engine.accumulator import Accumulator
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, GapState, MadeBar, Recompute

TICKER = "BTC/USDT.BINANCE"
SECOND = 10**9
DAY = 1_700_006_400 * SECOND
"""A UTC midnight."""

Record = BarTrade | GapNotice | Beat
Key = tuple[int, int]


def trade(number: int, seconds: float, price: int = 100, amount: int = 1, *, taker_buy: bool = True) -> BarTrade:
    """A trade so many seconds after midnight; price and amount with two decimals."""
    return BarTrade(number, DAY + round(seconds * 1000) * 10**6, price, 2, amount, 2, None, 0, taker_buy, -1)


def beat(seconds: float, *, attempt: int = 1, is_down: bool = False) -> Beat:
    return Beat(attempt, DAY + round(seconds * 1000) * 10**6, is_down)


def begins(number: int, seconds: float) -> list[GapNotice]:
    """What a feed says before its first trade ever."""
    span = (None, number - 1, DAY, DAY + round(seconds * 1000) * 10**6)
    return [GapNotice(GapState.OPEN, *span), GapNotice(GapState.UNFILLABLE, *span)]


@dataclass
class LogWorld:
    """Reads records into an engine; keeps what is published by (period, start) and says each final bar in order."""

    periods: tuple[int, ...] = (60,)
    rules: BarRules = field(default_factory=BarRules)
    said: list[MadeBar] = field(default_factory=list)
    last: dict[Key, MadeBar] = field(default_factory=dict)
    recomputed: list[Recompute] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.book = BarBook(self.rules, lambda _: self.periods)
        self.stored: dict[int, BarTrade] = {}
        self.gaps = GapBook()
        self.offset = 0

    def read(self, records: Iterable[Record]) -> None:
        for record in records:
            self._read(record)
            self.offset += 1

    def clock(self, seconds: float) -> None:
        """The wall clock, so many seconds after midnight."""
        for _, made in self.book.on_clock(DAY + round(seconds * 1000) * 10**6):
            self._take(made)

    def restart(self) -> None:
        state = self.book.encode()
        self.book = BarBook(self.rules, lambda _: self.periods)
        self.book.restore(state)

    def lose_state(self) -> None:
        self.book = BarBook(self.rules, lambda _: self.periods)

    def _read(self, record: Record) -> None:
        if isinstance(record, BarTrade):
            placed = record._replace(offset=self.offset)
            self.stored.setdefault(placed.number, placed)
            self.gaps.begin(placed.time_ns)
            self.book.on_trade(TICKER, placed)
        elif isinstance(record, GapNotice):
            self.gaps.take(record)
            self.book.on_gap(TICKER, record, offset=self.offset)
        else:
            for made in self.book.on_beat(TICKER, record):
                self._take(made)

    def _take(self, made: MadeBar | Recompute) -> None:
        if isinstance(made, Recompute):
            self.recomputed.append(made)
            assert max(made.trade_offset, made.gap_offset) < self.offset
            bar = self._stored_bar(made)
            if bar is None:
                return
        else:
            bar = made
        key = (bar.period_seconds, bar.start_ns)
        last = self.last.get(key)
        if last is not None and bar.is_same(last):
            return
        bar = bar._replace(revision=0 if last is None else last.revision + 1)
        self.last[key] = bar
        self.said.append(bar)

    def _stored_bar(self, wanted: Recompute) -> MadeBar | None:
        start, end = wanted.start_ns, wanted.start_ns + wanted.period_seconds * NANOSECONDS
        trades = [one for one in self.stored.values() if start <= one.time_ns < end]
        if not trades:
            return None
        sums = Accumulator.of(trades[0])
        for one in trades[1:]:
            sums.add(one)
        incomplete = self.gaps.is_incomplete(start, end)
        return sums.bar(TICKER, wanted.period_seconds, start, incomplete=incomplete, is_final=True, revision=0)


def told(bars: Sequence[MadeBar]) -> list[tuple[int, int, bool]]:
    """Seconds after midnight, revision, and whether incomplete."""
    return [((bar.start_ns - DAY) // SECOND, bar.revision, bar.incomplete) for bar in bars]
