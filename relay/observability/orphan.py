"""A child process that ends when its parent has died, however the parent died."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

__all__ = ["end_group", "is_orphaned", "watch_parent"]

_GRACE_S = 8.0


def is_orphaned(parent_pid: int | None) -> bool:
    """Return whether the parent is no longer ``parent_pid``; None is never orphaned."""
    return parent_pid is not None and os.getppid() != parent_pid


def watch_parent(
    parent_pid: int | None,
    on_orphaned: Callable[[], None],
    *,
    every_s: float = 0.5,
    grace_s: float = _GRACE_S,
) -> None:
    """Call back once when the parent has died; end the process by force when it is still there after the grace.

    A clean stop may hang on peers that died with the parent, and nobody is left who would kill this process.
    None as ``parent_pid`` watches nothing.
    """
    if parent_pid is None:
        return

    def watch() -> None:
        waiting = threading.Event()
        while not is_orphaned(parent_pid):
            waiting.wait(every_s)
        on_orphaned()
        waiting.wait(grace_s)
        end_group()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def end_group() -> None:
    """Kill this process, and with it its children when it leads a process group of its own."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(70)
