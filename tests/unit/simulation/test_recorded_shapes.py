"""Shapes against answers that the real exchanges gave: the same keys, the same types."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ingestors.simulation.binance import BinanceRest
from ingestors.simulation.coinbase_advanced import CoinbaseAdvancedRest
from ingestors.simulation.kraken import KrakenRest
from ingestors.simulation.limits import Limits
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.replay import load_recording
from tests.unit.simulation.calls import NOW_NS, ask, value_of

NOW_S = NOW_NS // 10**9
MARKET = "/api/v3/brokerage/market/products"

binance = BinanceRest(modelled_markets("binance", seed=1), limits=Limits())
kraken = KrakenRest(modelled_markets("kraken", seed=1), limits=Limits())
advanced = CoinbaseAdvancedRest(modelled_markets("coinbase-advanced", seed=1), limits=Limits())


def shape_of(value: Any) -> Any:
    """Return a value with its leaves replaced by the names of their types; text that is a number counts as such."""
    if isinstance(value, dict):
        return {name: shape_of(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape_of(item) for item in value]
    if isinstance(value, str):
        return "number text" if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value) else "text"
    return "number" if isinstance(value, int | Decimal) and not isinstance(value, bool) else type(value).__name__


def recorded(folder: Path, name: str) -> Any:
    return json.loads((folder / "rest" / name).read_text(), parse_float=Decimal)


@pytest.mark.parametrize(
    ("path", "name", "parameters"),
    [
        ("/api/v3/klines", "klines_response.json", {"symbol": "BTCUSDT", "interval": "1w", "limit": 1}),
        ("/api/v3/trades", "trades_response.json", {"symbol": "BTCUSDT", "limit": 1}),
        ("/api/v3/historicalTrades", "trades_response.json", {"symbol": "BTCUSDT", "limit": 1}),
        ("/api/v3/time", "server_time_response.json", {}),
    ],
)
def test_binance_answers_have_the_recorded_shape(
    recorded_data: Path, path: str, name: str, parameters: dict[str, object]
) -> None:
    ours = value_of(ask(binance, path, parameters=parameters))
    assert shape_of(ours) == shape_of(recorded(recorded_data, f"binance/{name}"))


def test_binance_symbols_have_the_recorded_keys(recorded_data: Path) -> None:
    theirs = recorded(recorded_data, "binance/exchange_info_response.json")
    ours = value_of(ask(binance, "/api/v3/exchangeInfo", parameters={"symbol": "BTCUSDT"}))
    assert set(theirs) - set(ours) == {"sors"}
    their_entry, our_entry = theirs["symbols"][0], ours["symbols"][0]
    assert set(our_entry) == set(their_entry)
    assert {name: type(value) for name, value in our_entry.items()} == {
        name: type(value) for name, value in their_entry.items()
    }


def kraken_rows(answer: Any) -> Any:
    return next(rows for name, rows in answer["result"].items() if name != "last")


def test_kraken_ohlc_has_the_recorded_shape_and_length(recorded_data: Path) -> None:
    theirs = recorded(recorded_data, "kraken/http_ohlc.json")
    ours = value_of(ask(kraken, "/0/public/OHLC", parameters={"pair": "XBTUSDT"}))
    assert set(ours["result"]) == set(theirs["result"]) == {"XBTUSDT", "last"}
    assert shape_of(kraken_rows(ours)) == shape_of(kraken_rows(theirs))
    assert type(ours["result"]["last"]) is type(theirs["result"]["last"]) is int


def test_kraken_trades_have_the_recorded_shape_and_length(recorded_data: Path) -> None:
    theirs = recorded(recorded_data, "kraken/http_trades.json")
    ours = value_of(ask(kraken, "/0/public/Trades", parameters={"pair": "XBTUSDT"}))
    assert {str(shape_of(row)) for row in kraken_rows(ours)} == {str(shape_of(row)) for row in kraken_rows(theirs)}
    assert len(kraken_rows(ours)) == len(kraken_rows(theirs)) == 1_000
    assert shape_of(ours["result"]["last"]) == shape_of(theirs["result"]["last"]) == "number text"
    assert {row[3] for row in kraken_rows(ours)} == {"b", "s"}


@pytest.mark.parametrize(
    ("path", "name"), [("Time", "http_server_time.json"), ("SystemStatus", "http_system_status.json")]
)
def test_kraken_states_have_the_recorded_shape(recorded_data: Path, path: str, name: str) -> None:
    ours, theirs = value_of(ask(kraken, f"/0/public/{path}")), recorded(recorded_data, f"kraken/{name}")
    assert shape_of(ours) == shape_of(theirs)
    assert len(str(ours["result"].get("rfc1123"))) == len(str(theirs["result"].get("rfc1123")))


def test_kraken_pairs_have_the_recorded_keys(recorded_data: Path) -> None:
    theirs = recorded(recorded_data, "kraken/http_asset_pairs.json")["result"]["XBTUSDT"]
    ours = value_of(ask(kraken, "/0/public/AssetPairs", parameters={"pair": "XBTUSDT"}))["result"]["XBTUSDT"]
    assert {name: type(value) for name, value in ours.items()} == {name: type(value) for name, value in theirs.items()}
    assert {name: ours[name] for name in ("altname", "wsname", "base", "quote")} == {
        name: theirs[name] for name in ("altname", "wsname", "base", "quote")
    }


def test_advanced_answers_have_the_recorded_shape(recorded_data: Path) -> None:
    def ours(path: str, **parameters: object) -> Any:
        return value_of(ask(advanced, path, parts={"product": "BTC-USD"}, parameters=parameters))

    theirs = recorded(recorded_data, "coinbase/http_candles.json")
    candles = ours(f"{MARKET}/{{product}}/candles", start=NOW_S - 7_200, end=NOW_S - 3_600, granularity="ONE_HOUR")
    assert shape_of(candles["candles"][0]) == shape_of(theirs["candles"][0])
    assert set(candles) == set(theirs)
    ticker = recorded(recorded_data, "coinbase/http_ticker.json")
    assert shape_of(ours(f"{MARKET}/{{product}}/ticker", limit=3)) == shape_of(ticker)
    product = recorded(recorded_data, "coinbase/http_product.json")
    assert shape_of(ours(f"{MARKET}/{{product}}")) == shape_of(product)
    products = recorded(recorded_data, "coinbase/http_products.json")
    assert set(ours(MARKET)) == set(products)


def test_a_replayed_kraken_answer_is_served_row_for_row_with_its_running_row(recorded_data: Path) -> None:
    """Case 17: 721 rows of which the clock says that the last one runs."""
    path = recorded_data / "rest" / "kraken" / "http_ohlc.json"
    recording = load_recording(path, "BTC/USDT.KRAKEN")
    shape = KrakenRest({"BTC/USDT": recording}, limits=Limits())
    ours = value_of(ask(shape, "/0/public/OHLC", parameters={"pair": "XBTUSDT"}, now_ns=recording.end_ns))
    theirs = json.loads(path.read_text(), parse_float=Decimal)
    assert ours == theirs
    last_ns = theirs["result"]["XBTUSDT"][-1][0] * 10**9
    assert last_ns < recording.end_ns < last_ns + 60 * 10**9
