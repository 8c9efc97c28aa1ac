"""Plays stored ticks and bars in a running loop, as an async subscription would give them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any

from relay_client.engine.items import Tick
from relay_client.history import Bar
from relay_client.subscribing import TopicsLike
from relay_client.tick_player import Item, Pace, merged, stored_topics

__all__ = ["AsyncTickPlayer"]

_TURN_ITEMS = 256
"""Played as fast as it goes, the loop is left to others after so many."""


class AsyncTickPlayer:
    """Stored data in a running loop; see :class:`relay_client.TickPlayer` for what it yields.

    It has the face of a :class:`~relay_client.AsyncSubscription` as far as reading goes. It reads when it is iterated,
    awaited or entered, which is when errors of reading are raised. One task at a time may iterate.

    Args:
        topics: of ticks and bars.
        ticks: reads the ticks of a ticker.
        bars: reads the bars of a ticker and period (seconds).
        speed: seconds of market time in a second; None for as fast as it goes.

    Raises:
        SettingsError: an argument is wrong, or a topic holds nothing that is stored.
    """

    def __init__(
        self,
        topics: TopicsLike,
        *,
        ticks: Callable[[str], Awaitable[Iterable[Tick]]],
        bars: Callable[[str, int], Awaitable[Iterable[Bar]]],
        speed: float | None,
    ) -> None:
        self._pace, self._wanted = Pace(speed), stored_topics(topics)
        self._ticks, self._bars = ticks, bars
        self._merged: Iterator[Item] | None = None
        self._closed = asyncio.Event()
        self._played = 0

    @property
    def topics(self) -> list[str]:
        """The topics, as asked for."""
        return [str(topic) for topic in self._wanted]

    def __await__(self) -> Generator[Any, None, AsyncTickPlayer]:
        return self._begin().__await__()

    def __aiter__(self) -> AsyncTickPlayer:
        return self

    async def __anext__(self) -> Item:
        item = await self.next()
        if item is None:
            raise StopAsyncIteration
        return item

    async def next(self) -> Item | None:
        """Return the next item, None at the end."""
        items = (await self._begin())._merged
        item = None if items is None or self._closed.is_set() else next(items, None)
        if item is None:
            return None
        wait_s = self._pace.wait_s(item, time.monotonic_ns())
        self._played += 1
        if wait_s:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), wait_s)
        elif not self._played % _TURN_ITEMS:
            await asyncio.sleep(0)
        return None if self._closed.is_set() else item

    async def items(self) -> AsyncIterator[Item]:
        """Yield what is left."""
        while (item := await self.next()) is not None:
            yield item

    def events(self) -> list[object]:
        """Return nothing: whatever was lost is told by the report about stored ticks."""
        return []

    async def close(self) -> None:
        """End; a task that waits for the next item returns at once."""
        self._closed.set()

    async def __aenter__(self) -> AsyncTickPlayer:
        return await self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _begin(self) -> AsyncTickPlayer:
        if self._merged is None and not self._closed.is_set():
            sources: list[Iterable[Item]] = []
            for topic in self._wanted:
                ticker, period_seconds = str(topic.ticker), topic.period_seconds
                if period_seconds is None:
                    sources.append(await self._ticks(ticker))
                else:
                    sources.append(await self._bars(ticker, period_seconds))
            self._merged = merged(sources)
        return self
