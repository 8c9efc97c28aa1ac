"""Plays stored ticks and bars as a subscription would give them, so that a strategy runs unchanged on yesterday."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType

from relay.errors import SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.topics import StatisticsTopic
from relay_client.arguments import seconds
from relay_client.engine.items import Tick
from relay_client.history import Bar
from relay_client.subscribing import TopicsLike, topics_of

__all__ = ["TickPlayer", "open_player"]

Item = Tick | Bar


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
    if speed is not None:
        speed = seconds("speed", speed, 0)
    sources: list[Iterable[Item]] = []
    names: list[str] = []
    for topic in topics_of(topics):
        if isinstance(topic, StatisticsTopic):
            raise SettingsError(f"expected topics of ticks or bars to replay, got {topic}")
        if topic.kind == "tick":
            sources.append(ticks(str(topic.ticker)))
        elif topic.kind == "ohlc" and topic.period_seconds is not None:
            sources.append(bars(str(topic.ticker), topic.period_seconds))
        else:
            raise SettingsError(f"expected topics of ticks or bars to replay, got {topic}")
        names.append(str(topic))
    return TickPlayer(sources, topics=names, speed=speed)


class TickPlayer:
    """Yields items ascending by the time at which they were known: a tick at its time, a bar at its end.

    It has the face of a :class:`~relay_client.Subscription` as far as reading goes: iteration, :meth:`next`,
    :meth:`items`, :meth:`events`, :meth:`close`, context manager.

    Args:
        sources: ascending items of each topic.
        topics: as asked for.
        speed: seconds of market time in a second; None for as fast as it goes.
    """

    def __init__(self, sources: Sequence[Iterable[Item]], *, topics: Sequence[str], speed: float | None) -> None:
        if speed is not None and not 0 < speed < float("inf"):
            raise SettingsError(f"expected a speed above 0, or None for as fast as it goes, got {speed}")
        self._merged = heapq.merge(*sources, key=_known_ns)
        self._topics, self._speed = list(topics), speed
        self._closed = threading.Event()
        self._began: tuple[int, int] | None = None

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
        self._wait_for(_known_ns(item))
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

    def _wait_for(self, known_ns: int) -> None:
        if self._speed is None:
            return
        now_ns = time.monotonic_ns()
        if self._began is None:
            self._began = now_ns, known_ns
        began_ns, first_ns = self._began
        due_ns = began_ns + int((known_ns - first_ns) / self._speed)
        if due_ns > now_ns:
            self._closed.wait((due_ns - now_ns) / NANOSECONDS)


def _known_ns(item: Item) -> int:
    if isinstance(item, Tick):
        return item.time_ns
    return int(item.start.timestamp()) * NANOSECONDS + item.period_seconds * NANOSECONDS
