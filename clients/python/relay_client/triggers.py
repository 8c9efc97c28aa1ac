"""Triggers: register, cancel and list them, and receive their firings.

::

    from relay_client import Client, when

    with Client() as client:
        trigger = client.triggers.register(when("BTC/USDT.BINANCE").crosses_above("50000"), cooldown="5m")
        for event in client.triggers.events(trigger):
            print(event.fired_at, event.matched[-1].price)

A trigger belongs to the platform, not to the client that registered it: it goes on, and keeps its tickers running,
until it is cancelled, expires, or has fired once when it is one-shot. Specified in proto/spec/0009.
"""

from __future__ import annotations

import time
import weakref
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from relay.protocol.times import TimeUnit
from relay_client.arguments import flag
from relay_client.async_subscription import take
from relay_client.engine.live_values import Overrun
from relay_client.engine.trigger_feed import TriggerEvent, TriggerLoss
from relay_client.flow import run, run_async
from relay_client.pattern_builder import Duration
from relay_client.times import TimeLike
from relay_client.trigger_flows import (
    BUFFER_MAX,
    PatternLike,
    Trigger,
    TriggersLike,
    TriggerStream,
    cancel,
    definitions,
    id_of,
    new_registration,
    open_stream,
    register,
)

if TYPE_CHECKING:
    from relay_client.flows import ClientFlows

__all__ = ["AsyncTriggerEvents", "AsyncTriggers", "TriggerEvents", "Triggers"]

_LOSSES_MAX = 1_000


class _Reading:
    """What blocking and awaited reading share."""

    def __init__(self, stream: TriggerStream, owner: object) -> None:
        self._buffer, self._owner = stream.buffer, owner
        self._chunk: deque[TriggerEvent] = deque()
        self._losses: deque[TriggerLoss | Overrun] = deque(maxlen=_LOSSES_MAX)
        self._finalizer = weakref.finalize(self, stream.close)

    def losses(self) -> list[TriggerLoss | Overrun]:
        """Return what may be missing, as met by iterating since the last call; see :meth:`Triggers.events`."""
        found = list(self._losses)
        self._losses.clear()
        return found

    def _sort(self, taken: Sequence[Any]) -> None:
        for item in taken:
            if isinstance(item, TriggerEvent):
                self._chunk.append(item)
            else:
                self._losses.append(item)


