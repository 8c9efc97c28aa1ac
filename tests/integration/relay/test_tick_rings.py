"""Ticks through shared memory from an ingestor to a real gateway: chosen by itself, judged alike, given up in time."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from ingestors.live.sinks import PublisherSink
from relay.observability import Counters
from relay.protocol.envelope import encode
from relay.protocol.stamps import Stamper
from relay.protocol.v1 import market_pb2, request_pb2
from relay.transport import BroadcastReader, Context, new_context, split_record
from tests.support.accelerator import accelerator
from tests.support.gateway import Gateway
from tests.support.processes import free_port, wait_until

ra = accelerator()
BTC = b"BTC/USDT.BINANCE|tick"


class Ingestor:
    """A sink towards a gateway, with a clock of its own."""

    def __init__(self, context: Context, gateway: Gateway, *, shared_memory: str | None = "") -> None:
        self.counters, self.epoch = Counters(), time.monotonic_ns()
        self.sink = PublisherSink(
            context, [gateway.address("fast_path")], queue_max=100_000, counters=self.counters,
            epoch=self.epoch, shared_memory=shared_memory,
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


def segments(writer_epoch: int) -> list[str]:
    """The rings of one ingestor; other tests' platforms share the folder."""
    return [name for name in ra.segment_names() if name.startswith("ticks.") and f".{writer_epoch:x}-" in name]


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


def test_what_comes_by_a_ring_goes_into_the_clients_broadcast_where_it_is_demanded(
    gateway: Gateway, ingestor: Ingestor
) -> None:
    told = gateway.ask(request_pb2.Probe(nonce=str(uuid.uuid4())))
    shared = told.transports[1]
    local = BroadcastReader(
        shared.address, relay_epoch=told.relay_epoch, host_id=shared.host_id, folder="", is_spinning=True
    )
    reader, demanding = subscriber(gateway), subscriber(gateway, b"@" + BTC)
    wait_until(ingestor.has_ring, what="the ring to be read")
    ingestor.send(500)
    assert numbers(reader, 500) == list(range(1, 501))
    records = [split_record(record) for record in local.take()]
    assert {(topic, version) for topic, version, _ in records} == {(BTC, b"\x01")}
    assert [int(market_pb2.Tick.FromString(body[1:]).trade_id) for _, _, body in records] == list(range(1, 501))
    assert (ingestor.by_ring(), demanding.poll(0)) == (500, 0)


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
    (ring,) = segments(ingestor.epoch)
    gateway.process.kill()
    wait_until(lambda: not ingestor.has_ring(), what="the ring of the dead to be given up")
    assert ring not in segments(ingestor.epoch)
    gateway.process = gateway.start()
    wait_until(ingestor.has_ring, what="a ring of the new relay")
    reader = subscriber(gateway)
    ingestor.send(10)
    assert numbers(reader, 10) == list(range(1, 11))
    assert ingestor.by_ring() == 10


def test_an_ingestor_that_is_killed_leaves_what_it_wrote_and_no_segment(gateway: Gateway) -> None:
    reader = subscriber(gateway)
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
    killed = subprocess.Popen([sys.executable, "-c", code])
    killed.wait()
    assert numbers(reader, 100) == list(range(1, 101))
    wait_until(lambda: not segments(killed.pid), what="the ring of the dead to be removed")


def test_no_client_can_have_an_ingestor_write_elsewhere(context: Context, gateway: Gateway, tmp_path) -> None:
    (tmp_path / "other").mkdir()
    other = Gateway(tmp_path / "other")
    here, there = Ingestor(context, gateway), Ingestor(context, other)
    try:
        wait_until(lambda: here.has_ring() and there.has_ring(), what="both rings")
        epoch = other.ask(request_pb2.Probe(nonce=str(uuid.uuid4()))).relay_epoch
        liar = gateway.socket(zmq.SUB, connect="subscribe")
        for topic in (f"RING:{epoch:x}", "RING:garbage", f"@RING:{epoch:x}", f"@@RING:{epoch:x}|tick"):
            liar.subscribe(topic)
        gateway.barrier(liar)
        reader = subscriber(gateway)
        for _ in range(20):
            here.turn()
            here.send(5)
            assert numbers(reader, 5) == list(range(here.sent - 4, here.sent + 1))
        assert (here.by_ring(), here.has_ring(), there.has_ring()) == (100, True, True)
        assert other.counters()["fast_path.by_ring"] == 0
    finally:
        here.sink.close()
        there.sink.close()
        other.close()


