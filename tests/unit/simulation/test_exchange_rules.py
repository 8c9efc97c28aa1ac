"""Parameter rules, paging and errors of each shape, without a socket."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pytest

from ingestors.simulation.binance import BinanceRest
from ingestors.simulation.coinbase import CoinbaseRest
from ingestors.simulation.coinbase_advanced import CoinbaseAdvancedRest
from ingestors.simulation.faults import Fault, FaultKind
from ingestors.simulation.kraken import KrakenRest
from ingestors.simulation.limits import Limits
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.number_text import fixed_text, json_number, seconds_number
from relay.protocol.times import parse_iso_ns
from tests.unit.simulation.calls import NOW_NS, ask, value_of

NOW_MS, NOW_S = NOW_NS // 10**6, NOW_NS // 10**9
MINUTE_MS = 60_000
KLINES, AGG_TRADES = "/api/v3/klines", "/api/v3/aggTrades"
OHLC, TRADES = "/0/public/OHLC", "/0/public/Trades"
CANDLES = "/products/{product}/candles"
MARKET = "/api/v3/brokerage/market/products/{product}"

binance = BinanceRest(modelled_markets("binance", seed=1), limits=Limits())
kraken = KrakenRest(modelled_markets("kraken", seed=1), limits=Limits())
coinbase = CoinbaseRest(modelled_markets("coinbase", seed=1), limits=Limits())
advanced = CoinbaseAdvancedRest(modelled_markets("coinbase-advanced", seed=1), limits=Limits())


def klines(**parameters: object) -> Any:
    given = {"symbol": "BTCUSDT", "interval": "1m"} | parameters
    return value_of(ask(binance, KLINES, parameters=given))


def starts(rows: list[Any]) -> list[int]:
    return [row[0] for row in rows]


def test_binance_klines_without_bounds_are_the_newest_and_hold_the_running_one() -> None:
    """Case 17: the newest row still runs; only the clock tells."""
    rows = klines()
    assert len(rows) == 500
    assert rows[-1][0] == NOW_MS // MINUTE_MS * MINUTE_MS
    assert rows[-1][6] == rows[-1][0] + MINUTE_MS - 1 > NOW_MS


def test_binance_klines_range_rule() -> None:
    """Case 21: a start equal to an open time gives that candle first."""
    start = NOW_MS // MINUTE_MS * MINUTE_MS - 5_000 * MINUTE_MS
    assert starts(klines(startTime=start, limit=3)) == [start, start + MINUTE_MS, start + 2 * MINUTE_MS]
    assert starts(klines(startTime=start + 1, limit=1)) == [start + MINUTE_MS]
    assert starts(klines(endTime=start, limit=2)) == [start - MINUTE_MS, start]
    assert starts(klines(startTime=start, endTime=start + MINUTE_MS)) == [start, start + MINUTE_MS]
    assert len(klines(startTime=start, limit=5_000)) == 1_000
    assert klines(startTime=start, endTime=start - 1) == []


def test_binance_klines_of_every_interval_lie_on_their_grid() -> None:
    """Case 10: weeks begin on Monday."""
    monday = parse_iso_ns("2026-03-02T00:00:00Z") // 10**6
    for interval in ("1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w", "1M"):
        rows = klines(interval=interval, limit=3)
        assert [row[6] + 1 for row in rows[:-1]] == starts(rows)[1:], interval
    assert klines(interval="1w", limit=1)[0][0] == monday
    assert klines(interval="1M", limit=1)[0][0] == parse_iso_ns("2026-03-01T00:00:00Z") // 10**6
    shifted = klines(interval="1d", limit=1, timeZone="+08:00")[0][0]
    assert shifted == parse_iso_ns("2026-03-03T16:00:00Z") // 10**6


def test_binance_times_in_microseconds_are_understood_and_served_on_demand() -> None:
    """Case 42: the same instant in both units."""
    start = NOW_MS // MINUTE_MS * MINUTE_MS - 50 * MINUTE_MS
    parameters = {"symbol": "BTCUSDT", "interval": "1m", "startTime": start * 1_000, "limit": 1}
    assert klines(**parameters)[0][0] == start
    answer = ask(binance, KLINES, parameters=parameters, headers={"x-mbx-time-unit": "MICROSECOND"})
    row = value_of(answer)[0]
    assert (row[0], row[6]) == (start * 1_000, start * 1_000 + 60 * 10**6 - 1)


def test_binance_has_flat_rows_for_empty_minutes() -> None:
    rows = klines(symbol="BTTCUSDT", limit=1_000)
    assert len(rows) == 1_000
    flat = [row for row in rows if row[8] == 0]
    assert len(flat) > 100
    assert all(row[1] == row[2] == row[3] == row[4] and row[5] == "0.00000000" for row in flat)
    assert any(row[4] == "0.00000010" for row in rows)


def test_binance_history_starts_at_the_listing() -> None:
    """Case 26: what lies before the listing has no row."""
    rows = klines(symbol="SOLUSDT", startTime=0, limit=1)
    assert rows[0][0] == parse_iso_ns("2020-08-11T06:00:00Z") // 10**6
    assert klines(symbol="SOLUSDT", startTime=0, endTime=rows[0][0] - 1) == []


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"symbol": "NOSUCH", "interval": "1m"}, -1121),
        ({"symbol": "BTCUSDT", "interval": "7m"}, -1120),
        ({"symbol": "BTC/USDT", "interval": "1m"}, -1100),
        ({"interval": "1m"}, -1102),
        ({"symbol": "BTCUSDT"}, -1102),
        ({"symbol": "BTCUSDT", "interval": "1m", "startTime": "yesterday"}, -1100),
        ({"symbol": "BTCUSDT", "interval": "1m", "limit": "0"}, -1130),
        ({"symbol": "BTCUSDT", "interval": "1m", "timeZone": "+15:00"}, -1130),
        ({"symbol": "BTCUSDT", "interval": "1m", "since": "1"}, -1104),
    ],
)
def test_binance_errors_carry_their_code(parameters: dict[str, object], code: int) -> None:
    """Case 45: a time that is no whole number is refused."""
    answer = ask(binance, KLINES, parameters=parameters)
    assert (answer.status, value_of(answer)["code"]) == (400, code)
    assert set(value_of(answer)) == {"code", "msg"}


def test_binance_trades_page_by_id_and_by_time() -> None:
    first = value_of(ask(binance, AGG_TRADES, parameters={"symbol": "BTCUSDT", "fromId": 1, "limit": 1_000}))
    assert [row["a"] for row in first] == list(range(1, 1_001))
    between = value_of(
        ask(
            binance,
            AGG_TRADES,
            parameters={"symbol": "BTCUSDT", "startTime": first[10]["T"], "endTime": first[20]["T"]},
        )
    )
    assert between == [row for row in first if first[10]["T"] <= row["T"] <= first[20]["T"]]
    history = value_of(
        ask(binance, "/api/v3/historicalTrades", parameters={"symbol": "BTCUSDT", "fromId": 5, "limit": 2})
    )
    assert [row["id"] for row in history] == [5, 6]
    assert [row["isBuyerMaker"] for row in history] == [row["m"] for row in first[4:6]]
    newest = value_of(ask(binance, "/api/v3/trades", parameters={"symbol": "BTCUSDT", "limit": 3}))
    assert [newest[2]["id"] - row["id"] for row in newest] == [2, 1, 0]
    assert newest[2]["time"] <= NOW_MS
    both = ask(binance, AGG_TRADES, parameters={"symbol": "BTCUSDT", "fromId": 1, "startTime": 1})
    assert value_of(both)["code"] == -1128


def test_binance_exchange_info_names_limits_filters_and_halted_symbols() -> None:
    """Cases 50 and 69: the limit is there to be read, and a stopped symbol says so."""
    info = value_of(ask(binance, "/api/v3/exchangeInfo"))
    weights = [limit["limit"] for limit in info["rateLimits"] if limit["rateLimitType"] == "REQUEST_WEIGHT"]
    assert weights == [6_000]
    states = {entry["symbol"]: entry["status"] for entry in info["symbols"]}
    assert (states["MATICUSDT"], states["POLUSDT"]) == ("BREAK", "TRADING")
    one = value_of(ask(binance, "/api/v3/exchangeInfo", parameters={"symbols": '["BTTCUSDT","BTCUSDT"]'}))
    assert [entry["symbol"] for entry in one["symbols"]] == ["BTTCUSDT", "BTCUSDT"]
    assert one["symbols"][0]["filters"][0]["tickSize"] == "0.00000001"
    unknown = ask(binance, "/api/v3/exchangeInfo", parameters={"symbol": "NOSUCH"})
    assert value_of(unknown)["code"] == -1121
    earlier = value_of(ask(binance, "/api/v3/exchangeInfo", now_ns=parse_iso_ns("2018-06-01T00:00:00Z")))
    assert {entry["symbol"] for entry in earlier["symbols"]} == {"BTCUSDT", "ETHUSDT", "XRPETH"}


def test_an_endpoint_that_ignores_its_start_serves_the_newest_page() -> None:
    """Case 23."""
    start = NOW_MS - 10**9
    faults = (Fault(FaultKind.IGNORE_START),)
    parameters = {"symbol": "BTCUSDT", "interval": "1m", "startTime": start, "limit": 10}
    assert value_of(ask(binance, KLINES, parameters=parameters, faults=faults)) == klines(limit=10)


def kraken_result(path: str, **parameters: object) -> Any:
    answer = value_of(ask(kraken, path, parameters=parameters))
    assert answer["error"] == []
    return answer["result"]


def test_kraken_serves_at_most_720_closed_rows_whatever_since_says() -> None:
    """Cases 27 and 41: older rows can't be had from OHLC."""
    old = kraken_result(OHLC, pair="XBTUSD", interval=240, since=parse_iso_ns("2020-01-01T00:00:00Z") // 10**9)
    rows = old["XXBTZUSD"]
    assert len(rows) == 721
    assert rows[-1][0] == NOW_S // 14_400 * 14_400
    assert old["last"] == rows[-2][0]
    newer = kraken_result(OHLC, pair="XBTUSD", interval=240, since=rows[-3][0])
    assert starts(newer["XXBTZUSD"]) == starts(rows[-2:])


def test_kraken_intervals_without_trades_are_absent_or_flat_by_market() -> None:
    absent = starts(kraken_result(OHLC, pair="XDGUSD")["XDGUSD"])
    assert any(later - earlier > 60 for earlier, later in itertools.pairwise(absent))
    flat = kraken_result(OHLC, pair="SOLUSD")["SOLUSD"]
    assert {later - earlier for earlier, later in zip(starts(flat), starts(flat)[1:], strict=False)} == {60}
    assert any(row[7] == 0 and row[6] == "0.00000000" and row[5] == "0.00" for row in flat)


def test_kraken_answers_under_the_canonical_name_whatever_name_was_asked() -> None:
    for name in ("XXBTZUSD", "XBTUSD", "XBT/USD", "BTC/USD"):
        assert set(kraken_result(OHLC, pair=name)) == {"XXBTZUSD", "last"}
    assert set(kraken_result(OHLC, pair="XBTUSD", assetVersion=1)) == {"BTC/USD", "last"}
    pairs = kraken_result("/0/public/AssetPairs")
    assert (pairs["XXBTZUSD"]["altname"], pairs["XXBTZUSD"]["wsname"]) == ("XBTUSD", "XBT/USD")
    assert pairs["XDGUSD"]["base"] == "XXDG"
    assert set(kraken_result("/0/public/AssetPairs", pair="XBTUSD,ETHUSD")) == {"XXBTZUSD", "XETHZUSD"}


def test_kraken_trades_page_through_the_whole_history_by_the_cursor_as_text() -> None:
    """Cases 28 and 30: the cursor is 19 digits of text and always moves on."""
    since, ids = "0", []
    for _ in range(5):
        page = kraken_result(TRADES, pair="XBTUSD", since=since, count=100)
        ids += [row[6] for row in page["XXBTZUSD"]]
        assert isinstance(page["last"], str)
        assert len(page["last"]) == 19
        assert int(page["last"]) > int(since)
        since = page["last"]
    assert ids == list(range(1, len(ids) + 1))
    assert len(ids) >= 500
    newest = kraken_result(TRADES, pair="XBTUSD")
    assert len(newest["XXBTZUSD"]) == 1_000
    assert kraken_result(TRADES, pair="XBTUSD", since=newest["last"]) == {"XXBTZUSD": [], "last": newest["last"]}
    seconds = kraken_result(TRADES, pair="XBTUSD", since=NOW_S - 3_600)
    assert seconds == kraken_result(TRADES, pair="XBTUSD", since=(NOW_S - 3_600) * 10**9)


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"pair": "NOSUCH"}, "EQuery:Unknown asset pair"),
        ({"pair": "XBTUSD", "interval": "3"}, "EGeneral:Invalid arguments"),
        ({"pair": "XBTUSD", "since": "x"}, "EGeneral:Invalid arguments"),
        ({}, "EGeneral:Invalid arguments"),
    ],
)
def test_kraken_errors_come_with_http_200(parameters: dict[str, object], error: str) -> None:
    answer = ask(kraken, OHLC, parameters=parameters)
    assert (answer.status, value_of(answer)) == (200, {"error": [error]})


