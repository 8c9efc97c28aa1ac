"""The feed of a ticker's bars: each revision of a final bar once, and those that were lost on the way asked for again.

Running bars are not kept anywhere: the next one, or the final one, says all that a lost one said.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from relay.protocol.v1 import market_pb2
from relay_client.engine.live_values import Loss, Repaired, ReplayQuestion
from relay_client.engine.loss_book import FeedCounters
from relay_client.engine.sequences import Arrival, SequenceLedger
from relay_client.engine.time_replay import TimeReplay

__all__ = ["BarFeed"]

_SEEN_MAX = 10_000
"""Final bars whose last revision is remembered, against repeats."""
_SPAN_NS = 120_000_000_000
"""Bars come in the order in which they were made, but clocks and ways differ by less than this."""


class BarFeed:
    """State of one ``{ticker}|ohlc:{seconds}`` topic of one subscription.

    Args:
        topic: exact.
        is_repairing: ask the log for what was lost; else it is only reported.
        out: events are appended.
        counters: of the topic.
        deliver: called with each message that is news.
    """

    def __init__(
        self,
        topic: str,
        *,
        is_repairing: bool,
        out: list[object],
        counters: FeedCounters,
        deliver: Callable[[market_pb2.OHLC], None],
    ) -> None:
        self.topic, self._is_repairing, self._out = topic, is_repairing, out
        self._counters, self._deliver = counters, deliver
        self._ledger = SequenceLedger()
        self._replay = TimeReplay(topic)
        self._seen: OrderedDict[int, int] = OrderedDict()
        self._since_ns = 0
        self._first_start_ns: int | None = None
        self._missing = self._found = 0

    @property
    def is_busy(self) -> bool:
        """Whether a replay is to be asked for."""
        return self._replay.is_busy

    def take(self, message: market_pb2.OHLC, now_ns: int) -> None:
        """Take a published bar. A jump of its stamp, or another publisher, means that some may be lost."""
        epoch, sequence = message.stamp.publisher_epoch, message.stamp.topic_sequence
        if epoch:
            before, known = self._ledger.current, self._ledger.stream(epoch)
            first = known.next if known is not None else 0
            arrival = self._ledger.take(epoch, sequence)
            if arrival is Arrival.REPEAT:
                self._counters.repeated += 1
                return
            # The publisher's clock may have been set back: what was lost is younger than the earlier of both.
            published_ns = message.stamp.published_at
            since_ns = min(self._since_ns or published_ns, published_ns)
            if arrival is Arrival.JUMP:
                self._lost(sequence - first, since_ns, now_ns)
            elif arrival is Arrival.NEW_EPOCH and before is not None:
                self._lost(0, since_ns, now_ns)
            self._since_ns = published_ns
        self._first_start_ns = min(message.timestamp, self._first_start_ns or message.timestamp)
        if not self._is_news(message):
            self._counters.repeated += 1
            return
        self._deliver(message)

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscription is in force (again); after a cut, look for what was published meanwhile."""
        self._replay.on_in_force()
        if was_cut and self._since_ns:
            self._lost(0, self._since_ns, now_ns)

    def on_relay_away(self) -> None:
        """The relay is silent."""
        self._replay.on_relay_away()

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the replay to ask for now."""
        return self._replay.next_question(now_ns)

    def on_records(
        self, question: ReplayQuestion, messages: Sequence[market_pb2.OHLC], next_from: int, now_ns: int
    ) -> None:
        """Take the answer to a replay: final bars as they lie in the log, whose stamps count nothing here."""
        for message in messages:
            # Buckets from before the subscription's first are nobody's loss.
            if message.timestamp >= (self._first_start_ns or 0) and self._is_news(message):
                self._counters.repaired += 1
                self._found += 1
                self._deliver(message)
        if self._replay.on_answer(question, next_from, now_ns):
            if self._found:
                self._out.append(Repaired(self.topic, self._found))
            self._missing = self._found = 0

    def on_failed(self, question: ReplayQuestion, text: str, now_ns: int, *, is_final: bool) -> None:
        """A replay was refused for good, or not answered in time: then it is asked for again."""
        if self._replay.on_failed(question, now_ns, is_final=is_final):
            self._report(text)

    def on_tick(self, now_ns: int) -> None:
        """Nothing is due by the clock but replays."""

    def _lost(self, count: int, since_ns: int, now_ns: int) -> None:
        self._missing += count
        if self._is_repairing:
            self._replay.ask_from(max(0, since_ns - _SPAN_NS), now_ns)
        else:
            self._report("repair is off")

    def _report(self, text: str) -> None:
        """Say how many messages were lost, running bars among them; 0 where only a cut tells that some may be."""
        self._counters.lost += self._missing
        self._out.append(Loss(self.topic, self._missing, 0, 0, 0, "", "", text))
        self._missing = 0

    def _is_news(self, message: market_pb2.OHLC) -> bool:
        """Return whether a bar says more than the last final one of its bucket; note a final one."""
        said = self._seen.get(message.timestamp)
        if said is not None and message.revision <= said:
            return False
        if message.is_final:
            self._seen[message.timestamp] = message.revision
            if len(self._seen) > _SEEN_MAX:
                self._seen.popitem(last=False)
        return True