def test_a_ring_that_works_is_not_given_up_for_another_and_is_followed_by_it(context: Context) -> None:
    """Whoever the subscriptions come from: a publisher of the test's plays the relay's side of the connection."""
    import relay_accel

    port = free_port()
    relay = context.socket(zmq.SUB)
    relay.bind(f"tcp://127.0.0.1:{port}")
    counters, epochs = Counters(), [time.monotonic_ns(), time.monotonic_ns() + 1]
    beacons = [relay_accel.Counters.create(f"relay.{epoch:x}", 1, pre_fault=False) for epoch in epochs]
    sink = PublisherSink(
        context, [f"tcp://127.0.0.1:{port}"], queue_max=10, counters=counters, epoch=1, shared_memory=""
    )

    def turn() -> None:
        relay.poll(0)  # libzmq sends subscriptions to a new peer when their socket is used
        sink.turn(time.monotonic_ns())

    def ring_of(epoch: int) -> list[str]:
        turn()
        return [name for name in ra.segment_names() if name.startswith(f"ticks.{epoch:x}.")]

    try:
        relay.subscribe(f"RING:{epochs[0]:x}")
        wait_until(lambda: ring_of(epochs[0]), what="the first ring")
        relay.subscribe(f"RING:{epochs[1]:x}")
        relay.subscribe("RING:nothing")
        relay.unsubscribe("RING:nothing")
        relay.subscribe("RING:")
        wait_until(lambda: turn() or len(offered(sink)) == 3, what="the offers")
        assert (bool(ring_of(epochs[0])), ring_of(epochs[1])) == (True, [])
        relay.unsubscribe(f"RING:{epochs[0]:x}")
        wait_until(lambda: ring_of(epochs[1]), what="the second ring")
        assert ring_of(epochs[0]) == []
    finally:
        sink.close()
        relay.close(0)
        for beacon in beacons:
            beacon.unlink()


def offered(sink: PublisherSink) -> list[bytes]:
    return sink._links[0]._offered


@pytest.mark.parametrize("trouble", ["open to others", "a file", "no descriptors"])
def test_a_relay_that_cannot_look_into_its_folder_goes_on(context: Context, tmp_path, trouble: str) -> None:
    folder = tmp_path / "memory"
    folder.mkdir(mode=0o700)
    gateway = Gateway(tmp_path, shared_memory=str(folder))
    ingestor = Ingestor(context, gateway, shared_memory=str(folder))
    crowd: list[socket.socket] = []
    try:
        wait_until(ingestor.has_ring, what="the ring to be read")
        reader = subscriber(gateway)
        if trouble == "open to others":
            folder.chmod(0o755)
        elif trouble == "a file":
            folder.rename(tmp_path / "elsewhere")
            folder.write_text("no folder")
        else:
            used = len(list(Path(f"/proc/{gateway.process.pid}/fd").iterdir()))
            resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (used + 3, used + 3))
            crowd = [socket.create_connection(("127.0.0.1", gateway.ports["subscribe"])) for _ in range(20)]
        wait_until(lambda: "tick_rings_not_seen" in gateway.log.read_text(), what="the trouble to be told")
        ingestor.send(50)
        assert numbers(reader, 50) == list(range(1, 51))
        if trouble == "open to others":
            folder.chmod(0o700)
            wait_until(lambda: "tick_rings_seen_again" in gateway.log.read_text(), what="its end to be told")
        assert gateway.process.returncode is None
    finally:
        for one in crowd:
            one.close()
        ingestor.sink.close()
        gateway.close()


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
