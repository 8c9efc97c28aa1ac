"""Adapters against answers that exchanges really sent, and against what their documentation promises."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from ingestors.engine.bars_reader import BarsWanted
from ingestors.engine.outcomes import parse_retry_after
from ingestors.engine.trades_reader import TradesWanted
from ingestors.engine.values import Capabilities, Fidelity, Listing, ListingStatus
from ingestors.exchanges.ccxt_generic import CcxtAdapter, keep_numbers_as_text, open_ccxt
from relay.errors import PeerError, SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.tickers import parse_ticker
from relay.protocol.times import parse_iso_ns
from relay.protocol.v1 import market_pb2
from tests.support.ingestors import Bench, batches, bench, covered, history_request, minutes, rows

Handler = Callable[[httpx.Request], httpx.Response]


def _bench(name: str, handler: Handler, **options: Any) -> Bench:
    return bench(name, transport=httpx.MockTransport(handler), **options)


def _capture(folder: Path, name: str) -> str:
    with gzip.open(folder / "captures" / name, "rt") as lines:
        return next(lines).partition(": {" if name.startswith(("BINANCE", "KRAKEN")) else ": [")[2]


def _listing(ticker: str, native: str) -> Listing:
    return Listing(parse_ticker(ticker), native)


def _serve(body: str | bytes, **headers: str) -> Handler:
    return lambda request: httpx.Response(200, content=body, headers=headers)


def test_binances_real_market_list_is_read_with_exact_steps(recorded_data: Path) -> None:
    used = _bench("BINANCE", _serve("{" + _capture(recorded_data, "BINANCE.0.gz")))
    found = asyncio.run(used.exchange.adapter.markets())
    eth = found["ETH/BTC.BINANCE"]
    assert len(found) > 1_000
    assert (eth.native_symbol, eth.status) == ("ETHBTC", ListingStatus.ACTIVE)
    assert (eth.price_increment, eth.amount_increment) == (Decimal("0.000001"), Decimal("0.0001"))
    assert used.exchange.host is not None
    assert used.exchange.host.budget.limits.weight_per_minute == 1_200


def test_krakens_names_become_the_usual_ones(recorded_data: Path) -> None:
    used = _bench("KRAKEN", _serve("{" + _capture(recorded_data, "KRAKEN.0.gz")))
    found = asyncio.run(used.exchange.adapter.markets())
    assert found["BTC/USD.KRAKEN"].native_symbol == "XBTUSD"
    assert found["DOGE/USD.KRAKEN"].native_symbol == "XDGUSD"
    assert found["BTC/USD.KRAKEN"].price_increment == Decimal("0.1")
    assert not any("XBT" in ticker for ticker in found)


def test_krakens_newest_market_list_has_steps_of_its_own(recorded_data: Path) -> None:
    body = (recorded_data / "rest" / "kraken" / "http_asset_pairs.json").read_bytes()
    used = _bench("KRAKEN", _serve(body))
    btc = asyncio.run(used.exchange.adapter.markets())["BTC/USDT.KRAKEN"]
    assert btc.price_increment is not None
    assert btc.min_amount is not None


def test_coinbases_real_product_list_is_read(recorded_data: Path) -> None:
    used = _bench("COINBASE", _serve("[" + _capture(recorded_data, "COINBASE.0.gz")))
    found = asyncio.run(used.exchange.adapter.markets())
    assert found["BTC/GBP.COINBASE"].price_increment == Decimal("0.01")
    assert found["BTC/GBP.COINBASE"].amount_increment == Decimal("0.00000001")


def test_coinbase_advanced_says_which_product_is_an_alias(recorded_data: Path) -> None:
    body = (recorded_data / "rest" / "coinbase" / "http_products.json").read_bytes()
    used = _bench("COINBASE", _serve(body), coinbase_api="advanced")
    found = asyncio.run(used.exchange.adapter.markets())
    assert found["BTC/USDC.COINBASE"].alias_of == "BTC/USD.COINBASE"
    assert found["BTC/USD.COINBASE"].alias_of is None


def _kraken_recording(folder: Path) -> Handler:
    answers = {
        "OHLC": (folder / "rest" / "kraken" / "http_ohlc.json").read_bytes(),
        "AssetPairs": (folder / "rest" / "kraken" / "http_asset_pairs.json").read_bytes(),
        "Time": (folder / "rest" / "kraken" / "http_server_time.json").read_bytes(),
        "Trades": (folder / "rest" / "kraken" / "http_trades.json").read_bytes(),
    }

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=answers[request.url.path.rpartition("/")[2]])

    return answer


def test_krakens_recorded_rows_are_stored_without_the_running_last_one_case_17(recorded_data: Path) -> None:
    """Case 17: 721 rows, the last of which is open by the exchange's own clock."""
    raw = json.loads((recorded_data / "rest" / "kraken" / "http_ohlc.json").read_bytes())["result"]["XBTUSDT"]
    start_s, last_s = raw[0][0], raw[-1][0]
    clock = json.dumps({"error": [], "result": {"unixtime": last_s + 30}})
    recorded = _kraken_recording(recorded_data)

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=clock) if request.url.path.endswith("/Time") else recorded(request)

    used = _bench("KRAKEN", answer)
    span = Range((start_s + 600) * NANOSECONDS, (last_s + 60) * NANOSECONDS)
    result = asyncio.run(used.run(history_request("BTC/USDT.KRAKEN", span)))
    found = rows(batches(used.log))
    kept = [row for row in raw if start_s + 600 <= row[0] < last_s]
    assert result.success
    assert [row.timestamp for row in found] == [row[0] * NANOSECONDS for row in kept]
    scaled = [Decimal(row.close).scaleb(-row.price_decimals) for row in found]
    assert scaled == [Decimal(row[4]) for row in kept]
    assert [Decimal(row.volume) for row in found] == [Decimal(row[6]) for row in kept]
    assert covered(batches(used.log)) == [Range(span.start_ns, last_s * NANOSECONDS)]
    assert not any(row.HasField("quote_volume") or row.HasField("buy_volume") for row in found)


