"""Messages of the exchanges' sockets, in the shapes of their documentation and captures."""

from __future__ import annotations

import json
from collections.abc import Callable

from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.coinbase import CoinbaseProtocol
from ingestors.exchanges.live.coinbase_advanced import CoinbaseAdvancedProtocol
from ingestors.exchanges.live.kraken import KrakenProtocol
from ingestors.exchanges.live.port import LiveProtocol
from tests.support.live import listing

BTC_USDT = listing("BTC/USDT.BINANCE", "BTCUSDT")
BTC_USD = listing("BTC/USD.KRAKEN", "XBTUSD", price_increment="0.1", amount_increment="0.00000001")
PRODUCT = listing("BTC/USD.COINBASE", "BTC-USD", amount_increment="0.00000001")

BINANCE_TRADE = (
    b'{"stream":"btcusdt@trade","data":{"e":"trade","E":1700000000123456,"s":"BTCUSDT","t":12345,'
    b'"p":"37000.12000000","q":"0.00123000","T":1700000000123450,"m":true,"M":true}}'
)
BINANCE_AGGREGATE = (
    b'{"stream":"btcusdt@aggTrade","data":{"e":"aggTrade","E":1633998512345,"s":"BTCUSDT","a":777,'
    b'"p":"0.00000100","q":"100","f":100,"l":105,"T":1633998512344,"m":false,"M":true}}'
)
KRAKEN_UPDATE = (
    b'{"channel":"trade","type":"update","data":[{"symbol":"BTC/USD","side":"sell","price":37000.1,"qty":1e-7,'
    b'"ord_type":"limit","trade_id":4665846,"timestamp":"2023-09-25T07:48:36.925533Z"},{"symbol":"BTC/USD",'
    b'"side":"buy","price":37000.25,"qty":0.123456789012345678,"ord_type":"market","trade_id":4665847,'
    b'"timestamp":"2023-09-25T07:48:36.925533Z"}]}'
)
KRAKEN_SNAPSHOT = KRAKEN_UPDATE.replace(b'"update"', b'"snapshot"')
COINBASE_MATCH = (
    b'{"type":"match","trade_id":10,"maker_order_id":"ac928c66-ca53-498f-9c13-a110027a60e8",'
    b'"taker_order_id":"132fb6ae-456b-4654-b4e0-d681ac05cea1","side":"sell","size":"5.23512",'
    b'"price":"400.23","product_id":"BTC-USD","sequence":50,"time":"2014-11-07T08:19:27.028459Z"}'
)
COINBASE_HEARTBEAT = (
    b'{"type":"heartbeat","sequence":90,"last_trade_id":20,"product_id":"BTC-USD","time":"2014-11-07T08:19:28.464459Z"}'
)
ADVANCED_TRADES = (
    b'{"channel":"market_trades","client_id":"","timestamp":"2023-02-09T20:19:35.39625135Z","sequence_num":0,'
    b'"events":[{"type":"update","trades":[{"trade_id":"12","product_id":"BTC-USD","price":"1260.01","size":"0.3",'
    b'"side":"BUY","time":"2023-02-09T20:19:35.396251Z"},{"trade_id":"11","product_id":"BTC-USD","price":"1260.02",'
    b'"size":"0.4","side":"SELL","time":"2023-02-09T20:19:34.396251Z"}]}]}'
)


def binance(stream: str = "trade") -> LiveProtocol:
    protocol = BinanceProtocol(stream=stream)  # type: ignore[arg-type]
    protocol.subscribe([BTC_USDT])
    return protocol


def kraken() -> LiveProtocol:
    protocol = KrakenProtocol()
    protocol.subscribe([BTC_USD])
    return protocol


def coinbase() -> LiveProtocol:
    protocol = CoinbaseProtocol()
    protocol.subscribe([PRODUCT])
    return protocol


def advanced() -> LiveProtocol:
    protocol = CoinbaseAdvancedProtocol()
    protocol.subscribe([PRODUCT])
    return protocol


def control(**fields: object) -> bytes:
    return json.dumps(fields).encode()


PROTOCOLS: dict[str, tuple[Callable[[], LiveProtocol], tuple[bytes, ...]]] = {
    "binance": (
        binance,
        (
            BINANCE_TRADE,
            control(result=None, id=1),
            control(error={"code": 2, "msg": "Invalid request"}, id=1),
            control(stream="!serverShutdown", data={"e": "serverShutdown", "E": 1}),
        ),
    ),
    "binance aggregates": (lambda: binance("aggTrade"), (BINANCE_AGGREGATE,)),
    "kraken": (
        kraken,
        (
            KRAKEN_UPDATE,
            KRAKEN_SNAPSHOT,
            control(method="subscribe", result={"channel": "trade", "symbol": "BTC/USD"}, success=True, req_id=1),
            control(error="Currency pair not supported X/Y", method="subscribe", success=False, symbol="X/Y"),
            control(channel="status", type="update", data=[{"system": "online", "version": "2.0.0"}]),
            control(channel="heartbeat"),
        ),
    ),
    "coinbase": (
        coinbase,
        (
            COINBASE_MATCH,
            COINBASE_HEARTBEAT,
            control(type="subscriptions", channels=[{"name": "matches", "product_ids": ["BTC-USD"]}]),
            control(type="error", message="Failed to subscribe", reason="BTC-USD is not a valid product"),
        ),
    ),
    "coinbase advanced": (
        advanced,
        (
            ADVANCED_TRADES,
            control(
                channel="subscriptions", sequence_num=1, events=[{"subscriptions": {"market_trades": ["BTC-USD"]}}]
            ),
            control(channel="heartbeats", sequence_num=2, events=[{"current_time": "x", "heartbeat_counter": "1"}]),
            control(type="error", message="BTC-USD is not a valid product_id"),
        ),
    ),
}
