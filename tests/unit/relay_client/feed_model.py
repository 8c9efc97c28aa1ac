"""A publisher, a lossy way, and a log around one feed: everything that can go wrong on the way, without sockets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from relay.protocol.v1 import market_pb2, request_pb2
from relay_client import Loss, Tick
from relay_client.engine.live_values import FeedRules, ReplayQuestion
from relay_client.engine.loss_book import FeedCounters
from relay_client.engine.tick_feed import TickFeed
from tests.support.live_world import BTC_TICK, ReplayLog, tick

__all__ = ["FeedModel"]

STEP_NS = 50_000_000


@dataclass
class FeedModel:
    """Drives a :class:`TickFeed` by hand; ``sent`` are the ids published so far, in order."""

    is_strict: bool = False
    start_ns: int | None = None
    rules: FeedRules = field(default_factory=FeedRules)
    is_log_away: bool = False
    page: int = 5_000

    def __post_init__(self) -> None:
        self.out: list[object] = []
        self.counters = FeedCounters()
        self.feed = TickFeed(
            BTC_TICK,
            rules=self.rules,
            out=self.out,
            counters=self.counters,
            is_strict=self.is_strict,
            start_ns=self.start_ns,
        )
        self.log = ReplayLog()
        self.now_ns = 10**12
        self.epoch, self.sequence = 1, 0
        self.sent: list[int] = []
        self.held: list[market_pb2.Tick] = []
        self.questions: list[ReplayQuestion] = []

    @property
    def ticks(self) -> list[Tick]:
        return [item for item in self.out if isinstance(item, Tick)]

    @property
    def delivered(self) -> list[int]:
        return [int(item.trade_id) for item in self.ticks]

    @property
    def losses(self) -> list[Loss]:
        return [item for item in self.out if isinstance(item, Loss)]

    def stamped(self, number: int, *, is_logged: bool = True) -> market_pb2.Tick:
        """Publish a trade; whether it arrives is up to the caller."""
        self.sequence += 1
        message = tick(number)
        message.stamp.publisher_epoch, message.stamp.topic_sequence = self.epoch, self.sequence
        self.sent.append(number)
        if is_logged:
            self.log.append(message)
        return message

    def trade(self, *numbers: int, is_lost: bool = False, is_logged: bool = True) -> None:
        for number in numbers:
            message = self.stamped(number, is_logged=is_logged)
            if not is_lost:
                self.feed.take(message, self.now_ns)

    def backfill(self, *numbers: int) -> None:
        """The ingestor publishes what it has fetched after a hole."""
        for number in numbers:
            message = self.stamped(number, is_logged=False)
            message.backfill = True
            self.log.append(message)
            self.feed.take(message, self.now_ns)

    def named(self, *names: str) -> list[market_pb2.Tick]:
        """Publish trades whose ids are no numbers, a name said twice as a repeat; none arrives by itself."""
        order = list(dict.fromkeys(names))
        messages = [self.stamped(order.index(name) + 1, is_logged=False) for name in names]
        for name, message in zip(names, messages, strict=True):
            message.trade_id = name
            self.log.append(message)
        return messages

    def hand_over(self) -> None:
        """Another publisher takes over."""
        self.epoch, self.sequence = self.epoch + 1, 0

    def beat(self, last: int) -> None:
        self.feed.on_beat(market_pb2.Heartbeat(last_trade_id=str(last)), self.now_ns)

    def gap(self, state: str, first: int, last: int) -> None:
        message = market_pb2.Gap(state=state, from_trade_id=str(first), to_trade_id=str(last))
        self.feed.on_gap(message, self.now_ns)

    def run(self, seconds: float = 0.2) -> None:
        """Let time pass; replays are answered at once."""
        end_ns = self.now_ns + int(seconds * 1000) * 1_000_000
        begun_ns = self.now_ns
        while self.now_ns < end_ns:
            # Fine at first, when there is something to do; then coarse.
            self.now_ns += STEP_NS if self.now_ns - begun_ns < 2_000_000_000 else 40 * STEP_NS
            self.feed.on_tick(self.now_ns)
            while (question := self.feed.next_question(self.now_ns)) is not None:
                self.questions.append(question)
                self._answer(question)

    def _answer(self, question: ReplayQuestion) -> None:
        if self.is_log_away:
            self.feed.on_failed(question, "the log is away", self.now_ns, is_final=False)
            return
        answer = self.log.answer(replace(question, limit=self.page).to_wire())
        messages = [market_pb2.Tick.FromString(record[2:]) for record in answer.records]
        is_more = answer.status == request_pb2.ReplayResponse.PARTIAL
        self.feed.on_records(question, messages, answer.next_from if is_more else 0, self.now_ns)
