"""What the bars make of the words of real feeds: attempts that follow one another, and holes beside interruptions."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from ingestors.engine.feed import FeedEngine
from ingestors.engine.feed_commands import Emit, EmitGap, FeedCommand, FeedRules, Fill
from ingestors.engine.feed_values import LiveTrade, LostCause
from spark_jobs.jobs.bars.engine.gap_book import GapBook
from spark_jobs.jobs.bars.engine.values import GapNotice, GapState
from spark_jobs.jobs.bars.stored_bar import gap_book_of
from tests.unit.spark_jobs.bars.log_world import DAY, SECOND, TICKER, LogWorld, beat, told, trade

MINUTES = range(10, 360, 10)
"""Seconds of a first attempt's trades, the first of which is number 1."""


def live(number: int, seconds: float) -> LiveTrade:
    time_ns = DAY + round(seconds * SECOND)
    return LiveTrade(number, time_ns, 100, 1, 2, 2, True, time_ns)


def feed(resume_after: int | None = None, resumed_ns: int = 0) -> FeedEngine:
    return FeedEngine(
        resume_after=resume_after, resumed_ns=resumed_ns, rules=FeedRules(), count=lambda name, amount: None
    )


class Log(LogWorld):
    """Reads what feeds say, too."""

    def hear(self, commands: Iterable[FeedCommand]) -> list[Fill]:
        fills = []
        for command in commands:
            if isinstance(command, Emit):
                self.read(trade(one.number, (one.time_ns - DAY) / SECOND) for one in command.trades)
            elif isinstance(command, EmitGap):
                state = GapState(command.state.value)
                self.read([GapNotice(state, command.first, command.last, command.from_ns, command.to_ns)])
            else:
                fills.append(command)
        return fills


def after_a_first_attempt(*, is_killed: bool) -> tuple[Log, int]:
    """Until 00:05:51; returns the number of its last trade, too."""
    log, first = Log(), feed()
    first.on_connected(0)
    log.hear(first.on_trades([live(1, MINUTES[0])], 0))
    log.read([beat(MINUTES[0])])
    for number, seconds in enumerate(MINUTES[1:], 2):
        log.hear(first.on_trades([live(number, seconds)], 0))
    log.read([beat(351)])
    if not is_killed:
        log.hear(first.stop(0))
    return log, len(MINUTES)


def resumed_at(last: int, *, knows_time: bool) -> FeedEngine:
    engine = feed(last, DAY + MINUTES[-1] * SECOND if knows_time else 0)
    engine.on_connected(0)
    return engine


@pytest.mark.parametrize("knows_time", [True, False])
@pytest.mark.parametrize("is_killed", [True, False])
def test_a_next_attempt_that_misses_nothing_changes_no_bar(knows_time: bool, is_killed: bool) -> None:
    log, last = after_a_first_attempt(is_killed=is_killed)
    before = told(log.said)
    second = resumed_at(last, knows_time=knows_time)
    log.hear(second.start())
    log.hear(second.on_trades([live(last + 1, 359)], 0))
    log.read([beat(361, attempt=2)])
    for number in range(last + 2, last + 8):
        log.hear(second.on_trades([live(number, 350 + 10 * (number - last))], 0))
    log.read([beat(421, attempt=2)])
    assert told(log.said) == [*before, (300, 0, False), (360, 0, False)]
    assert (log.gaps.open, log.gaps.known_from_ns) == ([], DAY)


@pytest.mark.parametrize("knows_time", [True, False])
@pytest.mark.parametrize("is_killed", [True, False])
def test_trades_between_attempts_that_never_come_cost_the_bars_between_them_only(
    knows_time: bool, is_killed: bool
) -> None:
    log, last = after_a_first_attempt(is_killed=is_killed)
    before = told(log.said)
    second = resumed_at(last, knows_time=knows_time)
    log.hear(second.start())
    log.hear(second.on_trades([live(last + 3, 375)], 0))
    (fill,) = log.hear(second.on_tick(SECOND))
    log.hear(second.on_fill_done(fill))
    log.hear(second.on_trades([live(last + 4, 425)], 0))
    log.read([beat(481, attempt=2)])
    assert told(log.said) == [*before, (300, 0, True), (360, 0, True), (420, 0, False)]
    assert log.gaps.lost[-1] == (DAY + 350 * SECOND, DAY + 375 * SECOND)