class TriggerEvents(_Reading):
    """Firings of triggers, made by :meth:`Triggers.events`; ends when it or the client is closed."""

    def __iter__(self) -> TriggerEvents:
        return self

    def __next__(self) -> TriggerEvent:
        while not self._chunk:
            taken = self._buffer.take()
            if taken is None:
                raise StopIteration
            self._sort(taken)
        return self._chunk.popleft()

    def next(self, *, timeout: float | None = None) -> TriggerEvent | None:
        """Return the next firing, None when none comes within ``timeout`` seconds or it is closed."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._chunk:
            left = None if end is None else end - time.monotonic()
            if left is not None and left < 0:
                return None
            taken = self._buffer.take(timeout_s=left)
            if taken is None:
                return None
            self._sort(taken)
        return self._chunk.popleft()

    def close(self) -> None:
        """End it; harmless when repeated. The triggers go on."""
        self._finalizer()

    def __enter__(self) -> TriggerEvents:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncTriggerEvents(_Reading):
    """The same in a running loop; one task at a time may iterate."""

    def __aiter__(self) -> AsyncTriggerEvents:
        return self

    async def __anext__(self) -> TriggerEvent:
        while not self._chunk:
            taken = await take(self._buffer)
            if taken is None:
                raise StopAsyncIteration
            self._sort(taken)
        return self._chunk.popleft()

    async def close(self) -> None:
        """End it; harmless when repeated. The triggers go on."""
        self._finalizer()

    async def __aenter__(self) -> AsyncTriggerEvents:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Triggers:
    """Triggers as one client sees them; see :attr:`relay_client.Client.triggers`."""

    def __init__(self, owner: object, flows: ClientFlows) -> None:
        self._owner, self._flows = owner, flows

    def register(
        self,
        pattern: PatternLike,
        *,
        cooldown: Duration | None = None,
        one_shot: bool = False,
        expires: TimeLike | timedelta | None = None,
        unit: TimeUnit | None = None,
        trigger_id: str | None = None,
        listen: bool = True,
        timeout: float | None = None,
    ) -> Trigger:
        """Register a trigger; when this returns it is durable, and survives every restart.

        Args:
            pattern: made with :func:`relay_client.when`, or a Pattern message.
            cooldown: a match that completes less than this after a firing does not fire: ``5m`` or a timedelta.
            one_shot: over after its first firing.
            expires: end of its life by exchange time; a timedelta counts from now.
            unit: of ``expires`` as an integer.
            trigger_id: lower-case UUID text, such as ``str(uuid.uuid5(uuid.NAMESPACE_URL, "my-program/btc"))``, so that
                a program that starts again registers the same trigger, not a second one.
            listen: subscribe its firings first, and buffer them (10,000) until :meth:`events` is called.
            timeout: seconds; else ``request_timeout_seconds``.

        Raises:
            SettingsError: an argument is wrong.
            PatternError: INVALID_PATTERN, with place and reason.
            PeerError: UNKNOWN_EXCHANGE, UNKNOWN_SYMBOL; REQUEST_CONFLICT: the id is that of another trigger;
                OVERLOADED: there are too many.
            RetryableError: relay or manager are away; it may be registered all the same, see the text.
        """
        request = new_registration(
            pattern, cooldown=cooldown, one_shot=one_shot, expires=expires, unit=unit, trigger_id=trigger_id
        )
        return run(register(self._flows, request, listen=flag("listen", listen), timeout_s=timeout))

    def cancel(self, trigger: str | Trigger, *, timeout: float | None = None) -> bool:
        """Cancel a trigger, whoever registered it; return False when there is none of that id.

        Raises:
            SettingsError: the id is none.
            RetryableError: relay or manager are away.
        """
        return run(cancel(self._flows, id_of(trigger), timeout_s=timeout))

    def list(self, *, client_id: str = "", timeout: float | None = None) -> list[Trigger]:
        """Return the active triggers, ascending by id: all of them, or those that name a client as their owner.

        Raises:
            RetryableError: relay or manager are away.
        """
        return run(definitions(self._flows, client_id, timeout_s=timeout))

    def events(
        self,
        triggers: TriggersLike,
        *,
        start: TimeLike | None = None,
        unit: TimeUnit | None = None,
        buffer_max: int = BUFFER_MAX,
    ) -> TriggerEvents:
        """Return the firings of triggers, from :meth:`register` on or, for others, from now on; each once.

        Firings are in the log before they are published. What is lost on the way (a reconnect, a relay or manager that
        starts again, a jump of the stamps) is asked for from there and comes later, ``is_replayed``. A firing whose
        publication is lost shows only with the next one, or after the next reconnect; ``start`` finds it at once.
        When the log cannot be asked, :meth:`TriggerEvents.losses` has a :class:`TriggerLoss`, and when the reader is
        slower than the firings an :class:`Overrun`.

        Args:
            triggers: one or many, or their ids.
            start: firings since this exchange time first, as far back as the log goes.
            unit: of ``start`` as an integer.
            buffer_max: firings that wait for a slow reader; the oldest are dropped.

        Raises:
            SettingsError: an argument is wrong.
        """
        return TriggerEvents(open_stream(self._flows, triggers, start, unit, buffer_max), self._owner)


class AsyncTriggers:
    """The same with calls that are awaited; see :class:`Triggers` for arguments and errors."""

    def __init__(self, owner: object, flows: ClientFlows) -> None:
        self._owner, self._flows = owner, flows

    async def register(
        self,
        pattern: PatternLike,
        *,
        cooldown: Duration | None = None,
        one_shot: bool = False,
        expires: TimeLike | timedelta | None = None,
        unit: TimeUnit | None = None,
        trigger_id: str | None = None,
        listen: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - a deadline for the request, told to the engine
    ) -> Trigger:
        """Register a trigger; see :meth:`Triggers.register`."""
        request = new_registration(
            pattern, cooldown=cooldown, one_shot=one_shot, expires=expires, unit=unit, trigger_id=trigger_id
        )
        return await run_async(register(self._flows, request, listen=flag("listen", listen), timeout_s=timeout))

    async def cancel(self, trigger: str | Trigger, *, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Cancel a trigger; see :meth:`Triggers.cancel`."""
        return await run_async(cancel(self._flows, id_of(trigger), timeout_s=timeout))

    async def list(self, *, client_id: str = "", timeout: float | None = None) -> list[Trigger]:  # noqa: ASYNC109
        """Return the active triggers; see :meth:`Triggers.list`."""
        return await run_async(definitions(self._flows, client_id, timeout_s=timeout))

    def events(
        self,
        triggers: TriggersLike,
        *,
        start: TimeLike | None = None,
        unit: TimeUnit | None = None,
        buffer_max: int = BUFFER_MAX,
    ) -> AsyncTriggerEvents:
        """Return the firings of triggers, for ``async for``; see :meth:`Triggers.events`."""
        return AsyncTriggerEvents(open_stream(self._flows, triggers, start, unit, buffer_max), self._owner)