def test_krakens_trade_times_and_cursor_lose_no_digit_case_30(recorded_data: Path) -> None:
    """Case 30: the cursor goes back as the text it came as."""
    asked: list[str] = []
    recorded = _kraken_recording(recorded_data)

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["since"])
        return recorded(request)

    adapter = _bench("KRAKEN", answer).exchange.adapter
    listing = _listing("BTC/USDT.KRAKEN", "XBTUSDT")
    page = asyncio.run(adapter.fetch_trades_page(listing, TradesWanted(0, "1756123456789012345")))
    assert asked == ["1756123456789012345"]
    assert page.cursor == json.loads((recorded_data / "rest/kraken/http_trades.json").read_bytes())["result"]["last"]
    assert isinstance(page.cursor, str)
    first = page.trades[0]
    assert (first.time_ns, first.price, first.amount) == (
        1_762_795_433_971_744_500,
        Decimal("105433.60000"),
        Decimal("0.00027625"),
    )
    assert (first.trade_id, first.taker_buy, len(page.trades)) == ("10218208", True, 1_000)


def test_alike_kraken_trades_without_ids_stay_two_trades_case_62() -> None:
    """Case 62: a made-up id includes price, size, side and an ordinal."""
    row = ["5.1", "1.0", 1_400_000_000.5, "b", "l", ""]
    body = json.dumps({"error": [], "result": {"XXBTZUSD": [row, row], "last": "1"}})
    adapter = _bench("KRAKEN", _serve(body)).exchange.adapter
    page = asyncio.run(adapter.fetch_trades_page(_listing("BTC/USD.KRAKEN", "XBTUSD"), TradesWanted(0, None)))
    assert len({trade.trade_id for trade in page.trades}) == 2


