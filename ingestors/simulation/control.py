"""The control endpoints: faults, requests seen, health.

``POST /control/faults`` (one JSON fault or a list), ``GET`` lists them, ``DELETE`` clears them;
``GET /control/requests`` (``DELETE`` forgets them); ``GET /control/health``. What moves the sockets is in
``socket_control``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from aiohttp import web

from ingestors.simulation.answers import JSON
from ingestors.simulation.faults import FaultBook, parse_fault
from ingestors.simulation.request_log import RequestLog
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = ["control_application"]


def control_application(
    *, faults: FaultBook, requests: RequestLog, health: Callable[[], Mapping[str, object]]
) -> web.Application:
    """Return the application to be mounted at ``/control``.

    Args:
        faults: the book that requests change.
        requests: the log that is shown.
        health: called for each health request.
    """

    async def add_faults(request: web.Request) -> web.Response:
        try:
            value = msgspec.json.decode(await request.read())
            parsed = [parse_fault(item) for item in (value if isinstance(value, list) else [value])]
        except (PeerError, msgspec.DecodeError) as error:
            return _json({"error": str(error), "code": ErrorCode.INVALID_REQUEST}, status=400)
        return _json({"numbers": [faults.add(fault) for fault in parsed]})

    async def list_faults(_: web.Request) -> web.Response:
        return _json({"faults": faults.states()})

    async def clear_faults(_: web.Request) -> web.Response:
        faults.clear()
        return _json({"faults": []})

    async def list_requests(_: web.Request) -> web.Response:
        return _json(requests.report())

    async def clear_requests(_: web.Request) -> web.Response:
        requests.clear()
        return _json(requests.report())

    async def show_health(_: web.Request) -> web.Response:
        return _json(health())

    application = web.Application()
    application.router.add_post("/faults", add_faults)
    application.router.add_get("/faults", list_faults)
    application.router.add_delete("/faults", clear_faults)
    application.router.add_get("/requests", list_requests)
    application.router.add_delete("/requests", clear_requests)
    application.router.add_get("/health", show_health)
    return application


def _json(value: object, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), content_type=JSON)