def candles(product: str = "BTC-USD", **parameters: object) -> Any:
    return value_of(ask(coinbase, CANDLES, parts={"product": product}, parameters=parameters))


def test_coinbase_candles_are_numbers_newest_first_and_within_300() -> None:
    """Case 36: descending pages."""
    start = NOW_S // 60 * 60 - 10_000 * 60
    rows = candles(start=start, end=start + 300 * 60 - 1, granularity=60)
    assert starts(rows) == sorted(starts(rows), reverse=True)
    assert all(row[1] <= min(row[3], row[4]) <= max(row[3], row[4]) <= row[2] for row in rows)
    assert all(isinstance(cell, int | Decimal) for row in rows for cell in row)
    refused = ask(coinbase, CANDLES, parts={"product": "BTC-USD"}, parameters={"start": start, "end": start + 300 * 60})
    assert refused.status == 400
    assert "exceeds 300" in value_of(refused)["message"]


def test_coinbase_ignores_a_start_without_an_end_and_may_send_rows_before_the_start() -> None:
    """Case 23: rows outside the asked range exist."""
    assert candles(start=NOW_S - 10**7) == candles() == candles(end=NOW_S - 10**7)
    base = NOW_S // 300 * 300 - 3_000
    asked = {start: candles(start=start, end=start + 600) for start in range(base, base + 300, 60)}
    assert any(min(starts(rows)) < start for start, rows in asked.items())
    assert min(starts(candles(start=base + 90, end=base + 600))) == base + 60
    text = candles(start="2026-03-01T00:00:00Z", end="2026-03-01T01:00:00+00:00")
    assert text == candles(start="2026-03-01T00:00:00", end="2026-03-01T01:00:00.000Z")


