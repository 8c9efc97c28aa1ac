"""The live sockets against small local servers that behave badly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import WSMsgType, web

from ingestors.clock import system_clock
from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import Connected, Disconnected, LiveLimits, LostCause, SocketEvent, Trades
from ingestors.exchanges.live.binance import LIMITS, BinanceProtocol
from ingestors.live.connections import LiveConnections
from ingestors.live.live_socket import SocketBounds
from relay.observability import Counters
from tests.support.ingestors import no_jitter
from tests.support.live import SECOND_NS, listing
from tests.support.processes import eventually

TICKER = "BTC/USDT.BINANCE"
MARKET = listing(TICKER, "BTCUSDT")
RULES = PlanRules(retry_ns=SECOND_NS // 5, refused_ns=SECOND_NS // 5, overlap_ns=SECOND_NS // 2)
TRADE = (
    '{"stream":"btcusdt@trade","data":{"e":"trade","E":1700000000123456,"s":"BTCUSDT","t":%d,'
    '"p":"37000.12000000","q":"0.00123000","T":1700000000123450,"m":true,"M":true}}'
)

Handler = Callable[[web.WebSocketResponse, web.Request], Awaitable[None]]


@dataclass
class Server:
    """Answers subscriptions; the rest is up to the test.

    Attributes:
        refusals: answers to the first handshakes.
        streams: subscribed ones, by connection.
        arrivals: time of each message in seconds of the loop's clock, by connection.
        control: what came besides texts.
    """

    refusals: list[web.Response] = field(default_factory=list)
    autoping: bool = True
    talks: bool = True
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    transports: list[asyncio.Transport] = field(default_factory=list)
    streams: list[list[str]] = field(default_factory=list)
    arrivals: list[list[float]] = field(default_factory=list)
    control: list[WSMsgType] = field(default_factory=list)
    handshakes: int = 0
    port: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.handshakes += 1
        if self.refusals:
            return self.refusals.pop(0)
        socket = web.WebSocketResponse(autoping=False, timeout=0.1)
        await socket.prepare(request)
        number = len(self.sockets)
        self.sockets.append(socket)
        assert request.transport is not None
        self.transports.append(request.transport)
        self.streams.append([])
        self.arrivals.append([])
        async for message in socket:
            if message.type != WSMsgType.TEXT:
                self.control.append(message.type)
                if message.type == WSMsgType.PING and self.autoping:
                    await socket.pong(message.data)
                continue
            self.arrivals[number].append(asyncio.get_running_loop().time())
            asked = json.loads(message.data)
            if asked["method"] == "SUBSCRIBE":
                self.streams[number] += asked["params"]
            if self.talks:
                await socket.send_str(json.dumps({"result": None, "id": asked["id"]}))
        return socket

    async def trade(self, number: int, *, line: int = -1) -> None:
        await self.sockets[line].send_str(TRADE % number)


@dataclass
class Client:
    connections: LiveConnections
    counters: Counters
    events: list[SocketEvent]

    def numbers(self) -> list[int]:
        return [trade.number for event in self.events if isinstance(event, Trades) for trade in event.trades]


class _Limited(BinanceProtocol):
    """The same protocol at an exchange with other limits."""

    given: LiveLimits = LIMITS

    @property
    def limits(self) -> LiveLimits:
        return self.given


@asynccontextmanager
async def _running(
    server: Server, *, limits: LiveLimits = LIMITS, rules: PlanRules = RULES, bounds: SocketBounds | None = None
) -> AsyncIterator[Client]:
    application = web.Application()
    application.router.add_get("/stream", server.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.port = runner.addresses[0][1]
    protocol = type("Limited", (_Limited,), {"given": limits})
    counters, events = Counters(), list[SocketEvent]()
    connections = LiveConnections(
        "BINANCE",
        protocol,
        base_url=f"ws://127.0.0.1:{server.port}",
        clock=system_clock(),
        counters=counters,
        jitter=no_jitter,
        deliver=events.append,
        rules=rules,
        bounds=bounds,
    )
    try:
        yield Client(connections, counters, events)
    finally:
        await connections.close()
        await runner.cleanup()


def _play(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def test_handshakes_refused_by_429_503_and_pages_of_html_are_tried_again_case_56() -> None:
    """Case 56: a refused handshake earns a pause, not a storm; whatever the body is."""

    async def scenario() -> None:
        page = "<html><body>blocked</body></html>"
        server = Server(
            refusals=[
                web.Response(status=429, text=page, content_type="text/html", headers={"Retry-After": "1"}),
                web.Response(status=503, text=page, content_type="text/html"),
                web.Response(status=502, text="x" * 100_000, content_type="text/html"),
                web.Response(status=200, text=page, content_type="text/html"),
                web.json_response({"message": "no"}, status=403),
            ]
        )
        async with _running(server) as client:
            began = asyncio.get_running_loop().time()
            client.connections.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            assert client.events == [Connected(TICKER)]
            assert server.handshakes == 6
            assert client.counters.get("live.binance.connects.failed") == 5
            assert asyncio.get_running_loop().time() - began >= 1.0

    _play(scenario)


def test_nobody_listening_is_tried_again() -> None:
    async def scenario() -> None:
        server = Server()
        async with _running(server) as client:
            port, server.port = server.port, 0
            away = LiveConnections(
                "BINANCE",
                BinanceProtocol,
                base_url="ws://127.0.0.1:1",
                clock=system_clock(),
                counters=client.counters,
                jitter=no_jitter,
                deliver=client.events.append,
                rules=RULES,
            )
            away.add(MARKET)
            await eventually(lambda: client.counters.get("live.binance.connects.failed") >= 3, what="three attempts")
            await away.close()
            assert (client.events, port > 0) == ([], True)

    _play(scenario)


def test_an_end_without_a_close_frame_and_a_close_frame_are_both_a_loss_case_59() -> None:
    """Case 59: EOF and 1006 look alike; trades come again on the next connection."""

    async def scenario() -> None:
        server = Server()
        async with _running(server) as client:
            client.connections.add(MARKET)
            for line, end in enumerate((lambda t: t.abort(), lambda t: t.close(), None)):
                await eventually(lambda n=line: len(client.events) == 3 * n + 1, what="the connection")
                await server.trade(line)
                await eventually(lambda n=line: client.numbers() == list(range(n + 1)), what="the trade")
                if end is None:
                    await server.sockets[-1].close(code=1012, message=b"restart")
                else:
                    end(server.transports[-1])
                await eventually(lambda n=line: len(client.events) >= 3 * n + 3, what="the loss")
            kinds = [e for e in client.events if not isinstance(e, Trades)]
            assert kinds[:6] == [Connected(TICKER), Disconnected(TICKER, LostCause.DISCONNECT)] * 3
            assert client.counters.get("live.binance.disconnects") == 3

    _play(scenario)


def test_a_mute_server_that_never_answers_pings_is_given_up() -> None:
    async def scenario() -> None:
        server = Server(autoping=False)
        async with _running(server, limits=replace(LIMITS, silence_ns=SECOND_NS)) as client:
            client.connections.add(MARKET)
            await eventually(lambda: len(server.sockets) == 2, what="the next connection")
            assert client.events[:2] == [Connected(TICKER), Disconnected(TICKER, LostCause.SILENCE)]
            assert WSMsgType.PING in server.control

    _play(scenario)


def test_a_server_that_only_answers_pings_is_kept_case_56() -> None:
    """Case 56: liveness by any frame, not by data."""

    async def scenario() -> None:
        server = Server()
        async with _running(server, limits=replace(LIMITS, silence_ns=4 * SECOND_NS)) as client:
            client.connections.add(MARKET)
            await eventually(lambda: len(server.control) >= 3, what="three pings")
            assert client.events == [Connected(TICKER)]
            assert len(server.sockets) == 1
            assert client.connections.alive_ns(TICKER) > 0

    _play(scenario)


def test_pings_of_the_server_are_answered() -> None:
    async def scenario() -> None:
        server = Server()
        async with _running(server) as client:
            client.connections.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            await server.sockets[0].ping(b"1700000000")
            await eventually(lambda: WSMsgType.PONG in server.control, what="the pong")

    _play(scenario)


def test_the_end_of_a_connections_life_is_handed_over_without_a_lost_trade() -> None:
    async def scenario() -> None:
        server = Server()
        async with _running(server, limits=replace(LIMITS, lifetime_ns=3 * SECOND_NS)) as client:
            client.connections.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            sent = 0
            while client.counters.get("live.binance.connects") < 3 or sent < 50:
                for line, socket in enumerate(server.sockets):
                    if not socket.closed and "btcusdt@trade" in server.streams[line]:
                        await server.trade(sent, line=line)
                sent += 1
                await asyncio.sleep(0)
                await eventually(lambda n=sent: client.numbers()[-1:] >= [n - 1], what="the trade")
            assert set(client.numbers()) == set(range(sent))
            assert [e for e in client.events if not isinstance(e, Trades)] == [Connected(TICKER)]

    _play(scenario)


def test_sixty_markets_share_connections_within_the_messages_a_second() -> None:
    async def scenario() -> None:
        server = Server()
        limits = replace(LIMITS, tickers_max=25)
        async with _running(server, limits=limits) as client:
            markets = [listing(f"A{n}/USDT.BINANCE", f"A{n}USDT") for n in range(60)]
            for market in markets[:30]:
                client.connections.add(market)
            await eventually(lambda: len(client.events) == 30, what="thirty markets")
            for market in markets[30:]:
                client.connections.add(market)
                await asyncio.sleep(0)
            for market in markets[:5]:
                client.connections.remove(str(market.ticker))
            await eventually(lambda: len(client.events) == 60, what="sixty markets")
            assert {e.ticker for e in client.events if isinstance(e, Connected)} == {str(m.ticker) for m in markets}
            assert len(server.sockets) == 3
            for times in server.arrivals:
                # The exchange counts by arrival: bunched up by the network, they may come a little closer than sent.
                assert all(sum(t <= at < t + 0.9 for at in times) <= LIMITS.messages_per_second_max for t in times)

    _play(scenario)


def test_a_message_over_the_bound_ends_the_connection_and_one_of_several_frames_is_whole() -> None:
    async def scenario() -> None:
        server = Server()
        async with _running(server, bounds=SocketBounds(message_bytes_max=4_096)) as client:
            client.connections.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            text = (TRADE % 1).encode()
            head, tail = text[:50], text[50:]
            server.transports[0].write(b"\x01" + bytes([len(head)]) + head)
            server.transports[0].write(b"\x80" + bytes([len(tail)]) + tail)
            await eventually(lambda: client.numbers() == [1], what="the trade in two frames")
            await server.sockets[0].send_str("x" * 5_000)
            await eventually(lambda: len(server.sockets) == 2, what="the next connection")
            await eventually(lambda: len(client.events) == 4, what="its subscription")
            half = b"\x7e" + (3_000).to_bytes(2, "big") + b"x" * 3_000
            server.transports[1].write(b"\x01" + half + b"\x80" + half)
            await eventually(lambda: len(server.sockets) == 3, what="another connection")

    _play(scenario)


def test_closing_while_connected_and_while_connecting_ends_everything() -> None:
    async def scenario() -> None:
        server = Server(refusals=[])
        async with _running(server) as client:
            client.connections.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            client.connections.add(listing("ETH/USDT.BINANCE", "ETHUSDT"))
            await client.connections.close()
            await eventually(lambda: all(socket.closed for socket in server.sockets), what="the close")
            assert server.handshakes == 1

    _play(scenario)


def test_a_consumer_that_breaks_costs_its_event_and_nothing_else() -> None:
    async def scenario() -> None:
        server = Server()
        async with _running(server) as client:
            broken = client.connections

            def deliver(event: SocketEvent) -> None:
                if isinstance(event, Trades) and event.trades[0].number == 1:
                    raise RuntimeError("a consumer's own fault")
                client.events.append(event)

            broken._deliver = deliver
            broken.add(MARKET)
            await eventually(lambda: client.events, what="the connection")
            await server.trade(1)
            await server.trade(2)
            await eventually(lambda: client.numbers() == [2], what="the other trade")
            assert client.counters.get("live.binance.messages.failed") == 1
            assert len(server.sockets) == 1

    _play(scenario)
