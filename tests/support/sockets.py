"""A client of exchange sockets for tests: exact numbers, waits with a deadline, trades of every shape as one row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import aiohttp

from ingestors.simulation.server import SimulatedExchange
from relay.protocol.times import parse_iso_ns

__all__ = ["HandClock", "Listener", "Row", "converse", "rest_rows", "rows_of", "subscription"]

DEADLINE_S = 60
Row = tuple[int, int, Decimal, Decimal, bool]
"""Trade id, time in nanoseconds, price, size, taker bought."""


class HandClock:
    """A clock that a test moves."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def __call__(self) -> int:
        return self.now_ns


class Listener:
    """One open socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._kept: list[Any] = []

    async def say(self, value: object) -> None:
        await self.socket.send_str(value if isinstance(value, str) else json.dumps(value))

    async def frame(self) -> aiohttp.WSMessage:
        return await asyncio.wait_for(self.socket.receive(), DEADLINE_S)

    async def text(self) -> str:
        frame = await self.frame()
        assert frame.type == aiohttp.WSMsgType.TEXT, frame
        assert isinstance(frame.data, str)
        return frame.data

    async def next(self) -> Any:
        if self._kept:
            return self._kept.pop(0)
        return json.loads(await self.text(), parse_float=Decimal)

    async def until(self, condition: Callable[[Any], object], *, keeps: bool = False) -> Any:
        """Return the first message that meets a condition; those before it come again when they are kept."""
        passed: list[Any] = []
        while not condition(value := await self.next()):
            passed.append(value)
        self._kept += passed if keeps else []
        return value

    async def rows(self, count: int, *, repeats: bool = False) -> list[Row]:
        """Return so many trades, without those of snapshots unless asked for."""
        rows: list[Row] = []
        while len(rows) < count:
            rows += rows_of(await self.next(), repeats=repeats)
        return rows

    async def end(self) -> int | None:
        """Read to the end and return the close code."""
        while (frame := await self.frame()).type not in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSE):
            continue
        # The library forgets the code that came when its own answer finds the connection closed already.
        return int(frame.data) if frame.type == aiohttp.WSMsgType.CLOSE else self.socket.close_code


class Conversation:
    """A server, a session, and ways to ask both sides of it."""

    def __init__(self, server: SimulatedExchange, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session

    @asynccontextmanager
    async def listen(self, exchange: str, tail: str = "", **options: Any) -> AsyncIterator[Listener]:
        url = self.server.socket_urls[exchange] + tail
        async with self.session.ws_connect(url, **({"autoping": True} | options)) as socket:
            yield Listener(socket)

    @asynccontextmanager
    async def subscribed(self, exchange: str, *symbols: str) -> AsyncIterator[Listener]:
        """Listen to trades of symbols, the answers to the subscription read."""
        tail, message = subscription(exchange, symbols)
        async with self.listen(exchange, tail) as listener:
            if message is None:
                await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 1})
                await listener.until(lambda value: value.get("id") == 1, keeps=True)
            else:
                await listener.say(message)
            for _ in symbols if exchange == "kraken" else ():
                await listener.until(lambda value: value.get("success"))
            if exchange.startswith("coinbase"):
                await listener.until(lambda value: "subscriptions" in (value.get("type"), value.get("channel")))
            yield listener

    async def control(self, path: str, value: object = None, *, method: str | None = None) -> Any:
        body = None if value is None else json.dumps(value)
        url = f"{self.server.url}/control/{path}"
        async with self.session.request(method or ("GET" if body is None else "POST"), url, data=body) as answer:
            result = await answer.json()
            assert answer.status == 200, result
            return result

    async def get(self, path: str) -> Any:
        async with self.session.get(self.server.url + path) as answer:
            return json.loads(await answer.read(), parse_float=Decimal)


def converse(steps: Callable[[Conversation], Awaitable[None]], **arguments: Any) -> None:
    """Run steps against a server of their own."""

    async def run() -> None:
        async with SimulatedExchange(**arguments) as server, aiohttp.ClientSession() as session:
            await steps(Conversation(server, session))

    asyncio.run(run())


def subscription(exchange: str, symbols: Sequence[str]) -> tuple[str, Mapping[str, object] | None]:
    """Return what follows the base URL, and the message that subscribes to trades."""
    if exchange == "binance":
        return "/stream?streams=" + "/".join(f"{s.replace('/', '').lower()}@trade" for s in symbols), None
    if exchange == "kraken":
        return "", {"method": "subscribe", "params": {"channel": "trade", "symbol": list(symbols)}, "req_id": 1}
    products = [symbol.replace("/", "-") for symbol in symbols]
    if exchange == "coinbase":
        return "", {"type": "subscribe", "product_ids": products, "channels": ["matches"]}
    return "", {"type": "subscribe", "product_ids": products, "channel": "market_trades"}


def rows_of(value: Any, *, repeats: bool = False) -> list[Row]:
    """Return the trades of a message of any exchange, ascending."""
    event = value.get("data", value) if isinstance(value, dict) and "stream" in value else value
    if event.get("e") in ("trade", "aggTrade"):
        number = event["t"] if event["e"] == "trade" else event["a"]
        unit_ns = 10**6 if event["T"] < 10**14 else 10**3
        return [(number, event["T"] * unit_ns, Decimal(event["p"]), Decimal(event["q"]), not event["m"])]
    if event.get("type") == "match" or (repeats and event.get("type") == "last_match"):
        return [_coinbase_row(event)]
    if event.get("channel") == "trade" and (repeats or event["type"] == "update"):
        return [
            (row["trade_id"], parse_iso_ns(row["timestamp"]), row["price"], row["qty"], row["side"] == "buy")
            for row in event["data"]
        ]
    if event.get("channel") == "market_trades":
        events = [part for part in event["events"] if repeats or part["type"] == "update"]
        return [_coinbase_row(row) for part in events for row in reversed(part["trades"])]
    return []


def _coinbase_row(row: Mapping[str, Any]) -> Row:
    buys = row["side"].lower() == "sell"  # the maker's
    return int(row["trade_id"]), parse_iso_ns(row["time"]), Decimal(row["price"]), Decimal(row["size"]), buys


async def rest_rows(conversation: Conversation, exchange: str, symbol: str, *, count: int) -> list[Row]:
    """Return the newest trades as REST serves them, ascending, at its precision."""
    name = symbol.replace("/", "" if exchange == "binance" else "-")
    if exchange == "binance":
        page = await conversation.get(f"/binance/api/v3/trades?symbol={name}&limit={count}")
        return [
            (r["id"], r["time"] * 10**6, Decimal(r["price"]), Decimal(r["qty"]), not r["isBuyerMaker"]) for r in page
        ]
    if exchange == "kraken":
        path = f"/kraken/0/public/Trades?assetVersion=1&pair={symbol}&count={count}"
        rows = (await conversation.get(path))["result"][symbol]
        return [
            (r[6], int(Decimal(r[2]) * 10**9) // 1_000 * 1_000, Decimal(r[0]), Decimal(r[1]), r[3] == "b") for r in rows
        ]
    if exchange == "coinbase":
        page = await conversation.get(f"/coinbase/products/{name}/trades?limit={count}")
    else:
        path = f"/coinbase-advanced/api/v3/brokerage/market/products/{name}/ticker?limit={count}"
        page = (await conversation.get(path))["trades"]
    return [_coinbase_row(row) for row in reversed(page)]
