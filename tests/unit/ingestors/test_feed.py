"""The feed of one ticker: order, repeats, holes, interruptions; no sockets, no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestors.engine.feed import FeedEngine
from ingestors.engine.feed_commands import Emit, EmitGap, FeedCommand, FeedRules, FeedState, Fill, GapState
from ingestors.engine.feed_values import LiveTrade, LostCause, Proof

MS = 1_000_000
SECOND = 1_000 * MS
T0 = 1_700_000_000 * SECOND


def trade(number: int) -> LiveTrade:
    return LiveTrade(number, T0 + number * SECOND, 100 + number, 5, 2, 3, number % 2 == 0, T0 + number * SECOND + MS)


def trades(numbers: Iterable[int]) -> list[LiveTrade]:
    return [trade(n) for n in numbers]


def emitted(commands: Iterable[FeedCommand]) -> list[int]:
    return [t.number for c in commands if isinstance(c, Emit) for t in c.trades]


def gaps(commands: Iterable[FeedCommand]) -> list[tuple[GapState, int | None, int | None]]:
    return [(c.state, c.first, c.last) for c in commands if isinstance(c, EmitGap)]


def fills(commands: Iterable[FeedCommand]) -> list[Fill]:
    return [c for c in commands if isinstance(c, Fill)]


class Counts(Counter[str]):
    def add(self, name: str, amount: int) -> None:
        self[name] += amount


def engine(resume_after: int | None = None, *, resumed_ns: int = 0, **rules: int) -> tuple[FeedEngine, Counts]:
    counts = Counts()
    made = FeedEngine(resume_after=resume_after, resumed_ns=resumed_ns, rules=FeedRules(**rules), count=counts.add)
    return made, counts


def begun(*numbers: int) -> tuple[FeedEngine, Counts]:
    made, counts = engine()
    made.on_connected(0)
    made.on_trades(trades(numbers), 0)
    return made, counts


def test_the_first_trade_of_a_first_job_says_that_the_day_before_it_is_missing() -> None:
    feed, _ = engine()
    assert feed.start() == []
    commands = feed.on_trades(trades([7, 8]), 0)
    day_ns = (T0 + 7 * SECOND) // (86_400 * SECOND) * 86_400 * SECOND
    first = commands[0]
    assert isinstance(first, EmitGap)
    assert (first.state, first.first, first.last, first.from_ns) == (GapState.OPEN, None, 6, day_ns)
    assert gaps(commands) == [(GapState.OPEN, None, 6), (GapState.UNFILLABLE, None, 6)]
    assert emitted(commands) == [7, 8]


def test_three_before_two_is_no_gap_when_two_comes_within_the_hold() -> None:
    feed, counts = begun(1)
    assert feed.on_trades(trades([3]), 0) == []
    assert feed.on_tick(49 * MS) == []
    commands = feed.on_trades(trades([2, 4]), 49 * MS)
    assert emitted(commands) == [2, 3, 4]
    assert gaps(commands) == []
    assert feed.on_tick(SECOND) == []
    assert counts["feed.holes"] == 0


def test_a_hole_is_declared_after_the_hold_and_later_trades_go_on() -> None:
    feed, counts = begun(1)
    feed.on_trades(trades([5, 6]), 0)
    commands = feed.on_tick(50 * MS)
    assert gaps(commands) == [(GapState.OPEN, 2, 4)]
    assert fills(commands) == [Fill(2, 4, T0 + SECOND)]
    assert emitted(commands) == [5, 6]
    filled = feed.on_filled(trades([2, 3, 4]))
    assert emitted(filled) == [2, 3, 4]
    assert all(c.is_backfill for c in filled if isinstance(c, Emit))
    assert gaps(filled) == [(GapState.FILLED, 2, 4)]
    assert counts["feed.backfilled"] == 3
    assert feed.open_holes == 0


def test_what_the_exchange_no_longer_has_is_unfillable_and_the_rest_is_filled() -> None:
    feed, _ = begun(1)
    feed.on_trades(trades([6]), 0)
    (fill,) = fills(feed.on_tick(50 * MS))
    feed.on_filled(trades([2, 5]))
    assert gaps(feed.on_fill_done(fill)) == [(GapState.UNFILLABLE, 3, 4), (GapState.FILLED, 2, 5)]


def test_a_fetch_that_fails_is_tried_again_until_its_deadline() -> None:
    feed, _ = begun(1)
    feed.on_trades(trades([3]), 0)
    (fill,) = fills(feed.on_tick(50 * MS))
    assert feed.on_fill_failed(fill, 50 * MS, is_final=False) == []
    assert fills(feed.on_tick(900 * MS)) == []
    assert fills(feed.on_tick(1_051 * MS)) == [fill]
    late = feed.on_fill_failed(fill, 700 * SECOND, is_final=False)
    assert gaps(late) == [(GapState.UNFILLABLE, 2, 2)]


def test_a_hole_beyond_the_bound_is_not_fetched() -> None:
    feed, counts = engine(resume_after=10, fill_trades_max=100)
    feed.start()
    feed.on_trades(trades([112]), 0)
    commands = feed.on_tick(50 * MS)
    assert gaps(commands)[:2] == [(GapState.OPEN, 11, 111), (GapState.UNFILLABLE, 11, 111)]
    assert not fills(commands)
    assert emitted(commands) == [112]
    assert counts["feed.holes"] == 1


def test_repeats_of_a_snapshot_are_dropped_case_61() -> None:
    feed, counts = begun(*range(1, 51))
    feed.on_interrupted(LostCause.DISCONNECT, 0)
    feed.on_connected(SECOND)
    commands = feed.on_trades(trades(range(1, 51)), SECOND, is_snapshot=True)
    assert emitted(commands) == []
    assert gaps(commands) == [(GapState.FILLED, 51, 50)]
    assert counts["feed.repeats"] == 50


def test_a_lost_connection_is_a_gap_at_once_and_its_hole_is_fetched_case_59() -> None:
    feed, _ = begun(1, 2)
    assert gaps(feed.on_interrupted(LostCause.DISCONNECT, 0)) == [(GapState.OPEN, 3, None)]
    assert feed.on_interrupted(LostCause.DISCONNECT, SECOND) == []
    assert feed.state is FeedState.CONNECTING
    feed.on_connected(40 * SECOND)
    feed.on_trades(trades([9]), 40 * SECOND)
    commands = feed.on_tick(41 * SECOND)
    assert gaps(commands) == [(GapState.OPEN, 3, 8), (GapState.FILLED, 3, 2)]
    assert next(c for c in commands if isinstance(c, EmitGap)).cause is LostCause.DISCONNECT
    assert fills(commands) == [Fill(3, 8, T0 + 2 * SECOND)]
    assert feed.state is FeedState.UP


def test_a_silent_market_after_a_reconnect_is_looked_at() -> None:
    feed, _ = begun(1, 2)
    feed.on_interrupted(LostCause.DISCONNECT, 0)
    feed.on_connected(SECOND)
    assert fills(feed.on_tick(2 * SECOND)) == []
    (look,) = fills(feed.on_tick(3 * SECOND))
    assert look == Fill(3, None, T0 + 2 * SECOND)
    found = feed.on_filled(trades([3, 4]))
    assert emitted(found) == [3, 4]
    assert gaps(feed.on_fill_done(look)) == [(GapState.FILLED, 3, 4)]
    assert emitted(feed.on_trades(trades([5]), 4 * SECOND)) == [5]


def test_a_look_crossed_by_live_trades_loses_and_doubles_nothing() -> None:
    feed, _ = begun(1)
    feed.on_interrupted(LostCause.SILENCE, 0)
    (look,) = fills(feed.on_tick(0))
    commands = feed.on_filled(trades([2]))
    commands += feed.on_trades(trades([5]), SECOND)
    commands += feed.on_tick(SECOND + 50 * MS)
    commands += feed.on_filled(trades([3, 4, 5]))
    commands += feed.on_fill_done(look)
    assert sorted(emitted(commands)) == [2, 3, 4, 5]
    assert gaps(commands) == [(GapState.OPEN, 3, 4), (GapState.FILLED, 2, 2), (GapState.FILLED, 3, 4)]


def test_a_proof_of_newer_trades_declares_the_tail() -> None:
    feed, _ = begun(1)
    assert feed.on_proof(Proof("X", 3, T0 + 9 * SECOND), 0) == []
    commands = feed.on_tick(50 * MS)
    assert gaps(commands) == [(GapState.OPEN, 2, 3)]
    assert fills(commands) == [Fill(2, 3, T0 + SECOND)]


def test_a_proof_that_nothing_is_missing_moves_the_time_reached() -> None:
    feed, _ = begun(1)
    feed.on_proof(Proof("X", 1, T0 + 30 * SECOND), 0)
    assert feed.exchange_time_reached_ns == T0 + 30 * SECOND


def test_the_time_reached_never_passes_a_hole_that_is_not_declared() -> None:
    feed, _ = begun(1)
    feed.on_trades(trades([3]), 0)
    feed.on_alive(T0 + 100 * SECOND, 100 * SECOND)
    assert feed.exchange_time_reached_ns == T0 + SECOND
    feed.on_tick(50 * MS)
    feed.on_alive(T0 + 100 * SECOND, 100 * SECOND)
    assert feed.exchange_time_reached_ns == T0 + 95 * SECOND
    feed.on_interrupted(LostCause.DISCONNECT, SECOND)
    feed.on_alive(T0 + 200 * SECOND, 200 * SECOND)
    assert feed.exchange_time_reached_ns == T0 + 95 * SECOND


def test_a_next_attempt_begins_with_a_gap_and_resumes_behind_the_mark() -> None:
    feed, _ = engine(resume_after=10)
    assert gaps(feed.start()) == [(GapState.OPEN, 11, None)]
    commands = feed.on_trades(trades([9, 10, 11]), 0)
    assert emitted(commands) == [11]
    assert gaps(commands) == [(GapState.FILLED, 11, 10)]


def test_an_end_lets_out_what_was_held_and_opens_a_gap() -> None:
    feed, _ = begun(1)
    feed.on_trades(trades([3]), 0)
    commands = feed.stop(MS)
    assert emitted(commands) == [3]
    assert gaps(commands) == [(GapState.OPEN, 2, 2), (GapState.OPEN, 4, None)]
    assert not fills(commands)
    assert feed.state is FeedState.DOWN


def test_trades_dropped_on_the_way_to_the_log_are_fetched_again() -> None:
    feed, _ = begun(*range(1, 10))
    commands = feed.on_dropped(trade(4), trade(6), SECOND)
    assert gaps(commands) == [(GapState.OPEN, 4, 6)]
    filled = feed.on_filled(trades([4, 5, 6]))
    assert emitted(filled) == [4, 5, 6]
    assert gaps(filled)[-1] == (GapState.FILLED, 4, 6)


def test_a_hole_inside_dropped_trades_is_closed_by_its_own_fetch_only() -> None:
    feed, _ = begun(*range(1, 10))
    feed.on_trades(trades([13]), 0)
    (inner,) = fills(feed.on_tick(50 * MS))
    feed.on_trades(trades(range(14, 20)), SECOND)
    (outer,) = fills(feed.on_dropped(trade(8), trade(18), SECOND))
    assert gaps(feed.on_fill_done(inner)) == [(GapState.UNFILLABLE, 10, 12)]
    assert feed.open_holes == 1
    closed = gaps(feed.on_filled(trades(range(8, 19))))
    assert closed == [(GapState.FILLED, 8, 18)]
    assert feed.on_fill_done(outer) == []


def test_a_silent_market_is_looked_at_although_an_older_hole_cannot_be_fetched() -> None:
    feed, _ = begun(1)
    feed.on_trades(trades([3]), 0)
    (hole,) = fills(feed.on_tick(50 * MS))
    feed.on_fill_failed(hole, 50 * MS, is_final=False)
    feed.on_interrupted(LostCause.SILENCE, 60 * MS)
    (look,) = fills(feed.on_tick(60 * MS))
    assert (look.first, look.last) == (4, None)
    assert gaps(feed.on_fill_done(look)) == [(GapState.FILLED, 4, 3)]
    assert feed.open_holes == 1


def test_a_flood_behind_a_hole_is_not_held_beyond_the_bound() -> None:
    feed, _ = engine(held_max=100)
    feed.on_trades(trades([1]), 0)
    commands = feed.on_trades(trades(range(3, 104)), 0)
    assert gaps(commands) == [(GapState.OPEN, 2, 2)]
    assert emitted(commands) == list(range(3, 104))


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[int, list[list[int]], set[int]]:
    """Ids 1..n with losses, repeats and local disorder, cut into messages; and the ids that REST has lost too."""
    count = draw(st.integers(2, 60))
    order = sorted(range(1, count + 1), key=lambda n: n + draw(st.integers(0, 4)))
    order = [n for n in order if n in (1, count) or draw(st.integers(0, 9)) > 1]
    for n in draw(st.lists(st.sampled_from(order), max_size=10)):
        order.insert(draw(st.integers(0, len(order))), n)
    messages, at = [], 0
    while at < len(order):
        size = draw(st.integers(1, 5))
        messages.append(order[at : at + size])
        at += size
    return count, messages, draw(st.sets(st.integers(1, count), max_size=5))


class Run:
    """A feed with an exchange behind it that has lost some ids for good."""

    def __init__(self, count: int, gone: set[int]) -> None:
        self.count, self.gone, self.now = count, gone, 0
        self.feed, _ = engine(resume_after=0)
        self.commands: list[FeedCommand] = []
        self.open_fills: list[Fill] = []
        self.took(self.feed.start())

    def took(self, new: list[FeedCommand]) -> None:
        self.commands.extend(new)
        self.open_fills.extend(fills(new))

    def answer_fill(self) -> None:
        fill = self.open_fills.pop(0)
        last = self.count if fill.last is None else fill.last
        for number in range(fill.first, last + 1):
            if number not in self.gone:
                self.took(self.feed.on_filled(trades([number])))
        self.took(self.feed.on_fill_done(fill))

    def step(self, event: str) -> None:
        if event == "wait":
            self.now += 60 * MS
        elif event == "cut":
            self.took(self.feed.on_interrupted(LostCause.DISCONNECT, self.now))
            self.took(self.feed.on_connected(self.now))
            self.now += 3 * SECOND
        elif event == "fill" and self.open_fills:
            self.answer_fill()
        elif event == "fail" and self.open_fills:
            self.took(self.feed.on_fill_failed(self.open_fills.pop(0), self.now, is_final=False))
        self.took(self.feed.on_tick(self.now))

    def settle(self) -> None:
        self.step("cut")
        for _ in range(20):
            self.now += 40 * SECOND
            self.step("tick")
            while self.open_fills:
                self.answer_fill()


@settings(max_examples=300, deadline=None)
@given(deliveries(), st.lists(st.sampled_from(["tick", "wait", "cut", "fill", "fail"]), max_size=60))
def test_every_id_is_emitted_once_or_said_to_be_unfillable(
    delivery: tuple[int, list[list[int]], set[int]], events: Sequence[str]
) -> None:
    count, messages, gone = delivery
    run, plan = Run(count, gone), iter(events)
    for message in messages:
        run.took(run.feed.on_trades(trades(message), run.now))
        run.step(next(plan, "tick"))
    run.settle()
    seen = emitted(run.commands)
    assert len(seen) == len(set(seen))
    closed = [c for c in run.commands if isinstance(c, EmitGap) and c.state is GapState.UNFILLABLE]
    lost = {n for c in closed if c.first is not None and c.last is not None for n in range(c.first, c.last + 1)}
    assert set(seen) | lost == set(range(1, count + 1))
    assert lost <= gone
    assert not lost & set(seen)
    assert run.feed.open_holes == 0
    live = [t.number for c in run.commands if isinstance(c, Emit) and not c.is_backfill for t in c.trades]
    assert live == sorted(live)


def test_a_next_attempt_says_since_when_trades_may_be_missing() -> None:
    feed, _ = engine(4, resumed_ns=trade(4).time_ns)
    spans = [(c.first, c.last, c.from_ns, c.to_ns) for c in feed.start() if isinstance(c, EmitGap)]
    assert spans == [(5, None, trade(4).time_ns, 0)]
    feed.on_connected(0)
    feed.on_trades(trades([8]), 0)
    spans = [(c.first, c.last, c.from_ns, c.to_ns) for c in feed.on_tick(SECOND) if isinstance(c, EmitGap)]
    assert spans == [(5, 7, trade(4).time_ns, trade(8).time_ns), (5, 4, trade(4).time_ns, trade(8).time_ns)]


def test_a_clock_that_jumps_is_not_believed_at_once() -> None:
    feed, _ = engine()
    feed.on_connected(0)
    feed.on_trades(trades([1]), 0)
    hour, quiet = 3_600 * SECOND, FeedRules().quiet_ns
    feed.on_alive(T0 + 10 * SECOND, 10 * SECOND)
    feed.on_alive(T0 + 11 * SECOND + hour, 11 * SECOND)
    assert feed.exchange_time_reached_ns == T0 + 13 * SECOND - quiet
    feed.on_alive(T0 + 20 * SECOND, 20 * SECOND)
    assert feed.exchange_time_reached_ns == T0 + 20 * SECOND - quiet
    for second in range(21, 21 + 3_700):
        feed.on_alive(T0 + second * SECOND + hour, second * SECOND)
    assert feed.exchange_time_reached_ns == T0 + (20 + 3_700) * SECOND + hour - quiet, "a clock that was set for good"
