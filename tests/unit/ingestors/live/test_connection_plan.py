"""Which tickers share which connection, and what happens when connections end."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import (
    BadTrade,
    Connected,
    Disconnected,
    Leave,
    LostCause,
    Muted,
    Proof,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.engine.outcomes import Outcome, OutcomeKind
from tests.support.live import SECOND_NS
from tests.unit.ingestors.live.plans import LIMITS, PlannedExchange, market, trades

A0, A1 = "A0/USD.TEST", "A1/USD.TEST"


def _connected(*numbers: int, **changes: object) -> tuple[PlannedExchange, int]:
    """Return a plan with markets that are subscribed and confirmed on one connection."""
    exchange = PlannedExchange(**changes)  # type: ignore[arg-type]
    exchange.add(*numbers)
    exchange.tick()
    line = exchange.open()
    exchange.say(line, *(Subscribed(f"A{number}/USD.TEST") for number in numbers))
    return exchange, line


def test_markets_that_are_added_together_share_one_connection_and_one_message() -> None:
    exchange = PlannedExchange()
    exchange.add(0, 1, 2)
    exchange.tick()
    line = exchange.open()
    assert exchange.texts(line) == [b"+A0/USD.TEST A1/USD.TEST A2/USD.TEST"]
    assert exchange.told == []
    exchange.say(line, Subscribed(A0), Subscribed(A1))
    assert exchange.told == [Connected(A0), Connected(A1)]
    exchange.say(line, Subscribed(A0))
    assert exchange.told == [Connected(A0), Connected(A1)]


def test_sixty_markets_need_two_connections_of_fifty() -> None:
    exchange = PlannedExchange()
    exchange.add(*range(60))
    exchange.tick()
    counts = [exchange.texts(exchange.open())[0].count(b"USD") for _ in range(2)]
    assert (sorted(counts), exchange.opening) == ([10, 50], {})


def test_the_rules_may_allow_fewer_markets_than_the_exchange() -> None:
    exchange = PlannedExchange(rules=PlanRules(tickers_max=20))
    exchange.add(*range(60))
    exchange.tick()
    assert len(exchange.opening) == 3


def test_a_market_that_is_added_later_joins_an_open_connection_once() -> None:
    exchange, line = _connected(0)
    exchange.add(1, 1, 0)
    exchange.tick()
    assert exchange.texts(line) == [b"+A0/USD.TEST", b"+A1/USD.TEST"]
    assert exchange.opening == {}


def test_a_removed_market_is_unsubscribed_and_the_last_one_closes_the_connection() -> None:
    exchange, line = _connected(0, 1)
    exchange.do(exchange.plan.remove(A0))
    exchange.tick()
    assert exchange.texts(line)[1:] == [b"-A0/USD.TEST"]
    exchange.say(line, trades(A0, 5))
    assert exchange.told == [Connected(A0), Connected(A1)]
    exchange.do(exchange.plan.remove(A1))
    assert exchange.closed == [line]
    exchange.do(exchange.plan.remove(A1))
    exchange.tick(1)
    assert exchange.opening == {}


def test_a_market_that_is_removed_before_it_was_subscribed_is_never_asked_for() -> None:
    exchange, line = _connected(0)
    exchange.add(1)
    exchange.do(exchange.plan.remove(A1))
    exchange.tick()
    assert exchange.texts(line) == [b"+A0/USD.TEST"]


def test_removing_the_only_market_while_connecting_stops_connecting() -> None:
    exchange = PlannedExchange()
    exchange.add(0)
    exchange.tick()
    (line,) = exchange.opening
    exchange.do(exchange.plan.remove(A0))
    assert exchange.closed == [line]
    exchange.do(exchange.plan.on_opened(line, 0, exchange.now_ns))
    assert exchange.sent == {}


def test_no_connection_sends_more_messages_a_second_than_the_exchange_allows() -> None:
    exchange, line = _connected(0)
    for number in range(1, 40):
        exchange.add(number)
        exchange.tick(0.1)
    times = [at for at, _ in exchange.sent[line]]
    assert len(times) > 10
    for begin in times:
        assert sum(begin <= at < begin + SECOND_NS for at in times) <= LIMITS.messages_per_second_max


def test_connections_per_window_are_bounded() -> None:
    exchange = PlannedExchange(limits=replace(LIMITS, tickers_max=1, connects_max=3))
    exchange.add(*range(5))
    exchange.tick(30)
    assert len(exchange.opening) == 3
    exchange.tick(31)
    assert len(exchange.opening) == 5


def test_a_lost_connection_is_told_and_made_again_at_once() -> None:
    exchange, line = _connected(0, 1)
    exchange.lose(line)
    assert exchange.told[2:] == [Disconnected(A0, LostCause.DISCONNECT), Disconnected(A1, LostCause.DISCONNECT)]
    exchange.tick()
    again = exchange.open()
    exchange.say(again, Subscribed(A0), Subscribed(A1))
    assert exchange.told[4:] == [Connected(A0), Connected(A1)]
    exchange.say(line, trades(A0, 1))
    exchange.lose(line)
    assert len(exchange.told) == 6


def test_waits_between_attempts_double_up_to_a_minute_case_56() -> None:
    """Case 56: no reconnect storm."""
    exchange = PlannedExchange(limits=replace(LIMITS, connects_max=1_000), jitter=lambda n: n - 1)
    exchange.add(0)
    starts = []
    for _ in range(12):
        while not exchange.opening:
            exchange.tick()
        ((line, at),) = exchange.opening.items()
        starts.append(at)
        exchange.opening.clear()
        exchange.do(exchange.plan.on_open_failed(line, Outcome(OutcomeKind.TRANSIENT, "no"), exchange.now_ns))
    waits = [round((b - a) / SECOND_NS) for a, b in itertools.pairwise(starts)]
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_half_of_each_wait_is_drawn_so_that_many_do_not_return_together() -> None:
    waits = set()
    for drawn in (0, 1, 2, 3):
        exchange = PlannedExchange(jitter=lambda n, drawn=drawn: n * drawn // 4)
        exchange.add(0)
        for _ in range(4):
            while not exchange.opening:
                exchange.tick()
            ((line, at),) = exchange.opening.items()
            exchange.opening.clear()
            exchange.do(exchange.plan.on_open_failed(line, Outcome(OutcomeKind.TRANSIENT, "no"), exchange.now_ns))
        waits.add(at)
    assert len(waits) == 4


def test_a_connection_that_lived_a_minute_begins_again_with_a_fast_retry() -> None:
    exchange, line = _connected(0)
    for _ in range(3):
        exchange.lose(line)
        while not exchange.opening:
            exchange.tick()
        line = exchange.open()
    exchange.tick(61)
    exchange.lose(line)
    exchange.tick()
    assert len(exchange.opening) == 1


@pytest.mark.parametrize("kind", [OutcomeKind.BANNED, OutcomeKind.THROTTLED, OutcomeKind.MAINTENANCE])
def test_a_refused_address_makes_all_connections_wait_and_then_go_one_by_one(kind: OutcomeKind) -> None:
    exchange = PlannedExchange(limits=replace(LIMITS, tickers_max=1))
    exchange.add(0, 1, 2)
    exchange.tick()
    first, *others = exchange.opening
    exchange.opening.clear()
    for line in (first, *others):
        exchange.do(exchange.plan.on_open_failed(line, Outcome(kind, "no", 120 * SECOND_NS), exchange.now_ns))
    refused_ns = exchange.now_ns
    exchange.tick(119)
    assert exchange.opening == {}
    exchange.tick(2)
    assert len(exchange.opening) == 1
    assert exchange.now_ns - refused_ns >= 120 * SECOND_NS
    exchange.open()
    exchange.tick()
    assert len(exchange.opening) == 2


def test_a_refusal_without_a_time_pauses_longer_each_time() -> None:
    exchange = PlannedExchange(jitter=lambda n: n - 1)
    exchange.add(0)
    starts = []
    for _ in range(7):
        while not exchange.opening:
            exchange.tick()
        ((line, at),) = exchange.opening.items()
        starts.append(at)
        exchange.opening.clear()
        exchange.do(exchange.plan.on_open_failed(line, Outcome(OutcomeKind.THROTTLED, "429"), exchange.now_ns))
    waits = [round((b - a) / SECOND_NS) for a, b in itertools.pairwise(starts)]
    assert waits == [5, 10, 20, 40, 60, 60]


def test_maintenance_is_waited_for() -> None:
    exchange, line = _connected(0)
    exchange.say(line, Leave(LostCause.DISCONNECT, "maintenance", wait_ns=30 * SECOND_NS))
    assert exchange.closed == [line]
    assert exchange.told[-1] == Disconnected(A0, LostCause.DISCONNECT)
    exchange.tick(29)
    assert exchange.opening == {}
    exchange.tick(2)
    assert len(exchange.opening) == 1


def test_lost_messages_close_the_connection_and_say_why_case_63() -> None:
    """Case 63: a jump of the sequence is told as such and resynced."""
    exchange, line = _connected(0)
    exchange.say(line, trades(A0, 7), Leave(LostCause.SEQUENCE, "1 message is missing"))
    assert isinstance(exchange.told[-2], Trades)
    assert exchange.told[-1] == Disconnected(A0, LostCause.SEQUENCE)
    assert exchange.closed == [line]
    exchange.tick()
    assert len(exchange.opening) == 1


def test_a_planned_stop_is_handed_over_without_a_word_to_the_tickers() -> None:
    exchange, old = _connected(0, 1)
    exchange.say(old, Leave(LostCause.DISCONNECT, "planned", is_planned=True))
    exchange.tick()
    new = exchange.open()
    exchange.say(new, Subscribed(A0))
    exchange.tick(5)
    assert exchange.closed == []
    exchange.say(old, trades(A1, 3))
    exchange.say(new, Subscribed(A1))
    exchange.tick(1)
    assert exchange.closed == []
    exchange.say(old, trades(A1, 4))
    exchange.tick(2)
    assert exchange.closed == [old]
    assert [e for e in exchange.told if not isinstance(e, Trades)] == [Connected(A0), Connected(A1)]
    assert sum(isinstance(e, Trades) for e in exchange.told) == 2


def test_a_connection_is_replaced_before_its_life_ends() -> None:
    exchange, old = _connected(0, limits=replace(LIMITS, lifetime_ns=24 * 3_600 * SECOND_NS), step_ns=SECOND_NS)
    exchange.tick(24 * 3_600 - 602)
    assert exchange.opening == {}
    exchange.tick(3)
    new = exchange.open()
    exchange.say(new, Subscribed(A0))
    exchange.tick(4)
    assert exchange.closed == [old]
    assert exchange.told == [Connected(A0)]


def test_when_the_old_one_ends_first_only_what_is_not_confirmed_yet_is_disconnected() -> None:
    exchange, old = _connected(0, 1)
    exchange.say(old, Leave(LostCause.DISCONNECT, "planned", is_planned=True))
    exchange.tick()
    new = exchange.open()
    exchange.say(new, Subscribed(A0))
    exchange.lose(old)
    assert exchange.told[2:] == [Disconnected(A1, LostCause.DISCONNECT)]
    exchange.say(new, Subscribed(A1))
    assert exchange.told[3:] == [Connected(A1)]
    exchange.tick(5)
    assert exchange.live() == [new]
    assert exchange.opening == {}


def test_a_successor_that_fails_is_tried_again_while_the_old_one_serves() -> None:
    exchange, old = _connected(0)
    exchange.say(old, Leave(LostCause.DISCONNECT, "planned", is_planned=True))
    exchange.tick()
    exchange.do(exchange.plan.on_open_failed(exchange.opening.popitem()[0], Outcome(OutcomeKind.TRANSIENT), 0))
    exchange.tick(1)
    new = exchange.open()
    exchange.lose(new)
    exchange.tick(3)
    last = exchange.open()
    exchange.say(last, Subscribed(A0))
    exchange.tick(3)
    assert exchange.live() == [last]
    assert exchange.told == [Connected(A0)]


def test_markets_that_come_and_go_during_a_hand_over_follow_it() -> None:
    exchange, old = _connected(0, 1)
    exchange.say(old, Leave(LostCause.DISCONNECT, "planned", is_planned=True))
    exchange.tick()
    exchange.add(2)
    new = exchange.open()
    exchange.do(exchange.plan.remove(A1))
    exchange.say(new, Subscribed(A0))
    exchange.tick(3)
    assert exchange.live() == [old, new]
    exchange.say(new, Subscribed("A2/USD.TEST"))
    exchange.tick(3)
    assert exchange.live() == [new]
    assert exchange.told == [Connected(A0), Connected(A1), Connected("A2/USD.TEST")]


def test_a_silent_connection_is_pinged_and_then_given_up_case_56() -> None:
    """Case 56: liveness by any frame, not by data."""
    exchange, line = _connected(0)
    exchange.tick(60)
    assert (exchange.pings, exchange.closed) == ([], [])
    exchange.tick(6, alive=False)
    assert (exchange.pings, exchange.closed) == ([line], [])
    exchange.tick(0.1)
    exchange.tick(9, alive=False)
    assert (exchange.pings, exchange.closed) == ([line, line], [])
    exchange.tick(2, alive=False)
    assert exchange.closed == [line]
    assert exchange.told[-1] == Disconnected(A0, LostCause.SILENCE)
    exchange.tick()
    assert len(exchange.opening) == 1


def test_a_quiet_market_is_not_mute_case_56() -> None:
    """Case 56: quiet sparse channels are not stale, also when the exchange proves that nothing was traded."""
    exchange, line = _connected(0)
    exchange.say(line, trades(A0, 7))
    for _ in range(100):
        exchange.tick(1)
        exchange.say(line, Proof(A0, 7, exchange.now_ns))
    assert exchange.looks == []
    assert not [event for event in exchange.told if isinstance(event, Muted | Disconnected)]


def test_a_market_is_mute_when_newer_trades_exist_and_is_subscribed_again_case_57() -> None:
    """Case 57: subscribed, but never delivering; told, subscribed again, then moved to a new connection."""
    exchange, line = _connected(0, 1)
    exchange.say(line, trades(A0, 7), Proof(A0, 9, 0))
    exchange.tick(9)
    assert Muted(A0) not in exchange.told
    exchange.tick(2)
    assert exchange.told[-1] == Muted(A0)
    assert exchange.texts(line)[1:] == [b"-A0/USD.TEST", b"+A0/USD.TEST"]
    assert exchange.plan.alive_ns(A0) == 0
    assert exchange.plan.alive_ns(A1) > 0
    exchange.say(line, Subscribed(A0))
    assert exchange.told[-1] == Connected(A0)
    exchange.tick(25)
    assert [event for event in exchange.told if isinstance(event, Muted)] == [Muted(A0), Muted(A0)]
    new = exchange.open()
    exchange.say(new, Subscribed(A1), trades(A0, 8, 9, 10))
    exchange.tick(3)
    assert exchange.live() == [new]
    assert exchange.told[-2] == Connected(A0)
    exchange.tick(60)
    assert len([event for event in exchange.told if isinstance(event, Muted)]) == 2


def test_trades_that_arrive_late_but_arrive_make_no_market_mute() -> None:
    exchange, line = _connected(0)
    exchange.say(line, trades(A0, 1))
    for number in range(2, 60):
        exchange.say(line, Proof(A0, number + 3, 0))
        exchange.tick(1)
        exchange.say(line, trades(A0, number))
    assert not [event for event in exchange.told if isinstance(event, Muted)]


def test_a_subscription_that_is_never_confirmed_is_mute_case_57() -> None:
    """Case 57."""
    exchange = PlannedExchange()
    exchange.add(0)
    exchange.tick()
    exchange.open()
    exchange.tick(9)
    assert exchange.told == []
    exchange.tick(2)
    assert exchange.told == [Muted(A0)]


def test_trades_confirm_a_subscription_too() -> None:
    exchange = PlannedExchange()
    exchange.add(0)
    exchange.tick()
    line = exchange.open()
    exchange.say(line, trades(A0, 1, is_snapshot=True))
    assert exchange.told == [Connected(A0), trades(A0, 1, is_snapshot=True)]


def test_a_silent_market_without_proof_is_looked_after_less_and_less_often() -> None:
    exchange, line = _connected(0)
    exchange.say(line, trades(A0, 7))
    begin_ns = exchange.now_ns
    exchange.tick(1_000)
    asked = [round((at - begin_ns) / SECOND_NS) for at, _ in exchange.looks]
    assert len(asked) == 4
    assert all(abs(at - expected) <= 2 for at, expected in zip(asked, (60, 180, 420, 900), strict=True))
    exchange.plan.on_look(A0, 7, exchange.now_ns)
    exchange.plan.on_look(A0, None, exchange.now_ns)
    exchange.tick(20)
    assert not [event for event in exchange.told if isinstance(event, Muted)]
    exchange.plan.on_look(A0, 8, exchange.now_ns)
    exchange.tick(11)
    assert exchange.told[-1] == Muted(A0)


def test_without_any_trade_two_looks_that_differ_are_needed() -> None:
    exchange, _ = _connected(0)
    exchange.plan.on_look(A0, 7, exchange.now_ns)
    exchange.tick(30)
    assert exchange.told == [Connected(A0)]
    exchange.plan.on_look(A0, 8, exchange.now_ns)
    exchange.tick(11)
    assert exchange.told[-1] == Muted(A0)


def test_a_refused_market_is_told_and_dropped() -> None:
    exchange, line = _connected(0)
    exchange.add(1)
    exchange.tick()
    refused = Refused(A1, "UNKNOWN_SYMBOL", "no")
    exchange.say(line, refused)
    assert exchange.told[-1] == refused
    exchange.lose(line)
    exchange.tick()
    assert exchange.texts(exchange.open()) == [b"+A0/USD.TEST"]


def test_the_last_market_refused_closes_the_connection_in_the_middle_of_a_message() -> None:
    exchange = PlannedExchange()
    exchange.add(0)
    exchange.tick()
    line = exchange.open()
    exchange.say(line, Refused(A0, "UNKNOWN_SYMBOL", "no"), Subscribed(A0), trades(A0, 1), Proof(A0, 1, 0))
    assert [type(event) for event in exchange.told] == [Refused]
    assert exchange.closed == [line]


def test_nothing_behind_the_end_of_a_connection_counts() -> None:
    exchange, line = _connected(0)
    exchange.say(line, Leave(LostCause.SEQUENCE, "lost"), Subscribed(A0), trades(A0, 1))
    assert exchange.told == [Connected(A0), Disconnected(A0, LostCause.SEQUENCE)]
    assert exchange.plan.alive_ns(A0) == 0


def test_an_unreadable_message_is_told_without_a_ticker() -> None:
    exchange, line = _connected(0)
    exchange.say(line, BadTrade("", "no JSON"), BadTrade("X/Y.TEST", "foreign"))
    assert exchange.told == [Connected(A0), BadTrade("", "no JSON")]


def test_events_of_foreign_tickers_make_nothing_of_theirs() -> None:
    exchange, line = _connected(0)
    exchange.say(line, Subscribed("X/Y.TEST"), Refused("X/Y.TEST", "UNKNOWN_SYMBOL", "no"), trades("X/Y.TEST", 1))
    assert exchange.told == [Connected(A0)]


def test_closing_ends_everything() -> None:
    exchange, line = _connected(0)
    exchange.do(exchange.plan.close())
    assert exchange.closed == [line]
    exchange.tick(120)
    assert exchange.opening == {}
    assert exchange.plan.alive_ns(A0) == 0
    assert str(market().ticker) == A0
