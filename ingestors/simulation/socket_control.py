"""Control of the sockets: faults, rates of driven markets, the replay's clock, and what went out.

- ``POST /control/socket-faults`` (one JSON fault or a list, see ``SocketFault``), ``GET`` lists, ``DELETE`` clears.
- ``POST /control/drive`` with ``{"exchange": "binance", "symbols": ["BTC/USDT"], "per_second": 5000}``: from now on the
  symbols together have so many trades a second, 0 for none. Answers with the first driven trade id of each symbol.
- ``POST /control/clock`` moves a live replay: ``{"trades": 100}``, ``{"seconds": 60}``, ``{"to": "2026-01-01T00:00Z"}``
  or ``{"to": "end"}``, answered when the sockets have been written; or ``{"speed": "max"}`` (``step``, ``max``, a
  factor). ``GET`` shows it.
- ``GET /control/sockets`` counts connections and trades by exchange and market.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict

import msgspec
from aiohttp import web

from ingestors.simulation.answers import JSON
from ingestors.simulation.replay_clock import parse_speed
from ingestors.simulation.socket_faults import SocketFaultBook, parse_socket_fault
from ingestors.simulation.socket_hub import SocketHub
from ingestors.simulation.socket_pump import SocketPump
from relay.errors import PeerError, RelayError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns, parse_iso_ns

__all__ = ["SetRate", "add_socket_control"]

SetRate = Callable[[str, str, int], int]
"""Given exchange, symbol and trades a second, drives the market and returns its first driven trade id."""

Handler = Callable[[object], object]


def add_socket_control(
    application: web.Application, *, faults: SocketFaultBook, pump: SocketPump, set_rate: SetRate
) -> None:
    """Add the routes.

    Args:
        application: mounted at ``/control``.
        faults: the book that requests change.
        pump: whose clock is moved and whose counts are shown.
        set_rate: drives a market.
    """

    def add_faults(value: object) -> object:
        parsed = [parse_socket_fault(item) for item in (value if isinstance(value, list) else [value])]
        return {"numbers": [faults.add(fault) for fault in parsed]}

    def clear_faults(_: object) -> object:
        faults.clear()
        return {"faults": []}

    def drive(value: object) -> object:
        order = _object(value, "exchange", "symbols", "per_second")
        symbols, total = order.get("symbols"), order.get("per_second")
        if not isinstance(symbols, list) or not symbols or not isinstance(total, int) or total < 0:
            raise _invalid("expected symbols as a list and per_second as a whole number from 0")
        share, rest = divmod(total, len(symbols))
        exchange = str(order.get("exchange"))
        return {"first_ids": {str(s): set_rate(exchange, str(s), share + (n < rest)) for n, s in enumerate(symbols)}}

    def move(value: object) -> object:
        _move(pump, _object(value, "trades", "seconds", "to", "speed"))
        return clock_state(None)

    def clock_state(_: object) -> object:
        clock = pump.replay
        if clock is None:
            raise _invalid("expected a simulation with a live replay; start it with --live-speed")
        now_ns = clock()
        return {"time_ns": now_ns, "time": format_ns(now_ns), "trades_left": clock.trades_left, "end": clock.is_at_end}

    def counts(_: object) -> object:
        return {"exchanges": {hub.name: _hub_state(hub) for hub in pump.hubs}}

    application.router.add_post("/socket-faults", _serving(add_faults))
    application.router.add_get("/socket-faults", _serving(lambda _: {"faults": faults.states()}))
    application.router.add_delete("/socket-faults", _serving(clear_faults))
    application.router.add_post("/drive", _serving(drive))
    application.router.add_post("/clock", _serving(move))
    application.router.add_get("/clock", _serving(clock_state))
    application.router.add_get("/sockets", _serving(counts))


def _move(pump: SocketPump, order: Mapping[str, object]) -> None:
    clock = pump.replay
    if clock is None or len(order) != 1:
        raise _invalid("expected one of trades, seconds, to and speed, and a simulation with a live replay")
    name, amount = next(iter(order.items()))
    if name == "speed":
        clock.set_speed(parse_speed(str(amount)))
        return
    if name == "to":
        clock.advance_to(1 << 62 if amount == "end" else parse_iso_ns(str(amount)))
    elif not isinstance(amount, int) or amount < 1:
        raise _invalid(f"expected {name} as a whole number from 1, got {amount!r}")
    elif name == "trades":
        clock.advance_trades(amount)
    else:
        clock.advance_to(clock() + amount * NANOSECONDS)
    pump.flush()


def _hub_state(hub: SocketHub) -> Mapping[str, object]:
    markets = {
        feed.source.listing.symbol: {"subscribers": len(feed.sessions), **asdict(feed.counts)}
        for feed in hub.feeds.values()
        if feed.sessions or feed.counts.due
    }
    return {"connections": hub.lines, "connects": hub.connects, "markets": markets}


def _serving(handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            value = handler(msgspec.json.decode(body) if body else None)
        except (RelayError, msgspec.DecodeError) as error:
            refusal = {"error": str(error), "code": ErrorCode.INVALID_REQUEST}
            return web.Response(status=400, body=msgspec.json.encode(refusal), content_type=JSON)
        return web.Response(body=msgspec.json.encode(value), content_type=JSON)

    return serve


def _object(value: object, *names: str) -> Mapping[str, object]:
    if not isinstance(value, dict) or not set(value) <= set(names):
        raise _invalid(f"expected a JSON object of {', '.join(names)}")
    return value


def _invalid(text: str) -> PeerError:
    return PeerError(text, code=ErrorCode.INVALID_REQUEST)
