"""Ticks at rest through the SDK: read, played again, and reported on."""

from __future__ import annotations

import asyncio
import json
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from relay.errors import SettingsError
from relay.protocol.envelope import encode_record
from relay.protocol.ranges import Range
from relay.protocol.times import format_ns
from relay.protocol.v1 import market_pb2, request_pb2
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import GAPS_TABLE
from relay.tables.writer import open_writable_tables
from relay_client import AsyncClient, Bar, MissingIds, Tick
from spark_jobs.jobs.ticks.decode import decode_ticks
from tests.integration.relay_client.test_commands import relay
from tests.support.client_world import BTC, GatewayWorld

SECOND = 10**9
DAY_NS = 86_400 * SECOND
T0 = 1_700_000_040 * SECOND
DAY = "2023-11-14"
START, END = "2023-11-14T22:14:00Z", "2023-11-14T22:24:00Z"


def store(world: GatewayWorld, *messages: market_pb2.Tick | market_pb2.Gap) -> None:
    values = [encode_record(message) for message in messages]
    records = pa.table(
        {
            "topic": ["market-tick"] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([BTC.encode()] * len(values), pa.binary()),
            "value": pa.array(values, pa.binary()),
        }
    )
    decoded = decode_ticks(records, seen_at_us=0)
    assert len(decoded.quarantine) == 0
    tables, reached = open_writable_tables(world.tables), SourceOffsets("ticks", "c", "t", {0: len(values)})
    tables.append_ticks(decoded.ticks, reached=reached, batch_id=1)
    if len(decoded.gaps):
        tables.append(GAPS_TABLE, decoded.gaps, reached=reached, batch_id=1)


def tick(number: int, **fields: object) -> market_pb2.Tick:
    values: dict[str, object] = {
        "trade_id": str(number),
        "ticker": BTC,
        "timestamp": T0 + number * SECOND,
        "price": 4_213_00 + number,
        "price_decimals": 4,
        "amount": 5,
        "amount_decimals": 8,
        "received_at": T0 + number * SECOND + 7,
        **fields,
    }
    return market_pb2.Tick(**values)  # type: ignore[arg-type]


def every_ticker(query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
    if query.ticker.startswith("NOPE/"):
        return request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND, error_code="UNKNOWN_SYMBOL")
    market = market_pb2.Market(market_id=query.ticker, exchange_id="BINANCE")
    return request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])


def test_stored_ticks_come_exact_and_ascending_with_what_is_missing(world: GatewayWorld) -> None:
    gap = market_pb2.Gap(
        ticker=BTC,
        from_trade_id="4",
        to_trade_id="5",
        from_time=T0 + 3 * SECOND,
        to_time=T0 + 6 * SECOND,
        cause=market_pb2.Gap.DISCONNECT,
        state=market_pb2.Gap.UNFILLABLE,
    )
    store(world, *(tick(n) for n in (1, 2, 3, 6, 7, 9)), gap)
    world.manager.symbols = every_ticker
    with world.client() as client:
        found = client.ticks(BTC, start=START, end=END)
        ticks = list(found)
        assert [t.trade_id for t in ticks] == ["1", "2", "3", "6", "7", "9"]
        assert (ticks[0].price, ticks[0].amount) == (Decimal("42.1301"), Decimal("0.00000005"))
        assert (ticks[0].time_ns, ticks[0].received_ns) == (T0 + SECOND, T0 + SECOND + 7)
        assert found.completeness.missing == (MissingIds(4, 5, "DISCONNECT"), MissingIds(8, 8, "UNEXPLAINED"))
        assert found.completeness.covered_ns == 597 * SECOND
        assert client.completeness(BTC, start=START, end=END) == found.completeness
        assert client.completeness("ETH/USDT.BINANCE", start=START, end=END).stored == 0
        assert len(client.ticks(BTC, start=START, end=END, limit=2)) == 2
        assert found.to_pandas()["trade_number"].tolist() == [1, 2, 3, 6, 7, 9]
        assert list(client.ticks("ETH/USDT.BINANCE", start=START, end=END)) == []
        with pytest.raises(SettingsError, match="limit"):
            client.ticks(BTC, start=START, end=END, limit=0)


def test_a_replay_gives_ticks_and_bars_in_the_order_in_which_they_were_known(world: GatewayWorld) -> None:
    store(world, *(tick(n) for n in (30, 59, 60, 61, 125)))
    world.manager.store(Range(T0, T0 + 600 * SECOND))
    with world.client() as client, client.replay([BTC, f"{BTC}|ohlc:60"], start=START, end=END) as played:
        assert played.topics == [f"{BTC}|tick", f"{BTC}|ohlc:60"]
        items = list(played)
    seen = [i.trade_id if isinstance(i, Tick) else f"bar {int(i.start.timestamp()) - T0 // SECOND}" for i in items]
    assert seen[:7] == ["30", "59", "60", "bar 0", "61", "bar 60", "125"]
    assert sum(isinstance(item, Bar) for item in items) == 10


def test_a_replay_can_be_paced_and_closed_while_somebody_waits(world: GatewayWorld) -> None:
    store(world, tick(1), tick(500))
    with world.client() as client:
        played = client.replay(BTC, start=START, end=END, speed=1.0)
        assert next(played)
        import threading

        closer = threading.Timer(0.1, played.close)
        closer.start()
        assert list(played) == []
        for speed in (0, -1, float("inf")):
            with pytest.raises(SettingsError, match="speed"):
                client.replay(BTC, start=START, end=END, speed=speed)
        with pytest.raises(SettingsError, match="ticks or bars"):
            client.replay(f"{BTC}|gap", start=START, end=END)


