"""All feeds of one subscription: topics in, one ordered stream of data and events out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from relay.protocol.topics import MarketTopic, StatisticsTopic, market_topic
from relay.protocol.v1 import market_pb2
from relay_client.engine.bar_feed import BarFeed
from relay_client.engine.items import bar_of
from relay_client.engine.live_values import FeedEvent, FeedRules, Gap, ReplayQuestion, StateChanged
from relay_client.engine.liveness import Liveness
from relay_client.engine.loss_book import FeedCounters
from relay_client.engine.plain_feed import PlainFeed
from relay_client.engine.tick_feed import TickFeed
from relay_client.statistics import ExchangeStatistics, statistics_of
from relay_client.symbols import Symbol

__all__ = ["Feed", "FeedGroup"]

Feed = TickFeed | BarFeed | PlainFeed
Handler = Callable[[Any, int], None]


@dataclass(slots=True)
class _Line:
    """Everything about one ticker: its beats and gaps come with whatever topic is asked for."""

    ticker: str
    liveness: Liveness
    gaps: PlainFeed
    feeds: dict[str, Feed] = field(default_factory=dict)
    received: int = 0

    @property
    def ticks(self) -> TickFeed | None:
        return next((feed for feed in self.feeds.values() if isinstance(feed, TickFeed)), None)


class FeedGroup:
    """State of one subscription; called by one thread.

    Args:
        rules: bounds.
        is_scaled: numbers of ticks.
        is_strict: ticks in the order of their ids.

    Attributes:
        out: data and events, in order; whoever takes them clears the list.
        handlers: what to call with a message of a wire topic, and the time.
    """

    def __init__(self, rules: FeedRules, *, is_scaled: bool = False, is_strict: bool = False) -> None:
        self._rules, self._is_scaled, self._is_strict = rules, is_scaled, is_strict
        self._lines: dict[str, _Line] = {}
        self._counters: dict[str, FeedCounters] = {}
        self._gap_topics: set[str] = set()
        self._statistics: dict[str, PlainFeed] = {}
        self.out: list[Any] = []
        self.handlers: dict[bytes, Handler] = {}

    @property
    def topics(self) -> list[str]:
        """The topics that were asked for."""
        of_lines = [topic for line in self._lines.values() for topic in line.feeds]
        return [*of_lines, *sorted(self._gap_topics), *self._statistics]

    def counters(self) -> dict[str, FeedCounters]:
        """Return a copy of what was counted for each topic asked for, also those removed since."""
        return {topic: replace(counters) for topic, counters in self._counters.copy().items()}

    def states(self) -> dict[str, str]:
        """Return each ticker's state."""
        return {ticker: str(line.liveness.state) for ticker, line in self._lines.copy().items()}

    def add(self, topic: MarketTopic | StatisticsTopic, *, start_ns: int | None, now_ns: int) -> list[bytes]:
        """Begin a topic; return the wire topics to subscribe."""
        if isinstance(topic, StatisticsTopic):
            return self._add_statistics(str(topic))
        text, before = str(topic), set(self.handlers)
        line = self._lines.get(str(topic.ticker)) or self._begin_line(str(topic.ticker), now_ns)
        counters = self._counters.setdefault(text, FeedCounters())
        if topic.kind == "gap":
            self._gap_topics.add(text)
        elif topic.kind == "tick":
            feed = TickFeed(
                text,
                rules=self._rules,
                out=self.out,
                counters=counters,
                is_scaled=self._is_scaled,
                is_strict=self._is_strict,
                start_ns=start_ns,
            )
            line.feeds[text] = feed
            self.handlers[text.encode()] = feed.take
        elif topic.kind == "ohlc":
            line.feeds[text] = bars = BarFeed(
                text,
                is_repairing=self._rules.is_repairing,
                out=self.out,
                counters=counters,
                deliver=lambda message: self._deliver_bar(counters, message),
            )
            self.handlers[text.encode()] = bars.take
        else:
            line.feeds[text] = plain = PlainFeed(
                text,
                rules=replace(self._rules, is_repairing=False),
                out=self.out,
                counters=counters,
                deliver=self._deliverer(counters),
            )
            self.handlers[text.encode()] = plain.take
        # Data before beats: what a first beat names was published before anything that is missed.
        return sorted(set(self.handlers) - before, key=lambda name: name.endswith(b"|heartbeat"))

    def remove(self, topic: MarketTopic | StatisticsTopic) -> list[bytes]:
        """End a topic; return the wire topics to unsubscribe."""
        if isinstance(topic, StatisticsTopic):
            was_there = self._statistics.pop(str(topic), None) is not None
            self.handlers.pop(str(topic).encode(), None)
            return [str(topic).encode()] if was_there else []
        text, ticker = str(topic), str(topic.ticker)
        line, before = self._lines.get(ticker), set(self.handlers)
        if line is None:
            return []
        self._gap_topics.discard(text)
        if line.feeds.pop(text, None) is not None:
            self.handlers.pop(text.encode(), None)
        if not line.feeds and market_topic(ticker, "gap") not in self._gap_topics:
            del self._lines[ticker]
            for kind in ("gap", "heartbeat"):
                self.handlers.pop(market_topic(ticker, kind).encode(), None)
        return sorted(before - set(self.handlers))

    def on_in_force(self, now_ns: int, *, was_cut: bool) -> None:
        """The subscriptions are in force; after a cut, what was published meanwhile is looked for."""
        for line in self._lines.values():
            self._tell(line.liveness.on_relay_back(now_ns))
            for feed in (line.gaps, *line.feeds.values()):
                feed.on_in_force(now_ns, was_cut=was_cut)
        for feed in self._statistics.values():
            feed.on_in_force(now_ns, was_cut=was_cut)

    def on_relay_away(self) -> None:
        """The relay is silent."""
        for line in self._lines.values():
            self._tell(line.liveness.on_relay_away())
            for feed in (line.gaps, *line.feeds.values()):
                feed.on_relay_away()
        for feed in self._statistics.values():
            feed.on_relay_away()

    def on_tick(self, now_ns: int) -> None:
        """Do what is due."""
        for line in self._lines.values():
            received = sum(self._counters[topic].received for topic in line.feeds)
            if received != line.received:
                line.received = received
                line.liveness.on_data(now_ns)
            self._tell(line.liveness.on_tick(now_ns))
            for feed in (line.gaps, *line.feeds.values()):
                if feed.is_busy:
                    feed.on_tick(now_ns)
        for feed in self._statistics.values():
            if feed.is_busy:
                feed.on_tick(now_ns)

    def questions(self, now_ns: int) -> Iterable[tuple[Feed, ReplayQuestion]]:
        """Return the replays to ask for now."""
        for line in self._lines.values():
            for feed in (line.gaps, *line.feeds.values()):
                if feed.is_busy and (question := feed.next_question(now_ns)) is not None:
                    yield feed, question

    def _add_statistics(self, text: str) -> list[bytes]:
        """Statistics belong to no ticker, so no beats come with them."""
        counters = self._counters.setdefault(text, FeedCounters())

        def deliver(whole: ExchangeStatistics) -> None:
            counters.received += 1
            self.out.append(whole)

        feed = PlainFeed(
            text,
            rules=replace(self._rules, is_repairing=False),
            out=self.out,
            counters=counters,
            deliver=_PartsJoiner(deliver).take,
        )
        self._statistics[text] = feed
        self.handlers[text.encode()] = feed.take
        return [text.encode()]

    def _begin_line(self, ticker: str, now_ns: int) -> _Line:
        gap_topic = market_topic(ticker, "gap")

        def on_gap(message: market_pb2.Gap, now_ns: int) -> None:
            self.out.append(Gap.of(message))
            if line.ticks is not None:
                line.ticks.on_gap(message, now_ns)

        counters = self._counters.get(gap_topic) or FeedCounters()
        gaps = PlainFeed(gap_topic, rules=self._rules, out=self.out, counters=counters, deliver=on_gap)
        liveness = Liveness(ticker, silence_ns=self._rules.silence_ns, now_ns=now_ns)
        line = self._lines[ticker] = _Line(ticker, liveness, gaps)
        self.handlers[gap_topic.encode()] = gaps.take
        self.handlers[market_topic(ticker, "heartbeat").encode()] = lambda m, now: self._on_beat(line, m, now)
        return line

    def _on_beat(self, line: _Line, beat: market_pb2.Heartbeat, now_ns: int) -> None:
        if not line.liveness.accepts(beat, now_ns):
            return
        self._tell(line.liveness.on_beat(beat, now_ns))
        if line.ticks is not None and beat.source == market_pb2.Heartbeat.INGESTOR:
            line.ticks.on_beat(beat, now_ns)

    def _deliver_bar(self, counters: FeedCounters, message: market_pb2.OHLC) -> None:
        counters.received += 1
        self.out.append(bar_of(message))

    def _deliverer(self, counters: FeedCounters) -> Handler:
        def deliver(message: market_pb2.Market, now_ns: int) -> None:
            del now_ns
            counters.received += 1
            self.out.append(Symbol.of(message))

        return deliver

    def _tell(self, change: StateChanged | None) -> None:
        event: FeedEvent | None = change
        if event is not None:
            self.out.append(event)


class _PartsJoiner:
    """Puts the parts of statistics together; whole ones are delivered once each, newer after older."""

    def __init__(self, deliver: Callable[[ExchangeStatistics], None]) -> None:
        self._deliver = deliver
        self._delivered_ns = 0
        self._open_ns = 0
        self._parts: dict[int, market_pb2.Ticker24h] = {}

    def take(self, part: market_pb2.Ticker24h, now_ns: int) -> None:
        del now_ns
        if part.generated_at <= self._delivered_ns or part.generated_at < self._open_ns:
            return
        if part.generated_at > self._open_ns:
            self._open_ns, self._parts = part.generated_at, {}
        self._parts[part.part_index] = part
        if len(self._parts) == max(part.part_count, 1):
            self._delivered_ns = part.generated_at
            self._deliver(statistics_of(self._parts.values()))
