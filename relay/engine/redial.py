"""When a connection has to be made anew: libzmq gives one up for good after a peer that speaks another protocol."""

from __future__ import annotations

__all__ = ["Redial"]


class Redial:
    """Watches one connection: it fails although the other side is said to live.

    Args:
        after_ns: how long it may fail before it is made anew, and again after each time.
    """

    def __init__(self, after_ns: int) -> None:
        self._after_ns = after_ns
        self._failing_ns: int | None = None

    def worked(self) -> None:
        """Something went through."""
        self._failing_ns = None

    def failed(self, now_ns: int) -> bool:
        """Nothing went through; return whether the connection is to be made anew now."""
        if self._failing_ns is None:
            self._failing_ns = now_ns
        if now_ns - self._failing_ns < self._after_ns:
            return False
        self._failing_ns = now_ns
        return True
