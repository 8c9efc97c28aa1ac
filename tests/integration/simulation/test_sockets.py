"""The simulated exchanges over real WebSockets: shapes, the same trades as REST, limits, heartbeats."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from ingestors.simulation.limits import Limits
from ingestors.simulation.socket_values import SocketLimits
from relay.protocol.times import parse_iso_ns
from tests.support.sockets import Conversation, HandClock, Listener, converse, rest_rows, rows_of

NOW_NS = parse_iso_ns("2026-03-04T12:34:56.789Z")
HOUR_NS = 3_600 * 10**9
SYMBOLS = {"binance": "BTC/USDT", "kraken": "BTC/USD", "coinbase": "BTC/USD", "coinbase-advanced": "BTC/USD"}
GENEROUS = Limits(kraken_burst=100, coinbase_burst=100)


@pytest.mark.parametrize("exchange", SYMBOLS)
def test_the_sockets_send_the_very_trades_that_rest_serves(exchange: str) -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        symbol = SYMBOLS[exchange]
        before = await rest_rows(conversation, exchange, symbol, count=1)
        async with conversation.subscribed(exchange, symbol) as listener:
            clock.now_ns += 300 * 10**9
            served = await rest_rows(conversation, exchange, symbol, count=100)
            new = [row for row in served if row[0] > before[-1][0]]
            assert 3 < len(new) < 100
            assert await listener.rows(len(new)) == new
            clock.now_ns += HOUR_NS // 10
            more = await listener.rows(20)
            assert [row[0] for row in more] == list(range(new[-1][0] + 1, new[-1][0] + 1 + len(more)))

    converse(steps, clock=clock, limits=GENEROUS)


@pytest.mark.parametrize("exchange", SYMBOLS)
def test_a_driven_market_has_contiguous_ids_that_rest_serves_too(exchange: str) -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        symbol = SYMBOLS[exchange]
        async with conversation.subscribed(exchange, symbol) as listener:
            order = {"exchange": exchange, "symbols": [symbol], "per_second": 5_000}
            first = (await conversation.control("drive", order))["first_ids"][symbol]
            clock.now_ns += 10**9 // 2
            rows = await listener.rows(2_500)
            assert [row[0] for row in rows] == list(range(first, first + 2_500))
            assert await rest_rows(conversation, exchange, symbol, count=100) == rows[-100:]
            await conversation.control("drive", order | {"per_second": 0})
            clock.now_ns += HOUR_NS
            assert await rest_rows(conversation, exchange, symbol, count=1) == rows[-1:]

    converse(steps, clock=clock, limits=GENEROUS)


def test_a_second_subscriber_gets_the_same_trades_from_its_own_start() -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed("kraken", "BTC/USD") as one:
            clock.now_ns += HOUR_NS
            first = await one.rows(100)
            async with conversation.subscribed("kraken", "BTC/USD") as two:
                clock.now_ns += HOUR_NS
                last_id = (await rest_rows(conversation, "kraken", "BTC/USD", count=1))[0][0]
                seen_by_one = [*first, *await all_up_to(one, last_id)]
                seen_by_two = await all_up_to(two, last_id)
            assert seen_by_two == seen_by_one[-len(seen_by_two) :]
            assert [row[0] for row in seen_by_one] == list(range(first[0][0], last_id + 1))

    converse(steps, clock=clock, limits=GENEROUS)


async def all_up_to(listener: Listener, last_id: int) -> list[Any]:
    rows: list[Any] = []
    while not rows or rows[-1][0] < last_id:
        rows += await listener.rows(1)
    return rows


def received(path: Path, pattern: str) -> list[Mapping[str, Any]]:
    with gzip.open(path, "rt") as lines:
        texts = (line.partition(": ")[2] for line in lines if re.match(r"[0-9.]+: ", line) and pattern in line)
        return [json.loads(text) for text in texts]


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return type(value).__name__


def test_binances_events_have_the_shape_of_captured_ones(recorded_data: Path) -> None:
    captured = received(recorded_data / "captures" / "BINANCE.ws.1.0.gz", '"aggTrade"')
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/stream?streams=btcusdt@aggTrade") as listener:
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 1})
            assert (await listener.next())["result"] == ["btcusdt@aggTrade"]
            clock.now_ns += HOUR_NS
            event = await listener.next()
        assert [shape(event)] * len(captured) == [shape(value) for value in captured]
        assert list(event["data"]) == list(captured[0]["data"])

    converse(steps, clock=clock)


def test_coinbases_matches_have_the_shape_of_captured_ones(recorded_data: Path) -> None:
    captured = received(recorded_data / "captures" / "COINBASE.ws.28.0.gz", 'match"')
    by_type = {value["type"]: value for value in captured}
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("coinbase") as listener:
            await listener.say({"type": "subscribe", "product_ids": ["BTC-USD"], "channels": ["matches"]})
            answer = await listener.next()
            assert answer["channels"] == [{"name": "matches", "product_ids": ["BTC-USD"], "account_ids": None}]
            last = await listener.next()
            clock.now_ns += HOUR_NS
            matches = [await listener.next() for _ in range(50)]
        assert (shape(last), list(last)) == (shape(by_type["last_match"]), list(by_type["last_match"]))
        assert (shape(matches[0]), list(matches[0])) == (shape(by_type["match"]), list(by_type["match"]))
        assert len(last["maker_order_id"]) == len(by_type["match"]["maker_order_id"])
        assert [m["trade_id"] for m in matches] == list(range(last["trade_id"] + 1, last["trade_id"] + 51))
        steps_of = {b["sequence"] - a["sequence"] for a, b in zip([last, *matches], matches, strict=False)}
        assert len(steps_of) > 5
        assert min(steps_of) > 0

    converse(steps, clock=clock)


def test_kraken_repeats_fifty_trades_on_every_subscription() -> None:
    """Case 61: the replayed trades are those before the updates, nothing lies between."""
    clock = HandClock(NOW_NS)
    order = {"method": "subscribe", "params": {"channel": "trade", "symbol": ["BTC/USD"], "snapshot": True}}

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("kraken") as listener:
            status = await listener.next()
            assert (status["channel"], status["data"][0]["system"]) == ("status", "online")
            for number in (7, 8):
                await listener.say(order | {"req_id": number})
                answer = await listener.until(lambda value: "method" in value)
                assert (answer["success"], answer["req_id"]) == (True, number)
                assert answer["result"] == {"channel": "trade", "symbol": "BTC/USD", "snapshot": True}
                assert {"time_in", "time_out"} < set(answer)
                snapshot = await listener.until(lambda value: value.get("type") == "snapshot")
                ids = [row[0] for row in rows_of(snapshot, repeats=True)]
                assert ids == list(range(ids[0], ids[0] + 50))
                clock.now_ns += HOUR_NS
                assert (await listener.rows(1))[0][0] == ids[-1] + 1
                await all_up_to(listener, (await rest_rows(conversation, "kraken", "BTC/USD", count=1))[0][0])

    converse(steps, clock=clock, limits=GENEROUS)


def test_kraken_beats_when_idle_answers_pings_and_refuses_unknown_symbols() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("kraken") as listener:
            await listener.say({"method": "ping", "req_id": 3})
            pong = await listener.until(lambda value: value.get("method") == "pong")
            assert (pong["req_id"], "time_in" in pong) == (3, True)
            params = {"channel": "trade", "symbol": ["NO/PE", "BTC/USD"]}
            await listener.say({"method": "subscribe", "params": params, "req_id": 4})
            refusal = await listener.next()
            assert (refusal["success"], refusal["symbol"]) == (False, "NO/PE")
            assert refusal["error"] == "Currency pair not supported NO/PE"
            assert (await listener.next())["success"] is True
            assert await listener.next() == {"channel": "heartbeat"}
            assert await listener.next() == {"channel": "heartbeat"}

    converse(steps, clock=lambda: NOW_NS, socket_limits=SocketLimits(heartbeat_ms=50))


def test_coinbases_heartbeat_proves_the_last_trade() -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("coinbase") as listener:
            channels = ["matches", {"name": "heartbeat", "product_ids": ["BTC-USD"]}]
            await listener.say({"type": "subscribe", "product_ids": ["BTC-USD"], "channels": channels})
            first = await listener.until(lambda value: value["type"] == "heartbeat")
            clock.now_ns += HOUR_NS
            last_id = (await rest_rows(conversation, "coinbase", "BTC/USD", count=1))[0][0]
            assert last_id > first["last_trade_id"]
            matches: list[int] = []
            while True:
                value = await listener.next()
                if value["type"] == "match":
                    matches.append(value["trade_id"])
                elif value["last_trade_id"] == last_id:
                    break
            assert matches == list(range(first["last_trade_id"] + 1, last_id + 1))
            await listener.say({"type": "subscribe", "product_ids": ["NO-PE"], "channels": ["matches"]})
            error = await listener.until(lambda value: value["type"] == "error")
            assert "NO-PE" in error["reason"]

    converse(steps, clock=clock, socket_limits=SocketLimits(heartbeat_ms=20))


def test_coinbase_advanced_numbers_every_message_of_a_connection() -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("coinbase-advanced") as listener:
            await listener.say({"type": "subscribe", "channel": "heartbeats"})
            order = {"type": "subscribe", "channel": "market_trades", "product_ids": ["BTC-USD"]}
            await listener.say(order)
            seen: list[Any] = []
            while not any(value["channel"] == "market_trades" for value in seen):
                seen.append(await listener.next())
            clock.now_ns += HOUR_NS
            while sum(value["channel"] == "heartbeats" for value in seen) < 3 or not any(map(rows_of, seen)):
                seen.append(await listener.next())
            assert [value["sequence_num"] for value in seen] == list(range(len(seen)))
            kinds = [value["events"][0]["type"] for value in seen if value["channel"] == "market_trades"]
            assert kinds[0] == "snapshot"
            assert set(kinds[1:]) == {"update"}
            snapshot = next(value for value in seen if value["channel"] == "market_trades")
            newest_first = [row["trade_id"] for row in snapshot["events"][0]["trades"]]
            assert len(newest_first) == 50
            assert newest_first == sorted(newest_first, key=int, reverse=True)
            await listener.say(order | {"product_ids": ["NO-PE"]})
            assert "NO-PE" in (await listener.until(lambda value: value.get("type") == "error"))["message"]

    converse(steps, clock=clock, socket_limits=SocketLimits(heartbeat_ms=30))


def test_binance_raw_streams_microseconds_and_control_messages() -> None:
    clock = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws/btcusdt@trade?timeUnit=MICROSECOND") as listener:
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 3})
            assert await listener.next() == {"result": ["btcusdt@trade"], "id": 3}
            clock.now_ns += HOUR_NS // 60
            event = await listener.next()
            assert list(event) == ["e", "E", "s", "t", "p", "q", "T", "m", "M"]
            assert event["E"] == clock.now_ns // 1_000
            assert NOW_NS // 1_000 < event["T"] <= event["E"]
            await listener.say({"method": "UNSUBSCRIBE", "params": ["btcusdt@trade"], "id": 4})
            assert (await listener.until(lambda value: "result" in value)) == {"result": None, "id": 4}
            clock.now_ns += HOUR_NS
            await listener.say({"method": "SUBSCRIBE", "params": ["nosuch@trade"], "id": 5})
            assert await listener.next() == {"result": None, "id": 5}
            await listener.say("{")
            assert (await listener.next())["error"]["code"] == 3

    converse(steps, clock=clock)


def test_binance_cuts_off_who_says_too_much() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws") as listener:
            for number in range(5):
                await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": number})
                assert (await listener.next())["id"] == number
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 9})
            assert await listener.end() == 1008

    converse(steps, wall_clock=lambda: NOW_NS)


def test_binance_takes_1024_streams_on_a_connection_and_no_more() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws") as listener:
            streams = [f"s{n}usdt@trade" for n in range(1_024)]
            await listener.say({"method": "SUBSCRIBE", "params": streams, "id": 1})
            assert (await listener.next())["result"] is None
            await listener.say({"method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": 2})
            assert await listener.end() == 1008

    converse(steps)


def test_an_address_may_connect_300_times_in_five_minutes() -> None:
    wall = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        for _ in range(3):
            async with conversation.listen("kraken"):
                pass
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with conversation.listen("kraken"):
                pass
        assert refused.value.status == 429
        wall.now_ns += 300 * 10**9
        async with conversation.listen("kraken") as listener:
            assert (await listener.next())["channel"] == "status"

    assert SocketLimits().connects_max == 300
    converse(steps, wall_clock=wall, clock=lambda: NOW_NS, socket_limits=SocketLimits(connects_max=3))


def test_binance_pings_and_cuts_off_who_does_not_answer() -> None:
    """A client that answers lives; one that does not is closed."""
    limits = SocketLimits(ping_ms=30, pong_within_ms=100, binance_messages_per_second=1_000)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws", autoping=False) as listener:
            pings = 0
            for _ in range(8):
                frame = await listener.frame()
                assert frame.type == aiohttp.WSMsgType.PING
                pings += 1
                await listener.socket.pong(frame.data)
            assert pings == 8
            assert await listener.end() == 1008

    converse(steps, socket_limits=limits)


def test_binance_ends_a_connection_of_its_full_age() -> None:
    wall = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("binance", "/ws") as listener:
            await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 1})
            await listener.next()
            wall.now_ns += 24 * HOUR_NS
            assert await listener.end() == 1001

    converse(steps, wall_clock=wall, clock=lambda: NOW_NS)


@pytest.mark.parametrize("exchange", ["coinbase", "coinbase-advanced"])
def test_coinbase_closes_who_does_not_subscribe_within_five_seconds(exchange: str) -> None:
    wall = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed(exchange, "BTC/USD") as subscribed, conversation.listen(exchange) as silent:
            while (await conversation.control("sockets"))["exchanges"][exchange]["connections"] < 2:
                continue
            wall.now_ns += 5 * 10**9
            assert await silent.end() == 1000
            assert not subscribed.socket.closed

    converse(steps, wall_clock=wall, clock=lambda: NOW_NS)


def test_coinbase_advanced_closes_idle_connections_without_heartbeats() -> None:
    wall = HandClock(NOW_NS)

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed("coinbase-advanced", "BTC/USD") as listener:
            wall.now_ns += 90 * 10**9
            assert await listener.end() == 1000

    converse(steps, wall_clock=wall, clock=lambda: NOW_NS)


def test_a_client_that_takes_nothing_is_cut_off_while_others_go_on() -> None:
    clock = HandClock(NOW_NS)
    limits = SocketLimits(unsent_bytes_max=100_000)

    async def steps(conversation: Conversation) -> None:
        await conversation.control("drive", {"exchange": "kraken", "symbols": ["BTC/USD"], "per_second": 100_000})
        async with conversation.subscribed("kraken", "BTC/USD") as good, conversation.subscribed("kraken", "BTC/USD"):
            hub = await conversation.control("sockets")
            assert hub["exchanges"]["kraken"]["connections"] == 2
            while (await conversation.control("sockets"))["exchanges"]["kraken"]["connections"] == 2:
                clock.now_ns += 10**9 // 50
                await good.rows(2_000)
            clock.now_ns += 10**9 // 50
            assert await good.rows(2_000)

    converse(steps, clock=clock, socket_limits=limits)


def test_stopping_says_goodbye() -> None:
    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed("kraken", "BTC/USD") as listener:
            stopping = asyncio.create_task(conversation.server.stop())
            assert await listener.end() == 1001
            await stopping

    converse(steps)
