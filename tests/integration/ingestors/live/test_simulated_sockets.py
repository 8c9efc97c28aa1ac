"""The live side of every exchange against the simulated one, by URL only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import Connected, Disconnected, LiveTrade, LostCause, Muted, Refused, Trades
from ingestors.engine.outcomes import ExchangeError
from ingestors.simulation.records import Trade
from ingestors.simulation.server import SimulatedExchange
from ingestors.simulation.socket_faults import SocketFault, SocketFaultKind
from ingestors.simulation.socket_values import SocketLimits
from tests.support.live import SECOND_NS, LiveBench, listing, live_bench
from tests.support.processes import eventually
from tests.support.simulated import APIS, GENEROUS

QUICK = PlanRules(overlap_ns=SECOND_NS // 2, mute_ns=SECOND_NS, confirm_ns=2 * SECOND_NS, look_ns=2 * SECOND_NS)


@asynccontextmanager
async def _running(
    name: str,
    *,
    api: str = "exchange",
    stream: str = "trade",
    limits: SocketLimits | None = None,
    rules: PlanRules = QUICK,
) -> AsyncIterator[tuple[SimulatedExchange, LiveBench]]:
    async with SimulatedExchange(limits=GENEROUS, socket_limits=limits) as server:
        used = live_bench(
            name,
            base_urls=server.base_urls,
            socket_urls=server.socket_urls,
            coinbase_api=api,
            binance_stream=stream,
            rules=rules,
        )
        try:
            yield server, used
        finally:
            await used.close()


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scenario())  # type: ignore[arg-type]


def _same(ours: LiveTrade, theirs: Trade, price_decimals: int, size_decimals: int, *, unit_ns: int = 1_000) -> bool:
    return (
        ours.price * 10**price_decimals == theirs.price_units * 10**ours.price_decimals
        and ours.amount * 10**size_decimals == theirs.size_units * 10**ours.amount_decimals
        and ours.taker_buy == theirs.taker_buy
        and ours.time_ns // unit_ns == theirs.time_ns // unit_ns
    )


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_every_trade_arrives_with_its_exact_numbers(name: str, api: str, symbol: str, shape: str) -> None:
    async def scenario() -> None:
        ticker = f"{symbol}.{name}"
        async with _running(name, api=api) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive(shape, symbol, 500)
            found = await eventually(
                lambda: t if max(t := used.trades(ticker), default=0) >= first + 500 else {},
                what="five hundred trades",
            )
            assert not set(range(first, first + 500)) - set(found)
            market = server.markets(shape)[symbol]
            theirs = {trade.trade_id: trade for trade in market.trades(first - 1, first + 499)}
            scale = market.listing.price_decimals, market.listing.size_decimals
            assert len(theirs) == 500
            assert all(_same(found[number], trade, *scale) for number, trade in theirs.items())
            assert used.market.connections.alive_ns(ticker) > 0

    _run(scenario)


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
@pytest.mark.parametrize("close_code", [1006, 1001, 1000])
def test_a_lost_connection_is_told_replaced_and_its_hole_can_be_filled_case_59(
    name: str, api: str, symbol: str, shape: str, close_code: int
) -> None:
    """Case 59: the socket ends without a close frame (1006, EOF) or with one; REST fills from the last id on."""

    async def scenario() -> None:
        ticker = f"{symbol}.{name}"
        async with _running(name, api=api) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive(shape, symbol, 200)
            await eventually(lambda: max(used.trades(ticker), default=0) > first + 50, what="trades")
            server.socket_faults.add(SocketFault(SocketFaultKind.DISCONNECT, count=1, close_code=close_code))
            await eventually(lambda: used.of_kind(Disconnected), what="the loss")
            await eventually(lambda: used.is_connected(ticker), what="the reconnect")
            before = max(used.trades(ticker))
            found = await eventually(
                lambda: t if max(t := used.trades(ticker)) > before + 100 else {}, what="trades after it"
            )
            assert used.of_kind(Disconnected) == [Disconnected(ticker, LostCause.DISCONNECT)]
            missing = sorted(set(range(first, max(found) + 1)) - set(found))
            if missing:
                near = found[missing[0] - 1]
                filled = await _fill(used, ticker, missing[0], missing[-1], near.time_ns)
                assert not set(missing) - set(filled)

    _run(scenario)


async def _fill(used: LiveBench, ticker: str, first: int, last: int | None, after_time_ns: int) -> dict[int, LiveTrade]:
    found: dict[int, LiveTrade] = {}
    market = await used.market.find(ticker)
    async for page in used.market.filler.fill(market, first=first, last=last, after_time_ns=after_time_ns):
        numbers = [trade.number for trade in page]
        assert numbers == sorted(set(numbers))
        assert not found or numbers[0] > max(found)
        found.update((trade.number, trade) for trade in page)
    return found


@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
@pytest.mark.parametrize("is_time_known", [True, False])
def test_a_range_of_ids_is_filled_whole_ascending_and_equal_to_the_socket(
    name: str, api: str, symbol: str, shape: str, is_time_known: bool
) -> None:
    async def scenario() -> None:
        ticker = f"{symbol}.{name}"
        async with _running(name, api=api) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive(shape, symbol, 700)
            await eventually(lambda: max(used.trades(ticker), default=0) > first + 1_600, what="trades")
            live = used.trades(ticker)
            after_ns = live[first].time_ns if is_time_known else 0
            filled = await _fill(used, ticker, first + 1, first + 1_500, after_ns)
            assert (len(filled), min(filled), max(filled)) == (1_500, first + 1, first + 1_500)
            for number, trade in filled.items():
                ours = replace_times(trade)
                assert ours == replace_times(live[number])
            newest = max(used.trades(ticker))
            rest = await _fill(used, ticker, first + 1_501, None, live[first + 1_500].time_ns)
            assert not set(range(first + 1_501, newest + 1)) - set(rest)

    _run(scenario)


def replace_times(trade: LiveTrade) -> tuple[object, ...]:
    """Return what a socket and REST must agree on: REST may know more digits of the time, and no sequence."""
    units = (trade.price, trade.price_decimals, trade.amount, trade.amount_decimals)
    return (trade.number, *units, trade.taker_buy, trade.time_ns // 1_000_000)


def test_a_trade_that_rest_does_not_show_yet_makes_the_fill_come_again() -> None:
    async def scenario() -> None:
        for name, api, symbol, _ in APIS:
            async with _running(name, api=api) as (_, used):
                newest = await used.market.filler.newest(await used.market.find(f"{symbol}.{name}"))  # type: ignore[attr-defined]
                with pytest.raises(ExchangeError, match="yet"):
                    await _fill(used, f"{symbol}.{name}", newest - 2, newest + 1_000, 0)

    _run(scenario)


def test_binance_aggregates_have_ids_of_their_own_on_the_socket_and_in_fills() -> None:
    async def scenario() -> None:
        ticker = "BTC/USDT.BINANCE"
        async with _running("BINANCE", stream="aggTrade") as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive("binance", "BTC/USDT", 200)
            await eventually(lambda: max(used.trades(ticker), default=0) > first + 100, what="trades")
            filled = await _fill(used, ticker, first, first + 99, 0)
            live = used.trades(ticker)
            assert {n: replace_times(t) for n, t in filled.items()} == {n: replace_times(live[n]) for n in filled}

    _run(scenario)


def test_the_end_of_a_binance_connections_life_costs_no_trade() -> None:
    """The successor is confirmed before the old connection is closed, so that no id is missing and nothing is told."""

    async def scenario() -> None:
        ticker = "BTC/USDT.BINANCE"
        rules = replace(QUICK, overlap_ns=SECOND_NS // 4)
        async with _running("BINANCE", rules=rules) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive("binance", "BTC/USDT", 300)
            await eventually(lambda: max(used.trades(ticker), default=0) > first, what="trades")
            server.socket_faults.add(SocketFault(SocketFaultKind.SHUTDOWN, exchange="binance", delay_ms=3_000))
            await eventually(lambda: used.counters.get("live.binance.connects") == 2, what="the successor")
            reached = max(used.trades(ticker))
            found = await eventually(
                lambda: t if max(t := used.trades(ticker)) > reached + 1_200 else {}, what="trades well after it"
            )
            assert not set(range(first, max(found) + 1)) - set(found)
            assert used.of_kind(Connected) == [Connected(ticker)]
            assert used.of_kind(Disconnected) == []
            assert used.counters.get("live.binance.connections") == 1

    _run(scenario)


def test_kraken_repeats_known_trades_after_each_subscription_and_says_so_case_61() -> None:
    """Case 61: what a subscription replays is marked as a snapshot, with the ids that were known."""

    async def scenario() -> None:
        ticker = "BTC/USDT.KRAKEN"
        async with _running("KRAKEN") as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.of_kind(Trades), what="the snapshot")
            server.socket_faults.add(SocketFault(SocketFaultKind.DISCONNECT, count=1))
            snapshots = await eventually(
                lambda: s if len(s := [e for e in used.of_kind(Trades) if e.is_snapshot]) > 1 else [],
                what="the second snapshot",
            )
            first, second = ({trade.number for trade in event.trades} for event in snapshots[:2])
            assert first & second

    _run(scenario)


def test_a_mute_channel_is_found_by_proof_and_told_case_56_case_57() -> None:
    """Cases 56 and 57: heartbeats say that trades exist which the subscribed channel does not deliver."""

    async def scenario() -> None:
        ticker = "BTC/USD.COINBASE"
        async with _running("COINBASE") as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive("coinbase", "BTC/USD", 50)
            await eventually(lambda: max(used.trades(ticker), default=0) > first, what="trades")
            server.socket_faults.add(SocketFault(SocketFaultKind.MUTE, exchange="coinbase", channel="trades"))
            # Noted here: subscribing again brings the newest trade, and nothing newer may exist yet then.
            newest = max(used.trades(ticker))
            await eventually(lambda: used.of_kind(Muted), what="the watchdog")
            assert used.of_kind(Disconnected) == []
            assert await _fill(used, ticker, newest + 1, None, 0)
            server.socket_faults.clear()
            await eventually(lambda: max(used.trades(ticker)) > newest + 10, what="trades again")
            assert isinstance([e for e in used.events if isinstance(e, Connected | Muted)][-1], Connected)

    _run(scenario)


def test_a_mute_channel_without_heartbeats_is_found_by_a_look_at_rest_case_57() -> None:
    """Case 57: the socket says subscribed and stays silent while REST has newer trades."""

    async def scenario() -> None:
        ticker = "BTC/USDT.BINANCE"
        async with _running("BINANCE", rules=replace(QUICK, look_ns=SECOND_NS)) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            server.socket_faults.add(SocketFault(SocketFaultKind.MUTE, exchange="binance", channel="trades"))
            server.drive("binance", "BTC/USDT", 50)
            await eventually(lambda: used.of_kind(Muted), what="the watchdog")
            assert used.counters.get("live.binance.looks") > 0

    _run(scenario)


def test_a_quiet_market_is_not_dead_case_56() -> None:
    """Case 56: a market without trades stays connected, whatever the watchdogs ask."""

    async def scenario() -> None:
        ticker = "BTC/USDT.BINANCE"
        async with _running("BINANCE", rules=replace(QUICK, look_ns=SECOND_NS // 5)) as (server, used):
            server.drive("binance", "BTC/USDT", 0)
            await used.add(ticker)
            await eventually(lambda: used.counters.get("live.binance.looks") >= 4, what="four looks")
            assert used.events == [Connected(ticker)]

    _run(scenario)


def test_a_lost_message_of_coinbase_advanced_ends_the_connection_case_63() -> None:
    """Case 63: sequence 10, 11, 13 is told as a loss, and the connection is made anew."""

    async def scenario() -> None:
        ticker = "BTC/USD.COINBASE"
        async with _running("COINBASE", api="advanced") as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive("coinbase-advanced", "BTC/USD", 100)
            await eventually(lambda: max(used.trades(ticker), default=0) > first, what="trades")
            server.socket_faults.add(SocketFault(SocketFaultKind.DROP, exchange="coinbase-advanced", count=1))
            await eventually(lambda: used.of_kind(Disconnected), what="the loss")
            await eventually(lambda: used.is_connected(ticker), what="the new connection")
            assert used.of_kind(Disconnected)[0] == Disconnected(ticker, LostCause.SEQUENCE)

    _run(scenario)


@pytest.mark.parametrize(("name", "api", "shape"), [(name, api, shape) for name, api, _, shape in APIS[1:]])
def test_an_unknown_market_is_refused_and_costs_the_others_nothing(name: str, api: str, shape: str) -> None:
    async def scenario() -> None:
        known = "BTC/USD.COINBASE" if name == "COINBASE" else "BTC/USDT.KRAKEN"
        async with _running(name, api=api) as (_, used):
            used.market.connections.add(listing(f"NO/SUCH.{name}"))
            await used.add(known)
            await eventually(lambda: used.of_kind(Refused), what="the refusal")
            await eventually(lambda: used.is_connected(known), what="the other market")
            assert [(e.ticker, e.code) for e in used.of_kind(Refused)] == [(f"NO/SUCH.{name}", "UNKNOWN_SYMBOL")]

    _run(scenario)


def test_kraken_in_maintenance_is_left_alone_for_a_while() -> None:
    async def scenario() -> None:
        ticker = "BTC/USDT.KRAKEN"
        async with _running("KRAKEN") as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            server.socket_faults.add(SocketFault(SocketFaultKind.MAINTENANCE, exchange="kraken"))
            await eventually(lambda: used.of_kind(Disconnected), what="the maintenance")
            await eventually(lambda: used.counters.get("live.kraken.connections") == 0, what="the close")
            assert used.counters.get("live.kraken.connects") == 1

    _run(scenario)


@pytest.mark.parametrize("kind", [SocketFaultKind.BAD_JSON, SocketFaultKind.TRUNCATED, SocketFaultKind.ZERO_PRICE])
@pytest.mark.parametrize(("name", "api", "symbol", "shape"), APIS)
def test_spoiled_messages_end_nothing_but_themselves(
    name: str, api: str, symbol: str, shape: str, kind: SocketFaultKind
) -> None:
    async def scenario() -> None:
        ticker = f"{symbol}.{name}"
        async with _running(name, api=api) as (server, used):
            await used.add(ticker)
            await eventually(lambda: used.is_connected(ticker), what="the subscription")
            first = server.drive(shape, symbol, 100)
            server.socket_faults.add(SocketFault(kind, exchange=shape, first_id=first + 5, last_id=first + 5))
            found = await eventually(
                lambda: t if max(t := used.trades(ticker), default=0) > first + 100 else {}, what="trades after it"
            )
            assert first < max(found)
            # A snapshot on the next connection may repeat it.
            updates = [e for e in used.of_kind(Trades) if not e.is_snapshot]
            assert first + 5 not in {trade.number for event in updates for trade in event.trades}
            prefix = f"live.{name.lower()}"
            assert used.counters.get(f"{prefix}.trades.bad") + used.counters.get(f"{prefix}.messages.unreadable") >= 1

    _run(scenario)
