"""Market data in shared memory beside a real gateway's sockets: what is wanted there, by all ways, cleaned up after."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import zmq

from relay.protocol.envelope import encode
from relay.protocol.v1 import common_pb2, market_pb2, request_pb2
from relay.transport import BroadcastReader, ClientBroadcast, split_record
from tests.support.accelerator import accelerator
from tests.support.gateway import Gateway
from tests.support.processes import wait_until

ra = accelerator()
BTC = b"BTC/USDT.BINANCE|tick"
BAR = b"BTC/USDT.BINANCE|ohlc:60"
BODY = encode(market_pb2.Tick(ticker="BTC/USDT.BINANCE"))[1]


def told(gateway: Gateway) -> tuple[int, list[common_pb2.Transport]]:
    reply = gateway.ask(request_pb2.Probe(nonce=str(uuid.uuid4())))
    return reply.relay_epoch, list(reply.transports)


def open_reader(gateway: Gateway, *, is_spinning: bool = True) -> BroadcastReader:
    epoch, (_, shared) = told(gateway)
    return BroadcastReader(
        shared.address, relay_epoch=epoch, host_id=shared.host_id, folder="", is_spinning=is_spinning
    )


def subscriber(gateway: Gateway, *topics: bytes) -> zmq.Socket:
    socket = gateway.socket(zmq.SUB, connect="subscribe")
    for topic in topics:
        socket.subscribe(topic)
    gateway.barrier(socket)
    return socket


def publisher(gateway: Gateway, topic: bytes) -> zmq.Socket:
    """An ingestor's socket, once the gateway has subscribed the topic there."""
    socket = gateway.socket(zmq.XPUB, connect="fast_path")
    while socket.recv() != b"\x01" + topic:
        pass
    return socket


def taken(reader: BroadcastReader, count: int) -> list[tuple[bytes, bytes, bytes]]:
    found: list[tuple[bytes, bytes, bytes]] = []
    wait_until(lambda: found.extend(map(split_record, reader.take())) or len(found) >= count, what=f"{count} records")
    return found


def until_written(gateway: Gateway, name: str, wanted: Callable[[int], bool]) -> None:
    wait_until(lambda: wanted(gateway.counters().get(name, 0)), what=f"the count {name}")


def test_what_a_client_demands_comes_by_memory_from_both_publishers_and_not_by_its_socket(gateway: Gateway) -> None:
    reader = open_reader(gateway)
    demanding = subscriber(gateway, b"@" + BTC, b"@" + BAR)
    fast = publisher(gateway, BTC)
    bar = encode(market_pb2.OHLC(ticker="BTC/USDT.BINANCE"))[1]
    bodies = [BODY + bytes([8, n]) for n in range(1, 101)]
    for body in bodies:
        fast.send_multipart([BTC, b"\x01", body])
    assert taken(reader, 100) == [(BTC, b"\x01", body) for body in bodies]
    wait_until(lambda: gateway.manager_pub.poll(0) and gateway.manager_pub.recv() == b"\x01" + BAR, what="the bars")
    gateway.manager_pub.send_multipart([BAR, b"\x01", bar])
    assert taken(reader, 1) == [(BAR, b"\x01", bar)]
    assert not demanding.poll(0)


def test_what_nobody_demands_is_not_written_and_the_last_one_who_leaves_ends_it(gateway: Gateway) -> None:
    reader = open_reader(gateway)
    plain, demanding = subscriber(gateway, BTC), subscriber(gateway, b"@" + BTC)
    fast = publisher(gateway, BTC)
    fast.send_multipart([BTC, b"\x01", BODY])
    assert taken(reader, 1) == [(BTC, b"\x01", BODY)]
    assert plain.recv_multipart() == [BTC, b"\x01", BODY]
    demanding.close(0)
    until_written(gateway, "broadcast.topics", lambda count: count == 0)
    fast.send_multipart([BTC, b"\x01", BODY])
    assert plain.recv_multipart() == [BTC, b"\x01", BODY]
    assert reader.take() == []
    plain.close(0)
    while fast.recv() != b"\x00" + BTC:
        pass


