"""Faults of the simulated sockets: each really happens, counts show it, and REST has what was lost."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from ingestors.simulation.limits import Limits
from ingestors.simulation.socket_values import SocketLimits
from relay.protocol.times import parse_iso_ns
from tests.support.sockets import Conversation, HandClock, Row, converse, rest_rows, rows_of

NOW_NS = parse_iso_ns("2026-03-04T12:34:56.789Z")
HOUR_NS = 3_600 * 10**9
SYMBOLS = {"binance": "BTC/USDT", "kraken": "BTC/USD", "coinbase": "BTC/USD", "coinbase-advanced": "BTC/USD"}
QUICK = SocketLimits(heartbeat_ms=20)


class Driven:
    """A subscribed listener on a market with 1,000 trades a second of a clock that the test moves."""

    def __init__(self, exchange: str, *faults: dict[str, Any]) -> None:
        self.exchange, self.symbol, self.faults = exchange, SYMBOLS[exchange], list(faults)
        self.clock = HandClock(NOW_NS)

    def run(self, steps: Any, **arguments: Any) -> None:
        async def all_steps(conversation: Conversation) -> None:
            order = {"exchange": self.exchange, "symbols": [self.symbol], "per_second": 1_000}
            async with conversation.subscribed(self.exchange, self.symbol) as listener:
                first = (await conversation.control("drive", order))["first_ids"][self.symbol]
                faults = [self.bound(fault, first) for fault in self.faults]
                if faults:
                    await conversation.control("socket-faults", faults)
                await steps(conversation, listener, first)

        limits = Limits(kraken_burst=100, coinbase_burst=100)
        converse(all_steps, **({"clock": self.clock, "limits": limits, "socket_limits": QUICK} | arguments))

    @staticmethod
    def bound(fault: dict[str, Any], first: int) -> dict[str, Any]:
        """Make ids of a fault relative to the first driven trade absolute."""
        return {name: value + first if name in ("first_id", "last_id") else value for name, value in fault.items()}

    def pass_trades(self, count: int) -> None:
        self.clock.now_ns += count * 10**6

    async def counts(self, conversation: Conversation) -> Any:
        return (await conversation.control("sockets"))["exchanges"][self.exchange]["markets"][self.symbol]


def ids_of(rows: list[Row], first: int) -> list[int]:
    return [row[0] - first for row in rows]


@pytest.mark.parametrize("exchange", SYMBOLS)
def test_dropped_trades_are_missing_on_the_socket_and_served_by_rest(exchange: str) -> None:
    driven = Driven(exchange, {"kind": "drop", "first_id": 3, "last_id": 5})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(20)
        assert ids_of(await listener.rows(17), first) == [0, 1, 2, *range(6, 20)]
        assert ids_of(await rest_rows(conversation, exchange, driven.symbol, count=20), first) == list(range(20))
        counts = await driven.counts(conversation)
        assert (counts["due"], counts["dropped"]) == (20, 3)

    driven.run(steps)


def test_a_lost_message_of_coinbase_advanced_shows_in_its_numbers() -> None:
    """Case 63: 10, 11, 13."""
    driven = Driven("coinbase-advanced", {"kind": "drop", "first_id": 3, "last_id": 3})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(10)
        numbers, ids = [], []
        while len(ids) < 9:
            value = await listener.next()
            numbers.append(value["sequence_num"])
            ids += ids_of(rows_of(value), first)
        assert ids == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        assert [later - earlier for earlier, later in pairwise(numbers)].count(2) == 1

    driven.run(steps)


def test_a_drop_by_chance_is_the_same_for_the_same_seed() -> None:
    lost: list[list[int]] = []
    for _ in range(2):
        driven = Driven("kraken", {"kind": "drop", "percent": 10})

        async def steps(conversation: Conversation, listener: Any, first: int, driven: Driven = driven) -> None:
            driven.pass_trades(500)
            counts = await driven.counts(conversation)
            while counts["due"] < 500:
                counts = await driven.counts(conversation)
            ids = ids_of(await listener.rows(500 - counts["dropped"]), first)
            assert 20 < counts["dropped"] < 90
            lost.append(sorted(set(range(500)) - set(ids)))

        driven.run(steps)
    assert lost[0] == lost[1]


@pytest.mark.parametrize("exchange", SYMBOLS)
def test_doubled_trades_come_twice(exchange: str) -> None:
    driven = Driven(exchange, {"kind": "double", "every_trades": 10})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(30)
        assert ids_of(await listener.rows(33), first) == sorted([*range(30), 9, 19, 29])
        assert (await driven.counts(conversation))["doubled"] == 3

    driven.run(steps)


def test_reordered_trades_come_after_those_that_overtake_them_and_none_is_lost() -> None:
    driven = Driven("binance", {"kind": "reorder", "every_trades": 10, "window": 2, "delay_ms": 3_600_000})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(22)
        ids = ids_of(await listener.rows(22), first)
        assert ids == [*range(9), 10, 11, 9, *range(12, 19), 20, 21, 19]

    driven.run(steps)


def test_a_held_trade_is_sent_in_the_end_when_nothing_overtakes_it() -> None:
    driven = Driven("kraken", {"kind": "reorder", "first_id": 4, "window": 5, "delay_ms": 30, "count": 1})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(5)
        assert ids_of(await listener.rows(5), first) == [0, 1, 2, 3, 4]

    driven.run(steps)


def test_a_trade_comes_with_price_zero() -> None:
    driven = Driven("kraken", {"kind": "zero_price", "first_id": 1, "last_id": 1})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(3)
        assert [row[2] == 0 for row in await listener.rows(3)] == [False, True, False]
        assert all(row[2] > 0 for row in await rest_rows(conversation, "kraken", "BTC/USD", count=3))

    driven.run(steps)


@pytest.mark.parametrize("kind", ["bad_json", "truncated"])
def test_a_spoiled_message_is_no_json_and_the_next_one_is_whole(kind: str) -> None:
    driven = Driven("binance", {"kind": kind, "first_id": 1, "last_id": 1})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(3)
        texts = [await listener.text() for _ in range(3)]
        with pytest.raises(json.JSONDecodeError):
            json.loads(texts[1])
        assert [json.loads(texts[n])["data"]["t"] - first for n in (0, 2)] == [0, 2]

    driven.run(steps)


@pytest.mark.parametrize(("code", "seen"), [(1006, 1006), (1001, 1001)])
def test_connections_end_with_a_close_code_or_without_one(code: int, seen: int) -> None:
    """Case 59: 1006 is an end without a close frame."""
    driven = Driven("binance")

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        await conversation.control("socket-faults", {"kind": "disconnect", "close_code": code, "count": 1})
        assert await listener.end() == seen
        async with conversation.subscribed("binance", "BTC/USDT") as again:
            driven.pass_trades(5)
            assert len(await again.rows(5)) == 5

    driven.run(steps)


def test_a_connection_ends_just_before_a_given_trade() -> None:
    driven = Driven("kraken", {"kind": "disconnect", "close_code": 1001, "first_id": 7, "count": 1})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(10)
        assert ids_of(await listener.rows(7), first) == list(range(7))
        assert await listener.end() == 1001

    driven.run(steps)


def test_a_mute_socket_stays_open_and_goes_on_after_the_fault() -> None:
    """Case 56: connected but mute; pings of the client are answered all the same."""
    driven = Driven("kraken", {"kind": "mute"})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(10)
        while (await driven.counts(conversation))["muted"] < 10:
            continue
        await listener.say({"method": "ping"})
        await listener.socket.ping()
        await conversation.control("socket-faults", method="DELETE")
        driven.pass_trades(5)
        assert ids_of(await listener.rows(5), first) == list(range(10, 15))
        assert len(await rest_rows(conversation, "kraken", "BTC/USD", count=15)) == 15

    driven.run(steps)


def test_trades_are_mute_while_heartbeats_prove_them() -> None:
    """Case 57: subscribed, but the channel delivers nothing."""
    driven = Driven("coinbase", {"kind": "mute", "channel": "trades"})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        await listener.say({"type": "subscribe", "product_ids": ["BTC-USD"], "channels": ["heartbeat"]})
        driven.pass_trades(10)
        beat = await listener.until(lambda value: value.get("last_trade_id", 0) >= first + 9)
        assert beat["type"] == "heartbeat"
        assert (await driven.counts(conversation))["muted"] == 10

    driven.run(steps)


def test_heartbeats_are_mute_while_trades_go_on() -> None:
    driven = Driven("kraken", {"kind": "mute", "channel": "heartbeats"})

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(2)
        await listener.rows(2)
        for _ in range(5):
            driven.pass_trades(2)
            assert (await listener.next())["channel"] == "trade"

    driven.run(steps)


@pytest.mark.parametrize(("exchange", "count"), [("kraken", 50), ("coinbase", 1), ("coinbase-advanced", 50)])
def test_a_snapshot_is_repeated_on_demand(exchange: str, count: int) -> None:
    """Case 61: trades that are known already come again."""
    driven = Driven(exchange)

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        driven.pass_trades(100)
        last = (await listener.rows(100))[-1]
        await conversation.control("socket-faults", {"kind": "snapshot", "exchange": exchange})
        repeats = await listener.rows(count, repeats=True)
        assert (len(repeats), repeats[-1]) == (count, last)

    driven.run(steps)


@pytest.mark.parametrize(("status", "is_json"), [(429, True), (503, False), (403, False)])
def test_handshakes_are_refused(status: int, is_json: bool) -> None:
    async def steps(conversation: Conversation) -> None:
        fault = {"kind": "refuse", "status": status, "is_json": is_json, "retry_after_seconds": 7, "count": 1}
        await conversation.control("socket-faults", fault)
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with conversation.listen("kraken"):
                pass
        assert refused.value.status == status
        assert refused.value.headers is not None
        assert refused.value.headers["Retry-After"] == "7"
        assert ("json" in refused.value.headers["Content-Type"]) == is_json
        async with conversation.listen("kraken") as listener:
            assert (await listener.next())["channel"] == "status"
        seen = conversation.server.requests.last("/kraken-ws/v2")
        assert [(request.status, request.faults) for request in seen] == [(status, ("refuse",)), (101, ())]

    converse(steps)


def test_kraken_says_maintenance_to_open_and_new_connections_and_then_online() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("kraken") as old:
            assert (await old.next())["data"][0]["system"] == "online"
            await conversation.control("socket-faults", {"kind": "maintenance"})
            assert (await old.next())["data"][0]["system"] == "maintenance"
            async with conversation.listen("kraken") as new:
                assert (await new.next())["data"][0]["system"] == "maintenance"
                await conversation.control("socket-faults", method="DELETE")
                assert (await new.next())["data"][0]["system"] == "online"

    converse(steps)


def test_binance_announces_a_planned_stop_and_then_closes() -> None:
    driven = Driven("binance")

    async def steps(conversation: Conversation, listener: Any, first: int) -> None:
        await conversation.control("socket-faults", {"kind": "shutdown", "exchange": "binance", "delay_ms": 50})
        event = await listener.next()
        assert event["data"]["e"] == "serverShutdown"
        driven.pass_trades(3)
        assert await listener.end() == 1001

    driven.run(steps)


def test_pongs_are_late_or_never_come() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("kraken", autoping=False) as listener:
            await listener.next()
            faults = [{"kind": "no_pong", "count": 1}, {"kind": "slow_pong", "delay_ms": 40, "count": 1}]
            await conversation.control("socket-faults", faults)
            for payload in (b"unanswered", b"late", b"at once"):
                await listener.socket.ping(payload)
            frames = [await listener.frame() for _ in range(2)]
            assert [frame.type for frame in frames] == [aiohttp.WSMsgType.PONG] * 2
            assert [bytes(frame.data) for frame in frames] == [b"at once", b"late"]

    converse(steps)


def test_the_server_sends_no_pings() -> None:
    limits = SocketLimits(ping_ms=1, heartbeat_ms=1, pong_within_ms=60_000)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws/btcusdt@trade", autoping=False) as listener:
            assert (await listener.frame()).type == aiohttp.WSMsgType.PING
            await conversation.control("socket-faults", {"kind": "no_ping"})
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 1})
            while (await listener.frame()).type == aiohttp.WSMsgType.PING:
                continue
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 2})
            assert (await listener.frame()).type == aiohttp.WSMsgType.TEXT

    converse(steps, socket_limits=limits)


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "nothing"},
        {"kind": "drop", "percent": 0},
        {"kind": "drop", "colour": "red"},
        {"kind": "mute", "channel": "news"},
        {"kind": "reorder", "window": 0},
        {"kind": "refuse", "status": 200},
        "drop",
    ],
)
def test_a_wrong_fault_is_refused_with_what_was_expected(fault: object) -> None:
    async def steps(conversation: Conversation) -> None:
        url = f"{conversation.server.url}/control/socket-faults"
        async with conversation.session.post(url, data=json.dumps(fault)) as answer:
            assert answer.status == 400
            assert "expected" in (await answer.json())["error"]
        assert (await conversation.control("socket-faults"))["faults"] == []

    converse(steps)


@pytest.mark.parametrize(
    ("path", "order"),
    [
        ("drive", {"exchange": "binance", "symbols": ["NO/PE"], "per_second": 5}),
        ("drive", {"exchange": "mars", "symbols": ["BTC/USDT"], "per_second": 5}),
        ("drive", {"exchange": "binance", "symbols": [], "per_second": 5}),
        ("drive", {"exchange": "binance", "symbols": ["BTC/USDT"], "per_second": -1}),
        ("drive", {"exchange": "binance", "symbols": ["MATIC/USDT"], "per_second": 5}),
        ("clock", {"trades": 5}),
    ],
)
def test_a_wrong_order_is_refused_with_what_was_expected(path: str, order: object) -> None:
    async def steps(conversation: Conversation) -> None:
        url = f"{conversation.server.url}/control/{path}"
        async with conversation.session.post(url, data=json.dumps(order)) as answer:
            assert answer.status == 400
            assert "expected" in (await answer.json())["error"]

    converse(steps)


def test_faults_of_one_exchange_leave_the_others_alone() -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        await conversation.control("socket-faults", {"kind": "mute", "exchange": "kraken"})
        async with conversation.subscribed("coinbase", "BTC/USD") as listener:
            clock.now_ns += HOUR_NS
            rows = await listener.rows(10)
            assert len({row[0] for row in rows}) == len(rows)
        await asyncio.sleep(0)

    converse(steps, clock=clock)