def test_coinbase_rows_are_low_high_open_close_and_json_numbers_stay_exact_case_70() -> None:
    """Case 70: 0.0000001 as a JSON number."""
    body = "[[1700000040,0.0000001,0.0000005,0.0000002,0.0000003,123456789012.123456]]"
    adapter = _bench("COINBASE", _serve(body)).exchange.adapter
    wanted = BarsWanted(60, minutes(0, 300), 300)
    (bar,) = asyncio.run(adapter.fetch_bars_page(_listing("A/USD.COINBASE", "A-USD"), wanted)).rows
    prices = [bar.low, bar.high, bar.open, bar.close]
    assert prices == [Decimal(f"0.000000{digit}") for digit in ("1", "5", "2", "3")]
    assert bar.volume == Decimal("123456789012.123456")


def test_coinbase_is_asked_with_both_bounds_and_300_buckets_at_most() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, text="[]")

    adapter = _bench("COINBASE", answer).exchange.adapter
    wanted = BarsWanted(60, Range(parse_iso_ns("2024-01-01T00:00:00Z"), parse_iso_ns("2024-01-01T05:00:00Z")), 300)
    asyncio.run(adapter.fetch_bars_page(_listing("BTC/USD.COINBASE", "BTC-USD"), wanted))
    params = seen[0].url.params
    assert (params["start"], params["end"]) == ("2024-01-01T00:00:00Z", "2024-01-01T04:59:00Z")


