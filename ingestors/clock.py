"""Time as the ingestor's drivers see it; handed in, so that tests decide what time it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["Clock", "system_clock"]


@dataclass(frozen=True, slots=True)
class Clock:
    """Time sources in nanoseconds.

    Attributes:
        wall_ns: UTC since the epoch; for records and dates in headers.
        monotonic_ns: never jumps; for leases, budgets and intervals.
        sleep_ns: lets others run for this long.
    """

    wall_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]
    sleep_ns: Callable[[int], Awaitable[None]]


def system_clock() -> Clock:
    """Return the machine's clock."""
    return Clock(time.time_ns, time.monotonic_ns, _sleep_ns)


async def _sleep_ns(duration_ns: int) -> None:
    await asyncio.sleep(max(0, duration_ns) / 1_000_000_000)
