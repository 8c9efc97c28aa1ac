"""The feed of a topic without trade ids: gaps, bars, markets. Loss is found by stamp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relay_client.engine.live_values import FeedRules, ReplayQuestion
from relay_client.engine.loss_book import FeedCounters, LossBook
from relay_client.engine.sequences import Arrival, SequenceLedger

__all__ = ["PlainFeed"]


class PlainFeed:
    """State of one topic of one subscription.

    Args:
        topic: exact.
        rules: bounds; a topic that cannot be replayed comes with ``is_repairing`` off.
        out: events are appended.
        counters: shared by the subscription's feeds.
        deliver: called with each message that is no repeat, and the time.
    """

    def __init__(
        self,
        topic: str,
        *,
        rules: FeedRules,
        out: list[object],
        counters: FeedCounters,
        deliver: Callable[[Any, int], None],
    ) -> None:
        self.topic, self._deliver, self._counters = topic, deliver, counters
        self._ledger = SequenceLedger()
        self._book = LossBook(topic, rules=rules, ledger=self._ledger, ids=None, counters=counters, out=out)

    @property
    def is_busy(self) -> bool:
        """Whether ticks of the clock matter now."""
        return bool(self._book)

    def take(self, message: Any, now_ns: int) -> None:
        """Take a published message, or one out of a replay."""
        epoch, sequence = message.stamp.publisher_epoch, message.stamp.topic_sequence
        if epoch:
            before, known = self._ledger.current, self._ledger.stream(epoch)
            first = known.next if known is not None else 0
            arrival = self._ledger.take(epoch, sequence)
            if arrival is Arrival.REPEAT:
                self._counters.repeated += 1
                return
            if arrival is Arrival.FOUND:
                self._counters.lost -= 1
            elif arrival is Arrival.JUMP:
                self._book.open_sequences(epoch, (first, sequence - 1), between=(None, None), now_ns=now_ns)
            elif arrival is Arrival.NEW_EPOCH and before is not None:
                self._book.probe(before.epoch, before.next, now_ns=now_ns)
        self._deliver(message, now_ns)

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscription is in force (again)."""
        if was_cut:
            self._book.on_resync(now_ns)
        if was_cut and self._ledger.current is not None:
            self._book.probe(self._ledger.current.epoch, self._ledger.current.next, now_ns=now_ns)

    def on_relay_away(self) -> None:
        """The relay is silent."""
        self._book.is_away = True

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return a replay to ask for now."""
        return self._book.next_question(now_ns)

    def on_records(self, question: ReplayQuestion, messages: Sequence[Any], next_from: int, now_ns: int) -> None:
        """Take the answer to a question."""
        del question
        for message in messages:
            self.take(message, now_ns)
        self._book.on_answer(next_from, now_ns)

    def on_failed(self, question: ReplayQuestion, text: str, now_ns: int, *, is_final: bool) -> None:
        """A question was refused for good, or not answered in time."""
        del question
        self._book.on_failed(text, now_ns, is_final=is_final)

    def on_tick(self, now_ns: int) -> None:
        """Do what is due."""
        self._book.sweep(now_ns)