def test_the_store_says_the_same_of_a_next_attempt() -> None:
    rows = [
        ("OPEN", None, 0, DAY, DAY + 10 * SECOND),
        ("UNFILLABLE", None, 0, DAY, DAY + 10 * SECOND),
        ("OPEN", 43, None, 0, 0),
        ("FILLED", 43, 42, 0, DAY + 300 * SECOND),
        ("OPEN", 60, 61, DAY + 500 * SECOND, DAY + 510 * SECOND),
        ("FILLED", 60, 61, DAY + 500 * SECOND, DAY + 510 * SECOND),
    ]
    names = ("state", "first_number", "last_number", "from_ns", "to_ns")
    book = gap_book_of(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]))
    assert not book.is_incomplete(DAY + 60 * SECOND, DAY + 120 * SECOND)
    assert book.is_incomplete(DAY, DAY + 60 * SECOND)
    assert book.is_incomplete(DAY - 60 * SECOND, DAY)


def test_a_hole_that_is_filled_does_not_end_the_interruption_behind_it() -> None:
    log, first = Log(), feed()
    first.on_connected(0)
    log.hear(first.on_trades([live(1, 1)], 0))
    log.read([beat(1)])
    log.hear(first.on_trades([live(2, 61), live(3, 62), live(6, 65)], 0))
    log.hear(first.on_tick(SECOND))
    log.hear(first.on_interrupted(LostCause.DISCONNECT, 2 * SECOND))
    log.hear(first.on_filled([live(4, 63), live(5, 64)]))
    log.hear(first.stop(3 * SECOND))
    log.read([beat(65, is_down=True)])
    log.clock(130)
    assert told(log.said)[-1] == (60, 0, True)
    second = feed(6, DAY + 65 * SECOND)
    log.hear(second.start())
    second.on_connected(0)
    log.hear(second.on_trades([live(7, 131)], 0))
    log.read([beat(132, attempt=2)])
    assert told(log.said)[-1] == (60, 1, False)


def notice(state: str, first: int | None, last: int | None, from_ns: int, to_ns: int = 0) -> GapNotice:
    return GapNotice(GapState(state), first, last, from_ns, to_ns)


def test_an_interruption_is_replaced_by_the_next_and_ends_with_its_own_word() -> None:
    book = GapBook()
    book.begin(5)
    for word in (notice("OPEN", 20, 25, 7, 8), notice("OPEN", 40, 45, 10, 20), notice("OPEN", 46, None, 20)):
        assert book.take(word) is None
    assert book.take(notice("OPEN", 40, None, 0)) is None
    assert [(gap.first, gap.last, gap.from_ns) for gap in book.open] == [(20, 25, 7), (40, None, 10)]
    assert book.take(notice("FILLED", 40, 45, 0, 30)) == (10, 30)
    assert [(gap.first, gap.last) for gap in book.open] == [(20, 25)]


@pytest.mark.parametrize("resumed_after", [3, 4, 5])
def test_a_hole_of_an_attempt_that_was_killed_holds_no_bar_back(resumed_after: int) -> None:
    log, first = Log(), feed()
    first.on_connected(0)
    log.hear(first.on_trades([live(1, 1)], 0))
    log.read([beat(1)])
    log.hear(first.on_trades([live(2, 61), live(3, 62), live(6, 65)], 0))
    log.hear(first.on_tick(SECOND))
    log.hear([Emit([live(number, number + 59) for number in range(4, resumed_after + 1)], is_backfill=True)])
    log.read([beat(66)])
    second = feed(resumed_after, DAY + (59 + resumed_after) * SECOND)
    log.hear(second.start())
    log.read([beat(66, attempt=2)])
    second.on_connected(0)
    log.hear(second.on_trades([live(number, number + 59) for number in range(resumed_after + 1, 7)], 0))
    log.hear(second.on_trades([live(7, 121)], 0))
    log.read([beat(181, attempt=2)])
    assert log.book.tickers[TICKER].gaps.open == []
    assert [bar[:3] for bar in told(log.said)][-2:] == [(60, 0, False), (120, 0, False)]
    assert log.last[60, DAY + 60 * SECOND].trades == 5


def test_an_interruption_that_begins_later_sets_the_time_before_it_free() -> None:
    book = GapBook()
    book.take(notice("OPEN", 40, None, 10))
    assert book.take(notice("OPEN", 50, None, 60)) == (10, 60)
    assert not book.is_open(10, 60)
    assert book.is_open(10, 61)


def test_a_first_attempt_anew_ends_an_interruption_that_nobody_remembers() -> None:
    book = GapBook()
    book.take(notice("OPEN", 46, None, 10))
    book.take(notice("OPEN", None, 99, 50, 80))
    assert book.take(notice("UNFILLABLE", None, 99, 50, 80)) == (10, 80)
    assert (book.open, book.lost) == ([], [(10, 80)])
