"""One WebSocket to an exchange: frames become whole messages with the time at which they came."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from picows import WSError, WSFrame, WSHandshakeError, WSListener, WSMsgType, WSTransport, ws_connect

from ingestors.engine.outcomes import HttpAnswer, Outcome, OutcomeKind, classify

__all__ = ["LiveSocket", "SocketBounds", "SocketOwner", "open_socket"]

_OPEN_SECONDS = 15
_CLOSE_SECONDS = 1
_WHOLE = (WSMsgType.TEXT, WSMsgType.BINARY)
_GOING = (WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION)
_QUIET = logging.getLogger(f"{__name__}.frames")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


@dataclass(frozen=True, slots=True)
class SocketBounds:
    """Bounds of one connection.

    Attributes:
        message_bytes_max: a larger frame, or message of several frames, ends the connection.
    """

    message_bytes_max: int = 4 * 1024 * 1024


class SocketOwner(Protocol):
    """Whom a socket tells; every call returns at once."""

    def socket_opened(self, number: int, socket: LiveSocket) -> None:
        """It is up."""

    def socket_message(self, number: int, data: bytes, received_ns: int) -> None:
        """A whole message came."""

    def socket_alive(self, number: int, received_ns: int) -> None:
        """A frame without a message came."""

    def socket_ended(self, number: int, text: str) -> None:
        """It is gone."""


class LiveSocket(WSListener):
    """Receives the frames of one connection.

    Args:
        number: of the connection, handed back with every call.
        owner: told what happens.
        wall_ns: the clock that messages are stamped with, before anything reads them.
        bounds: of the connection.
    """

    def __init__(self, number: int, owner: SocketOwner, *, wall_ns: Callable[[], int], bounds: SocketBounds) -> None:
        self._number, self._owner, self._wall_ns, self._bounds = number, owner, wall_ns, bounds
        self._transport: WSTransport | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._ending = ""
        self._end: asyncio.Task[None] | None = None

    def on_ws_connected(self, transport: WSTransport) -> None:
        """See the library."""
        self._transport = transport
        self._end = asyncio.get_running_loop().create_task(_ended(transport))
        self._owner.socket_opened(self._number, self)

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """See the library."""
        received_ns = self._wall_ns()
        kind = frame.msg_type
        is_whole = frame.fin and not self._parts and not frame.rsv1
        # The library lets a frame over the bound pass when it is in its buffer already.
        if kind in _WHOLE and is_whole and frame.payload_size <= self._bounds.message_bytes_max:
            self._owner.socket_message(self._number, frame.get_payload_as_bytes(), received_ns)
        elif kind in _GOING:
            self._take_part(transport, frame, received_ns)
        elif kind == WSMsgType.CLOSE:
            code = frame.get_close_code()
            self._ending = self._ending or f"closed by the exchange with {code} {frame.get_close_reason() or ''}"
            transport.send_close(code)
            transport.disconnect()
        else:
            self._owner.socket_alive(self._number, received_ns)

    def on_ws_disconnected(self, transport: WSTransport) -> None:  # noqa: ARG002 - the library's signature
        """See the library."""
        self._owner.socket_ended(self._number, self._ending[:200] or "ended without a close frame (1006)")

    def send_text(self, data: bytes) -> None:
        """Send a message."""
        if self._transport is not None:
            self._transport.send(WSMsgType.TEXT, data)

    def send_ping(self) -> None:
        """Send a ping."""
        if self._transport is not None:
            self._transport.send_ping(b"alive")

    def close(self) -> None:
        """Say goodbye and close, without waiting for the exchange's answer."""
        if self._transport is not None and not self._transport.is_disconnected:
            self._transport.send_close()
            self._transport.disconnect(graceful=True)

    async def closed(self) -> None:
        """Wait for the end; a peer that takes nothing in is cut off."""
        if self._transport is None or self._end is None:
            return
        await asyncio.wait([self._end], timeout=_CLOSE_SECONDS)
        if not self._end.done():
            self._transport.disconnect(graceful=False)
            await asyncio.wait([self._end], timeout=_CLOSE_SECONDS)

    def _take_part(self, transport: WSTransport, frame: WSFrame, received_ns: int) -> None:
        """Put a message of several frames together, within the bound."""
        self._size += frame.payload_size
        is_first = frame.msg_type != WSMsgType.CONTINUATION
        if self._size > self._bounds.message_bytes_max or frame.rsv1 or is_first == bool(self._parts):
            self._ending = "the exchange broke the protocol: frames out of turn, compressed, or too many bytes"
            transport.disconnect(graceful=False)
            return
        self._parts.append(frame.get_payload_as_bytes())
        if frame.fin:
            data, self._parts, self._size = b"".join(self._parts), [], 0
            self._owner.socket_message(self._number, data, received_ns)
        else:
            self._owner.socket_alive(self._number, received_ns)


async def _ended(transport: WSTransport) -> None:
    """Wait for the end and take its error, which is told by the frames already."""
    with contextlib.suppress(WSError):
        await transport.wait_disconnected()


async def open_socket(
    socket: LiveSocket, url: str, *, wall_ns: int, bounds: SocketBounds, headers: Mapping[str, str] | None = None
) -> Outcome | None:
    """Connect a socket; None when it is up, else what the exchange or the network answered.

    Args:
        socket: told when it is up.
        url: ``ws`` or ``wss``.
        wall_ns: for dates in headers.
        bounds: of the connection.
        headers: of the handshake; they may hold a key, so a redirect to elsewhere is not followed with them.
    """
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            await ws_connect(
                lambda: socket,
                url,
                websocket_handshake_timeout=_OPEN_SECONDS,
                max_frame_size=bounds.message_bytes_max,
                enable_auto_pong=True,
                extra_headers=headers,
                max_redirects=0 if headers else 2,
                logger_name=_QUIET,
            )
    except WSHandshakeError as error:
        return _refusal(error, wall_ns)
    except (OSError, TimeoutError, WSError, ValueError) as error:
        return Outcome(OutcomeKind.TRANSIENT, f"no connection: {type(error).__name__} {error}".strip())
    return None


def _refusal(error: WSHandshakeError, wall_ns: int) -> Outcome:
    """Classify the HTTP answer by its status; its body may be anything."""
    response = error.response
    if response is None or response.status == 101:
        return Outcome(OutcomeKind.TRANSIENT, f"no WebSocket answer: {error}")
    answer = HttpAnswer(
        status=int(response.status),
        retry_after=response.headers.get("Retry-After"),
        date=response.headers.get("Date"),
        text=(error.raw_body or b"")[:400].decode("utf-8", "replace"),
    )
    outcome = classify(answer, wall_ns=wall_ns, body_kind=lambda _: None)
    return outcome if outcome.kind is not OutcomeKind.OK else Outcome(OutcomeKind.TRANSIENT, f"HTTP {answer.status}")