def test_coinbase_has_no_row_without_a_trade() -> None:
    rows = candles("SHIB-USD")
    assert 50 < len(rows) < 250
    assert all(row[5] > 0 for row in rows)


def test_coinbase_trades_page_back_by_the_cursor_header_with_the_makers_side() -> None:
    path, parts = "/products/{product}/trades", {"product": "BTC-USD"}
    newest = ask(coinbase, path, parts=parts, parameters={"limit": 10})
    ids = [row["trade_id"] for row in value_of(newest)]
    assert ids == list(range(ids[0], ids[0] - 10, -1))
    assert newest.headers == {"CB-BEFORE": str(ids[0]), "CB-AFTER": str(ids[-1])}
    older = ask(coinbase, path, parts=parts, parameters={"limit": 10, "after": newest.headers["CB-AFTER"]})
    assert value_of(older)[0]["trade_id"] == ids[-1] - 1
    newer = ask(coinbase, path, parts=parts, parameters={"limit": 10, "before": older.headers["CB-BEFORE"]})
    assert value_of(newer) == value_of(newest)
    market = modelled_markets("coinbase", seed=1)["BTC/USD"]
    trade = market.trades(ids[0] - 1, ids[0])[0]
    assert value_of(newest)[0]["side"] == ("sell" if trade.taker_buy else "buy")


