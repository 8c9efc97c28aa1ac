"""Firings as they come: repeats, jumps, cuts, replays that fail or are overtaken."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pytest

from relay.protocol.topics import TriggerTopic
from relay.protocol.v1 import trigger_pb2
from relay_client.engine.live_values import ReplayQuestion
from relay_client.engine.trigger_feed import MatchedEvent, TriggerEvent, TriggerFeed, TriggerGroup, TriggerLoss

ID = str(uuid.UUID(int=1))
TOPIC = TriggerTopic(ID)
NAME = f"CEP:{ID}".encode()
SECOND = 10**9
T0 = 1_700_000_000 * SECOND
Event = trigger_pb2.CEPTriggerEvent


def firing(n: int, *, sequence: int = 0, epoch: int = 7) -> trigger_pb2.CEPTriggerEvent:
    event = Event(trigger_id=ID, match_id=str(n), fired_at=T0 + n * SECOND)
    if sequence:
        event.stamp.publisher_epoch, event.stamp.topic_sequence = epoch, sequence
    return event


class Follower:
    """A group with one trigger, in force."""

    def __init__(self, *, start_ns: int | None = None, began_ns: int = T0) -> None:
        self.group, self.now_ns = TriggerGroup(began_ns=began_ns), 0
        assert self.group.add(TOPIC, start_ns=start_ns, now_ns=0) == [NAME]
        self.group.on_in_force(0, was_cut=False)

    def take(self, n: int, **stamp: int) -> None:
        self.group.handlers[NAME](firing(n, **stamp), self.now_ns)

    def question(self, *, after_s: float = 0) -> tuple[TriggerFeed, ReplayQuestion] | None:
        self.now_ns += int(after_s * SECOND)
        return next(iter(self.group.questions(self.now_ns)), None)

    def asked(self, *, after_s: float = 0) -> tuple[TriggerFeed, ReplayQuestion]:
        found = self.question(after_s=after_s)
        assert found is not None
        return found

    def got(self) -> list[str]:
        return [item.match_id for item in self.group.out if isinstance(item, TriggerEvent)]


def test_a_firing_becomes_a_value_with_exact_numbers() -> None:
    message = firing(1)
    message.ticker = "BTC/USDT.BINANCE"
    message.matched.add(step=0, timestamp=T0, price="0.10", volume="1e-7", ticker="BTC/USDT.BINANCE", trade_id="5")
    message.matched.add(step=1, timestamp=T0 + 1, ticker="BTC/USDT.BINANCE", period_seconds=60)
    event = TriggerEvent.of(message, is_replayed=True)
    assert event.matched == (
        MatchedEvent(0, "BTC/USDT.BINANCE", T0, Decimal("0.10"), Decimal("1e-7"), "5", None),
        MatchedEvent(1, "BTC/USDT.BINANCE", T0 + 1, None, None, None, 60),
    )
    assert (event.fired_at.timestamp(), event.matched[0].time.timestamp()) == (1_700_000_001, 1_700_000_000)
    message.matched[0].price = "much"
    with pytest.raises(ArithmeticError):
        TriggerEvent.of(message, is_replayed=True)


def test_repeats_and_firings_of_others_are_dropped() -> None:
    follower = Follower()
    for n, sequence in ((1, 1), (1, 2), (2, 3), (1, 4), (2, 5)):
        follower.take(n, sequence=sequence)
    follower.group.handlers[NAME](Event(trigger_id="another", match_id="9"), 0)
    assert (follower.got(), follower.question()) == (["1", "2"], None)


@pytest.mark.parametrize("stamp", [{"sequence": 3}, {"sequence": 1, "epoch": 8}])
def test_a_jump_or_another_publisher_asks_the_log_from_a_little_before(stamp: dict[str, int]) -> None:
    follower = Follower(began_ns=0)
    follower.take(1, sequence=1)
    follower.take(9, **stamp)
    feed, question = follower.asked()
    assert (question.topic, question.by, question.first) == (f"CEP:{ID}", "time", T0 - 119 * SECOND)
    assert follower.question() is None, "one at a time"
    feed.on_records(question, [firing(1), firing(5), firing(9)], 0, 0)
    assert (follower.got(), follower.question()) == (["1", "9", "5"], None)
    assert follower.group.out[-1].is_replayed


def test_a_cut_asks_from_the_begin_when_nothing_came_and_waits_for_the_barrier() -> None:
    follower = Follower()
    follower.group.on_relay_away()
    assert follower.question() is None
    follower.group.on_in_force(0, was_cut=True)
    _, question = follower.asked()
    assert question.first == T0 - 120 * SECOND


def test_a_start_asks_page_by_page_and_a_cut_meanwhile_begins_anew() -> None:
    follower = Follower(start_ns=5)
    feed, first = follower.asked()
    feed.on_records(first, [firing(1)], 77, 0)
    feed, second = follower.asked()
    assert (second.first, second.cursor) == (5, 77)
    follower.group.on_in_force(0, was_cut=True)
    feed, third = follower.asked()
    assert (third.first, third.cursor) == (5, 0)
    feed.on_records(second, [firing(2)], 99, 0)
    feed.on_records(third, [firing(1), firing(2), firing(3)], 0, 0)
    assert (follower.got(), follower.question()) == (["1", "2", "3"], None)


def test_a_replay_that_fails_is_asked_again_later_and_told_once() -> None:
    follower = Follower(start_ns=0)
    for _ in range(12):
        feed, question = follower.asked(after_s=10)
        assert question.first == 1
        feed.on_failed(question, "the log is away", follower.now_ns, is_final=False)
        assert follower.question() is None
    assert follower.group.out == [TriggerLoss(ID, 1, "the log is away")]
    feed, question = follower.asked(after_s=10)
    feed.on_records(question, [firing(1)], 0, follower.now_ns)
    assert (follower.got(), follower.question(after_s=60)) == (["1"], None)


def test_a_replay_that_is_refused_is_told_at_once_and_not_asked_again() -> None:
    follower = Follower(start_ns=5)
    feed, question = follower.asked()
    feed.on_failed(question, "no such topic", 0, is_final=True)
    feed.on_failed(question, "an answer that came twice", 0, is_final=True)
    assert follower.group.out == [TriggerLoss(ID, 5, "no such topic")]
    assert follower.question(after_s=60) is None
    follower.take(1, sequence=1)
    assert follower.got() == ["1"]


def test_what_an_earlier_subscription_has_comes_first_and_once() -> None:
    before = [TriggerEvent.of(firing(1), is_replayed=False), TriggerLoss(ID, 3, "why")]
    group = TriggerGroup(began_ns=T0, heirs={ID: lambda: before})
    group.add(TOPIC, start_ns=None, now_ns=0)
    group.handlers[NAME](firing(1, sequence=1), 0)
    group.handlers[NAME](firing(2, sequence=2), 0)
    assert group.out[:2] == before
    assert [e.match_id for e in group.out if isinstance(e, TriggerEvent)] == ["1", "2"]
    assert group.remove(TOPIC) == [NAME]
    assert group.remove(TOPIC) == []
    assert group.handlers == {}


def test_the_memory_of_firings_is_bounded() -> None:
    follower = Follower()
    for n in range(10_002):
        follower.take(n)
    follower.take(0)
    follower.take(10_001)
    assert len(follower.got()) == 10_003
