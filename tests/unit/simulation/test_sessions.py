"""Socket sessions without a socket: frames, numbers, refusals, arbitrary messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestors.simulation.binance_socket import BinanceSession
from ingestors.simulation.coinbase_advanced_socket import CoinbaseAdvancedSession
from ingestors.simulation.coinbase_socket import CoinbaseSession
from ingestors.simulation.kraken_socket import KrakenSession
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.number_text import fixed_text, shortest_text
from ingestors.simulation.records import Listing, Trade
from ingestors.simulation.replay import Recording
from ingestors.simulation.socket_frames import PING, TEXT, frame
from ingestors.simulation.socket_values import Close, Moment, SocketLimits, SocketSession
from ingestors.simulation.trade_texts import number_writer
from relay.protocol.tickers import parse_ticker
from tests.unit.simulation.calls import NOW_NS

MOMENT = Moment(NOW_NS, NOW_NS)
LIMITS = SocketLimits()
MAKERS: list[Callable[[dict[str, MarketFeed]], SocketSession]] = [
    lambda feeds: BinanceSession(feeds, limits=LIMITS),
    lambda feeds: KrakenSession(feeds, limits=LIMITS),
    lambda feeds: CoinbaseSession(feeds, limits=LIMITS),
    lambda feeds: CoinbaseAdvancedSession(feeds, limits=LIMITS),
]
NAMES = st.sampled_from(["btcusdt@trade", "BTC/USD", "BTC-USD", "trade", "market_trades", "heartbeat", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=6,
)
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from(["SUBSCRIBE", "UNSUBSCRIBE", "subscribe", "ping", "LIST_SUBSCRIPTIONS"]) | VALUES,
        "type": st.sampled_from(["subscribe", "unsubscribe"]) | VALUES,
        "params": st.fixed_dictionaries({"channel": NAMES | VALUES, "symbol": st.lists(NAMES) | VALUES}) | VALUES,
        "id": VALUES,
        "channel": NAMES | VALUES,
        "channels": st.lists(NAMES) | VALUES,
        "product_ids": st.lists(NAMES) | VALUES,
    },
)


def recording(*trades: Trade, price_decimals: int = 2, size_decimals: int = 8) -> Recording:
    listing = Listing("BTC/USD", price_decimals, size_decimals, NOW_NS - 10**12)
    return Recording(ticker=parse_ticker("BTC/USD.KRAKEN"), listing=listing, end_ns=NOW_NS + 10**12, trades=trades)


def feeds() -> dict[str, MarketFeed]:
    source = recording(Trade(5, NOW_NS - 7, 12_345, 67, True))
    return {name: MarketFeed(name, source) for name in ("btcusdt", "BTC/USD", "BTC-USD")}


@pytest.mark.parametrize("make", MAKERS)
@given(message=ORDERS.map(lambda order: json.dumps(order).encode()) | st.binary(max_size=40))
def test_whatever_a_client_says_is_answered_or_closed(
    make: Callable[[dict[str, MarketFeed]], SocketSession], message: bytes
) -> None:
    session = make(feeds())
    session.opened(MOMENT)
    answers = session.received(message, MOMENT)
    assert answers
    assert all(isinstance(answer, Close) or json.loads(answer) for answer in answers if not hasattr(answer, "payload"))


@given(units=st.integers(0, 10**20), decimals=st.integers(0, 12), places=st.integers(0, 10))
def test_fast_numbers_are_those_of_rest(units: int, decimals: int, places: int) -> None:
    assert number_writer(decimals, places)(units) == fixed_text(units, decimals, places)
    assert number_writer(decimals, is_shortest=True)(units) == shortest_text(units, decimals)


def test_kraken_writes_bare_numbers_with_all_their_digits() -> None:
    """Case 70: 0.0000001 and 18 digits stay whole."""
    trade = Trade(9, NOW_NS, 1, 123_456_789_012_345_678, False)
    feed = MarketFeed("BTC/USD", recording(trade, price_decimals=7, size_decimals=18))
    text = KrakenSession({"BTC/USD": feed}, limits=LIMITS).traded(feed, [trade], MOMENT)[0]
    assert b'"price":0.0000001,"qty":0.123456789012345678,' in text
    row = json.loads(text, parse_float=Decimal)["data"][0]
    assert (row["price"], row["side"]) == (Decimal("1e-7"), "sell")


@pytest.mark.parametrize("length", [0, 125, 126, 65_535, 65_536])
def test_frames_say_their_length_in_the_shortest_way(length: int) -> None:
    data = frame(TEXT, b"x" * length)
    head = 2 if length < 126 else 4 if length < 65_536 else 10
    assert (data[0], len(data)) == (0x81, head + length)
    assert data[1] == (length if length < 126 else 126 if length < 65_536 else 127)
    if head > 2:
        assert int.from_bytes(data[2:head], "big") == length
    assert frame(PING, b"ab") == b"\x89\x02ab"
