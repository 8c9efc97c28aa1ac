"""A real gateway process on real sockets: barrier, both routing shapes, limits, drain, kill."""

from __future__ import annotations

import sys
import uuid

import zmq

from relay.protocol.envelope import decode, encode
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, request_pb2
from tests.support.processes import Process, wait_until

NOW_NS = 1_800_000_000 * 10**9


def submit() -> request_pb2.SubmitHistoricalRequest:
    return request_pb2.SubmitHistoricalRequest(
        request_id=str(uuid.uuid4()),
        ticker="BTC/USDT.BINANCE",
        start_time=NOW_NS,
        end_time=NOW_NS + 60 * 10**9,
        period_seconds=60,
    )


def test_what_was_subscribed_before_the_barrier_is_in_force_after_it_case_83(gateway):
    wait_until(gateway.beat, what="the manager to be heard")
    sub = gateway.socket(zmq.SUB, connect="subscribe")
    topic = f"RESPONSE:{uuid.uuid4()}".encode()
    sub.subscribe(topic)
    gateway.barrier(sub)
    gateway.manager_pub.send_multipart([topic, *encode(request_pb2.HistoryReadyNotification(request_id="r"))])
    assert sub.recv_multipart()[0] == topic


def test_req_and_dealer_with_and_without_delimiter_all_get_their_reply(gateway):
    wait_until(gateway.beat, what="the manager to be heard")
    request = submit()
    dealer, bare = gateway.socket(zmq.DEALER, connect="request"), gateway.socket(zmq.DEALER, connect="request")
    req = gateway.socket(zmq.REQ, connect="request")
    dealer.send_multipart([b"", *encode(request)])
    bare.send_multipart(encode(request))
    req.send_multipart(encode(request))
    for _ in range(3):
        frames = gateway.manager_router.recv_multipart()
        assert decode(frames, Channel.CLIENT_REQUEST).message == request
        reply = request_pb2.SubmitResponse(request_id=request.request_id)
        gateway.manager_router.send_multipart([*frames[:-2], *encode(reply)])
    assert dealer.recv_multipart() == [b"", *encode(reply)]
    assert bare.recv_multipart() == list(encode(reply))
    assert req.recv_multipart() == list(encode(reply))


def test_a_strict_req_gets_an_answer_to_any_bytes_and_can_go_on(gateway):
    req = gateway.context.socket(zmq.REQ)
    req.linger, req.rcvtimeo = 0, 20_000
    req.connect(gateway.address("request"))
    for frames in ([b"garbage"], [b"\x02", b"\x10"], [b"\x01", b"\x10" + bytes(65_600)], [b"a"] * 20, [b"", b""]):
        req.send_multipart(frames)
        reply = decode(req.recv_multipart(), Channel.CLIENT_REPLY).message
        assert reply.status == request_pb2.SubmitResponse.INVALID
    assert req.closed is False


def test_a_frame_over_the_hard_limit_costs_only_its_sender_the_connection_case_100(gateway):
    flood = gateway.socket(zmq.DEALER, connect="request")
    flood.send_multipart([b"", b"\x01", b"\x10" + bytes(5_000_000)])
    assert gateway.ask(request_pb2.Probe(nonce=str(uuid.uuid4()))).relay_epoch


def test_nobody_overhears_private_topics_through_prefixes_case_105(gateway):
    wait_until(gateway.beat, what="the manager to be heard")
    spy = gateway.socket(zmq.SUB, connect="subscribe")
    for prefix in (b"", b"R", b"RESPONSE:", b"HISTORY_READY:"):
        spy.subscribe(prefix)
    spy.subscribe(b"METADATA_UPDATE")
    gateway.barrier(spy)
    private = f"RESPONSE:{uuid.uuid4()}".encode()
    gateway.manager_pub.send_multipart([private, *encode(request_pb2.HistoryReadyNotification())])
    gateway.manager_pub.send_multipart([b"METADATA_UPDATE", *encode(market_pb2.SymbolMetadataUpdated())])
    topics = []
    while not topics or topics[-1] != b"METADATA_UPDATE":
        topics.append(spy.recv_multipart()[0])
    assert private not in topics
    assert gateway.counters()["rejected.refused_subscription"] == 4


def test_a_killed_gateway_comes_back_and_subscriptions_and_requests_with_it_case_78(gateway):
    wait_until(gateway.beat, what="the manager to be heard")
    sub = gateway.socket(zmq.SUB, connect="subscribe")
    sub.subscribe(b"METADATA_UPDATE")
    sub.subscribe(b"HEARTBEAT")
    gateway.barrier(sub)
    gateway.process.kill()
    gateway.process = gateway.start()
    wait_until(gateway.beat, what="the manager to be heard again")
    gateway.barrier(sub)
    gateway.manager_pub.send_multipart([b"METADATA_UPDATE", *encode(market_pb2.SymbolMetadataUpdated())])
    seen = set()
    while {b"METADATA_UPDATE", b"HEARTBEAT"} - seen:
        seen.add(sub.recv_multipart()[0])


def test_sigterm_lets_the_reply_in_flight_out_and_ends_with_zero(gateway):
    wait_until(gateway.beat, what="the manager to be heard")
    req = gateway.socket(zmq.REQ, connect="request")
    request = submit()
    req.send_multipart(encode(request))
    frames = gateway.manager_router.recv_multipart()
    import os
    import signal

    os.kill(gateway.process.pid, signal.SIGTERM)
    gateway.manager_router.send_multipart([*frames[:-2], *encode(request_pb2.SubmitResponse())])
    assert decode(req.recv_multipart(), Channel.CLIENT_REPLY).message == request_pb2.SubmitResponse()
    assert gateway.process.terminate() == 0


def test_a_taken_port_is_told_with_the_holder(gateway, tmp_path):
    second = Process(
        [sys.executable, "-c", "from relay.cli import main; main()", "gateway"],
        log=tmp_path / "second.log",
        environment={"RELAY_GATEWAY_REQUEST_ENDPOINT": gateway.address("request")},
    )
    wait_until(lambda: second.returncode is not None, what="the second gateway to give up")
    assert second.returncode == 2
    assert f"pid {gateway.process.pid}" in second.tail()
