"""The same subscription for asyncio."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any

from relay_client.buffer import ItemBuffer
from relay_client.engine.live_values import FeedEvent
from relay_client.session import Session
from relay_client.subscribing import Plan, TopicsLike, plan_of
from relay_client.subscription import FeedItem, SubscriptionCore

if TYPE_CHECKING:
    from relay_client.times import TimeLike

__all__ = ["AsyncSubscription", "take"]


class AsyncSubscription:
    """Live data in a running loop; see :class:`relay_client.Subscription` for what it yields.

    It begins when it is iterated, awaited or entered. One task at a time may iterate; a slow one never holds up the
    client's thread, for the buffer is bounded.
    """

    def __init__(
        self,
        session: Session,
        plan: Plan,
        check: Callable[[Plan, float | None], Awaitable[None]],
        *,
        timeout: float | None,
    ) -> None:
        self._core, self._check, self._timeout = SubscriptionCore(session, plan), check, timeout
        self._chunk: Iterator[Any] = iter(())
        self._has_begun = False
        self._finalizer = weakref.finalize(self, self._core.close)

    @property
    def topics(self) -> list[str]:
        """The topics, as asked for."""
        return self._core.topics

    @property
    def states(self) -> Mapping[str, str]:
        """State of each ticker's feed, see :class:`FeedState`."""
        return self._core.states()

    @property
    def transport(self) -> str:
        """By which way data come now; see :attr:`relay_client.Subscription.transport`."""
        return self._core.transport

    @property
    def transport_reason(self) -> str:
        """Why data come by ``tcp``; empty for ``shm``."""
        return self._core.transport_reason

    @property
    def encoding(self) -> str:
        """In which form data come now; see :attr:`relay_client.Subscription.encoding`."""
        return self._core.encoding

    def __await__(self) -> Generator[Any, None, AsyncSubscription]:
        return self._begin().__await__()

    def __aiter__(self) -> AsyncSubscription:
        return self

    async def __anext__(self) -> FeedItem:
        if not self._has_begun:
            await self._begin()
        while True:
            for item in self._chunk:
                return item  # type: ignore[no-any-return]
            taken = await self._take()
            if taken is None:
                raise StopAsyncIteration
            self._chunk = iter(self._core.sort(taken))

    async def items(self) -> AsyncIterator[FeedItem | FeedEvent]:
        """Yield data and events in their common order."""
        await self._begin()
        while (taken := await self._take()) is not None:
            for item in taken:
                yield item

    def events(self) -> list[FeedEvent]:
        """Return the events met by iterating since the last call; the newest 10,000 are kept."""
        return self._core.events()

    async def add(
        self,
        topics: TopicsLike,
        *,
        start: TimeLike | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - a deadline for the request, told to the engine
    ) -> None:
        """Subscribe more topics; see :meth:`relay_client.Subscription.add`."""
        self._core.check_start(topics, start)
        plan = plan_of(topics, start=start, like=self._core.plan)
        await self._check(plan, timeout)
        self._core.add(plan)

    def remove(self, topics: TopicsLike) -> None:
        """End topics; what of them is buffered still comes."""
        self._core.remove(topics)

    def counters(self) -> Mapping[str, int]:
        """Return what was counted over all topics."""
        return self._core.counters()

    async def close(self) -> None:
        """End the subscription; whoever iterates gets what is buffered, then the end. Harmless when repeated."""
        self._finalizer()

    async def __aenter__(self) -> AsyncSubscription:
        return await self._begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _begin(self) -> AsyncSubscription:
        if not self._has_begun:
            self._has_begun = True
            await self._check(self._core.plan, self._timeout)
            self._core.open()
        return self

    async def _take(self) -> Sequence[Any] | None:
        return await take(self._core.buffer)


async def take(buffer: ItemBuffer) -> Sequence[Any] | None:
    """Take what is there, or wait for the client's thread to bring more; None at the end."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(came.set)

    taken = buffer.take(timeout_s=0)
    if taken is None or taken:
        # Even a full buffer leaves the loop to others.
        await asyncio.sleep(0)
        return taken
    buffer.on_change(wake)
    try:
        while taken is not None and not taken:
            taken = buffer.take(timeout_s=0)
            if taken is not None and not taken:
                await came.wait()
                came.clear()
        return taken
    finally:
        buffer.on_change(None)
