"""The bounded buffer between the client's thread and a subscription's user, who may be slow."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Any

from relay.errors import RelayError, RetryableError
from relay.protocol.codes import ErrorCode
from relay_client.engine.items import Tick
from relay_client.engine.live_values import CallbackFailed, Overrun
from relay_client.history import Bar

__all__ = ["BufferPolicy", "ItemBuffer"]

_CHUNK = 1_024


class BufferPolicy(StrEnum):
    """What happens when the buffer is full; the client's thread never waits.

    DROP_OLDEST and DROP_NEWEST drop items and put one :class:`Overrun` with their count in their place. RAISE ends the
    subscription with an error.
    """

    DROP_OLDEST = "drop_oldest"
    DROP_NEWEST = "drop_newest"
    RAISE = "raise"


class ItemBuffer:
    """Items in order, at most ``items_max`` of them.

    Args:
        items_max: bound.
        policy: what happens beyond it.
        is_conflating: keep only the newest tick or bar of each topic.
    """

    def __init__(self, items_max: int, policy: BufferPolicy, *, is_conflating: bool = False) -> None:
        self._items_max, self._policy, self._is_conflating = items_max, policy, is_conflating
        self._items: deque[Any] = deque()
        self._newest: dict[object, Any] = {}
        self._dropped = 0
        self._error: RelayError | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._pid = os.getpid()
        self._on_change: Callable[[], None] | None = None
        self._direct: Callable[[Sequence[Any]], None] | None = None
        self.dropped_total = 0
        self.conflated_total = 0

    def __len__(self) -> int:
        return len(self._items) + len(self._newest)

    @property
    def is_exhausted(self) -> bool:
        """Whether it is closed and empty."""
        return self._is_closed and not self._items and not self._newest

    def push(self, items: Iterable[Any]) -> None:
        """Append items; never waits for a reader."""
        with self._changed:
            if self._is_closed:
                return
            if self._direct is not None:
                self._direct(list(items))
                return
            if self._is_conflating:
                self._conflate(items)
            else:
                self._items.extend(items)
            over = len(self._items) - self._items_max
            if over > 0:
                self._drop(over)
            self._tell()

    def take(self, *, timeout_s: float | None = None, items_max: int = _CHUNK) -> Sequence[Any] | None:
        """Return the next items, waiting for the first; empty after the time, None when closed and empty.

        Raises:
            RelayError: what ended the subscription, once everything before it has been taken; or this process was
                forked from the one that subscribed: nothing would ever come.
        """
        # Before the lock: the thread that held it at the fork is not in this process.
        if self._pid != os.getpid():
            raise RelayError(
                f"this subscription was made in process {self._pid} and is used in {os.getpid()}: what comes to it "
                "comes there; make a client of this process's own"
            )
        with self._changed:
            if not (self._items or self._newest or self._dropped or self._is_closed):
                self._changed.wait(timeout_s)
            return self._take(items_max)

    def on_change(self, call: Callable[[], None] | None) -> None:
        """Have something called, in the client's thread, whenever items have come or the end."""
        self._on_change = call

    def pass_to(self, call: Callable[[Sequence[Any]], None]) -> None:
        """Keep nothing from now on: have items passed on in the client's thread, at once.

        What is buffered is passed on by this call. The call must neither wait nor use the client.
        """
        with self._changed:
            while taken := self._take(_CHUNK):
                call(taken)
            self._direct = call

    def close(self, error: RelayError | None = None) -> None:
        """End; what is buffered may still be taken. Harmless when repeated, and in a forked process."""
        if self._pid != os.getpid():
            return
        with self._changed:
            if not self._is_closed:
                self._is_closed, self._error = True, error
                if self._direct is not None and error is not None:
                    self._direct([CallbackFailed(str(error))])
            self._tell()

    def clear(self) -> None:
        """Drop what is buffered."""
        with self._changed:
            self._items.clear()
            self._newest.clear()
            self._dropped = 0

    def _take(self, items_max: int) -> Sequence[Any] | None:
        taken: list[Any] = []
        if self._dropped and self._policy is BufferPolicy.DROP_OLDEST:
            taken.append(self._overrun())
        while self._items and len(taken) < items_max:
            taken.append(self._items.popleft())
        if self._dropped and not self._items:
            taken.append(self._overrun())
        if self._newest:
            taken.extend(self._newest.values())
            self._newest.clear()
        if taken or not self._is_closed:
            return taken
        if self._error is not None:
            raise self._error
        return None

    def _overrun(self) -> Overrun:
        count, self._dropped = self._dropped, 0
        return Overrun(count)

    def _drop(self, count: int) -> None:
        if self._policy is BufferPolicy.RAISE:
            self._is_closed = True
            self._error = RetryableError(
                f"the subscription's buffer of {self._items_max} items was full: the reader is slower than the feed; "
                "read faster, raise buffer_max, or choose another policy",
                code=ErrorCode.OVERLOADED,
            )
        for _ in range(count):
            self._items.popleft() if self._policy is BufferPolicy.DROP_OLDEST else self._items.pop()
        self._dropped += count
        self.dropped_total += count

    def _conflate(self, items: Iterable[Any]) -> None:
        for item in items:
            if isinstance(item, Tick):
                key, time_ns = (item.ticker, 0), item.time_ns
                known = self._newest.get(key)
                self.conflated_total += known is not None
                if known is None or known.time_ns <= time_ns:
                    self._newest[key] = item
            elif isinstance(item, Bar):
                self.conflated_total += (item.ticker, item.period_seconds) in self._newest
                self._newest[item.ticker, item.period_seconds] = item
            else:
                self._items.append(item)

    def _tell(self) -> None:
        self._changed.notify_all()
        if self._on_change is not None:
            self._on_change()