def test_the_machines_zone_moves_no_page_case_39(monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 39: no 8 h hole between pages under UTC+8."""
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        test_coinbase_is_asked_with_both_bounds_and_300_buckets_at_most()
        date, later = "Tue, 10 Jun 2025 10:00:00 GMT", "Tue, 10 Jun 2025 10:00:35 GMT"
        assert parse_retry_after(later, date=date, wall_ns=0) == 35 * NANOSECONDS
    finally:
        monkeypatch.undo()
        time.tzset()


def test_coinbase_searches_for_a_listing_once() -> None:
    listed_s = 1_700_000_040
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/time":
            return httpx.Response(200, text='{"iso":"2024-01-01T00:00:00Z","epoch":1704067200}')
        asked.append(request.url.params["start"])
        step = int(request.url.params["granularity"])
        first_s = listed_s // step * step
        low, high = (parse_iso_ns(request.url.params[name]) // NANOSECONDS for name in ("start", "end"))
        return httpx.Response(200, text=f"[[{first_s},1,1,1,1,1]]" if low <= first_s <= high else "[]")

    adapter = _bench("COINBASE", answer).exchange.adapter
    listing = _listing("BTC/USD.COINBASE", "BTC-USD")
    before_ns = parse_iso_ns("2021-01-01T00:00:00Z")

    async def scene() -> tuple[int | None, int | None]:
        first = await adapter.history_start_ns(listing, before_ns=before_ns)
        count = len(asked)
        second = await adapter.history_start_ns(listing, before_ns=before_ns)
        assert len(asked) == count
        return first, second

    assert asyncio.run(scene()) == (listed_s * NANOSECONDS, listed_s * NANOSECONDS)


def test_coinbase_advanced_recorded_candles_are_read(recorded_data: Path) -> None:
    body = (recorded_data / "rest" / "coinbase" / "http_candles.json").read_bytes()
    adapter = _bench("COINBASE", _serve(body), coinbase_api="advanced").exchange.adapter
    wanted = BarsWanted(3_600, Range(0, 2**62), 300)
    page = asyncio.run(adapter.fetch_bars_page(_listing("BTC/USD.COINBASE", "BTC-USD"), wanted))
    assert page.rows[0].start_ns == 1_712_192_400 * NANOSECONDS
    assert (page.rows[0].open, page.rows[0].low) == (Decimal("66312.4"), Decimal("66055.14"))


@pytest.mark.parametrize("unit", [1, 1_000])
def test_binance_times_in_ms_and_in_us_land_on_the_same_instant_case_42(unit: int, recorded_data: Path) -> None:
    """Case 42: the unit is found by the value's range."""
    raw = json.loads((recorded_data / "rest" / "binance" / "klines_response.json").read_bytes())
    raw[0][0] *= unit
    adapter = _bench("BINANCE", _serve(json.dumps(raw))).exchange.adapter
    wanted = BarsWanted(60, Range(0, 2**62), 1_000)
    (bar,) = asyncio.run(adapter.fetch_bars_page(_listing("ETH/BTC.BINANCE", "ETHBTC"), wanted)).rows
    assert bar.start_ns == 1_499_040_000_000 * 1_000_000
    assert (bar.quote_volume, bar.trades) == (Decimal("2434.19055334"), 308)
    assert (bar.buy_volume, bar.sell_volume) == (Decimal("1756.87402397"), Decimal("147219.24025418"))


def test_one_unreadable_row_leaves_the_others_case_31() -> None:
    """Case 31: one bad row is its own record; the page stands."""
    good = [1_700_000_040_000, "1", "1", "1", "1", "1", 0, "1", 1, "1", "1", "0"]
    bad = [1_700_000_100_000, "NaN", "1", "1", "1", "1", 0, "1", 1, "1", "1", "0"]
    adapter = _bench("BINANCE", _serve(json.dumps([good, bad, [True]]))).exchange.adapter
    wanted = BarsWanted(60, minutes(0, 5), 1_000)
    page = asyncio.run(adapter.fetch_bars_page(_listing("ETH/BTC.BINANCE", "ETHBTC"), wanted))
    assert len(page.rows) == 1
    assert [row.start_ns for row in page.bad] == [1_700_000_100 * NANOSECONDS, None]


def test_a_delisted_symbols_new_name_is_explained_by_the_list_case_69() -> None:
    """Case 69: a ticker that the exchange no longer lists ends with words, not with silence."""
    body = json.dumps(
        {"symbols": [{"symbol": "POLUSDT", "status": "TRADING", "baseAsset": "POL", "quoteAsset": "USDT"}]}
    )
    used = _bench("BINANCE", _serve(body))
    with pytest.raises(PeerError) as caught:
        asyncio.run(used.exchange.markets.find("MATIC/USDT.BINANCE"))
    assert caught.value.code == "UNKNOWN_SYMBOL"
    assert "ask for its symbols" in str(caught.value)


def test_the_market_list_is_shared_by_jobs_that_start_together() -> None:
    asked: list[str] = []
    body = json.dumps(
        {"symbols": [{"symbol": "POLUSDT", "status": "TRADING", "baseAsset": "POL", "quoteAsset": "USDT"}]}
    )

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, text=body)

    used = _bench("BINANCE", answer)

    async def scene() -> None:
        await asyncio.gather(*(used.exchange.markets.find("POL/USDT.BINANCE") for _ in range(10)))

    asyncio.run(scene())
    assert asked == ["/api/v3/exchangeInfo"]


def test_every_adapter_states_its_bounds_case_20() -> None:
    """Case 20: an adapter says whether its endpoint's bounds are inclusive."""
    stated = {name: _bench(name, _serve("{}")).exchange.adapter.capabilities for name in ("BINANCE", "KRAKEN")}
    assert (stated["BINANCE"].start_inclusive, stated["KRAKEN"].start_inclusive) == (True, False)
    assert all(isinstance(capabilities, Capabilities) for capabilities in stated.values())


def test_ten_callers_share_one_retry_after_case_51() -> None:
    """Case 51: Retry-After 35 once, then everybody gets through."""
    calls: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        calls.append(request.url.path)
        if len(calls) == 1:
            return httpx.Response(429, headers={"Retry-After": "35"}, text="<html>slow down</html>")
        return httpx.Response(200, text='{"serverTime":1499827319559}')

    used = _bench("BINANCE", answer)

    async def scene() -> None:
        ask = used.exchange.adapter.server_time_ns
        await asyncio.gather(*(used.runner._call(ask) for _ in range(10)))

    asyncio.run(scene())
    assert len(calls) == 11
    assert max(used.clock.slept_ns) >= 35 * NANOSECONDS
    assert sum(ns >= 30 * NANOSECONDS for ns in used.clock.slept_ns) == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ccxt.async_support", None)
    with pytest.raises(SettingsError) as caught:
        open_ccxt("OKX")
    assert caught.value.code == "MISSING_EXTRA"
    assert "market-relay[ccxt]" in str(caught.value)


