"""Plays stored ticks and bars as a subscription would give them, so that a strategy runs unchanged on yesterday."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType

from relay.errors import SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.topics import MarketTopic, StatisticsTopic
from relay_client.arguments import seconds
from relay_client.engine.items import Tick
from relay_client.history import Bar
from relay_client.subscribing import TopicsLike, topics_of

__all__ = ["Item", "Pace", "TickPlayer", "merged", "open_player", "stored_topics"]

Item = Tick | Bar


def stored_topics(topics: TopicsLike) -> list[MarketTopic]:
    """Return topics of what is stored.

    Raises:
        SettingsError: a topic holds nothing that is stored, or is none.
    """
    found = []
    for topic in topics_of(topics):
        if isinstance(topic, StatisticsTopic) or topic.kind not in ("tick", "ohlc"):
            raise SettingsError(f"expected topics of ticks or bars to replay, got {topic}")
        found.append(topic)
    return found


def open_player(
    topics: TopicsLike,
    *,
    ticks: Callable[[str], Iterable[Tick]],
    bars: Callable[[str, int], Iterable[Bar]],
    speed: float | None,
) -> TickPlayer:
    """Return a player of stored data.

    Args:
        topics: of ticks and bars.
        ticks: reads the ticks of a ticker.
        bars: reads the bars of a ticker and period (seconds).
        speed: seconds of market time in a second; None for as fast as it goes.

    Raises:
        SettingsError: an argument is wrong, or a topic holds nothing that is stored.
    """
    pace, wanted = Pace(speed), stored_topics(topics)
    sources: list[Iterable[Item]] = []
    for topic in wanted:
        ticker, period_seconds = str(topic.ticker), topic.period_seconds
        sources.append(ticks(ticker) if period_seconds is None else bars(ticker, period_seconds))
    return TickPlayer(sources, topics=[str(topic) for topic in wanted], pace=pace)


def merged(sources: Sequence[Iterable[Item]]) -> Iterator[Item]:
    """Return items of all sources, ascending by the time at which they were known: a tick's own, a bar's end."""
    return heapq.merge(*sources, key=_known_ns)


class Pace:
    """How fast stored items are played.

    Args:
        speed: seconds of market time in a second; None for as fast as it goes.

    Raises:
        SettingsError: the speed is not above 0, or not finite.
    """

    def __init__(self, speed: float | None) -> None:
        self._speed = None if speed is None else seconds("speed", speed, 0)
        if self._speed is not None and not 0 < self._speed < float("inf"):
            raise SettingsError(f"expected a speed above 0, or None for as fast as it goes, got {speed}")
        self._began: tuple[int, int] | None = None

    def wait_s(self, item: Item, now_ns: int) -> float:
        """Return how many seconds an item is to be waited for; the first one sets the clock.

        Args:
            item: the next one.
            now_ns: monotonic time.
        """
        if self._speed is None:
            return 0.0
        known_ns = _known_ns(item)
        if self._began is None:
            self._began = now_ns, known_ns
        began_ns, first_ns = self._began
        return max(0, began_ns + int((known_ns - first_ns) / self._speed) - now_ns) / NANOSECONDS


class TickPlayer:
    """Yields items ascending by the time at which they were known: a tick at its time, a bar at its end.

    It has the face of a :class:`~relay_client.Subscription` as far as reading goes: iteration, :meth:`next`,
    :meth:`items`, :meth:`events`, :meth:`close`, context manager.

    Args:
        sources: ascending items of each topic.
        topics: as asked for.
        pace: how fast.
    """

    def __init__(self, sources: Sequence[Iterable[Item]], *, topics: Sequence[str], pace: Pace) -> None:
        self._merged, self._topics, self._pace = merged(sources), list(topics), pace
        self._closed = threading.Event()

    @property
    def topics(self) -> list[str]:
        """The topics, as asked for."""
        return list(self._topics)

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._closed.is_set():
            raise StopIteration
        item = next(self._merged)
        wait_s = self._pace.wait_s(item, time.monotonic_ns())
        if wait_s:
            self._closed.wait(wait_s)
        if self._closed.is_set():
            raise StopIteration
        return item

    def next(self, *, timeout: float | None = None) -> Item | None:
        """Return the next item, None at the end. There is nothing to wait for, so ``timeout`` is not used."""
        del timeout
        return next(self, None)

    def items(self) -> Iterator[Item]:
        """Yield what is left."""
        return iter(self)

    def events(self) -> list[object]:
        """Return nothing: whatever was lost is told by the report about stored ticks."""
        return []

    def close(self) -> None:
        """End; a reader that waits for the next item returns at once."""
        self._closed.set()

    def __enter__(self) -> TickPlayer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _known_ns(item: Item) -> int:
    if isinstance(item, Tick):
        return item.time_ns
    return int(item.start.timestamp()) * NANOSECONDS + item.period_seconds * NANOSECONDS