@pytest.mark.parametrize(
    ("product", "parameters", "status", "message"),
    [
        ("NO-SUCH", {}, 404, "NotFound"),
        ("BTC-USD", {"granularity": 61}, 400, "Unsupported granularity"),
        ("BTC-USD", {"start": "soon", "end": "later"}, 400, "Invalid start"),
        ("BTC-USD", {"start": 200, "end": 100}, 400, "end must be after start"),
    ],
)
def test_coinbase_errors_are_messages(product: str, parameters: dict[str, object], status: int, message: str) -> None:
    answer = ask(coinbase, CANDLES, parts={"product": product}, parameters=parameters)
    assert (answer.status, value_of(answer)) == (status, {"message": message})


def advanced_candles(**parameters: object) -> Any:
    given = {"granularity": "ONE_MINUTE"} | parameters
    return ask(advanced, f"{MARKET}/candles", parts={"product": "BTC-USD"}, parameters=given)


def test_advanced_candles_are_text_and_equal_those_of_the_other_interface() -> None:
    start = NOW_S // 60 * 60 - 10_020 * 60
    rows = value_of(advanced_candles(start=start, end=start + 349 * 60))["candles"]
    assert all(isinstance(value, str) for row in rows for value in row.values())
    same = {row[0]: row[1:] for row in candles(start=start, end=start + 299 * 60)}
    for row in rows:
        if int(row["start"]) in same:
            values = [Decimal(row[name]) for name in ("low", "high", "open", "close", "volume")]
            assert values == same[int(row["start"])]
    assert advanced_candles(start=start, end=start + 350 * 60).status == 400
    assert advanced_candles(start=start).status == 400
    assert advanced_candles(start=start, end=start + 60, granularity="FOUR_HOUR").status == 400


