"""The HTTP rim of a shape: an aiohttp application that counts, delays, breaks and answers requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from email.utils import formatdate

from aiohttp import web

from ingestors.simulation.answers import Answer, Call, Handler, RefusedCall, RestShape
from ingestors.simulation.faults import Fault, FaultBook, FaultKind, RetryAfter
from ingestors.simulation.request_log import RequestLog, SeenRequest
from relay.protocol.periods import NANOSECONDS

__all__ = ["Clock", "ShapeApplication", "html_answer"]

Clock = Callable[[], int]
"""Nanoseconds since the epoch."""

_HTML = b"<html>\n<head><title>%d</title></head>\n<body><center><h1>%d</h1></center></body>\n</html>\n"


def html_answer(status: int, headers: Mapping[str, str]) -> web.Response:
    """Return the page that stands for a server before the exchange itself."""
    return web.Response(status=status, body=_HTML % (status, status), content_type="text/html", headers=headers)


class ShapeApplication:
    """Serves one shape.

    Args:
        shape: the exchange.
        clock: the exchange's time.
        wall_clock: real time, for limits and for dates in headers.
        faults: asked for each request.
        requests: told of each request.
    """

    def __init__(
        self, shape: RestShape, *, clock: Clock, wall_clock: Clock, faults: FaultBook, requests: RequestLog
    ) -> None:
        self._shape = shape
        self._clock = clock
        self._wall_clock = wall_clock
        self._faults = faults
        self._requests = requests
        self._base = f"/{shape.name}"

    def application(self) -> web.Application:
        """Return a new application to be mounted at ``/{name}``."""
        application = web.Application()
        for path, handler in self._shape.routes().items():
            application.router.add_get(path, self._serving(handler))
        application.router.add_route("*", "/{unknown:.*}", self._serving(lambda _: self._shape.failure(404)))
        return application

    def _serving(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            call = self._call(request)
            slow = call.fault(FaultKind.SLOW)
            if slow is not None:
                await asyncio.sleep(slow.delay_ms / 1_000)
            if call.fault(FaultKind.DISCONNECT) is not None:
                self._note(call, 0)
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=500)
            answer = self._answer(call, handler)
            self._note(call, answer.status)
            return web.Response(
                status=answer.status,
                body=answer.body,
                headers={**self._shape.headers(), **answer.headers},
                content_type=answer.content_type,
            )

        return serve

    def _call(self, request: web.Request) -> Call:
        path = request.path.removeprefix(self._base)
        return Call(
            path=path,
            now_ns=self._clock(),
            wall_ns=self._wall_clock(),
            parameters=dict(request.query),
            parts=dict(request.match_info),
            headers={name.lower(): value for name, value in request.headers.items()},
            faults=self._faults.take(self._shape.name, path),
        )

    def _answer(self, call: Call, handler: Handler) -> Answer:
        broken = self._broken(call)
        if broken is not None:
            return broken
        refusal = self._shape.admit(call)
        if refusal is not None:
            return refusal
        try:
            answer = handler(call)
        except RefusedCall as refused:
            return refused.answer
        if call.fault(FaultKind.TRUNCATED) is not None:
            return replace(answer, body=answer.body[: len(answer.body) // 2])
        return answer

    def _broken(self, call: Call) -> Answer | None:
        for fault in call.faults:
            if fault.kind == FaultKind.HTML:
                status = fault.status or 503
                return Answer(status, _HTML % (status, status), content_type="text/html")
            if fault.kind == FaultKind.ERROR:
                return self._shape.failure(fault.status, code=fault.code, message=fault.message)
            if fault.kind in (FaultKind.THROTTLED, FaultKind.BANNED):
                answer = self._shape.failure(
                    429 if fault.kind == FaultKind.THROTTLED else 418, code=fault.code, message=fault.message
                )
                return replace(answer, headers=self._retry_after(fault))
        return None

    def _retry_after(self, fault: Fault) -> dict[str, str]:
        if fault.retry_after == RetryAfter.MISSING:
            return {}
        if fault.retry_after == RetryAfter.SECONDS:
            return {"Retry-After": str(fault.retry_after_seconds)}
        at = self._wall_clock() // NANOSECONDS + fault.retry_after_seconds
        return {"Retry-After": formatdate(at, usegmt=True)}

    def _note(self, call: Call, status: int) -> None:
        kinds = tuple(fault.kind.value for fault in call.faults)
        self._requests.add(self._base + call.path, SeenRequest(call.parameters, status, kinds))
