"""What the exchanges' messages mean, and what is asked of the exchanges."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from ingestors.engine.feed_values import (
    BadTrade,
    Leave,
    LiveTrade,
    LostCause,
    Proof,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.exchanges.live.binance import BinanceProtocol
from ingestors.exchanges.live.coinbase import CoinbaseProtocol
from ingestors.exchanges.live.coinbase_advanced import CoinbaseAdvancedProtocol
from ingestors.exchanges.live.kraken import KrakenProtocol
from relay.protocol.scaled import from_scaled
from relay.protocol.times import parse_iso_ns
from tests.support.live import SECOND_NS, listing
from tests.unit.ingestors.live import messages as m


def _only(events: object) -> Trades:
    (event,) = events  # type: ignore[misc]
    assert isinstance(event, Trades)
    return event


def test_a_binance_trade_is_exact_and_its_maker_tells_the_taker() -> None:
    event = _only(m.binance().on_message(m.BINANCE_TRADE, 7))
    assert event == Trades(
        "BTC/USDT.BINANCE",
        (LiveTrade(12_345, 1_700_000_000_123_450_000, 3_700_012, 123, 2, 5, False, 7),),
    )


def test_binance_aggregates_carry_their_own_ids_and_milliseconds_are_accepted() -> None:
    (trade,) = _only(m.binance("aggTrade").on_message(m.BINANCE_AGGREGATE, 7)).trades
    assert (trade.number, trade.time_ns, trade.taker_buy) == (777, 1_633_998_512_344_000_000, True)
    assert (trade.price, trade.price_decimals) == (1, 6)
    assert (trade.amount, trade.amount_decimals) == (10_000_000, 5)


def test_binance_streams_are_asked_for_in_microseconds_and_confirmed_by_request() -> None:
    protocol = BinanceProtocol()
    assert protocol.endpoint([m.BTC_USDT]) == "/stream?timeUnit=MICROSECOND"
    (text,) = protocol.subscribe([m.BTC_USDT])
    assert json.loads(text) == {"method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": 1}
    assert protocol.on_message(m.control(result=None, id=1), 0) == [Subscribed("BTC/USDT.BINANCE")]
    assert protocol.on_message(m.control(result=None, id=1), 0) == []
    (text,) = protocol.unsubscribe([m.BTC_USDT])
    assert json.loads(text)["method"] == "UNSUBSCRIBE"
    assert protocol.on_message(m.BINANCE_TRADE, 0) == ()


def test_a_refused_binance_request_is_asked_again_stream_by_stream() -> None:
    protocol = BinanceProtocol()
    other = listing("NO/SUCH.BINANCE", "NOSUCH")
    protocol.subscribe([m.BTC_USDT, other])
    assert protocol.on_message(m.control(error={"code": 2, "msg": "bad"}, id=1), 0) == ()
    asked = [json.loads(text) for text in protocol.on_tick(0)]
    assert [(r["params"], r["id"]) for r in asked] == [(["btcusdt@trade"], 2), (["nosuch@trade"], 3)]
    assert protocol.on_message(m.control(result=None, id=2), 0) == [Subscribed("BTC/USDT.BINANCE")]
    (refused,) = protocol.on_message(m.control(error={"code": 2, "msg": "bad"}, id=3), 0)
    assert isinstance(refused, Refused)
    assert (refused.ticker, refused.code) == ("NO/SUCH.BINANCE", "UNKNOWN_SYMBOL")
    assert protocol.on_tick(1) == []


def test_many_binance_streams_are_asked_for_in_several_messages() -> None:
    many = [listing(f"A{n}/USDT.BINANCE", f"A{n}USDT") for n in range(250)]
    texts = BinanceProtocol().subscribe(many)
    asked = [json.loads(text)["params"] for text in texts]
    assert [len(part) for part in asked] == [100, 100, 50]
    assert len({name for part in asked for name in part}) == 250


@pytest.mark.parametrize(
    "text",
    [
        m.control(stream="!serverShutdown", data={"e": "serverShutdown", "E": 1}),
        m.control(e="serverShutdown", E=1),
    ],
)
def test_a_planned_stop_of_binance_is_left_in_time(text: bytes) -> None:
    (event,) = m.binance().on_message(text, 0)
    assert isinstance(event, Leave)
    assert (event.is_planned, event.wait_ns) == (True, 0)


def test_kraken_numbers_keep_every_digit_and_one_millisecond_holds_two_trades_case_62_case_70() -> None:
    """Cases 62 and 70: native ids tell trades of one instant apart; 1e-7 and 18 digits are exact."""
    event = _only(m.kraken().on_message(m.KRAKEN_UPDATE, 9))
    first, second = event.trades
    assert (first.number, second.number) == (4_665_846, 4_665_847)
    assert first.time_ns == second.time_ns == parse_iso_ns("2023-09-25T07:48:36.925533Z")
    assert from_scaled(first.price, first.price_decimals) == Decimal("37000.1")
    assert (first.price_decimals, second.price_decimals) == (1, 2)
    assert from_scaled(first.amount, first.amount_decimals) == Decimal("0.0000001")
    assert from_scaled(second.amount, second.amount_decimals) == Decimal("0.123456789012345678")
    assert (first.taker_buy, second.taker_buy, event.is_snapshot) == (False, True, False)
    assert first.received_ns == 9


def test_what_kraken_replays_after_a_subscription_is_marked_case_61() -> None:
    """Case 61: a snapshot repeats what may be known."""
    assert _only(m.kraken().on_message(m.KRAKEN_SNAPSHOT, 0)).is_snapshot


def test_kraken_messages_are_understood_in_any_order_of_their_keys() -> None:
    value = json.loads(m.KRAKEN_UPDATE, parse_float=str)
    del value["channel"]
    rows = m.KRAKEN_UPDATE[m.KRAKEN_UPDATE.index(b"[") : -1]
    turned = b'{"data":' + rows + b',"type":"update","channel":"trade"}'
    assert m.kraken().on_message(turned, 0) == m.kraken().on_message(m.KRAKEN_UPDATE, 0)


def test_kraken_confirms_and_refuses_each_symbol_by_itself() -> None:
    protocol = KrakenProtocol()
    (text,) = protocol.subscribe([m.BTC_USD, listing("NO/SUCH.KRAKEN")])
    assert json.loads(text)["params"] == {"channel": "trade", "symbol": ["BTC/USD", "NO/SUCH"], "snapshot": True}
    good = m.control(method="subscribe", result={"channel": "trade", "symbol": "BTC/USD"}, success=True, req_id=1)
    assert protocol.on_message(good, 0) == (Subscribed("BTC/USD.KRAKEN"),)
    bad = m.control(error="Currency pair not supported NO/SUCH", method="subscribe", success=False, symbol="NO/SUCH")
    (refused,) = protocol.on_message(bad, 0)
    assert isinstance(refused, Refused)
    assert refused.ticker == "NO/SUCH.KRAKEN"
    (leave,) = protocol.on_message(m.control(error="Exceeded msg rate", method="subscribe", success=False), 0)
    assert isinstance(leave, Leave)


def test_kraken_in_maintenance_is_left_for_as_long_as_asked() -> None:
    status = m.control(channel="status", type="update", data=[{"system": "maintenance"}])
    (leave,) = KrakenProtocol(maintenance_wait_ns=5).on_message(status, 0)
    assert isinstance(leave, Leave)
    assert (leave.cause, leave.is_planned, leave.wait_ns) == (LostCause.DISCONNECT, False, 5)
    online = m.control(channel="status", type="update", data=[{"system": "online"}])
    assert KrakenProtocol().on_message(online, 0) == ()


def test_kraken_is_asked_for_a_sign_of_life_now_and_then() -> None:
    protocol = KrakenProtocol()
    sent = [bool(protocol.on_tick(second * SECOND_NS)) for second in range(1, 92)]
    assert [second for second, did in enumerate(sent, 1) if did] == [31, 61, 91]


def test_a_coinbase_match_has_the_makers_side_and_keeps_the_sequence() -> None:
    event = _only(m.coinbase().on_message(m.COINBASE_MATCH, 3))
    assert event == Trades(
        "BTC/USD.COINBASE",
        (LiveTrade(10, 1_415_348_367_028_459_000, 40_023, 523_512_000, 2, 8, True, 3, 50),),
    )
    assert _only(m.coinbase().on_message(m.COINBASE_MATCH.replace(b'"match"', b'"last_match"'), 3)).is_snapshot


def test_a_coinbase_heartbeat_proves_the_newest_id_and_a_jump_of_its_sequence_means_nothing() -> None:
    protocol = m.coinbase()
    expected = Proof("BTC/USD.COINBASE", 20, parse_iso_ns("2014-11-07T08:19:28.464459Z"))
    assert protocol.on_message(m.COINBASE_HEARTBEAT, 0) == (expected,)
    assert isinstance(_only(protocol.on_message(m.COINBASE_MATCH.replace(b":50,", b":9000,"), 0)), Trades)


def test_coinbase_refuses_the_named_product_and_the_others_are_asked_again() -> None:
    protocol = CoinbaseProtocol()
    (text,) = protocol.subscribe([m.PRODUCT, listing("NO/SUCH.COINBASE")])
    asked = {"type": "subscribe", "product_ids": ["BTC-USD", "NO-SUCH"], "channels": ["matches", "heartbeat"]}
    assert json.loads(text) == asked
    error = m.control(type="error", message="Failed to subscribe", reason="NO-SUCH is not a valid product")
    (refused,) = protocol.on_message(error, 0)
    assert isinstance(refused, Refused)
    assert refused.ticker == "NO/SUCH.COINBASE"
    assert [json.loads(text)["product_ids"] for text in protocol.on_tick(0)] == [["BTC-USD"]]
    confirmed = m.control(type="subscriptions", channels=[{"name": "matches", "product_ids": ["BTC-USD"]}])
    assert protocol.on_message(confirmed, 0) == [Subscribed("BTC/USD.COINBASE")]
    assert protocol.on_message(confirmed, 0) == []
    (leave,) = protocol.on_message(m.control(type="error", message="Too many requests"), 0)
    assert isinstance(leave, Leave)


def _advanced(sequence: int, number: int = 12) -> bytes:
    return m.ADVANCED_TRADES.replace(b'"sequence_num":0', f'"sequence_num":{sequence}'.encode()).replace(
        b'"trade_id":"12"', f'"trade_id":"{number}"'.encode()
    )


def test_an_advanced_batch_is_turned_round_and_its_maker_side_too() -> None:
    event = _only(m.advanced().on_message(m.ADVANCED_TRADES, 0))
    assert [(t.number, t.taker_buy, t.price) for t in event.trades] == [(11, True, 126_002), (12, False, 126_001)]


def test_a_jump_of_the_advanced_sequence_means_leaving_case_63() -> None:
    """Case 63: 10, 11, 13 is a loss; what comes backwards is ignored."""
    protocol = m.advanced()
    assert len(protocol.on_message(_advanced(10), 0)) == 1
    assert len(protocol.on_message(_advanced(11), 0)) == 1
    assert protocol.on_message(_advanced(11), 0) == ()
    trades, leave = protocol.on_message(_advanced(13, 40), 0)
    assert isinstance(trades, Trades)
    assert isinstance(leave, Leave)
    assert (leave.cause, leave.is_planned) == (LostCause.SEQUENCE, False)
    assert protocol.on_message(_advanced(12), 0) == ()


def test_advanced_heartbeats_are_subscribed_once_and_products_confirmed_under_either_name() -> None:
    protocol = CoinbaseAdvancedProtocol()
    alias = listing("BTC/USDC.COINBASE", alias_of="BTC/USD.COINBASE")
    texts = [json.loads(text) for text in protocol.subscribe([alias])]
    assert texts == [
        {"type": "subscribe", "channel": "market_trades", "product_ids": ["BTC-USDC"]},
        {"type": "subscribe", "channel": "heartbeats"},
    ]
    assert len(protocol.subscribe([alias])) == 1
    confirmed = m.control(
        channel="subscriptions", sequence_num=0, events=[{"subscriptions": {"market_trades": ["BTC-USD"]}}]
    )
    assert protocol.on_message(confirmed, 0) == [Subscribed("BTC/USDC.COINBASE")]
    assert _only(protocol.on_message(_advanced(1), 0)).ticker == "BTC/USDC.COINBASE"


def test_trades_of_one_book_reach_both_of_its_tickers() -> None:
    protocol = m.advanced()
    protocol.subscribe([listing("BTC/USDC.COINBASE", alias_of="BTC/USD.COINBASE")])
    events = protocol.on_message(m.ADVANCED_TRADES, 0)
    assert {event.ticker for event in events if isinstance(event, Trades)} == {"BTC/USD.COINBASE", "BTC/USDC.COINBASE"}


BAD = [
    (m.binance, m.BINANCE_TRADE, b'"37000.12000000"', b'"0"'),
    (m.binance, m.BINANCE_TRADE, b'"0.00123000"', b'"-1"'),
    (m.binance, m.BINANCE_TRADE, b'"37000.12000000"', b'"99999999999999999999"'),
    (m.binance, m.BINANCE_TRADE, b'"37000.12000000"', b"12"),
    (m.binance, m.BINANCE_TRADE, b"1700000000123450", b"17"),
    (m.kraken, m.KRAKEN_UPDATE, b"37000.25", b"0"),
    (m.kraken, m.KRAKEN_UPDATE, b"37000.25", b'"37"'),
    (m.kraken, m.KRAKEN_UPDATE, b'"side":"buy"', b'"side":"none"'),
    (m.coinbase, m.COINBASE_MATCH, b'"400.23"', b'"1e400"'),
    (m.coinbase, m.COINBASE_MATCH, b'"400.23"', b"400.23"),
    (m.coinbase, m.COINBASE_MATCH, b"2014-11-07", b"1914-11-07"),
    (m.advanced, m.ADVANCED_TRADES, b'"1260.01"', b'"nan"'),
    (m.advanced, m.ADVANCED_TRADES, b'"trade_id":"12"', b'"trade_id":"-2"'),
]


@pytest.mark.parametrize(("make", "text", "old", "new"), BAD)
def test_a_trade_that_makes_no_sense_is_said_to_be_bad(make, text: bytes, old: bytes, new: bytes) -> None:
    assert old in text
    events = make().on_message(text.replace(old, new), 0)
    bad = [event for event in events if isinstance(event, BadTrade)]
    assert len(bad) == 1
    assert bad[0].ticker


def test_one_bad_trade_of_a_batch_costs_no_other() -> None:
    kraken = m.kraken().on_message(m.KRAKEN_UPDATE.replace(b'"trade_id":4665846', b'"trade_id":"x"'), 0)
    advanced = m.advanced().on_message(m.ADVANCED_TRADES.replace(b'"size":"0.3"', b'"size":3'), 0)
    for events, number in ((kraken, 4_665_847), (advanced, 11)):
        trades, bad = events
        assert isinstance(trades, Trades)
        assert isinstance(bad, BadTrade)
        assert [trade.number for trade in trades.trades] == [number]


def test_an_unreadable_advanced_message_shows_as_a_loss_at_the_next_one() -> None:
    protocol = m.advanced()
    protocol.on_message(_advanced(0), 0)
    (bad,) = protocol.on_message(_advanced(1)[:50], 0)
    assert bad == BadTrade("", bad.text)  # type: ignore[union-attr]
    assert isinstance(protocol.on_message(_advanced(2), 0)[-1], Leave)
