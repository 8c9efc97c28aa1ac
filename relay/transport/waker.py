"""Wakes a poll loop from another thread."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["Waker"]


class Waker:
    """A byte on a socket pair: ``wake()`` from any thread, ``fileno()`` into a poller, ``drain()`` in the loop."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def fileno(self) -> int:
        """File descriptor that has input after a wake."""
        return self._reader.fileno()

    def wake(self) -> None:
        """Wake the loop; cheap when it is awake already, harmless after close."""
        with contextlib.suppress(BlockingIOError, OSError):
            self._writer.send(b"\0")

    def drain(self) -> None:
        """Take back all wakes so far."""
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def close(self) -> None:
        """Close both ends."""
        self._reader.close()
        self._writer.close()
