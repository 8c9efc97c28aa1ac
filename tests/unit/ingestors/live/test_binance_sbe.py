"""Binance's binary trade messages: the trades of the JSON stream, value for value; anything else is counted."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from ingestors.engine.feed_values import BadTrade, Leave, LiveTrade, Refused, Subscribed, Trades
from ingestors.live.binance_transport import api_key_headers, sbe_protocol
from ingestors.settings import IngestorSettings
from ingestors.simulation.binance_sbe_socket import trades_event
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Listing, Trade
from ingestors.simulation.replay import Recording
from relay.errors import SettingsError
from relay.protocol.scaled import INT64_MAX
from relay.protocol.tickers import parse_ticker
from tests.support.accelerator import accelerator
from tests.support.binance_sbe import SentMessage, SentTrade, binary_values, drawn_messages, json_texts, trades_of
from tests.support.live import listing
from tests.unit.ingestors.live import messages as m

accelerator()
from ingestors.exchanges.live.binance_sbe import SCHEMA_FILE, BinanceSbeProtocol  # noqa: E402
from relay_accel import sbe  # noqa: E402

SCHEMA = sbe.load(SCHEMA_FILE)
EVENT = SCHEMA.messages.TradesStreamEvent
TIME_US = 1_700_000_000_123_450
MESSAGE = SentMessage(TIME_US, (-8, -8), (SentTrade(12_345, 3_700_012_000_000, 123_000, True),))


def binary(message: SentMessage = MESSAGE, **changes: object) -> bytes:
    return EVENT.encode(binary_values(message) | changes)


def protocol() -> BinanceSbeProtocol:
    found = BinanceSbeProtocol()
    found.subscribe([m.BTC_USDT])
    return found


def only(data: bytes) -> object:
    (event,) = protocol().on_message(data, 7)
    return event


@given(drawn_messages())
def test_a_binary_message_has_the_trades_of_the_json_stream_value_for_value(message: SentMessage) -> None:
    assert trades_of(protocol(), [binary(message)]) == trades_of(m.binance(), json_texts(message))


def test_a_binary_trade_is_exact_and_its_time_is_the_trades_own() -> None:
    trade = LiveTrade(12_345, 1_700_000_000_123_450_000, 3_700_012, 123, 2, 5, False, 7)
    assert only(binary()) == Trades("BTC/USDT.BINANCE", [trade])
    assert trades_of(m.binance(), [m.BINANCE_TRADE]) == [trade]


def test_requests_and_their_answers_are_json() -> None:
    used = BinanceSbeProtocol()
    assert used.endpoint([m.BTC_USDT]) == "/ws"
    (text,) = used.subscribe([m.BTC_USDT])
    assert json.loads(text) == {"method": "SUBSCRIBE", "params": ["btcusdt@trade"], "id": 1}
    assert used.on_message(m.control(result=None, id=1), 0) == [Subscribed("BTC/USDT.BINANCE")]
    used.subscribe([listing("NO/SUCH.BINANCE", "NOSUCH")])
    (refused,) = used.on_message(m.control(error={"code": 2, "msg": "bad"}, id=2), 0)
    assert isinstance(refused, Refused)
    (leave,) = used.on_message(m.control(e="serverShutdown", E=1), 0)
    assert isinstance(leave, Leave)
    used.unsubscribe([m.BTC_USDT])
    assert used.on_message(binary(), 0) == ()


def test_one_bad_trade_of_a_message_costs_the_others_nothing() -> None:
    good, other = SentTrade(1, 10**8, 10**8, False), SentTrade(4, 10**8, 10**8, True)
    rows = (good, SentTrade(2, 0, 10**8, False), SentTrade(3, 10**8, -1, False), SentTrade(-5, 1, 1, False), other)
    trades, *bad = protocol().on_message(binary(SentMessage(TIME_US, (-8, -8), rows)), 7)
    assert isinstance(trades, Trades)
    assert [trade.number for trade in trades.trades] == [1, 4]
    assert [type(event) for event in bad] == [BadTrade] * 3
    assert {event.ticker for event in bad} == {"BTC/USDT.BINANCE"}


def test_a_message_without_trades_tells_nothing() -> None:
    assert protocol().on_message(binary(SentMessage(TIME_US, (-8, -8), ())), 7) == []


@pytest.mark.parametrize("changes", [{"transactTime": 0}, {"transactTime": 2**62}, {"priceExponent": 100}])
def test_a_trade_out_of_range_is_told_with_its_ticker(changes: dict[str, int]) -> None:
    event = only(binary(**changes))
    assert isinstance(event, BadTrade)
    assert event.ticker == "BTC/USDT.BINANCE"


@pytest.mark.parametrize("side", [2, 255])
def test_a_maker_that_is_neither_buyer_nor_seller_is_no_trade(side: int) -> None:
    data = bytearray(binary())
    data[32 + 24] = side
    event = only(bytes(data))
    assert isinstance(event, BadTrade)
    assert "0 or 1" in event.text


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (2, b"\x11\x27", "template"),
        (4, b"\x02\x00", "schema id 1, the message has 2"),
        (0, b"\x11\x00", "17 bytes"),
        (28, b"\xff\xff\xff\x7f", ""),
        (58, b"\xff", "UTF-8"),
    ],
)
def test_what_is_no_message_of_the_schema_is_unreadable(at: int, value: bytes, text: str) -> None:
    data = binary()
    event = only(data[:at] + value + data[at + len(value) :])
    assert isinstance(event, BadTrade)
    assert event.ticker == ""
    assert event.text.startswith("unreadable message")
    assert text in event.text


def test_a_later_version_with_longer_blocks_is_read_up_to_what_is_known() -> None:
    data = binary()
    root, entry = data[8:26] + b"new", data[32:57] + b"newer"
    header = (21).to_bytes(2, "little") + data[2:6] + b"\x01\x00"
    later = header + root + (30).to_bytes(2, "little") + data[28:32] + entry + data[57:]
    assert protocol().on_message(later, 7) == protocol().on_message(data, 7)


def test_a_block_as_long_as_a_brace_is_no_json() -> None:
    data = binary()
    later = b"\x7b\x00" + data[2:26] + bytes(0x7B - 18) + data[26:]
    assert protocol().on_message(later, 7) == protocol().on_message(data, 7)


@given(drawn_messages())
def test_messages_that_are_cut_off_are_unreadable_wherever_they_are_cut(message: SentMessage) -> None:
    data = binary(message)
    for length in range(len(data)):
        event = only(data[:length])
        assert isinstance(event, BadTrade)
        assert event.ticker == ""


@given(data=st.data(), message=drawn_messages())
def test_messages_with_turned_bits_raise_nothing_and_give_sane_trades(
    data: st.DataObject, message: SentMessage
) -> None:
    raw = bytearray(binary(message))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    for event in protocol().on_message(bytes(raw), 1):
        assert isinstance(event, Trades | BadTrade | Subscribed)
        for trade in event.trades if isinstance(event, Trades) else ():
            assert 0 < trade.price <= INT64_MAX
            assert 0 < trade.amount <= INT64_MAX
            assert 0 <= trade.number <= INT64_MAX


@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing(data: bytes) -> None:
    assert all(isinstance(e, BadTrade | Trades | Subscribed | Leave | Refused) for e in protocol().on_message(data, 1))


def test_the_simulated_exchange_writes_what_the_codec_writes() -> None:
    own = Listing("BTC/USDT", 2, 5, 0)
    trades = [Trade(n, TIME_US * 1_000, 3_700_012 + n, 123, n % 2 == 0) for n in range(3)]
    source = Recording(ticker=parse_ticker("BTC/USDT.BINANCE"), listing=own, end_ns=2**62, trades=trades)
    rows = tuple(SentTrade(t.trade_id, t.price_units * 10**6, t.size_units * 10**3, not t.taker_buy) for t in trades)
    written = trades_event(MarketFeed("BTCUSDT", source), trades, event_us=TIME_US + 7, time_us=TIME_US)
    assert written == binary(SentMessage(TIME_US, (-8, -8), rows))


def test_the_own_schema_has_the_places_and_kinds_of_the_exchanges(recorded_data) -> None:
    path = recorded_data / "sbe" / "binance_stream_1_0.xml"
    if not path.is_file():
        pytest.skip(f"no schema of the exchange at {path}")
    theirs = sbe.load(path)
    assert (SCHEMA.id, SCHEMA.version, SCHEMA.byte_order) == (theirs.id, theirs.version, theirs.byte_order)
    assert EVENT.sbe_id == theirs.messages.TradesStreamEvent.sbe_id
    assert _places(sbe.describe(EVENT)) == _places(sbe.describe(theirs.messages.TradesStreamEvent))
    values = binary_values(MESSAGE)
    assert EVENT.encode(values) == theirs.messages.TradesStreamEvent.encode(values)


def _places(layout: dict) -> list[object]:
    """Names, ids, places and kinds of all that takes bytes."""
    keys = ("name", "id", "offset", "length", "kind", "primitive", "presence")
    fields = [tuple(row[key] for key in keys) for row in layout["fields"] if row["kind"] != "constant"]
    groups = [(row["id"], _places(row)) for row in layout["groups"]]
    data = [(row["name"], row["id"], row["kind"]) for row in layout["data"]]
    return [layout["name"], layout["block_length"], fields, groups, data]


def test_the_key_is_asked_for_by_its_name_and_never_shown() -> None:
    with pytest.raises(SettingsError, match=r"ingestor\.binance_api_key \(RELAY_INGESTOR_BINANCE_API_KEY\)"):
        api_key_headers(IngestorSettings(binance_transport="sbe"))
    settings = IngestorSettings(binance_transport="sbe", binance_api_key=SecretStr("abcDEF123"))
    assert api_key_headers(settings) == {"X-MBX-APIKEY": "abcDEF123"}
    assert "abcDEF123" not in f"{settings!r} {settings}"


@pytest.mark.parametrize("key", ["a b", "a\r\nHost: x", "schlüssel", "a\t"])
def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        api_key_headers(IngestorSettings(binance_api_key=SecretStr(key)))
    assert key not in str(caught.value)


def test_ids_of_aggregates_and_binary_streams_are_never_mixed() -> None:
    with pytest.raises(SettingsError, match="another sequence"):
        sbe_protocol("aggTrade")


def test_without_the_accelerator_the_reason_and_the_way_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ingestors.exchanges.live.binance_sbe")
    monkeypatch.setitem(sys.modules, "relay_accel", None)
    with pytest.raises(SettingsError, match="install relay-accel") as caught:
        sbe_protocol("trade")
    assert caught.value.code == "MISSING_EXTRA"
