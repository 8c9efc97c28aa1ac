"""Makes a connection anew that libzmq has given up.

libzmq tries again after every network error, but never after a peer that speaks another protocol or is a socket of
another kind. A PUB hears nothing from its peer, so only the socket's monitor tells that nobody is there any more.
"""

from __future__ import annotations

import zmq
from zmq.utils.monitor import recv_monitor_message

from relay.engine.redial import Redial
from relay.transport.sockets import Socket, connect_socket, redial

__all__ = ["ConnectionWatch"]

_ENDED = frozenset(
    (
        zmq.EVENT_DISCONNECTED,
        zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
        zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    )
)
_REDIAL_NS = 5_000_000_000
"""More than libzmq lets pass between two attempts of its own."""


class ConnectionWatch:
    """Watches the one connection of a socket; used and closed in the socket's own thread.

    Args:
        socket: opened and not connected yet, so that nothing of its connection is missed.
        endpoint: connected to at once; the socket's only one.
        after_ns: so long after a connection's end without another attempt it is made anew.

    Raises:
        SettingsError: the endpoint makes no sense.
    """

    def __init__(self, socket: Socket, endpoint: str, *, after_ns: int = _REDIAL_NS) -> None:
        self._socket, self._endpoint = socket, endpoint
        self._redial = Redial(after_ns)
        self._has_ended = False
        self._monitor: Socket = socket.get_monitor_socket(zmq.EVENT_ALL)
        try:
            connect_socket(socket, endpoint)
        except BaseException:
            self.close()
            raise

    def turn(self, now_ns: int) -> bool:
        """Take what libzmq has told since the last call; return whether the connection was made anew.

        Args:
            now_ns: monotonic time.
        """
        while self._monitor.poll(0):
            # An end that libzmq means to mend is followed by the next attempt.
            self._has_ended = recv_monitor_message(self._monitor)["event"] in _ENDED
        if not self._has_ended:
            self._redial.worked()
            return False
        if not self._redial.failed(now_ns):
            return False
        self._has_ended = False
        redial(self._socket, self._endpoint)
        return True

    def close(self) -> None:
        """Stop watching; before the socket is closed."""
        self._socket.disable_monitor()
        self._monitor.close(0)
