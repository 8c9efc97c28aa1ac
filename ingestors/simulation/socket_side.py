"""The network rim of an exchange's sockets: handshakes, reading, and frames written in one go."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import WSMsgType, web

from ingestors.simulation.http_side import Clock, html_answer
from ingestors.simulation.request_log import RequestLog, SeenRequest
from ingestors.simulation.socket_faults import SocketFaultKind
from ingestors.simulation.socket_frames import BINARY, PING, PONG, TEXT, frame
from ingestors.simulation.socket_hub import SocketHub
from ingestors.simulation.socket_values import ABRUPT, Binary, Close, Moment, Ping, SocketSession, ToSend

__all__ = ["MakeSession", "SocketSide"]

MakeSession = Callable[[web.Request], SocketSession | web.Response]
"""Returns the session of a handshake, or the answer that refuses it."""

_MESSAGE_BYTES_MAX = 256 * 1024
_CLOSE_SECONDS = 1


class SocketSide:
    """Serves one exchange's sockets.

    Args:
        hub: the exchange.
        make_session: called for each handshake.
        clock: the exchange's time.
        wall_clock: real time.
        requests: told of each handshake, under the path without its last part.
    """

    def __init__(
        self,
        hub: SocketHub,
        make_session: MakeSession,
        *,
        clock: Clock,
        wall_clock: Clock,
        requests: RequestLog,
    ) -> None:
        self._hub = hub
        self._make_session = make_session
        self._clock = clock
        self._wall_clock = wall_clock
        self._requests = requests
        self._lines: set[_OpenLine] = set()

    @property
    def hub(self) -> SocketHub:
        """The exchange."""
        return self._hub

    def handler(self, path: str) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of a path, which is also its name in the request log."""

        async def serve(request: web.Request) -> web.StreamResponse:
            refusal = self._refusal(request)
            session = refusal or self._make_session(request)
            status = session.status if isinstance(session, web.Response) else 101
            kinds = () if refusal is None else (SocketFaultKind.REFUSE.value,)
            self._requests.add(path, SeenRequest(dict(request.query), status, kinds))
            return session if isinstance(session, web.Response) else await self._run(request, session)

        return serve

    async def stop(self) -> None:
        """Close every connection with 1001."""
        for line in list(self._lines):
            line.send([Close(1001, "going away")])
        await asyncio.gather(*(line.ended() for line in list(self._lines)))

    def moment(self) -> Moment:
        """Return the instant."""
        return Moment(self._clock(), self._wall_clock())

    def _refusal(self, request: web.Request) -> web.Response | None:
        fault = self._hub.faults.take(SocketFaultKind.REFUSE, self._hub.name)
        if fault is None:
            if self._hub.admits(request.remote or "", wall_ns=self._wall_clock()):
                return None
            return html_answer(429, {})
        headers = {"Retry-After": str(fault.retry_after_seconds)} if fault.retry_after_seconds else {}
        if fault.is_json:
            return web.json_response({"message": "refused"}, status=fault.status, headers=headers)
        return html_answer(fault.status, headers)

    async def _run(self, request: web.Request, session: SocketSession) -> web.StreamResponse:
        socket = web.WebSocketResponse(
            autoping=False, compress=False, max_msg_size=_MESSAGE_BYTES_MAX, timeout=_CLOSE_SECONDS
        )
        await socket.prepare(request)
        if request.transport is None:
            return socket
        line = _OpenLine(session, socket, request.transport)
        self._lines.add(line)
        try:
            self._hub.add(line, self.moment())
            async for message in socket:
                self._take(line, message.type, message.data)
        finally:
            self._hub.remove(line)
            self._lines.discard(line)
        return socket

    def _take(self, line: _OpenLine, kind: WSMsgType, data: str | bytes) -> None:
        if line.is_closing:
            return
        payload = data.encode() if isinstance(data, str) else data
        if kind in (WSMsgType.TEXT, WSMsgType.BINARY):
            items = line.session.received(payload, self.moment())
        elif kind == WSMsgType.PING:
            self._pong(line, payload)
            items = line.session.pinged(self.moment())
        elif kind == WSMsgType.PONG:
            items = line.session.ponged(payload, self.moment())
        else:
            items = ()
        self._hub.say(line, list(items))

    def _pong(self, line: _OpenLine, payload: bytes) -> None:
        faults, name = self._hub.faults, self._hub.name
        if faults.take(SocketFaultKind.NO_PONG, name) is not None:
            return
        slow = faults.take(SocketFaultKind.SLOW_PONG, name)
        if slow is None:
            line.write(frame(PONG, payload))
        else:
            asyncio.get_running_loop().call_later(slow.delay_ms / 1_000, line.write, frame(PONG, payload))


class _OpenLine:
    """One connection: whole frames go to the transport directly, between the library's own, which are whole as well."""

    def __init__(self, session: SocketSession, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        self.session = session
        self.is_closing = False
        self._socket = socket
        self._transport = transport
        self._closing: asyncio.Task[bool] | None = None

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""
        return self._transport.get_write_buffer_size()

    def send(self, items: list[ToSend]) -> None:
        """Write everything up to a close in one go."""
        frames: list[bytes] = []
        end: Close | None = None
        for item in items:
            if isinstance(item, bytes):
                frames.append(frame(BINARY if isinstance(item, Binary) else TEXT, item))
            elif isinstance(item, Ping):
                frames.append(frame(PING, item.payload))
            else:
                end = item
                break
        if frames:
            self.write(b"".join(frames))
        if end is not None:
            self._end(end)

    def write(self, data: bytes) -> None:
        """Write whole frames, unless the end has begun."""
        if not self.is_closing and not self._transport.is_closing():
            self._transport.write(data)

    async def ended(self) -> None:
        """Wait for the end of a closing connection."""
        if self._closing is not None:
            await asyncio.wait([self._closing])

    def _end(self, close: Close) -> None:
        if self.is_closing:
            return
        self.is_closing = True
        if close.code == ABRUPT:
            self._transport.abort()
        else:
            self._closing = asyncio.ensure_future(self._socket.close(code=close.code, message=close.reason.encode()))
