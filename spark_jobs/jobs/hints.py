"""Hints to the manager: PUSH → 5561. The fast way only; what is lost here the manager finds in the tables."""

from __future__ import annotations

import threading

from google.protobuf.message import Message

from relay.observability import Counters
from relay.protocol.envelope import encode
from relay.transport import Context, SendOutcome, SocketKind, SocketLimits, open_socket, send

__all__ = ["HintSender"]


class HintSender:
    """Sends notifications without ever blocking the job; what cannot be queued is counted. Thread-safe.

    Args:
        context: ZeroMQ context of the process.
        endpoint: the manager's PULL socket.
        counters: ``hints.sent`` and ``hints.dropped``.
    """

    def __init__(self, context: Context, endpoint: str, counters: Counters) -> None:
        self._socket = open_socket(
            context, SocketKind.PUSH, connect=[endpoint], limits=SocketLimits(send_queue_max=10_000)
        )
        self._counters = counters
        self._lock = threading.Lock()

    def send(self, topic: bytes, message: Message) -> None:
        """Queue one message for the manager."""
        frames = [topic, *encode(message)]
        # A job that is made anew shares it with what may still run of the one before.
        with self._lock:
            outcome = send(self._socket, frames)
        self._counters.add("hints.sent" if outcome is SendOutcome.SENT else "hints.dropped")

    def close(self) -> None:
        """Close; what is still queued is dropped."""
        self._socket.close(0)
