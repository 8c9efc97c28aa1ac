"""Which processors a thread may run on: optional; where it cannot be had the thread runs on, and the reason is told."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Pinning", "pin_thread"]


@dataclass(frozen=True, slots=True)
class Pinning:
    """What became of a wish.

    Attributes:
        asked: numbers of the processors that were asked for.
        in_force: of those that the thread may run on now.
        reason: why that is not what was asked for; empty when it is.
    """

    asked: frozenset[int]
    in_force: frozenset[int]
    reason: str = ""


def pin_thread(processors: Iterable[int]) -> Pinning:
    """Let the calling thread, and threads that it starts from now on, run on these processors alone.

    A thread that spins is quicker where nothing else runs beside it and its memory stays near. Never raises for what
    the machine lacks: see ``reason``. Costs one system call.

    Args:
        processors: their numbers, from 0; none changes nothing.

    Raises:
        ValueError: a number is negative.
    """
    asked = frozenset(processors)
    if any(number < 0 for number in asked):
        raise ValueError(f"expected numbers of processors from 0, got {sorted(asked)}")
    if not hasattr(os, "sched_setaffinity"):
        return Pinning(asked, frozenset(range(os.cpu_count() or 1)), "this system cannot pin threads" if asked else "")
    if not asked:
        return Pinning(asked, frozenset(os.sched_getaffinity(0)))
    try:
        os.sched_setaffinity(0, asked)
    except (OSError, OverflowError) as error:
        allowed = frozenset(os.sched_getaffinity(0))
        reason = error.strerror if isinstance(error, OSError) else "no system has processors of such numbers"
        return Pinning(asked, allowed, f"{reason}; this thread may run on {_shown(allowed)}")
    # The kernel leaves out what does not exist, as long as one is left.
    allowed = frozenset(os.sched_getaffinity(0))
    missing = asked - allowed
    return Pinning(asked, allowed, f"there is no processor {_shown(missing)} for it" if missing else "")


def _shown(processors: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(processors)))
