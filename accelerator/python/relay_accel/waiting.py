"""Waiting for a ring inside asyncio, without a thread and without burning a processor."""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["SleepingReader", "ready"]

_BRIEFLY_S = 0.001


class SleepingReader(Protocol):
    """A consumer or receiver of a named segment."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""

    def arm(self) -> int:
        """Say that the reader will sleep; see :meth:`relay_accel.Consumer.arm`."""


async def ready(reader: SleepingReader, *, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - of the wait itself
    """Wait until there is something to read, or a needless wake-up.

    Args:
        reader: of a named ring, for this event loop alone.
        timeout: seconds; None waits without end.

    Returns:
        False when the time was over. After True a poll may still bring nothing: wait again then.
    """
    loop = asyncio.get_running_loop()
    descriptor, woken = reader.fileno(), loop.create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        armed = reader.arm()
        if armed == 0:
            return True
        if armed == 2:
            timeout = _BRIEFLY_S if timeout is None else min(timeout, _BRIEFLY_S)
        try:
            async with asyncio.timeout(timeout):
                await woken
        except TimeoutError:
            # After a brief sleep the caller looks by itself: a publisher may have missed it.
            return armed == 2
        return True
    finally:
        loop.remove_reader(descriptor)