def test_the_async_client_replays_the_same_and_leaves_the_loop_to_others(world: GatewayWorld) -> None:
    store(world, *(tick(n) for n in range(1, 600, 2)))
    world.manager.store(Range(T0, T0 + 600 * SECOND))
    topics = [BTC, f"{BTC}|ohlc:60"]
    with world.client() as client:
        expected = [str(item) for item in client.replay(topics, start=START, end=END)]

    async def run() -> None:
        async with AsyncClient(settings=world.settings()) as client:
            played = client.replay(topics, start=START, end=END)
            assert played.topics == [f"{BTC}|tick", f"{BTC}|ohlc:60"]
            turns, done = 0, asyncio.Event()

            async def beside() -> None:
                nonlocal turns
                while not done.is_set():
                    turns += 1
                    await asyncio.sleep(0)

            other = asyncio.create_task(beside())
            first = await anext(played)
            turns = 0
            assert [str(item) for item in [first, *[item async for item in played]]] == expected
            assert turns, "the player never left the loop"
            done.set()
            await other
            assert await played.next() is None
            paced = await client.replay(BTC, start=START, end=END, speed=0.001)
            assert await paced.next() is not None
            asyncio.get_running_loop().call_later(0.1, asyncio.ensure_future, paced.close())
            assert [item async for item in paced.items()] == []
            with pytest.raises(SettingsError, match="speed"):
                client.replay(BTC, start=START, end=END, speed=0)
            with pytest.raises(SettingsError, match="ticks or bars"):
                client.replay(f"{BTC}|gap", start=START, end=END)
            async with client.replay(BTC, start="nonsense", end=END) as wrong:
                await wrong.next()

    with pytest.raises(SettingsError, match="nonsense"):
        asyncio.run(run())


def test_the_report_is_told_as_text_json_and_a_page(world: GatewayWorld, tmp_path: Path) -> None:
    store(world, *(tick(n) for n in (1, 2, 4)))
    text = relay(world, "report", BTC, "--day", DAY)
    assert text.returncode == 0, text.stderr
    assert "missing ids 3 to 3 (1): UNEXPLAINED" in text.stdout
    page = tmp_path / "report.html"
    told = relay(world, "report", BTC, "--day", DAY, "--json", "--html", str(page), "--strict")
    assert told.returncode == 5
    (report,) = json.loads(told.stdout)
    assert (report["expected"], report["stored"], report["is_complete"]) == (4, 3, False)
    html = page.read_text()
    assert "BTC/USDT.BINANCE" in html
    assert "http" not in html
    wrong = relay(world, "report", BTC, "--day", "yesterday")
    assert (wrong.returncode, "2026-01-31" in wrong.stderr) == (2, True)


def test_a_report_of_today_ends_now_and_a_day_to_come_is_refused(world: GatewayWorld) -> None:
    now_ns = time.time_ns()
    start_ns = now_ns - now_ns % DAY_NS
    store(world, tick(1, timestamp=start_ns))
    (report,) = json.loads(relay(world, "report", BTC, "--day", format_ns(start_ns)[:10], "--json").stdout)
    assert report["end_ns"] == report["start_ns"] + DAY_NS or now_ns <= report["end_ns"] <= time.time_ns()
    assert report["covered_ns"] <= report["end_ns"] - report["start_ns"]
    future = relay(world, "report", BTC, "--day", format_ns(start_ns + 7 * DAY_NS)[:10])
    assert (future.returncode, "has begun" in future.stderr) == (2, True)
    with world.client() as client:
        week = client.completeness(BTC, start=start_ns, end=start_ns + 7 * DAY_NS, unit="ns")
        assert week.span.end_ns <= time.time_ns()


def test_a_report_calls_a_real_ticker_empty_and_a_misspelt_one_unknown(world: GatewayWorld) -> None:
    store(world, tick(1))
    world.manager.symbols = every_ticker
    empty = relay(world, "report", "ETH/USDT.BINANCE", "--day", DAY)
    assert empty.returncode == 0, empty.stderr
    assert "nothing stored" in empty.stdout
    assert "0.0000 %" in empty.stdout
    assert "100.0000 %" not in empty.stdout
    wrong = relay(world, "report", "NOPE/USDT.BINANCE", "--day", DAY)
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert "UNKNOWN_SYMBOL" in wrong.stderr


def test_a_report_says_in_plain_words_since_when_a_ticker_is_recorded(world: GatewayWorld) -> None:
    day_ns = T0 - T0 % (86_400 * SECOND)
    fields = {"ticker": BTC, "to_trade_id": "4", "from_time": day_ns, "to_time": T0 + 5 * SECOND}
    states = (market_pb2.Gap.OPEN, market_pb2.Gap.UNFILLABLE)
    store(world, *(market_pb2.Gap(state=state, **fields) for state in states), tick(5))
    told = relay(world, "report", BTC, "--day", DAY, "--strict")
    assert "not recorded before 2023-11-14T22:14:05" in told.stdout, told.stderr
    assert told.returncode == 0
    assert "DISCONNECT" not in told.stdout
