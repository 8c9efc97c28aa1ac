"""Whatever the order of arrival, the batches and the places of restarts: the same final bars, those of brute force."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from relay.protocol.periods import NANOSECONDS, align_down_ns
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, GapNotice, GapState, MadeBar
from tests.unit.spark_jobs.bars.log_world import DAY, SECOND, Key, LogWorld, Record, beat, begins, trade

PERIODS = (7, 60, 300)


@dataclass
class Feed:
    """A feed's log, and what it lost for good."""

    records: list[Record]
    trades: list[BarTrade]
    lost: list[GapNotice]


@st.composite
def feeds(draw: st.DrawFn) -> Feed:
    """Trades in the order of their numbers with holes that are filled later or lost, repeats, and beats between."""
    count = draw(st.integers(2, 40))
    steps = draw(st.lists(st.integers(0, 40), min_size=count, max_size=count))
    prices = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    holes = draw(st.lists(st.tuples(st.integers(1, count - 1), st.integers(0, 3)), max_size=3))
    seconds, trades = 0, []
    for place in range(count):
        seconds += steps[place]
        trades.append(trade(place + 1, seconds, prices[place], prices[-place], taker_buy=bool(prices[place] % 2)))
    missing = {n for first, more in holes for n in range(first, min(first + more + 1, count))} - {0, count - 1}
    records: list[Record] = [*begins(1, trades[0].time_ns / SECOND - DAY // SECOND)]
    lost: list[GapNotice] = []
    waiting: list[tuple[GapNotice, list[BarTrade]]] = []
    kept: list[BarTrade] = []
    hole: list[BarTrade] = []
    for place, one in enumerate(trades):
        if place in missing:
            hole.append(one)
            continue
        if hole:
            span = (hole[0].number, hole[-1].number, kept[-1].time_ns, one.time_ns)
            records.append(GapNotice(GapState.OPEN, *span))
            waiting.append((GapNotice(GapState.FILLED, *span), hole))
            hole = []
        kept.append(one)
        records.append(one)
        if draw(st.booleans()):
            records.append(beat(one.time_ns / SECOND - DAY // SECOND))
        if draw(st.integers(0, 9)) == 0:
            records.append(draw(st.sampled_from(kept)))
        if waiting and draw(st.booleans()):
            _close(draw, waiting.pop(0), records, kept, lost)
    while waiting:
        _close(draw, waiting.pop(0), records, kept, lost)
    records.append(beat(seconds + 1000))
    return Feed(records, kept, lost)


def _close(
    draw: st.DrawFn,
    gap: tuple[GapNotice, list[BarTrade]],
    records: list[Record],
    kept: list[BarTrade],
    lost: list[GapNotice],
) -> None:
    notice, trades = gap
    if draw(st.booleans()):
        found = draw(st.permutations(trades))
        records += [*found, notice]
        kept += found
    else:
        given_up = notice._replace(state=GapState.UNFILLABLE)
        records.append(given_up)
        lost.append(given_up)


def by_brute_force(feed: Feed) -> dict[Key, tuple[object, ...]]:
    """Every bucket from all of its trades at once."""
    groups: dict[Key, list[BarTrade]] = {}
    for one in feed.trades:
        for period in PERIODS:
            groups.setdefault((period, align_down_ns(one.time_ns, period)), []).append(one)
    first_ns = min(one.time_ns for one in feed.trades)
    bars: dict[Key, tuple[object, ...]] = {}
    for (period, start), group in groups.items():
        ordered = sorted(group, key=lambda one: (one.time_ns, one.number))
        end = start + period * NANOSECONDS
        unseen = [(DAY, first_ns), *((gap.from_ns, gap.to_ns) for gap in feed.lost)]
        incomplete = start < DAY or any(a < end and b >= start for a, b in unseen)
        bars[period, start] = (
            ordered[0].price,
            max(one.price for one in group),
            min(one.price for one in group),
            ordered[-1].price,
            sum(one.amount for one in group if one.taker_buy),
            sum(one.amount for one in group if not one.taker_buy),
            sum(one.amount * one.price for one in group),
            len(group),
            ordered[0].number,
            ordered[-1].number,
            incomplete,
        )
    return bars


def content(bar: MadeBar) -> tuple[object, ...]:
    amounts = (bar.buy, bar.sell, bar.quote, bar.trades, bar.first_number, bar.last_number)
    return (bar.open, bar.high, bar.low, bar.close, *amounts, bar.incomplete)


def contents(world: LogWorld) -> dict[Key, tuple[object, ...]]:
    return {key: content(bar) for key, bar in world.last.items()}


@settings(max_examples=300, deadline=None)
@given(feeds(), st.sampled_from([0, 20, 600]), st.sampled_from([0, 3]))
def test_final_bars_are_those_of_brute_force(feed: Feed, keep_s: int, lateness_s: int) -> None:
    world = LogWorld(PERIODS, BarRules(lateness_ns=lateness_s * SECOND, keep_ns=keep_s * SECOND))
    world.read(feed.records)
    assert contents(world) == by_brute_force(feed)


@settings(max_examples=200, deadline=None)
@given(feeds(), st.sets(st.integers(0, 100), max_size=4), st.sampled_from([0, 600]))
def test_restarts_change_nothing_that_is_said(feed: Feed, places: set[int], keep_s: int) -> None:
    rules = BarRules(keep_ns=keep_s * SECOND)
    straight, restarted = LogWorld(PERIODS, rules), LogWorld(PERIODS, rules)
    straight.read(feed.records)
    for place, record in enumerate(feed.records):
        if place in places:
            restarted.restart()
        restarted.read([record])
    assert restarted.said == straight.said


@settings(max_examples=200, deadline=None)
@given(feeds(), st.integers(0, 100))
def test_a_lost_state_gives_the_same_bars_in_the_end(feed: Feed, place: int) -> None:
    """All that the log still holds is read again, and every bucket that began before it comes from the store."""
    world = LogWorld(PERIODS)
    world.read(feed.records[:place])
    world.lose_state()
    world.read(feed.records)
    assert contents(world) == by_brute_force(feed)


@settings(max_examples=200, deadline=None)
@given(feeds())
def test_a_revision_says_something_else_and_none_is_left_out(feed: Feed) -> None:
    world = LogWorld(PERIODS)
    world.read(feed.records)
    said: dict[Key, list[MadeBar]] = {}
    for bar in world.said:
        said.setdefault((bar.period_seconds, bar.start_ns), []).append(bar)
    for bars in said.values():
        assert [bar.revision for bar in bars] == list(range(len(bars)))
        assert all(not a.is_same(b) for a, b in itertools.pairwise(bars))


@settings(max_examples=200, deadline=None)
@given(feeds())
def test_long_bars_are_the_roll_up_of_short_ones(feed: Feed) -> None:
    world = LogWorld(PERIODS)
    world.read(feed.records)
    bars = contents(world)
    for (period, start), bar in bars.items():
        if period != 300:
            continue
        parts = [b for (p, s), b in sorted(bars.items()) if p == 60 and start <= s < start + 300 * SECOND]
        assert bar[:4] == (parts[0][0], max(p[1] for p in parts), min(p[2] for p in parts), parts[-1][3])
        assert bar[4:8] == tuple(sum(p[n] for p in parts) for n in range(4, 8))
        assert bar[8:10] == (parts[0][8], parts[-1][9])