def test_private_messages_never_reach_the_memory(gateway: Gateway) -> None:
    reader = open_reader(gateway)
    private = b"RESPONSE:" + str(uuid.uuid4()).encode()
    hearing = subscriber(gateway, private, b"@" + private, b"@" + BTC)
    notice = encode(request_pb2.HistoryReadyNotification(request_id="x"))[1]

    def reaches() -> bool:
        gateway.manager_pub.send_multipart([private, b"\x01", notice])
        return bool(hearing.poll(50))

    wait_until(reaches, what="the notice by the socket")
    fast = publisher(gateway, BTC)
    fast.send_multipart([BTC, b"\x01", BODY])
    assert {topic for topic, _, _ in taken(reader, 1)} == {BTC}


def test_a_reader_that_sleeps_in_a_poller_is_woken(gateway: Gateway) -> None:
    reader = open_reader(gateway, is_spinning=False)
    demanding = subscriber(gateway, b"@" + BTC)
    fast = publisher(gateway, BTC)
    poller = zmq.Poller()
    poller.register(reader.descriptor, zmq.POLLIN)
    for _ in range(20):
        if reader.arm(20_000):
            fast.send_multipart([BTC, b"\x01", BODY])
            assert poller.poll(20_000)
        wait_until(reader.take, what="the record")
    assert not demanding.poll(0)


def test_the_memory_of_a_killed_relay_is_removed_by_the_next_start_and_readers_know(gateway: Gateway) -> None:
    reader = open_reader(gateway, is_spinning=False)
    (_, shared) = told(gateway)[1]
    assert not reader.is_writer_gone()
    gateway.process.kill()
    wait_until(reader.is_writer_gone, what="the relay's death to be seen")
    # Another relay that starts on this machine meanwhile may have removed it.
    with pytest.raises(LookupError, match=r"gone|NOT_FOUND"):
        BroadcastReader(
            shared.address, relay_epoch=int(shared.address.removeprefix("fanout."), 16), host_id=shared.host_id,
            folder="", is_spinning=True,
        )  # fmt: skip
    gateway.process = gateway.start()
    (_, fresh) = told(gateway)[1]
    names = ra.segment_names()
    assert fresh.address in names
    assert shared.address not in names
    left = [path for path in Path(ra.default_directory()).iterdir() if shared.address in path.name]
    assert not left, "no bells either"
    gateway.process.terminate()
    assert fresh.address not in ra.segment_names()


def test_a_broadcast_has_room_for_whatever_a_ring_can_bring_and_counts_what_it_refuses(tmp_path) -> None:
    tmp_path.chmod(0o700)
    small = ClientBroadcast(time.monotonic_ns(), folder=str(tmp_path), length=4_096, body_bytes_max=64)
    try:
        topic = b"BTC/USDT.BINANCE|tick"
        small.want(topic, on=True)
        small.offer(topic, bytes(128 * 1024 - len(topic) - 16))
        assert (small.records(), small.refused) == (1, 0)
        small.offer(topic, bytes(small.length))
        assert (small.records(), small.refused) == (1, 1)
    finally:
        small.close()


def test_a_foreign_name_or_another_place_is_refused_with_the_reason(gateway: Gateway, tmp_path) -> None:
    epoch, (_, shared) = told(gateway)
    tmp_path.chmod(0o700)
    for name, host_id, folder, reason in (
        ("fanout.1", shared.host_id, "", "named by the relay's epoch"),
        (shared.address, "elsewhere", "", "another host, container, user or folder"),
        (shared.address, shared.host_id, str(tmp_path), "another host, container, user or folder"),
        (shared.address, "", str(tmp_path), "NOT_FOUND"),
    ):
        with pytest.raises(LookupError, match=reason):
            BroadcastReader(name, relay_epoch=epoch, host_id=host_id, folder=folder, is_spinning=True)


def test_where_no_memory_can_be_shared_only_tcp_is_told(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_GATEWAY_SHARED_MEMORY", "off")
    apart = Gateway(tmp_path)
    try:
        assert [way.kind for way in told(apart)[1]] == [common_pb2.Transport.TCP]
        plain = subscriber(apart, b"@" + BTC, BTC)
        fast = publisher(apart, BTC)
        fast.send_multipart([BTC, b"\x01", BODY])
        assert plain.recv_multipart() == [BTC, b"\x01", BODY]
    finally:
        apart.close()
