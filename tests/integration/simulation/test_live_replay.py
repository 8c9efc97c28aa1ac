"""Recordings and captures over the simulated sockets: every trade once, exact numbers, REST in step."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from aiohttp import WSMsgType

from ingestors.simulation.captures import load_captures
from ingestors.simulation.limits import Limits
from ingestors.simulation.replay import load_recording
from ingestors.simulation.replay_clock import LiveReplay, Pace
from ingestors.simulation.socket_values import SocketLimits
from relay.errors import SettingsError
from tests.support.sockets import Conversation, HandClock, Listener, Row, converse, rest_rows

GENEROUS = Limits(kraken_burst=100, coinbase_burst=100, binance_weight_per_minute=10**6)
STEP = LiveReplay(Pace.STEP)
TRADES = "XRPETH-trades-2019-10-11_13.parquet"


def messages(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            found = re.match(r"[0-9.]+: (.*)", line)
            if found:
                yield json.loads(found[1])


def captured(path: Path) -> dict[str, list[tuple[Decimal, Decimal, bool]]]:
    """Return price, size and taker side of the live trades of a capture by symbol, read independently."""
    trades = defaultdict(list)
    for value in messages(path):
        if isinstance(value, list) and value[2] == "trade":
            trades[value[3]] += [(Decimal(r[0]), Decimal(r[1]), r[3] == "b") for r in value[1]]
        elif isinstance(value, dict) and value.get("type") == "match":
            row = (Decimal(value["price"]), Decimal(value["size"]), value["side"] == "sell")
            trades[value["product_id"].replace("-", "/")].append(row)
        elif isinstance(value, dict) and value.get("data", {}).get("e") == "aggTrade":
            data = value["data"]
            name = {"NKNUSDT": "NKN/USDT", "LRCBTC": "LRC/BTC"}[data["s"]]
            trades[name].append((Decimal(data["p"]), Decimal(data["q"]), not data["m"]))
    return dict(trades)


def turnover(rows: Sequence[Sequence[Any]], *, price: int = 0) -> Decimal:
    return sum((row[price] * row[price + 1] for row in rows), Decimal())


@pytest.mark.parametrize(
    ("name", "exchange", "count"),
    [("BINANCE.ws.1.0", "binance", 2), ("COINBASE.ws.28.0", "coinbase", 97), ("KRAKEN.ws.48.0", "kraken", 10)],
)
@pytest.mark.parametrize("replay", [STEP, LiveReplay(Pace.MAX), LiveReplay(Fraction(1_000))], ids=["step", "max", "x"])
def test_every_trade_of_a_capture_comes_once_with_its_exact_numbers(
    recorded_data: Path, name: str, exchange: str, count: int, replay: LiveReplay
) -> None:
    """Case 70 on the way: numbers are compared as exact decimals."""
    path = recorded_data / "captures" / f"{name}.gz"
    expected = captured(path)
    recordings = load_captures(path)
    symbols = [recording.ticker.symbol for recording in recordings]

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed(exchange, *symbols) as listener:
            if replay.speed == Pace.STEP:
                state = await conversation.control("clock", {"trades": count})
                assert state["trades_left"] == 0
            rows = await listener.rows(count)
            state = await conversation.control("sockets")
            markets = state["exchanges"][exchange]["markets"]
            assert {symbol: market["due"] for symbol, market in markets.items() if market["due"]} == {
                symbol: len(trades) for symbol, trades in expected.items()
            }
        assert sorted(row[2:] for row in rows) == sorted(row for trades in expected.values() for row in trades)
        assert turnover(rows, price=2) == turnover([row for trades in expected.values() for row in trades])
        for symbol, trades in expected.items():
            served = await rest_rows(conversation, exchange, symbol, count=len(trades))
            assert [row[2:] for row in served] == trades

    converse(steps, recordings=recordings, replay=replay, limits=GENEROUS)


def test_a_coinbase_capture_begins_with_its_last_matches(recorded_data: Path) -> None:
    path = recorded_data / "captures" / "COINBASE.ws.28.0.gz"
    known = {v["product_id"]: v["trade_id"] for v in messages(path) if v.get("type") == "last_match"}
    assert len(known) == 10

    async def steps(conversation: Conversation) -> None:
        async with conversation.listen("coinbase") as listener:
            await listener.say({"type": "subscribe", "product_ids": list(known), "channels": ["matches"]})
            await listener.next()
            repeats = [await listener.next() for _ in known]
        assert {value["product_id"]: value["trade_id"] for value in repeats} == known

    converse(steps, recordings=load_captures(path), replay=STEP)


def test_kraken_trades_of_version_one_get_ids_by_order(recorded_data: Path) -> None:
    """Case 62: two trades of one message have ids of their own."""
    path = recorded_data / "captures" / "KRAKEN.ws.48.0.gz"
    by_symbol = {recording.ticker.symbol: recording for recording in load_captures(path)}
    assert {symbol: len(recording.times_ns) for symbol, recording in by_symbol.items()} == {"XMR/USD": 4, "SC/EUR": 6}
    for recording in by_symbol.values():
        ids = [trade.trade_id for trade in recording.trades(0, 99)]
        assert ids == list(range(1, len(ids) + 1))


def test_all_recorded_trades_go_over_the_socket_as_fast_as_it_goes(recorded_data: Path) -> None:
    path = recorded_data / "binance" / TRADES
    table = pq.ParquetFile(path).read()
    prices, sizes = table.column("price").to_pylist(), table.column("amount").to_pylist()
    expected = sum((Decimal(repr(p)) * Decimal(repr(a)) for p, a in zip(prices, sizes, strict=True)), Decimal())

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed("binance", "XRP/ETH") as listener:
            rows = await listener.rows(len(prices))
        ids = [row[0] for row in rows]
        assert ids == sorted(set(ids))
        assert len(rows) == 12_477
        assert turnover(rows, price=2) == expected
        assert await rest_rows(conversation, "binance", "XRP/ETH", count=1_000) == rows[-1_000:]

    recording = load_recording(path, "XRP/ETH.BINANCE")
    converse(steps, recordings=[recording], replay=LiveReplay(Pace.MAX), limits=GENEROUS)


def test_rest_never_serves_what_the_socket_has_not_sent(recorded_data: Path) -> None:
    recording = load_recording(recorded_data / "binance" / TRADES, "XRP/ETH.BINANCE")

    async def steps(conversation: Conversation) -> None:
        async with conversation.subscribed("binance", "XRP/ETH") as listener:
            assert await rest_rows(conversation, "binance", "XRP/ETH", count=10) == []
            seen: list[Row] = []
            for order in ({"trades": 3}, {"trades": 100}, {"seconds": 600}, {"to": "2019-10-11T01:00:00Z"}):
                await conversation.control("clock", order)
                served = await rest_rows(conversation, "binance", "XRP/ETH", count=1_000)
                seen += await listener.rows(len(served) - len(seen))
                assert seen == served
            assert 103 < len(seen) < 1_000
            state = await conversation.control("clock", {"to": "end"})
            assert (state["end"], state["trades_left"]) == (True, 0)
            assert len(await listener.rows(12_477 - len(seen))) == 12_477 - len(seen)

    converse(steps, recordings=[recording], replay=STEP, limits=GENEROUS)


def test_time_stands_until_somebody_subscribes_and_then_moves_by_the_factor(recorded_data: Path) -> None:
    recording = load_recording(recorded_data / "binance" / TRADES, "XRP/ETH.BINANCE")
    wall = HandClock(10**18)

    async def steps(conversation: Conversation) -> None:
        wall.now_ns += 10**12
        began_ns = (await conversation.control("clock"))["time_ns"]
        assert began_ns == recording.start_ns - 1
        async with conversation.subscribed("binance", "XRP/ETH") as listener:
            while (await conversation.control("clock"))["time_ns"] == began_ns:
                wall.now_ns += 10**9
            await listener.rows(1)
            at_ns = (await conversation.control("clock", {"speed": "step"}))["time_ns"]
            assert at_ns > began_ns
            assert (at_ns - began_ns) % (60 * 10**9) == 0
            await conversation.control("clock", {"seconds": 1})
            assert (await conversation.control("clock"))["time_ns"] == at_ns + 10**9

    replay = LiveReplay(Fraction(60))
    converse(steps, recordings=[recording], replay=replay, wall_clock=wall, limits=GENEROUS)


def test_a_replay_with_faults_still_accounts_for_every_trade(recorded_data: Path) -> None:
    """Case 59: 5 % doubled, 5 % reordered, disconnects; each trade was sent, and the counts balance."""
    recording = load_recording(recorded_data / "binance" / TRADES, "XRP/ETH.BINANCE")
    ids = [trade.trade_id for trade in recording.trades(0, 12_477)]
    faults = [
        {"kind": "double", "percent": 5},
        {"kind": "reorder", "percent": 5, "window": 3, "delay_ms": 20},
        {"kind": "disconnect", "every_trades": 4_000},
    ]

    async def steps(conversation: Conversation) -> None:
        await conversation.control("socket-faults", faults)
        seen: list[int] = []
        connects, is_whole = 0, False
        while not is_whole:
            connects += 1
            async with conversation.subscribed("binance", "XRP/ETH") as listener:
                left = 1
                while left and not is_whole and await read_up_to_now(listener, seen):
                    left = (await conversation.control("clock"))["trades_left"]
                is_whole = not left and await read_up_to_now(listener, seen)
        market = (await conversation.control("sockets"))["exchanges"]["binance"]["markets"]["XRP/ETH"]
        assert connects >= 3
        assert 400 < market["doubled"] < 850
        assert 400 < market["reordered"] < 850
        assert len(seen) > len(set(seen))
        assert seen != sorted(seen)
        assert set(seen) <= set(ids)
        for missing in sorted(set(ids) - set(seen))[::100]:
            page = await conversation.get(f"/binance/api/v3/historicalTrades?symbol=XRPETH&fromId={missing}&limit=1")
            assert page[0]["id"] == missing

    replay, bounds = LiveReplay(Pace.MAX), SocketLimits(binance_messages_per_second=10**6)
    converse(steps, recordings=[recording], replay=replay, limits=GENEROUS, socket_limits=bounds)


async def read_up_to_now(listener: Listener, seen: list[int]) -> bool:
    """Read what was sent before the answer to a question; False when the connection ended."""
    if listener.socket.closed:
        return False
    with suppress(ConnectionError):
        await listener.say({"method": "LIST_SUBSCRIPTIONS", "id": 9})
    while (frame := await listener.frame()).type == WSMsgType.TEXT:
        value = json.loads(frame.data)
        if value.get("id") == 9:
            return True
        seen.append(value["data"]["t"])
    return False


@pytest.mark.parametrize("content", [b"", b"no capture\n", b"wss://stream.binance.com <-> 1.0\n1.5: {}\n"])
def test_a_file_that_is_no_capture_says_what_was_expected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    (tmp_path / "b.gz").write_bytes(b"not gzip at all")
    for name in ("a.gz", "b.gz", "missing.gz"):
        with pytest.raises(SettingsError, match="expected captured traffic"):
            load_captures(tmp_path / name)