def test_advanced_ticker_needs_an_end_with_a_start_and_answers_under_the_shared_book() -> None:
    path, parts = f"{MARKET}/ticker", {"product": "BTC-USDC"}
    assert ask(advanced, path, parts=parts, parameters={"start": NOW_S - 60}).status == 400
    rows = value_of(ask(advanced, path, parts=parts, parameters={"limit": 5}))["trades"]
    assert {row["product_id"] for row in rows} == {"BTC-USD"}
    bounded = value_of(ask(advanced, path, parts=parts, parameters={"start": NOW_S - 600, "end": NOW_S - 300}))[
        "trades"
    ]
    assert bounded
    assert all(int(row["trade_id"]) <= int(rows[0]["trade_id"]) for row in bounded)
    unknown = ask(advanced, path, parts={"product": "NO-SUCH"})
    assert (unknown.status, value_of(unknown)["error"]) == (404, "NOT_FOUND")
    products = value_of(ask(advanced, "/api/v3/brokerage/market/products"))["products"]
    aliases = {entry["product_id"]: (entry["alias"], entry["alias_to"]) for entry in products}
    assert aliases["BTC-USD"] == ("", ["BTC-USDC"])
    assert aliases["BTC-USDC"] == ("BTC-USD", [])


def test_numbers_are_written_exactly() -> None:
    """Case 70: 0.0000001 and 18 digits, as text and as a JSON number."""
    assert fixed_text(1, 7, 8) == "0.00000010"
    assert fixed_text(123_456_789_012_345_678, 18) == "0.123456789012345678"
    assert fixed_text(-5, 1) == "-0.5"
    assert bytes(json_number(1, 7)) == b"1e-7"
    assert bytes(json_number(123, 10)) == b"1.23e-8"
    assert bytes(json_number(10, 7)) == b"0.000001"
    assert bytes(json_number(4_200, 2)) == b"42"
    assert bytes(json_number(987_654_321_012_345_678, 9)) == b"987654321.012345678"
    assert bytes(seconds_number(1_762_795_433_971_744_599, 7)) == b"1762795433.9717445"
