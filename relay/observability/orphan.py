"""A child process that ends when its parent has died, however the parent died."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

__all__ = ["watch_parent"]


def watch_parent(parent_pid: int | None, on_orphaned: Callable[[], None], *, every_s: float = 0.5) -> None:
    """Call back once when this process's parent is no longer ``parent_pid``; None watches nothing."""
    if parent_pid is None:
        return

    def watch() -> None:
        ended = threading.Event()
        while os.getppid() == parent_pid:
            ended.wait(every_s)
        on_orphaned()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
