"""Subscribers that come and vanish, politely and not: the relay keeps nothing of them."""

from __future__ import annotations

import socket
import struct

import psutil

from tests.integration.relay.test_live_fan_out import BTC, Upstream, private, subscriber, tick
from tests.support.gateway import Gateway
from tests.support.processes import wait_until

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(23, b"\0") + bytes(32)
CYCLES = 1_000
WARM_CYCLES = 200
GROWTH_MAX_BYTES = 4 * 2**20
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER on with no time: a close is a reset, as from a machine that is gone."""


def frame(flags: int, body: bytes) -> bytes:
    return bytes([flags, len(body)]) + body


def ready(kind: bytes) -> bytes:
    name, value = b"Socket-Type", kind
    return frame(4, b"\x05READY" + bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value)


def raw(gateway: Gateway, *parts: bytes) -> socket.socket:
    """A TCP connection that has said so much, and does not read."""
    connection = socket.create_connection(("127.0.0.1", gateway.ports["subscribe"]), timeout=20)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.sendall(b"".join(parts))
    return connection


def raw_subscriber(gateway: Gateway, *topics: bytes) -> socket.socket:
    """A subscriber that reads nothing after the handshake."""
    connection, heard = raw(gateway, GREETING, ready(b"SUB")), b""
    while b"READY" not in heard:
        heard += connection.recv(4096)
    connection.sendall(b"".join(frame(0, b"\x01" + topic) for topic in topics))
    return connection


def topic(number: int) -> bytes:
    return b"T%d/USDT.BINANCE|tick" % (number % 10)


def test_peers_that_vanish_a_thousand_times_in_every_way_leave_no_topic_no_descriptor_and_no_memory_case_81_104(
    gateway: Gateway,
) -> None:
    """Cases 81 and 104: closed, reset after subscribing, reset half-way through the handshake, never said a word."""
    upstream, process = Upstream(gateway), psutil.Process(gateway.process.pid)
    stays = subscriber(gateway, BTC)
    upstream.wait(BTC, on=True)

    def is_clean() -> bool:
        return upstream.has(BTC) and upstream.topics == {BTC} | private(upstream)

    def cycle(number: int) -> None:
        wanted = topic(number)
        silent, half = raw(gateway), raw(gateway, GREETING, ready(b"SUB")[:7])
        unread, polite = raw_subscriber(gateway, BTC, wanted), subscriber(gateway, BTC, wanted)
        if not number % 50:
            upstream.wait(wanted, on=True)
            upstream.socket.send_multipart([wanted, *tick(number)])
        for peer in (silent, half, unread):
            peer.close()
        polite.close(0)

    def settled_descriptors() -> int:
        # A descriptor of a vanished peer may live until the next look of libzmq's own thread.
        wait_until(is_clean, what="nothing but BTC upstream")
        return process.num_fds()

    for number in range(WARM_CYCLES):
        cycle(number)
    descriptors, memory = settled_descriptors(), process.memory_info().rss
    for number in range(CYCLES):
        cycle(number)
    wait_until(lambda: settled_descriptors() <= descriptors, what=f"no more than {descriptors} open descriptors")
    assert process.memory_info().rss - memory < GROWTH_MAX_BYTES
    assert gateway.counters()["subscriptions.added"] >= 2 * (WARM_CYCLES + CYCLES), "not every peer was heard"
    wait_until(lambda: gateway.counters()["topics.upstream"] == 1, what="one topic upstream")
    upstream.socket.send_multipart([BTC, *tick(7)])
    assert stays.recv_multipart() == [BTC, *tick(7)]
    stays.close(0)
    upstream.wait(BTC, on=False)


def test_two_holders_of_a_topic_that_are_cut_off_at_once_end_it_together(gateway: Gateway) -> None:
    """Case 81: the relay is asked about both in one turn, and neither is taken for the other's holder."""
    upstream = Upstream(gateway)
    for _ in range(20):
        peers = [raw_subscriber(gateway, BTC, topic(n)) for n in range(10)]
        upstream.wait(topic(9), on=True)
        upstream.wait(BTC, on=True)
        for peer in peers:
            peer.close()
        upstream.wait(BTC, on=False)
