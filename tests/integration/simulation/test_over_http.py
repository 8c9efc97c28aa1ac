"""The simulated exchange over real HTTP: every fault really happens, recordings are served, requests are counted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestors.simulation.faults import Fault, FaultKind
from ingestors.simulation.limits import Limits
from ingestors.simulation.replay import load_recording
from ingestors.simulation.server import SimulatedExchange
from relay.errors import SettingsError
from relay.protocol.times import parse_iso_ns

NOW_NS = parse_iso_ns("2026-03-04T12:34:56.789Z")
KLINES = "/binance/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=30"
OHLC = "/kraken/0/public/OHLC?pair=XBTUSD"
CANDLES = "/coinbase/products/BTC-USD/candles"
ADVANCED = "/coinbase-advanced/api/v3/brokerage/market/products/BTC-USD"


class Reply:
    """Status, headers and body of one answer."""

    def __init__(self, response: aiohttp.ClientResponse, body: bytes) -> None:
        self.status, self.headers, self.body = response.status, response.headers, body

    @property
    def value(self) -> Any:
        return json.loads(self.body, parse_float=Decimal)


class Browser:
    """A server and a client on it."""

    def __init__(self, server: SimulatedExchange, session: aiohttp.ClientSession) -> None:
        self.server, self._session = server, session

    async def get(self, path: str) -> Reply:
        return await self.send("GET", path)

    async def send(self, method: str, path: str, value: object = None) -> Reply:
        body = None if value is None else json.dumps(value)
        async with self._session.request(method, self.server.url + path, data=body) as response:
            return Reply(response, await response.read())


def browse(steps: Callable[[Browser], Awaitable[None]], **arguments: Any) -> None:
    """Run steps against a server of their own, whose exchange time stands still."""

    async def run() -> None:
        server = SimulatedExchange(**({"clock": lambda: NOW_NS} | arguments))
        async with server, aiohttp.ClientSession() as session:
            await steps(Browser(server, session))

    asyncio.run(run())


def test_each_exchange_answers_at_its_own_base() -> None:
    async def steps(browser: Browser) -> None:
        bases = browser.server.base_urls
        assert set(bases) == {"binance", "kraken", "coinbase", "coinbase-advanced"}
        assert (await browser.get("/binance/api/v3/ping")).value == {}
        assert (await browser.get("/binance/api/v3/time")).value == {"serverTime": NOW_NS // 10**6}
        assert (await browser.get("/kraken/0/public/Time")).value["result"]["unixtime"] == NOW_NS // 10**9
        assert (await browser.get("/coinbase/time")).value["iso"] == "2026-03-04T12:34:56.789000Z"
        advanced = await browser.get("/coinbase-advanced/api/v3/brokerage/time")
        assert advanced.value["epochMillis"] == str(NOW_NS // 10**6)
        assert (await browser.get("/control/health")).value["ready"] is True
        assert (await browser.get(ADVANCED)).value["product_id"] == "BTC-USD"

    browse(steps)


def test_unknown_paths_fail_in_each_exchanges_own_way() -> None:
    async def steps(browser: Browser) -> None:
        assert (await browser.get("/binance/api/v9/klines")).status == 404
        kraken = await browser.get("/kraken/0/public/Nothing")
        assert (kraken.status, kraken.value) == (200, {"error": ["EGeneral:Unknown method"]})
        assert (await browser.get("/coinbase/nothing")).value == {"message": "NotFound"}
        assert (await browser.get("/coinbase-advanced/x")).value["error"] == "NOT_FOUND"

    browse(steps)


def test_a_restart_serves_the_same_data() -> None:
    bodies = []

    async def steps(browser: Browser) -> None:
        bodies.append([(await browser.get(path)).body for path in (KLINES, OHLC, CANDLES, f"{ADVANCED}/ticker")])

    browse(steps, seed=5)
    browse(steps, seed=5)
    browse(steps, seed=6)
    assert bodies[0] == bodies[1]
    assert bodies[0] != bodies[2]


@pytest.mark.parametrize("status", [429, 418])
def test_throttling_says_when_to_come_back_in_seconds_as_a_date_or_not_at_all(status: int) -> None:
    """Cases 51 and 52: Retry-After 35, and a ban of 720 seconds."""
    kind = FaultKind.THROTTLED if status == 429 else FaultKind.BANNED
    faults = [
        {"kind": kind.value, "count": 1, "retry_after_seconds": 720},
        {"kind": kind.value, "count": 1, "retry_after": "date", "retry_after_seconds": 35},
        {"kind": kind.value, "count": 1, "retry_after": "missing"},
    ]

    async def steps(browser: Browser) -> None:
        assert (await browser.send("POST", "/control/faults", faults)).value == {"numbers": [1, 2, 3]}
        replies = [await browser.get(KLINES) for _ in range(4)]
        assert [reply.status for reply in replies] == [status, status, status, 200]
        assert replies[0].headers["Retry-After"] == "720"
        at = parsedate_to_datetime(replies[1].headers["Retry-After"])
        assert int(at.timestamp()) == NOW_NS // 10**9 + 35
        assert "Retry-After" not in replies[2].headers
        assert replies[0].value["code"] == -1003

    browse(steps, wall_clock=lambda: NOW_NS)


@pytest.mark.parametrize("status", [403, 500, 503, 520])
def test_an_html_page_comes_with_its_status(status: int) -> None:
    """Case 55: the body is no JSON, so only the status tells."""

    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.HTML, exchange="kraken", status=status, count=1))
        assert (await browser.get(KLINES)).status == 200
        reply = await browser.get(OHLC)
        assert reply.status == status
        assert reply.headers["Content-Type"].startswith("text/html")
        assert reply.body.startswith(b"<html>")
        assert (await browser.get(OHLC)).value["error"] == []

    browse(steps)


def test_an_exchanges_own_error_comes_in_its_own_shape() -> None:
    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.ERROR, exchange="kraken", code="EService:Busy"))
        browser.server.faults.add(Fault(FaultKind.ERROR, exchange="binance", code=-1008, message="Busy", status=503))
        kraken, binance = await browser.get(OHLC), await browser.get(KLINES)
        assert (kraken.status, kraken.value) == (200, {"error": ["EService:Busy"]})
        assert (binance.status, binance.value) == (503, {"code": -1008, "msg": "Busy"})

    browse(steps)


def test_a_slow_answer_takes_its_time_while_others_do_not_wait() -> None:
    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.SLOW, exchange="binance", delay_ms=300, count=1))
        began_ns = time.monotonic_ns()
        slow = asyncio.create_task(browser.get(KLINES))
        async with asyncio.timeout(60):
            while browser.server.faults.states()[0].happened == 0:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0)
        assert (await browser.get(OHLC)).status == 200
        assert (await slow).status == 200
        assert time.monotonic_ns() - began_ns >= 300 * 10**6

    browse(steps)


def test_a_dropped_connection_has_no_answer() -> None:
    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.DISCONNECT))
        with pytest.raises(aiohttp.ClientError):
            await browser.get(KLINES)
        assert browser.server.requests.last("/binance/api/v3/klines")[0].status == 0

    browse(steps)


def test_truncated_json_is_no_json() -> None:
    async def steps(browser: Browser) -> None:
        whole = await browser.get(KLINES)
        browser.server.faults.add(Fault(FaultKind.TRUNCATED, count=1))
        reply = await browser.get(KLINES)
        assert reply.body == whole.body[: len(whole.body) // 2]
        with pytest.raises(json.JSONDecodeError):
            reply.value  # noqa: B018 - reading it is the test

    browse(steps)


@pytest.mark.parametrize("path", [KLINES, OHLC, CANDLES, f"{ADVANCED}/ticker"])
def test_pages_come_empty_doubled_and_with_holes(path: str) -> None:
    """Cases 19, 25 and 34: a hole in the rows, a page that is empty although there is data."""

    def rows(reply: Reply) -> list[Any]:
        value = reply.value
        if isinstance(value, dict):
            value = value.get("result", value)
            value = next(rows for rows in value.values() if isinstance(rows, list))
        assert isinstance(value, list)
        return value

    async def steps(browser: Browser) -> None:
        whole = rows(await browser.get(path))
        for kind in (FaultKind.EMPTY, FaultKind.DUPLICATES, FaultKind.HOLE):
            browser.server.faults.clear()
            browser.server.faults.add(Fault(kind, count=1))
            bent = rows(await browser.get(path))
            if kind == FaultKind.EMPTY:
                assert bent == []
            elif kind == FaultKind.HOLE:
                assert 0 < len(bent) < len(whole)
                assert all(row in whole for row in bent)
            else:
                assert len(bent) > len(whole)
                assert [row for n, row in enumerate(bent) if n == 0 or row != bent[n - 1]] == whole
            assert rows(await browser.get(path)) == whole

    browse(steps, limits=Limits(kraken_burst=100, coinbase_burst=100))


def test_candles_come_off_their_grid() -> None:
    """Case 16: open times at :28.115."""

    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.OFF_GRID))
        assert {row[0] % 60_000 for row in (await browser.get(KLINES)).value} == {28_115}
        assert {row[0] % 60 for row in (await browser.get(CANDLES)).value} == {28}

    browse(steps)


def test_an_endpoint_ignores_its_start() -> None:
    """Case 23: rows of another time than the asked one."""
    old_s = NOW_NS // 10**9 - 10**7

    async def steps(browser: Browser) -> None:
        asked = f"{CANDLES}?start={old_s}&end={old_s + 600}"
        before = (await browser.get(asked)).value
        newest = (await browser.get(CANDLES)).value
        browser.server.faults.add(Fault(FaultKind.IGNORE_START))
        assert (await browser.get(asked)).value == newest != before
        klines = (await browser.get(f"{KLINES}&startTime={old_s * 1_000}")).value
        assert klines[-1][0] == NOW_NS // 10**6 // 60_000 * 60_000
        trades = (await browser.get("/kraken/0/public/Trades?pair=XBTUSD&since=0&count=5")).value["result"]
        assert trades["XXBTZUSD"][0][6] > 1_000

    browse(steps)


def test_faults_given_to_the_constructor_are_listed_and_cleared() -> None:
    async def steps(browser: Browser) -> None:
        assert (await browser.get(KLINES)).status == 503
        listed = (await browser.get("/control/faults")).value["faults"]
        assert [(item["fault"]["kind"], item["remaining"], item["happened"]) for item in listed] == [("html", 1, 1)]
        assert (await browser.send("DELETE", "/control/faults")).value == {"faults": []}
        assert (await browser.get(KLINES)).status == 200

    browse(steps, faults=[Fault(FaultKind.HTML, count=2)])


@pytest.mark.parametrize("value", [{"kind": "nothing"}, {"kind": "slow", "speed": 1}, ["slow"]])
def test_a_wrong_fault_is_refused_and_none_is_added(value: object) -> None:
    async def steps(browser: Browser) -> None:
        reply = await browser.send("POST", "/control/faults", value)
        assert reply.status == 400
        assert "expected a fault" in reply.value["error"]
        assert (await browser.get("/control/faults")).value == {"faults": []}

    browse(steps)


def test_requests_are_counted_with_their_queries_and_faults() -> None:
    async def steps(browser: Browser) -> None:
        browser.server.faults.add(Fault(FaultKind.THROTTLED, count=1))
        for _ in range(3):
            await browser.get(KLINES)
        await browser.get(OHLC)
        report = (await browser.get("/control/requests")).value
        assert report["total"] == 4
        klines = report["paths"]["/binance/api/v3/klines"]
        assert klines["count"] == browser.server.requests.count("/binance/api/v3/klines") == 3
        query = {"symbol": "BTCUSDT", "interval": "1m", "limit": "30"}
        assert klines["last"] == [
            {"query": query, "status": 429, "faults": ["throttled"]},
            {"query": query, "status": 200, "faults": []},
            {"query": query, "status": 200, "faults": []},
        ]
        assert (await browser.send("DELETE", "/control/requests")).value == {"total": 0, "paths": {}}

    browse(steps)


def test_the_weight_limit_is_real() -> None:
    """Case 50: the used weight is in the header, the limit in exchangeInfo."""

    async def steps(browser: Browser) -> None:
        info = await browser.get("/binance/api/v3/exchangeInfo")
        assert info.headers["X-MBX-USED-WEIGHT-1M"] == "20"
        assert info.value["rateLimits"][0]["limit"] == 23
        assert [(await browser.get(KLINES)).status for _ in range(3)] == [200, 429, 429]

    browse(steps, wall_clock=lambda: NOW_NS, limits=Limits(binance_weight_per_minute=23))


@pytest.mark.parametrize("kind", ["1m", "trades"])
def test_a_replayed_recording_is_paged_to_exactly_its_candles(recorded_data: Path, kind: str) -> None:
    folder = recorded_data / "binance"
    table = pq.ParquetFile(folder / "XRPETH-1m-2019-10-11_13.parquet").read()
    starts = [ns // 10**6 for ns in table.column("date").cast(pa.int64()).to_pylist()]
    names = ("open", "high", "low", "close", "volume")
    numbers = [[Decimal(repr(value)) for value in table.column(name).to_pylist()] for name in names]
    expected = list(zip(starts, *numbers, strict=True))
    recording = load_recording(folder / f"XRPETH-{kind}-2019-10-11_13.parquet", "XRP/ETH.BINANCE")

    async def steps(browser: Browser) -> None:
        server_ms = (await browser.get("/binance/api/v3/time")).value["serverTime"]
        assert server_ms == starts[-1] + 60_000
        served: list[Any] = []
        start = 0
        while True:
            path = f"/binance/api/v3/klines?symbol=XRPETH&interval=1m&limit=1000&startTime={start}"
            page = (await browser.get(path)).value
            served += [(row[0], *(Decimal(text) for text in row[1:6])) for row in page]
            if not page:
                break
            start = page[-1][0] + 1
        assert served == expected
        assert browser.server.requests.count("/binance/api/v3/klines") == 4
        told = (await browser.get("/control/health")).value["recordings"]
        assert [recording["ticker"] for recording in told] == ["XRP/ETH.BINANCE"]
        other = (await browser.get("/binance/api/v3/klines?symbol=BTCUSDT&interval=1m&limit=1")).value
        assert other[0][0] == server_ms

    browse(steps, recordings=[recording], clock=None)


def test_replayed_trades_page_in_the_shapes_of_all_three_exchanges(recorded_data: Path) -> None:
    path = recorded_data / "binance" / "XRPETH-trades-2019-10-11_13.parquet"
    ids = pq.ParquetFile(path).read().column("id").to_pylist()
    recordings = [load_recording(path, f"XRP/ETH.{name}") for name in ("BINANCE", "KRAKEN", "COINBASE")]

    async def steps(browser: Browser) -> None:
        binance: list[int] = []
        while page := (
            await browser.get(
                "/binance/api/v3/aggTrades?symbol=XRPETH&limit=1000&fromId=" + str(binance[-1] + 1 if binance else 0)
            )
        ).value:
            binance += [row["a"] for row in page]
        kraken: list[int] = []
        since = "0"
        while rows := (
            result := (await browser.get(f"/kraken/0/public/Trades?pair=XRPETH&since={since}")).value["result"]
        )["XXRPXETH"]:
            kraken += [row[6] for row in rows]
            since = result["last"]
        coinbase: list[int] = []
        after = ""
        while (reply := await browser.get(f"/coinbase/products/XRP-ETH/trades?limit=1000{after}")).value:
            coinbase += [row["trade_id"] for row in reply.value]
            after = "&after=" + reply.headers["CB-AFTER"]
        assert binance == kraken == coinbase[::-1] == ids

    browse(steps, recordings=recordings, clock=None, limits=Limits(kraken_burst=100, coinbase_burst=100))


def test_a_recording_of_an_exchange_that_is_not_served_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,price,amount,side\n1735689600000,1,1,buy\n")
    with pytest.raises(SettingsError, match="BINANCE, KRAKEN, COINBASE"):
        SimulatedExchange(recordings=[load_recording(tmp_path / "a.csv", "BTC/USD.ELSEWHERE")])


def test_a_taken_port_is_named() -> None:
    async def steps(browser: Browser) -> None:
        with pytest.raises(SettingsError, match=str(browser.server.port)):
            await SimulatedExchange(port=browser.server.port).start()

    browse(steps)
