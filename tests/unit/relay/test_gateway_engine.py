"""The gateway's engine without sockets: every malformed input is answered and counted, nothing is remembered."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.engine.commands import Broadcast, Publish, SendToClient, SendToManager, Upstream
from relay.engine.gateway import BEAT_NS, GatewayEngine, GatewayFacts
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeLimits, decode_body, encode
from relay.protocol.registry import Channel
from relay.protocol.topics import TOPIC_BYTES_MAX
from relay.protocol.v1 import common_pb2, market_pb2, request_pb2, work_pb2

NOW_NS = 1_800_000_000 * 10**9
HOUR_NS = 3_600 * 10**9
REQ = (b"peer", b"\0\0\0\7", b"")
LIKE_PRIVATE = (
    b"RESPONSE:",
    b"HISTORY_READY:",
    b"CEP:",
    b"PROBE:",
    b"OUTCOME:",
    b"@",
    b"HEARTBEAT",
    b"METADATA_UPDATE",
)
A_NONCE = b"0b0e9c5e-3c52-4d44-9a0a-6a0f3d0d6a11"


def submit(**fields: object) -> request_pb2.SubmitHistoricalRequest:
    values: dict[str, object] = {
        "request_id": str(uuid.uuid4()),
        "client_id": str(uuid.uuid4()),
        "ticker": "BTC/USDT.BINANCE",
        "start_time": NOW_NS - HOUR_NS,
        "end_time": NOW_NS,
        "period_seconds": 60,
        **fields,
    }
    return request_pb2.SubmitHistoricalRequest(**values)


class Gateway:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.engine = GatewayEngine(
            GatewayFacts(7, "relay", catalog_uri="sqlite:///x"), EnvelopeLimits(), lambda n: self.counted.update([n])
        )

    def with_manager(self) -> Gateway:
        assert not self.passes_published([b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat())])
        return self

    def passes_published(self, frames: list[bytes]) -> bool:
        """As the loop does it: only what has the shape of a message is judged by topic, version and type id."""
        if len(frames) == 3 and frames[2]:
            return self.engine.passes_published(frames[0], frames[1], frames[2][0], now_ns=NOW_NS)
        self.engine.on_misshaped(frames)
        return False

    def passes_fast_path(self, frames: list[bytes]) -> bool:
        if len(frames) == 3 and frames[2]:
            return self.engine.passes_fast_path(frames[0], frames[1], frames[2][0])
        self.engine.on_misshaped(frames)
        return False

    def ask(self, *frames: bytes, routing: tuple[bytes, ...] = REQ, now_ns: int = NOW_NS):
        return self.engine.on_request([*routing, *frames], now_ns)


def answer(commands) -> tuple[tuple[bytes, ...], object]:
    assert [type(c) for c in commands] == [SendToClient]
    frames = commands[0].frames
    assert frames[-2] == b"\x01"
    return frames[:-2], decode_body(frames[-1], Channel.CLIENT_REPLY)[1]


@pytest.mark.parametrize("routing", [(b"peer", b""), REQ, (b"peer",), (b"client", b"relay", b"\0\0\0\1", b"")])
def test_a_good_request_goes_to_the_manager_with_its_routing_frames_untouched(routing):
    gateway = Gateway().with_manager()
    frames = encode(submit())
    command = gateway.ask(*frames, routing=routing)[0]
    assert isinstance(command, SendToManager)
    assert command.frames == (*routing, *frames)
    assert command.otherwise.frames[: len(routing)] == routing


@pytest.mark.parametrize(
    ("frames", "reason"),
    [
        ((), "wrong_version"),
        ((b"\x01",), "empty_frame"),
        ((b"\x02", b"\x10"), "wrong_version"),
        ((b"", b"\x10"), "empty_frame"),
        ((b"\x01", b""), "empty_frame"),
        ((b"\x01", b"\x7f"), "unknown_type"),
        ((b"\x01", b"\x11"), "wrong_channel"),
        ((b"\x01", b"\x20"), "wrong_channel"),
        ((b"\x01", b"\x02"), "retired_type"),
        ((b"\x01", b"\x07"), "retired_type"),
        ((b"\x01", b"\x08"), "retired_type"),
        ((b"\x01", b"\x10\xff\xff\xff"), "undecodable"),
        ((b"x",) * 9, "too_many_frames"),
        ((b"\x01", b"\x10" + bytes(70_000)), "frame_too_large"),
        ((bytes(40_000), bytes(40_000), b"\x01", b"\x10"), "message_too_large"),
    ],
)
@pytest.mark.parametrize("routing", [REQ, (b"peer", b"")])
def test_malformed_input_is_answered_on_its_own_way_back_and_counted_by_reason(frames, reason, routing):
    gateway = Gateway().with_manager()
    way_back, reply = answer(gateway.ask(*frames, routing=routing))
    assert way_back == routing
    assert reply.status in (request_pb2.SubmitResponse.INVALID, request_pb2.SubmitResponse.UNSUPPORTED)
    assert (reply.status == request_pb2.SubmitResponse.UNSUPPORTED) == (reason == "retired_type")
    assert reply.error_message
    assert gateway.counted[f"rejected.{reason}"] == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"request_id": "7"}, "INVALID_REQUEST_ID"),
        ({"request_id": str(uuid.uuid4()).upper()}, "INVALID_REQUEST_ID"),
        ({"client_id": "me"}, "INVALID_CLIENT_ID"),
        ({"ticker": "BTCUSDT"}, "INVALID_TICKER"),
        ({"ticker": "btc/usdt.BINANCE"}, "INVALID_TICKER"),
        ({"ticker": "BTC/USDT.BINANCE\x00"}, "INVALID_TICKER"),
        ({"period_seconds": 0}, "INVALID_PERIOD"),
        ({"start_time": 1_700_000_000}, "INVALID_TIME"),
        ({"start_time": NOW_NS + 1, "end_time": NOW_NS}, "INVALID_RANGE"),
        ({"start_time": NOW_NS, "end_time": NOW_NS}, "INVALID_RANGE"),
        ({"limit": 0}, "INVALID_LIMIT"),
    ],
)
def test_wrong_fields_are_refused_with_a_code_and_what_was_expected(fields, code):
    request = submit(**fields)
    _, reply = answer(Gateway().with_manager().ask(*encode(request)))
    assert (reply.status, reply.error_code) == (request_pb2.SubmitResponse.INVALID, code)
    assert "expected" in reply.error_message
    assert reply.request_id == request.request_id


def test_the_old_ticker_form_is_normalised_on_the_way():
    command = Gateway().with_manager().ask(*encode(submit(ticker="BINANCE:BTC/USDT")))[0]
    assert decode_body(command.frames[-1], Channel.CLIENT_REQUEST)[1].ticker == "BTC/USDT.BINANCE"


@pytest.mark.parametrize(
    "request_message",
    [
        submit(),
        request_pb2.RequestStatusQuery(request_id=str(uuid.uuid4())),
        request_pb2.SymbolQuery(exchange="BINANCE"),
        request_pb2.ReplayRequest(topic="x"),
        request_pb2.StatsQuery(exchange="BINANCE"),
    ],
)
def test_a_manager_that_is_away_is_an_answer_at_once_with_advice(request_message):
    gateway = Gateway()
    _, reply = answer(gateway.ask(*encode(request_message)))
    assert reply.error_code == "UNAVAILABLE"
    assert "retry" in reply.error_message
    gateway.with_manager()
    assert isinstance(gateway.ask(*encode(request_message))[0], SendToManager)
    late_ns = NOW_NS + 3 * BEAT_NS + 1
    assert answer(gateway.ask(*encode(request_message), now_ns=late_ns))[1].error_code == "UNAVAILABLE"


def test_a_probe_is_published_before_it_is_answered_and_tells_where_the_tables_are():
    nonce = str(uuid.uuid4())
    published, reply = Gateway().ask(*encode(request_pb2.Probe(nonce=nonce)))
    assert isinstance(published, Publish)
    assert published.frames[0] == f"PROBE:{nonce}".encode()
    message = decode_body(reply.frames[-1], Channel.CLIENT_REPLY)[1]
    assert (message.nonce, message.relay_epoch, message.catalog_uri) == (nonce, 7, "sqlite:///x")
    assert list(message.protocol_versions) == [1]
    assert not message.manager_available
    assert [way.kind for way in message.transports] == [common_pb2.Transport.TCP]


def test_shared_memory_is_told_behind_tcp_which_is_always_there():
    facts = GatewayFacts(7, "relay", address="tcp://127.0.0.1:5558", broadcast_name="fanout.7", host_id="here")
    told = [(way.kind, way.host_id, way.address, [*way.record_versions]) for way in facts.transports()]
    expected = (common_pb2.Transport.SHM, "here", "fanout.7", [1, 2])
    assert told == [(common_pb2.Transport.TCP, "", "tcp://127.0.0.1:5558", []), expected]


def test_a_reply_goes_back_by_its_routing_and_a_forged_one_is_dropped():
    gateway = Gateway()
    frames = [*REQ, *encode(request_pb2.SubmitResponse(request_id="x"))]
    assert gateway.engine.on_reply(frames) == [SendToClient(tuple(frames))]
    for forged in ([b"a"], [b"a", b"\x02", b"\x11"], [b"a", b"\x01", b""], [b"a", b"\x01", b"\x10"]):
        assert gateway.engine.on_reply(forged) == []
    assert gateway.counted["rejected.forged_reply"] == 4


@pytest.mark.parametrize(
    "topic",
    [
        b"",
        b"R",
        b"RESPONSE:",
        b"RESPONSE:1234",
        b"HISTORY_READY",
        b"CEP:",
        b"PROBE:" + A_NONCE[:-1],
        b"\xffx",
        b"RESPONSE:" + A_NONCE + b"x",
        b"OUTCOME:1",
        b"x" * 201,
    ],
)
def test_subscriptions_that_would_overhear_private_topics_are_refused_and_counted_case_105(topic):
    gateway = Gateway()
    wanted, _, upstream = gateway.engine.on_subscription([b"\x01" + topic])
    assert wanted is None
    assert upstream == []
    assert gateway.counted["rejected.refused_subscription"] == 1


@pytest.mark.parametrize("topic", [b"HEARTBEAT", b"METADATA_UPDATE", b"RESPONSE:" + A_NONCE])
def test_notification_topics_are_accepted_without_a_word_upstream(topic):
    assert Gateway().engine.on_subscription([b"\x01" + topic]) == (True, topic, [])


def test_first_and_last_holder_of_a_market_topic_go_upstream_and_demand_counts_for_it():
    engine = Gateway().engine
    topic = b"BTC/USDT.BINANCE|tick"
    assert engine.on_subscription([b"\x01" + topic])[2] == [Upstream(topic, on=True)]
    assert engine.on_subscription([b"\x01@" + topic])[2] == [Broadcast(topic, on=True)]
    assert engine.on_subscription([b"\x00" + topic])[2] == []
    assert engine.on_subscription([b"\x00@" + topic])[2] == [Broadcast(topic, on=False), Upstream(topic, on=False)]
    assert engine.on_subscription([b"\x00" + topic])[2] == []


@pytest.mark.parametrize(
    "topic",
    [
        b"@RESPONSE:" + A_NONCE,
        b"@CEP:" + A_NONCE + b"|tick",
        b"@PROBE:|tick",
        b"@HEARTBEAT|tick",
        b"@@@X.Y|tick",
        b"@@RESPONSE:" + A_NONCE + b"|tick",
        b"@@HEARTBEAT|tick",
        b"@@X.Y|market",
        b"@BTC/USDT.BINANCE",
    ],
)
def test_what_is_no_market_topic_is_never_broadcast(topic):
    commands = Gateway().engine.on_subscription([b"\x01" + topic])[2]
    assert not [command for command in commands if isinstance(command, Broadcast)]


def test_what_clients_push_into_the_publish_side_is_dropped_and_counted():
    gateway = Gateway()
    for frames in ([b"\x02forged"], [b""], [b"\x01BTC/USDT.BINANCE|tick", b"\x01", b"\x04"]):
        assert gateway.engine.on_subscription(frames) == (None, b"", [])
    assert gateway.counted["rejected.pushed_into_xpub"] == 3


def test_the_fast_path_carries_only_ticks_gaps_and_beats_on_their_topics():
    gateway = Gateway()
    tick = [b"BTC/USDT.BINANCE|tick", *encode(market_pb2.Tick())]
    beat = [b"BTC/USDT.BINANCE|heartbeat", *encode(market_pb2.Heartbeat())]
    assert all(gateway.passes_fast_path(frames) for frames in (tick, beat, tick, beat))
    wrong = [
        [b"BTC/USDT.BINANCE|gap", *encode(market_pb2.Tick())],
        [b"RESPONSE:" + str(uuid.uuid4()).encode(), *encode(market_pb2.Tick())],
        [b"BTC/USDT.BINANCE|ohlc:60", *encode(market_pb2.OHLC())],
        [b"HEARTBEAT", *encode(market_pb2.Heartbeat())],
        [b"BTC/USDT.BINANCE|tick", b"\x02", b"\x04"],
        [b"BTC/USDT.BINANCE|tick", b"\x01", b""],
        [b"BTC/USDT.BINANCE|tick"],
        [b"BTC/USDT.BINANCE|tick", b"\x01", b"\x04", b"more"],
        *([topic + b"BTC/USDT.BINANCE|tick", *encode(market_pb2.Tick())] for topic in LIKE_PRIVATE),
        [b"B" * 200 + b".X|tick", *encode(market_pb2.Tick())],
    ]
    assert not any(gateway.passes_fast_path(frames) for frames in wrong)
    assert sum(n for name, n in gateway.counted.items() if name.startswith("rejected.")) == len(wrong)


def test_a_topic_that_nobody_may_subscribe_for_its_length_is_neither_passed_on_nor_remembered():
    gateway = Gateway()
    for length in (TOPIC_BYTES_MAX + 1, 100_000):
        assert not gateway.passes_published([b"B" * (length - 5) + b"|tick", *encode(market_pb2.Tick())])
    assert gateway.counted == {f"rejected.{RejectReason.WRONG_TOPIC}": 2}
    assert gateway.engine._passed == {}
    assert gateway.passes_published([b"B" * (TOPIC_BYTES_MAX - 5) + b"|tick", *encode(market_pb2.Tick())])


def test_a_topic_that_has_passed_passes_with_its_own_version_and_type_only():
    gateway = Gateway()
    tick, bar = [b"BTC/USDT.BINANCE|tick", *encode(market_pb2.Tick())], b"BTC/USDT.BINANCE|ohlc:60"
    assert gateway.passes_fast_path(tick)
    assert gateway.passes_published([bar, *encode(market_pb2.OHLC())])
    for version, body in ((b"\x02", tick[2]), (b"", tick[2]), (b"\x01", b"\x0d"), (b"\x01", b"\xff")):
        assert not gateway.passes_fast_path([tick[0], version, body])
    for version, body in ((b"\x02", b"\x05"), (b"\x01", encode(work_pb2.WorkerReady())[1])):
        assert not gateway.passes_published([bar, version, body])
    assert sum(n for name, n in gateway.counted.items() if name.startswith("rejected.")) == 6


def test_any_number_of_topics_is_judged_alike_and_few_are_remembered(monkeypatch):
    monkeypatch.setattr("relay.engine.gateway._PASSED_MAX", 10)
    gateway = Gateway()
    for number in [*range(25), *range(25)]:
        tick = [b"T%d/USDT.BINANCE|tick" % number, *encode(market_pb2.Tick())]
        assert gateway.passes_fast_path(tick)
        assert gateway.passes_published(tick)
        assert len(gateway.engine._fast_passed) <= 10
        assert len(gateway.engine._passed) <= 10


def test_published_messages_pass_but_never_internal_or_forged_topics():
    gateway = Gateway()
    ready = [b"RESPONSE:" + str(uuid.uuid4()).encode(), *encode(request_pb2.HistoryReadyNotification())]
    assert gateway.passes_published(ready)
    for topic in (b"OUTCOME:x", b"@BTC/USDT.BINANCE|tick", b"PROBE:x", b"HEARTBEAT"):
        assert not gateway.passes_published([topic, *encode(market_pb2.Heartbeat())])
    assert not gateway.passes_published([b"x", *encode(work_pb2.WorkerReady())])


def test_the_beat_comes_once_a_second_and_carries_a_growing_stamp():
    engine = Gateway().engine
    beats = [c for now in range(0, 3 * BEAT_NS, BEAT_NS // 10) for c in engine.on_tick(NOW_NS + now)]
    decoded = [decode_body(b.frames[2], Channel.MARKET_DATA)[1] for b in beats]
    assert [b.stamp.topic_sequence for b in decoded] == [1, 2, 3]
    assert {b.stamp.publisher_epoch for b in decoded} == {7}


@given(st.lists(st.binary(max_size=40), max_size=12))
def test_no_bytes_whatever_crash_the_engine_and_every_request_is_answered(frames):
    gateway = Gateway().with_manager()
    commands = gateway.engine.on_request([b"peer", *frames], NOW_NS)
    assert commands
    assert all(c.frames[0] == b"peer" or isinstance(c, Publish) for c in commands)
    gateway.engine.on_reply(list(frames))
    gateway.passes_published(list(frames))
    gateway.passes_fast_path(list(frames))
    gateway.engine.on_subscription(list(frames) or [b""])


@given(st.binary(max_size=200))
def test_any_protobuf_bytes_behind_a_known_type_id_are_answered(body):
    gateway = Gateway().with_manager()
    for type_id in range(256):
        assert gateway.ask(b"\x01", bytes([type_id]) + body)
