"""Waiting for a ring inside asyncio, without a thread and without burning a processor."""

from __future__ import annotations

import asyncio
import math
from typing import Protocol

__all__ = ["SleepingReader", "ready"]

_BRIEFLY_S = 0.001
_LOOK_AGAIN_S = 1.0
"""A publisher that has no descriptor left cannot ring; so the longest sleep between two looks is bounded."""


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
        ends_at = None if timeout is None else loop.time() + timeout
        while (armed := reader.arm()) != 0:
            left_s = math.inf if ends_at is None else ends_at - loop.time()
            if left_s < 0:
                return False
            try:
                async with asyncio.timeout(min(left_s, _BRIEFLY_S if armed == 2 else _LOOK_AGAIN_S)):
                    await woken
            except TimeoutError:
                continue
            return True
        return True
    finally:
        loop.remove_reader(descriptor)
