"""Bars as they come: each revision once, and what was lost is asked for again by the time it was made."""

from __future__ import annotations

import pytest

from relay.protocol.topics import parse_market_topic
from relay.protocol.v1 import market_pb2
from relay_client.engine.bar_feed import BarFeed
from relay_client.engine.feed_group import FeedGroup
from relay_client.engine.live_values import FeedRules, Loss, Repaired, ReplayQuestion
from relay_client.history import Bar

TOPIC = "BTC/USDT.BINANCE|ohlc:1"
SECOND = 10**9
T0 = 1_700_000_000 * SECOND


def bar(n: int, *, revision: int = 0, final: bool = True, sequence: int = 0, epoch: int = 7) -> market_pb2.OHLC:
    message = market_pb2.OHLC(
        ticker="BTC/USDT.BINANCE", timestamp=T0 + n * SECOND, period_seconds=1, revision=revision, is_final=final,
        open=1, high=2, low=1, close=2, volume="1", price_decimals=0,
    )  # fmt: skip
    message.stamp.published_at = T0 + (n + 1) * SECOND
    if sequence:
        message.stamp.publisher_epoch, message.stamp.topic_sequence = epoch, sequence
    return message


class Follower:
    """A group with one topic of bars, in force."""

    def __init__(self, **rules: object) -> None:
        self.group, self.now_ns = FeedGroup(FeedRules(**rules)), 0
        self.group.add(parse_market_topic(TOPIC), start_ns=None, now_ns=0)
        self.group.on_in_force(0, was_cut=False)

    def take(self, n: int, **fields: object) -> None:
        self.group.handlers[TOPIC.encode()](bar(n, **fields), self.now_ns)

    def asked(self) -> tuple[BarFeed, ReplayQuestion]:
        found = [(feed, q) for feed, q in self.group.questions(self.now_ns) if isinstance(feed, BarFeed)]
        assert len(found) == 1
        return found[0]

    def is_asking(self) -> bool:
        return any(isinstance(feed, BarFeed) for feed, _ in self.group.questions(self.now_ns))

    def answer(self, *found: market_pb2.OHLC, next_from: int = 0) -> None:
        feed, question = self.asked()
        feed.on_records(question, found, next_from, self.now_ns)

    def got(self) -> list[tuple[int, int, bool]]:
        bars = [item for item in self.group.out if isinstance(item, Bar)]
        return [(int(b.start.timestamp()) - T0 // SECOND, b.revision, b.is_final) for b in bars]

    def events(self, kind: type) -> list:
        return [item for item in self.group.out if isinstance(item, kind)]


def test_repeats_and_running_bars_behind_their_final_one_are_dropped_and_revisions_are_not() -> None:
    follower = Follower()
    for sequence, (n, revision, final) in enumerate(
        [(1, 0, False), (1, 0, True), (1, 0, True), (1, 0, False), (1, 1, False), (1, 1, True), (1, 0, True)], 1
    ):
        follower.take(n, revision=revision, final=final, sequence=sequence)
    assert follower.got() == [(1, 0, False), (1, 0, True), (1, 1, False), (1, 1, True)]
    assert follower.group.counters()[TOPIC].repeated == 3
    assert not follower.is_asking()


@pytest.mark.parametrize("stamp", [{"sequence": 6}, {"sequence": 1, "epoch": 8}])
def test_final_bars_behind_a_jump_or_of_a_publisher_that_died_come_out_of_the_log(stamp: dict[str, int]) -> None:
    follower = Follower()
    follower.take(1, sequence=1)
    follower.take(2, sequence=2)
    follower.take(6, **stamp)
    feed, question = follower.asked()
    assert (question.topic, question.by, question.cursor) == (TOPIC, "time", 0)
    assert question.first < T0 + 3 * SECOND
    # The log's own stamps say where a bar was decided; taken for the publisher's they would look like losses.
    found = [bar(0), bar(1), bar(2), bar(2, revision=1), bar(3, sequence=900), bar(4, sequence=77), bar(6)]
    feed.on_records(question, found[:5], 555, follower.now_ns)
    feed, question = follower.asked()
    assert question.cursor == 555
    feed.on_records(question, found[5:], 0, follower.now_ns)
    assert follower.got() == [(1, 0, True), (2, 0, True), (6, 0, True), (2, 1, True), (3, 0, True), (4, 0, True)]
    counters = follower.group.counters()[TOPIC]
    assert (counters.received, counters.repaired, counters.lost) == (6, 3, 0)


def test_after_a_cut_the_log_is_asked_and_what_came_is_told_once() -> None:
    follower = Follower()
    follower.take(1, sequence=1)
    follower.group.on_relay_away()
    follower.group.on_in_force(0, was_cut=True)
    follower.answer(bar(1), bar(2), bar(3))
    assert follower.got() == [(1, 0, True), (2, 0, True), (3, 0, True)]
    assert follower.events(Repaired) == [Repaired(TOPIC, 2)]
    assert not follower.is_asking()


def test_a_log_that_refuses_is_reported_as_loss_and_a_feed_without_repair_reports_at_once() -> None:
    follower = Follower()
    follower.take(1, sequence=1)
    follower.take(5, sequence=5)
    feed, question = follower.asked()
    feed.on_failed(question, "no such topic", follower.now_ns, is_final=True)
    assert [(e.count, e.reason) for e in follower.events(Loss)] == [(3, "no such topic")]
    assert follower.group.counters()[TOPIC].lost == 3
    assert not follower.is_asking()

    unrepaired = Follower(is_repairing=False)
    unrepaired.take(1, sequence=1)
    unrepaired.take(3, sequence=3)
    assert [e.count for e in unrepaired.events(Loss)] == [1]
    assert not unrepaired.is_asking()


def test_a_log_that_is_away_is_asked_again_and_told_after_a_while() -> None:
    follower = Follower()
    follower.take(1, sequence=1)
    follower.take(3, sequence=3)
    while not follower.events(Loss):
        feed, question = follower.asked()
        feed.on_failed(question, "away", follower.now_ns, is_final=False)
        assert not follower.is_asking(), "it backs off"
        follower.now_ns += 11 * SECOND
        assert follower.now_ns < 60 * SECOND
    follower.answer(bar(2))
    assert follower.got()[-1] == (2, 0, True)


def test_what_is_lost_while_the_publishers_clock_is_set_back_is_asked_for_from_the_earlier_time() -> None:
    follower = Follower()
    ahead = bar(1, sequence=1)
    ahead.stamp.published_at += 3_600 * SECOND
    follower.group.handlers[TOPIC.encode()](ahead, follower.now_ns)
    follower.take(4, sequence=4)
    _, question = follower.asked()
    assert question.first < T0 + 2 * SECOND
    again = Follower()
    again.group.handlers[TOPIC.encode()](ahead, again.now_ns)
    again.take(2, sequence=2)
    again.take(5, sequence=5)
    _, question = again.asked()
    assert question.first < T0 + 3 * SECOND, "one message with a clock that ran ahead is not remembered for ever"


@pytest.mark.parametrize("is_repairing", [True, False])
def test_what_may_have_been_lost_behind_a_cut_is_told_although_nobody_can_count_it(is_repairing: bool) -> None:
    follower = Follower(is_repairing=is_repairing)
    follower.take(1, sequence=1)
    follower.group.on_relay_away()
    follower.group.on_in_force(0, was_cut=True)
    if is_repairing:
        feed, question = follower.asked()
        feed.on_failed(question, "no such topic", follower.now_ns, is_final=True)
    assert [(e.count, e.topic) for e in follower.events(Loss)] == [(0, TOPIC)]
