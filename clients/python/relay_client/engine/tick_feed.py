"""The feed of one ticker's ticks: each once, losses found by stamp and id, repaired, or reported."""

from __future__ import annotations

from collections.abc import Sequence

from relay.protocol.v1 import market_pb2
from relay_client.engine.items import Origin, Tick
from relay_client.engine.joining import Join, JoinPhase
from relay_client.engine.live_values import FeedRules, HistoryJoined, ReplayQuestion
from relay_client.engine.loss_book import FeedCounters, LossBook
from relay_client.engine.ordering import StrictOrder
from relay_client.engine.sequences import Arrival, SequenceLedger, Stream
from relay_client.engine.trade_ids import TradeIds, number_of

__all__ = ["TickFeed"]


class TickFeed:
    """State of one topic ``{ticker}|tick`` of one subscription; one call for each message, answer or tick.

    A tick passes three stations: the stamp tells what is missing, the trade id whether it is new; then it is held
    (until history has met it, or until its turn) or appended to ``out``.

    Args:
        topic: of the ticks.
        rules: bounds.
        out: ticks and events are appended in the order in which the user gets them.
        counters: shared by the subscription's feeds.
        is_scaled: numbers of the ticks.
        is_strict: in the order of ids.
        start_ns: history from then on comes first; None for live only.
    """

    def __init__(
        self,
        topic: str,
        *,
        rules: FeedRules,
        out: list[object],
        counters: FeedCounters,
        is_scaled: bool = False,
        is_strict: bool = False,
        start_ns: int | None = None,
    ) -> None:
        self.topic, self._rules, self._out, self._counters = topic, rules, out, counters
        self._is_scaled = is_scaled
        self._ledger = SequenceLedger()
        self._stream: Stream | None = None
        self._ids = TradeIds(spans_max=rules.spans_max)
        self._book = LossBook(topic, rules=rules, ledger=self._ledger, ids=self._ids, counters=counters, out=out)
        self._order = StrictOrder(topic, rules=rules, counters=counters, out=out) if is_strict else None
        self._join = Join(topic, start_ns, rules=rules) if start_ns is not None else None
        self._history_count = 0
        self._claimed: int | None = None
        self._tail: tuple[int, int] | None = None
        self._is_direct = self._order is None and self._join is None
        self._is_rejoining = False

    @property
    def is_busy(self) -> bool:
        """Whether ticks of the clock matter now."""
        return bool(self._book or self._tail or self._join or self._order)

    def take(self, message: market_pb2.Tick, now_ns: int) -> None:
        """Take a published message; the common case costs two comparisons and one look at the ids."""
        stamp, stream = message.stamp, self._stream
        if stream is not None and stamp.topic_sequence == stream.next and stamp.publisher_epoch == stream.epoch:
            stream.next += 1
        elif stamp.publisher_epoch:
            self._on_stamp(message, Origin.LIVE, now_ns)
        self._admit(message, Origin.LIVE, now_ns)

    def on_gap(self, gap: market_pb2.Gap, now_ns: int) -> None:
        """Note what the ingestor declares: its ids come as backfill or never, so they are no loss of the way."""
        first, last = number_of(gap.from_trade_id or "0"), number_of(gap.to_trade_id)
        if first is None or last is None or last < first:
            return
        self._ids.declare(first, last)
        if gap.state == market_pb2.Gap.UNFILLABLE and self._order is not None:
            self._order.skip([(first, last)], now_ns)

    def on_beat(self, beat: market_pb2.Heartbeat, now_ns: int) -> None:
        """Compare the newest trade with the one that a beat names: the tail of a loss shows no other way."""
        number = number_of(beat.last_trade_id)
        if number is None:
            return
        if self._join is not None:
            self._join.beat = number if self._join.beat is None else max(number, self._join.beat)
        elif self._ids.newest is None:
            # Subscribed in silence: whatever is published after this beat is ours.
            self._ids.newest = number
        elif number > max(self._ids.newest, self._claimed or 0):
            self._tail = (number, now_ns) if self._tail is None else (max(number, self._tail[0]), self._tail[1])

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscription is in force (again); what was published meanwhile is looked for."""
        if was_cut:
            self._book.on_resync(now_ns)
        if self._join is not None:
            self._join.begin(now_ns)
        if was_cut and self._stream is not None:
            self._book.probe(self._stream.epoch, self._stream.next, now_ns=now_ns)

    def on_relay_away(self) -> None:
        """The relay is silent: nothing can be asked, and waiting for it is nobody's fault."""
        self._book.is_away = True

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return a replay to ask for now."""
        if self._join is not None:
            question = self._join.next_question(now_ns)
            if question is not None:
                return question
        return self._book.next_question(now_ns)

    def on_records(
        self, question: ReplayQuestion, messages: Sequence[market_pb2.Tick], next_from: int, now_ns: int
    ) -> None:
        """Take the answer to a question."""
        if question.by == "time" and self._join is not None:
            numbers = [n for n in (number_of(m.trade_id) for m in messages) if n is not None]
            # In the log's order, a trade that came late may follow those after it.
            ordered = messages if self._order is None else sorted(messages, key=lambda m: number_of(m.trade_id) or 0)
            for message in ordered:
                self._ledger.settle(message.stamp.publisher_epoch, message.stamp.topic_sequence)
                self._admit(message, Origin.HISTORY, now_ns)
                if self._join.is_to_reread:
                    break
            self._join.on_page(next_from, numbers, now_ns)
        else:
            for message in messages:
                if self._ledger.stream(message.stamp.publisher_epoch) is not None:
                    self._on_stamp(message, Origin.REPAIR, now_ns)
                self._admit(message, Origin.REPAIR, now_ns)
            self._book.on_answer(next_from, now_ns)
        self.on_tick(now_ns)

    def on_failed(self, question: ReplayQuestion, text: str, now_ns: int, *, is_final: bool) -> None:
        """A question was refused for good, or not answered in time."""
        if question.by == "time" and self._join is not None:
            self._join.on_failed(text, now_ns, is_final=is_final)
        else:
            self._book.on_failed(text, now_ns, is_final=is_final)
        self.on_tick(now_ns)

    def on_tick(self, now_ns: int) -> None:
        """Do what is due."""
        if self._tail is not None:
            self._look_at_tail(now_ns)
        if self._book:
            self._book.sweep(now_ns)
        if self._join is not None and self._join.phase is JoinPhase.CLOSING:
            self._close_join(self._join, now_ns)
        lost, self._book.lost_ids = self._book.lost_ids, []
        if self._order is not None:
            for first, last in lost:
                self._order.skip(self._ids.wanted(first, last), now_ns)
            self._order.on_tick(now_ns)

    def _on_stamp(self, message: market_pb2.Tick, origin: Origin, now_ns: int) -> None:
        epoch, sequence = message.stamp.publisher_epoch, message.stamp.topic_sequence
        before, known, newest = self._stream, self._ledger.stream(epoch), self._ids.newest
        first = known.next if known is not None else 0
        number = number_of(message.trade_id)
        arrival = self._ledger.take(epoch, sequence)
        if origin is Origin.LIVE:
            self._stream = self._ledger.current
            if before is not None and before.epoch != epoch:
                self._is_rejoining = True
        if arrival is Arrival.JUMP:
            # While rejoining, and in a tail that ids have passed already, what is missing is counted by the ids.
            is_passed = origin is Origin.REPAIR and number is not None and number <= (newest or 0)
            self._book.open_sequences(
                epoch,
                (first, sequence - 1),
                between=(newest, number),
                now_ns=now_ns,
                is_quiet=is_passed or (self._is_rejoining and number is not None),
            )
        elif arrival is Arrival.FOUND and (number is None or number not in self._ids.lost):
            self._counters.lost -= 1
        elif arrival in (Arrival.FIRST, Arrival.NEW_EPOCH):
            if before is not None:
                self._book.probe(before.epoch, before.next, now_ns=now_ns)
            self._is_rejoining = self._is_rejoining or (origin is Origin.LIVE and self._join is None)

    def _rejoin(self, number: int, now_ns: int, *, is_latest: bool) -> None:
        """Under another epoch, stamps do not tell what was lost before: the first new id does."""
        newest = self._ids.newest
        known_until = max(newest or 0, self._claimed or 0)
        if newest is not None and number <= known_until:
            return
        # What a replay brings may be of the epoch before, and a backfill from before that.
        self._is_rejoining = not is_latest
        if newest is not None and number > known_until + 1:
            self._book.open_ids(known_until + 1, number - 1, now_ns=now_ns)

    def _admit(self, message: market_pb2.Tick, origin: Origin, now_ns: int) -> None:
        trade_id, counters = message.trade_id, self._counters
        number = number_of(trade_id)
        if self._is_rejoining and number is not None:
            self._rejoin(number, now_ns, is_latest=origin is Origin.LIVE and not message.backfill)
        if not self._ids.take(trade_id, number):
            counters.repeated += origin is Origin.LIVE
            if self._join is not None and origin is Origin.HISTORY:
                self._join.on_known(trade_id)
            return
        if message.backfill and number is not None:
            self._ids.backfilled.add(number)
        if number is not None and self._ids.lost and self._ids.lost.remove(number):
            counters.lost -= 1
        tick = Tick(message, origin, self._is_scaled)
        if self._is_direct:
            self._out.append(tick)
        if origin is Origin.LIVE:
            counters.received += 1
        else:
            self._count(origin)
        if not self._is_direct:
            self._pass_on(tick, number, origin, now_ns)

    def _count(self, origin: Origin, change: int = 1) -> None:
        self._counters.received += change
        if origin is Origin.REPAIR:
            self._counters.repaired += change
        elif origin is Origin.HISTORY:
            self._counters.history += change
            self._history_count += change

    def _pass_on(self, tick: Tick, number: int | None, origin: Origin, now_ns: int) -> None:
        if self._join is not None and (
            origin is Origin.LIVE or self._join.is_behind(number, is_repair=origin is Origin.REPAIR)
        ):
            for dropped, dropped_number in self._join.hold(tick, number):
                self._count(dropped.origin, -1)
                self._ids.forget(dropped.trade_id, dropped_number)
        elif self._order is not None:
            self._order.take(tick, number, now_ns)
        else:
            self._out.append(tick)

    def _look_at_tail(self, now_ns: int) -> None:
        if self._tail is None or self._join is not None:
            return
        number, since_ns = self._tail
        newest = self._ids.newest or 0
        if newest >= number:
            self._tail = None
        elif now_ns - since_ns >= self._rules.tail_ns:
            self._tail, first = None, max(newest, self._claimed or 0) + 1
            self._claimed = number
            if self._ids.wanted(first, number):
                self._book.open_ids(first, number, now_ns=now_ns)

    def _close_join(self, join: Join, now_ns: int) -> None:
        bounds = join.bounds(now_ns)
        if bounds is None or self._book.is_waiting_for(*bounds):
            return
        first, last = bounds
        if join.overflowed is not None:
            first = min(first, join.overflowed[0]) if first <= last else join.overflowed[0]
            last = max(last, join.overflowed[1])
            join.overflowed = None
        wanted = [w for low, high in self._ids.wanted(first, last) for w in self._ids.lost.absent(low, high)]
        if wanted:
            self._claimed = max(last, self._claimed or 0)
            self._book.open_ids(wanted[0][0], last, now_ns=now_ns)
            return
        self._join, join.phase = None, JoinPhase.DONE
        self._is_direct = self._order is None
        self._out.append(HistoryJoined(self.topic, self._history_count, not join.text, join.text))
        for tick, number in join.in_order():
            self._pass_on(tick, number, Origin.LIVE, now_ns)