def test_an_exchange_that_ccxt_does_not_know_is_named() -> None:
    pytest.importorskip("ccxt")
    with pytest.raises(SettingsError) as caught:
        open_ccxt("NO_SUCH_PLACE")
    assert caught.value.code == "UNKNOWN_EXCHANGE"


class _FakeCcxt(SimpleNamespace):
    async def load_markets(self, reload: bool = False) -> dict[str, Any]:
        entry = {"symbol": "BTC/USDT", "base": "BTC", "quote": "USDT", "spot": True, "precision": {"price": "0.01"}}
        return {"BTC/USDT": entry}

    async def fetch_ohlcv(self, *arguments: object) -> list[list[object]]:
        return [[1_700_000_040_000, "0.0000001", "2", "0.0000001", "1", "123456789012345678"]]


def test_the_generic_adapter_keeps_text_and_says_that_its_fidelity_is_lower() -> None:
    client = _FakeCcxt(timeframes={"1m": "1m", "1w": "1w", "1M": "1M"}, has={}, precisionMode=4)
    adapter = CcxtAdapter(client, exchange="OKX")
    assert adapter.capabilities.fidelity is Fidelity.LOWER
    assert adapter.capabilities.native_periods == (60,)
    listing = asyncio.run(adapter.markets())["BTC/USDT.OKX"]
    (bar,) = asyncio.run(adapter.fetch_bars_page(listing, BarsWanted(60, minutes(0, 5), 100))).rows
    assert (bar.open, bar.volume) == (Decimal("0.0000001"), Decimal(123456789012345678))
    assert listing.price_increment == Decimal("0.01")


def test_a_real_ccxt_client_parses_numbers_as_text() -> None:
    ccxt = pytest.importorskip("ccxt.async_support")
    client = ccxt.okx()
    keep_numbers_as_text(client)
    parsed = client.parse_json('{"a": 0.1234567890123456789}')
    assert parsed == {"a": "0.1234567890123456789"}
    row = client.parse_ohlcv(["1700000040000", "0.0000001", "2", "1", "1", "123456789012345678"], None)
    assert row[1:] == ["0.0000001", "2", "1", "1", "123456789012345678"]


def test_one_jobs_bad_answers_do_not_reach_another_job_case_31() -> None:
    """Case 31: one bad pair yields its own error record; the other finishes."""
    info = {
        "symbols": [
            {"symbol": s, "status": "TRADING", "baseAsset": s[:3], "quoteAsset": "USDT"} for s in ("BADUSDT", "FINUSDT")
        ]
    }

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("exchangeInfo"):
            return httpx.Response(200, text=json.dumps(info))
        if request.url.path.endswith("time"):
            return httpx.Response(200, text='{"serverTime":1800000000000}')
        if request.url.params["symbol"] == "BADUSDT":
            return httpx.Response(200, text='{"unexpected": "shape"}')
        start = int(request.url.params["startTime"])
        row = [start, "1", "1", "1", "1", "1", 0, "1", 1, "1", "1", "0"]
        return httpx.Response(200, text=json.dumps([row]))

    used = _bench("BINANCE", answer)

    async def scene() -> list[Any]:
        requests = [history_request(f"{base}/USDT.BINANCE", minutes(0, 1)) for base in ("BAD", "FIN")]
        return await asyncio.gather(*(used.runner.run(request, lambda *_: None) for request in requests))

    bad, fine = asyncio.run(scene())
    assert (bad.success, fine.success, fine.rows) == (False, True, 1)
    marked = [batch.ticker for batch in batches(used.log) if batch.status == market_pb2.OHLCBatch.ERROR]
    assert marked == ["BAD/USDT.BINANCE"]
