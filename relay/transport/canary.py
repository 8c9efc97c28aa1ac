"""Asks a manual XPUB whether any peer holds a topic: a peer of our own adds it, and the topic count grows or not.

The option acts on the pipe that was read last, so the question waits until the canary's own mark has been read.
"""

from __future__ import annotations

import zmq

from relay.transport.sockets import Context, Socket, SocketKind, open_socket

__all__ = ["SubscriptionCanary"]

_MARK = b"\xffcanary"
_ENDPOINT = "inproc://subscription-canary"


class SubscriptionCanary:
    """One inproc peer of an XPUB.

    Args:
        context: of the XPUB.
        xpub: manual, already bound to its public endpoint.
    """

    def __init__(self, context: Context, xpub: Socket) -> None:
        self._xpub = xpub
        self._is_asked = False
        self.is_supported = _counts_topics(xpub)
        xpub.bind(_ENDPOINT)
        self._peer = open_socket(context, SocketKind.XSUB, connect=[_ENDPOINT])

    def ask(self) -> None:
        """Send the mark, unless one is under way."""
        if not self._is_asked:
            self._is_asked = True
            self._peer.send(b"\x01" + _MARK)

    def is_mark(self, frames: list[bytes]) -> bool:
        """Return whether a message of the XPUB is the canary's; then :meth:`is_held` may be called at once."""
        if len(frames) != 1 or frames[0][1:] != _MARK:
            return False
        if frames[0][:1] == b"\x01":
            self._is_asked = False
            self._peer.send(b"\x00" + _MARK)
        return frames[0][:1] == b"\x01"

    def is_echo(self, frames: list[bytes]) -> bool:
        """Return whether a message is the end of a mark, which means nothing."""
        return len(frames) == 1 and frames[0] == b"\x00" + _MARK

    def is_held(self, topic: bytes) -> bool:
        """Return whether another peer holds a topic; only while the mark is the message read last."""
        before = self._xpub.getsockopt(zmq.TOPICS_COUNT)
        self._xpub.setsockopt(zmq.SUBSCRIBE, topic)
        after = self._xpub.getsockopt(zmq.TOPICS_COUNT)
        self._xpub.setsockopt(zmq.UNSUBSCRIBE, topic)
        return bool(after == before)

    def close(self) -> None:
        """Close the peer."""
        self._peer.close(0)


def _counts_topics(xpub: Socket) -> bool:
    """A libzmq built without this option refuses it."""
    try:
        xpub.getsockopt(zmq.TOPICS_COUNT)
    except (zmq.ZMQError, AttributeError):
        return False
    return True
