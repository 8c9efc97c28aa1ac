"""Ticks from publishers to subscribers through a real gateway process: demand upstream, isolation, no leak."""

from __future__ import annotations

import uuid

import zmq

from relay.protocol.envelope import encode
from relay.protocol.v1 import market_pb2
from tests.support.gateway import Gateway
from tests.support.processes import wait_until

BTC = b"BTC/USDT.BINANCE|tick"
ETH = b"ETH/USDT.BINANCE|tick"


def tick(number: int) -> list[bytes]:
    return [*encode(market_pb2.Tick(trade_id=str(number), ticker="BTC/USDT.BINANCE", timestamp=number))]


class Upstream:
    """What the gateway has subscribed at a publisher of the fast path."""

    def __init__(self, gateway: Gateway) -> None:
        self.socket = gateway.socket(zmq.XPUB, connect="fast_path")
        self.topics: set[bytes] = set()

    def has(self, topic: bytes) -> bool:
        while self.socket.poll(0):
            message = self.socket.recv()
            (self.topics.add if message[:1] == b"\x01" else self.topics.discard)(message[1:])
        return topic in self.topics

    def wait(self, topic: bytes, *, on: bool) -> None:
        wait_until(lambda: self.has(topic) == on, what=f"{topic!r} upstream to be {on}")


def subscriber(gateway: Gateway, *topics: bytes) -> zmq.Socket:
    socket = gateway.socket(zmq.SUB, connect="subscribe")
    for topic in topics:
        socket.subscribe(topic)
    return socket


def test_the_first_holder_is_forwarded_and_the_last_ones_leave_too(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    first, second = subscriber(gateway, BTC), subscriber(gateway, BTC, BTC, ETH)
    upstream.wait(BTC, on=True)
    upstream.wait(ETH, on=True)
    first.unsubscribe(BTC)
    second.unsubscribe(ETH)
    upstream.wait(ETH, on=False)
    assert upstream.has(BTC)
    # One of two equal subscriptions of one socket surfaces nothing; the second does.
    second.unsubscribe(BTC)
    second.unsubscribe(BTC)
    upstream.wait(BTC, on=False)


def test_a_vanished_subscriber_takes_its_demand_away_case_81(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    stays, goes = subscriber(gateway, BTC), subscriber(gateway, BTC, ETH)
    upstream.wait(ETH, on=True)
    goes.close(0)
    upstream.wait(ETH, on=False)
    assert upstream.has(BTC)
    stays.close(0)
    upstream.wait(BTC, on=False)


def test_demand_only_topics_hold_the_topic_itself_and_never_leave_the_relay(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    demand = subscriber(gateway, b"@" + BTC)
    upstream.wait(BTC, on=True)
    plain = subscriber(gateway, BTC)
    plain.close(0)
    plain = subscriber(gateway, ETH)
    upstream.wait(ETH, on=True)
    assert upstream.has(BTC)
    assert not any(topic.startswith(b"@") for topic in upstream.topics)
    demand.close(0)
    upstream.wait(BTC, on=False)


def test_a_thousand_peers_that_come_and_vanish_leave_nothing_behind(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    stays = subscriber(gateway, BTC)
    upstream.wait(BTC, on=True)
    for number in range(1_000):
        peer = subscriber(gateway, BTC, b"T%d/USDT.BINANCE|tick" % (number % 10))
        if number % 50 == 0:
            upstream.wait(b"T%d/USDT.BINANCE|tick" % (number % 10), on=True)
        peer.close(0)
    wait_until(lambda: upstream.has(BTC) and upstream.topics == {BTC} | private(upstream), what="nothing but BTC")
    wait_until(lambda: gateway.counters()["topics.upstream"] == 1, what="one topic upstream")
    stays.close(0)
    upstream.wait(BTC, on=False)


def private(upstream: Upstream) -> set[bytes]:
    """What the relay always subscribes."""
    return {topic for topic in upstream.topics if b"|" not in topic}


def test_only_ticks_gaps_and_beats_of_their_own_topic_pass_the_fast_path(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    listener = subscriber(gateway, b"BTC/USDT.BINANCE|", b"CEP:" + str(uuid.uuid4()).encode())
    upstream.wait(b"BTC/USDT.BINANCE|", on=True)
    version, body = tick(1)
    refused = [
        [BTC, version],
        [BTC, b"\x02", body],
        [BTC, version, b""],
        [BTC, version, b"\x12" + body[1:]],
        [b"BTC/USDT.BINANCE|gap", version, body],
        [b"BTC/USDT.BINANCE|heartbeat", version, body],
        [BTC, version, body, b"more"],
    ]
    for frames in refused:
        upstream.socket.send_multipart(frames)
    upstream.socket.send_multipart([BTC, *tick(2)])
    assert listener.recv_multipart() == [BTC, *tick(2)]
    wait_until(lambda: gateway.counters().get("fast_path.forwarded"), what="the message to be counted")
    assert gateway.counters()["fast_path.forwarded"] == 1


def test_a_stuck_subscriber_costs_the_others_nothing_case_86_89(gateway: Gateway) -> None:
    upstream = Upstream(gateway)
    stuck = gateway.socket(zmq.SUB)
    # Kernel buffers hide drops, so they are as small as they can be.
    stuck.setsockopt(zmq.RCVBUF, 4096)
    stuck.setsockopt(zmq.RCVHWM, 1)
    stuck.connect(gateway.address("subscribe"))
    stuck.subscribe(BTC)
    healthy = subscriber(gateway, BTC)
    upstream.wait(BTC, on=True)
    gateway.barrier(healthy)
    count, body = 60_000, tick(7)[1] + b"\x82\x08\x80\x01" + bytes(128)
    received = sent = 0
    while received < count:
        while sent < count and sent - received < 400:
            upstream.socket.send_multipart([BTC, b"\x01", body])
            sent += 1
        assert healthy.poll(20_000), f"{received} of {sent} came"
        while healthy.poll(0):
            healthy.recv_multipart()
            received += 1
    assert received == count
    assert stuck.poll(0)
