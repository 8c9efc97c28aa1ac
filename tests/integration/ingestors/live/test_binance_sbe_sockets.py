"""Binance's binary streams over real sockets of the simulated exchange: equal to JSON, repaired by REST, with a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from ingestors.engine.feed_values import Disconnected, LiveTrade, LostCause
from ingestors.engine.outcomes import OutcomeKind
from ingestors.live.live_socket import LiveSocket, SocketBounds, open_socket
from ingestors.simulation.binance_sbe_socket import SIMULATED_KEY
from ingestors.simulation.server import SimulatedExchange
from ingestors.simulation.socket_faults import SocketFault, SocketFaultKind
from relay.errors import SettingsError
from tests.support.accelerator import accelerator
from tests.support.live import LiveBench, live_bench
from tests.support.processes import eventually
from tests.support.simulated import GENEROUS

accelerator()

TICKER = "BTC/USDT.BINANCE"


@asynccontextmanager
async def _running(*transports: str, key: str = SIMULATED_KEY) -> AsyncIterator[tuple[SimulatedExchange, *tuple]]:
    async with SimulatedExchange(limits=GENEROUS) as server:
        urls = {"base_urls": server.base_urls, "socket_urls": server.socket_urls}
        used = [live_bench("BINANCE", binance_transport=name, binance_api_key=key, **urls) for name in transports]
        try:
            yield server, *used
        finally:
            for one in used:
                await one.close()


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def _numbers(trade: LiveTrade) -> tuple[object, ...]:
    """All but the time at which it came."""
    return (
        trade.number,
        trade.time_ns,
        trade.price,
        trade.price_decimals,
        trade.amount,
        trade.amount_decimals,
        trade.taker_buy,
        trade.sequence,
    )


async def _connected(used: LiveBench) -> None:
    await used.add(TICKER)
    await eventually(lambda: used.is_connected(TICKER), what="the subscription")


async def _reached(used: LiveBench, number: int) -> dict[int, LiveTrade]:
    return await eventually(
        lambda: t if max(t := used.trades(TICKER), default=0) >= number else {}, what=f"trade {number}"
    )


def test_both_transports_deliver_the_same_trades_at_the_same_time() -> None:
    async def scenario() -> None:
        async with _running("sbe", "json") as (server, binary, text):
            await _connected(binary)
            await _connected(text)
            first = server.drive("binance", "BTC/USDT", 500)
            ours, theirs = [await _reached(used, first + 500) for used in (binary, text)]
            wanted = range(first, first + 500)
            assert [_numbers(ours[n]) for n in wanted] == [_numbers(theirs[n]) for n in wanted]
            assert binary.counters.get("live.binance.messages.unreadable") == 0

    _run(scenario)


@pytest.mark.parametrize("close_code", [1006, 1001])
def test_what_a_lost_connection_missed_is_filled_by_rest_with_the_same_ids(close_code: int) -> None:
    async def scenario() -> None:
        async with _running("sbe") as (server, used):
            await _connected(used)
            first = server.drive("binance", "BTC/USDT", 200)
            await _reached(used, first + 50)
            server.socket_faults.add(SocketFault(SocketFaultKind.DISCONNECT, count=1, close_code=close_code))
            await eventually(lambda: used.of_kind(Disconnected), what="the loss")
            await eventually(lambda: used.is_connected(TICKER), what="the reconnect")
            assert used.of_kind(Disconnected) == [Disconnected(TICKER, LostCause.DISCONNECT)]
            last = max(used.trades(TICKER)) + 100
            live = await _reached(used, last)
            market = await used.market.find(TICKER)
            filled: dict[int, LiveTrade] = {}
            async for page in used.market.filler.fill(market, first=first, last=last, after_time_ns=0):
                filled |= {trade.number: trade for trade in page}
            assert list(filled) == list(range(first, last + 1))
            both = sorted(filled.keys() & live.keys())
            assert both
            assert [_numbers(filled[n]) for n in both] == [_numbers(live[n]) for n in both]

    _run(scenario)


@pytest.mark.parametrize("kind", [SocketFaultKind.BAD_JSON, SocketFaultKind.TRUNCATED])
def test_spoiled_binary_frames_are_counted_and_end_nothing(kind: SocketFaultKind) -> None:
    async def scenario() -> None:
        async with _running("sbe") as (server, used):
            await _connected(used)
            server.socket_faults.add(SocketFault(kind, every_trades=10, count=5))
            first = server.drive("binance", "BTC/USDT", 200)
            found = await _reached(used, first + 100)
            assert used.counters.get("live.binance.messages.unreadable") == 5
            assert len(set(range(first, first + 100)) - set(found)) == 5
            assert not used.of_kind(Disconnected)

    _run(scenario)


def test_a_planned_stop_is_told_in_json_and_left_without_a_loss() -> None:
    async def scenario() -> None:
        async with _running("sbe") as (server, used):
            await _connected(used)
            first = server.drive("binance", "BTC/USDT", 200)
            await _reached(used, first + 20)
            server.socket_faults.add(SocketFault(SocketFaultKind.SHUTDOWN, delay_ms=4_000))
            await eventually(lambda: used.counters.get("live.binance.connects") == 2, what="the second connection")
            await eventually(lambda: used.counters.get("live.binance.connections") == 1, what="the hand-over")
            last = max(used.trades(TICKER)) + 20
            found = await _reached(used, last)
            assert set(range(first, last + 1)) <= set(found)
            assert not used.of_kind(Disconnected)

    _run(scenario)


def test_a_wrong_key_is_refused_at_the_handshake_and_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with _running("sbe", key="another-key") as (server, used):
            await used.add(TICKER)
            await eventually(lambda: used.counters.get("live.binance.connects.failed"), what="the refusal")
            assert used.counters.get("live.binance.connects") == 0
            bounds = SocketBounds()
            outcome = await open_socket(
                LiveSocket(1, None, wall_ns=lambda: 1, bounds=bounds),  # type: ignore[arg-type]
                server.socket_urls["binance-sbe"] + "/ws",
                wall_ns=1,
                bounds=bounds,
                headers={"X-MBX-APIKEY": "another-key"},
            )
            assert outcome is not None
            assert outcome.kind is OutcomeKind.UNKNOWN
            assert "401" in outcome.message
            assert "another-key" not in outcome.message

    _run(scenario)
    assert "another-key" not in caplog.text


def test_without_a_key_nothing_connects_and_the_setting_is_named() -> None:
    async def scenario() -> None:
        with pytest.raises(SettingsError, match="binance_api_key"):
            async with _running("sbe", key=""):
                pass

    _run(scenario)


def test_a_key_does_not_follow_a_redirect() -> None:
    async def scenario() -> None:
        seen: list[str] = []

        async def answer(request: web.Request) -> web.Response:
            seen.append(request.path)
            return web.Response(status=302, headers={"Location": "/elsewhere"})

        application = web.Application()
        application.router.add_get("/{path:.*}", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        bounds = SocketBounds()
        outcome = await open_socket(
            LiveSocket(1, None, wall_ns=lambda: 1, bounds=bounds),  # type: ignore[arg-type]
            f"ws://127.0.0.1:{runner.addresses[0][1]}/ws",
            wall_ns=1,
            bounds=bounds,
            headers={"X-MBX-APIKEY": "a-key"},
        )
        await runner.cleanup()
        assert outcome is not None
        assert seen == ["/ws"]

    _run(scenario)
