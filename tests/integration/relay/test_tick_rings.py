"""Ticks through shared memory from an ingestor to a real gateway: chosen by itself, judged alike, given up in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import zmq

from ingestors.live.sinks import PublisherSink
from relay.observability import Counters
from relay.protocol.envelope import encode
from relay.protocol.stamps import Stamper
from relay.protocol.v1 import market_pb2
from relay.transport import Context, new_context
from tests.support.accelerator import accelerator
from tests.support.gateway import Gateway
from tests.support.processes import wait_until

ra = accelerator()
BTC = b"BTC/USDT.BINANCE|tick"


class Ingestor:
    """A sink towards a gateway, with a clock of its own."""

    def __init__(self, context: Context, gateway: Gateway, *, shared_memory: str | None = "") -> None:
        self.counters = Counters()
        self.sink = PublisherSink(
            context, [gateway.address("fast_path")], queue_max=100_000, counters=self.counters,
            epoch=time.monotonic_ns(), shared_memory=shared_memory,
        )  # fmt: skip
        self.stamper, self.sent = Stamper(7), 0

    def turn(self) -> None:
        self.sink.turn(time.monotonic_ns())

    def has_ring(self) -> bool:
        self.turn()
        return self.counters.get("live.rings") == 1

    def send(self, count: int, topic: bytes = BTC, *, ticker: str = "BTC/USDT.BINANCE") -> None:
        for _ in range(count):
            self.sent += 1
            body = encode(market_pb2.Tick(ticker=ticker, trade_id=str(self.sent)))[1]
            self.sink.publish(topic, self.stamper.stamp(topic, body, now_ns=self.sent))

    def by_ring(self) -> int:
        return self.counters.get("live.publish.by_ring")


@pytest.fixture
def context() -> Iterator[Context]:
    made = new_context()
    yield made
    made.destroy(0)


@pytest.fixture
def ingestor(context: Context, gateway: Gateway) -> Iterator[Ingestor]:
    made = Ingestor(context, gateway)
    yield made
    made.sink.close()


def subscriber(gateway: Gateway, topic: bytes = BTC) -> zmq.Socket:
    socket = gateway.socket(zmq.SUB, connect="subscribe")
    socket.rcvhwm = 0
    socket.subscribe(topic)
    gateway.barrier(socket)
    return socket


def numbers(socket: zmq.Socket, count: int) -> list[int]:
    found = []
    while len(found) < count and socket.poll(20_000):
        topic, version, body = socket.recv_multipart()
        assert (topic, version, body[0]) == (BTC, b"\x01", 4)
        found.append(int(market_pb2.Tick.FromString(body[1:]).trade_id))
    return found


def segments() -> list[str]:
    return [name for name in ra.segment_names() if name.startswith("ticks.")]


def test_a_ring_is_taken_by_itself_and_carries_the_very_messages(gateway: Gateway, ingestor: Ingestor) -> None:
    reader = subscriber(gateway)
    wait_until(ingestor.has_ring, what="the ring to be read")
    for _ in range(20):
        ingestor.send(500)
        assert numbers(reader, 500) == list(range(ingestor.sent - 499, ingestor.sent + 1))
    assert ingestor.by_ring() == 10_000
    wait_until(lambda: gateway.counters()["fast_path.by_ring"] == 10_000, what="the relay's count")


def test_a_message_alone_wakes_a_relay_that_sleeps(gateway: Gateway, ingestor: Ingestor) -> None:
    reader = subscriber(gateway)
    wait_until(ingestor.has_ring, what="the ring to be read")
    for _ in range(20):
        ingestor.send(1)
        assert numbers(reader, 1) == [ingestor.sent]
    assert ingestor.by_ring() == 20


def test_what_may_not_pass_the_socket_may_not_pass_the_ring_either(gateway: Gateway, ingestor: Ingestor) -> None:
    everything = gateway.socket(zmq.SUB, connect="subscribe")
    for topic in (b"BTC/USDT.BINANCE|", b"RESPONSE:", b"HEARTBEAT"):
        everything.subscribe(topic)
    gateway.barrier(everything)
    wait_until(ingestor.has_ring, what="the ring to be read")
    tick = encode(market_pb2.Tick(ticker="BTC/USDT.BINANCE", trade_id="1"))[1]
    for topic, body in (
        (b"BTC/USDT.BINANCE|gap", tick), (b"RESPONSE:x", tick), (b"HEARTBEAT", tick), (b"", tick), (BTC, b"\x03x"),
        (BTC, b""), (b"BTC/USDT.BINANCE|ohlc:60", encode(market_pb2.OHLC())[1]),
    ):  # fmt: skip
        ingestor.sink.publish(topic, body)
    ingestor.send(1)
    assert numbers(everything, 1) == [1]
    assert not everything.poll(0)


def test_a_relay_that_stands_still_loses_nothing_that_its_ring_has_no_room_for(
    gateway: Gateway, ingestor: Ingestor
) -> None:
    reader = subscriber(gateway)
    wait_until(ingestor.has_ring, what="the ring to be read")
    os.kill(gateway.process.pid, signal.SIGSTOP)
    ingestor.send(4_000, ticker="x" * 1_000)
    assert 0 < ingestor.by_ring() < 4_000, "the rest went to the socket"
    os.kill(gateway.process.pid, signal.SIGCONT)
    assert sorted(numbers(reader, 4_000)) == list(range(1, 4_001))


def test_a_relay_that_is_killed_is_served_by_a_new_ring_when_it_is_back(gateway: Gateway, ingestor: Ingestor) -> None:
    wait_until(ingestor.has_ring, what="the ring to be read")
    gateway.process.kill()
    wait_until(lambda: not ingestor.has_ring(), what="the ring of the dead to be given up")
    gateway.process = gateway.start()
    wait_until(ingestor.has_ring, what="a ring of the new relay")
    reader = subscriber(gateway)
    ingestor.send(10)
    assert numbers(reader, 10) == list(range(1, 11))
    assert ingestor.by_ring() == 10


def test_an_ingestor_that_is_killed_leaves_what_it_wrote_and_no_segment(gateway: Gateway) -> None:
    reader = subscriber(gateway)
    before = segments()
    code = (
        "import os, time; from ingestors.live.sinks import PublisherSink; from relay.observability import Counters\n"
        "from relay.protocol.envelope import encode; from relay.protocol.v1 import market_pb2\n"
        "from relay.transport import new_context\n"
        "counters = Counters()\n"
        f"sink = PublisherSink(new_context(), [{gateway.address('fast_path')!r}], queue_max=1000, counters=counters,\n"
        "                     epoch=os.getpid(), shared_memory='')\n"
        "while not counters.get('live.rings'): sink.turn(time.monotonic_ns())\n"
        "for n in range(1, 101):\n"
        "    sink.publish(b'BTC/USDT.BINANCE|tick', encode(market_pb2.Tick(trade_id=str(n)))[1])\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert numbers(reader, 100) == list(range(1, 101))
    wait_until(lambda: segments() == before, what="the ring of the dead to be removed")


def test_without_shared_memory_the_socket_serves(context: Context, gateway: Gateway) -> None:
    plain = Ingestor(context, gateway, shared_memory=None)
    reader = subscriber(gateway)

    def reaches() -> bool:
        plain.turn()
        plain.send(1)
        return bool(reader.poll(50))

    wait_until(reaches, what="a message by the socket")
    assert (plain.by_ring(), plain.has_ring()) == (0, False)
    plain.sink.close()


def test_an_ingestor_in_another_folder_is_told_so_once_and_uses_the_socket(
    context: Context, gateway: Gateway, tmp_path
) -> None:
    tmp_path.chmod(0o700)
    apart = Ingestor(context, gateway, shared_memory=str(tmp_path))
    wait_until(lambda: apart.turn() or apart.counters.get("live.rings.refused") == 1, what="the refusal")
    assert not apart.has_ring()
    apart.sink.close()
