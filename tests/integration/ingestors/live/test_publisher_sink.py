"""The fast path's publisher towards relays that are away, come back, or whose port somebody else holds for a while."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from ingestors.live.sinks import PublisherSink
from relay.errors import SettingsError
from relay.observability import Counters
from relay.transport import Context, new_context
from tests.support.processes import free_port, wait_until

TOPIC = b"BTC/USDT.BINANCE|tick"
SECOND_NS = 10**9


class Publisher:
    """A sink whose time passes a second with each look."""

    def __init__(self, context: Context, *endpoints: str) -> None:
        self.counters = Counters()
        self.sink = PublisherSink(context, endpoints, queue_max=1_000, counters=self.counters)
        self._now_ns = 0

    def reaches(self, relay: zmq.Socket) -> bool:
        """Publish once more, and tell whether anything has come."""
        self._now_ns += SECOND_NS
        self.sink.turn(self._now_ns)
        self.sink.publish(TOPIC, b"\x04")
        return bool(relay.poll(50))


@pytest.fixture
def context() -> Iterator[Context]:
    made = new_context()
    yield made
    made.destroy(0)


def relay(context: Context, endpoint: str) -> zmq.Socket:
    socket = context.socket(zmq.XSUB)
    socket.linger = 0
    wait_until(lambda: is_bound(socket, endpoint), what="the port to be free")
    socket.send(b"\x01" + TOPIC)
    return socket


def is_bound(socket: zmq.Socket, endpoint: str) -> bool:
    try:
        socket.bind(endpoint)
    except zmq.ZMQError:
        return False
    return True


def test_a_relay_is_found_again_after_a_foreign_peer_held_its_port(context: Context) -> None:
    endpoint, other = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    foreign, second = context.socket(zmq.ROUTER), relay(context, other)
    foreign.bind(endpoint)
    met = foreign.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    publisher = Publisher(context, endpoint, other)
    assert met.poll(30_000), "the publisher never came"
    foreign.disable_monitor()
    met.close(0)
    foreign.close(0)
    first = relay(context, endpoint)
    wait_until(lambda: publisher.reaches(first), what="a message at the relay that was away")
    wait_until(lambda: publisher.reaches(second), what="a message at the relay beside it")
    assert publisher.counters.get("live.publish.redialled") >= 1
    publisher.sink.close()


def test_a_relay_that_goes_and_comes_again_needs_no_new_connection(context: Context) -> None:
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    publisher = Publisher(context, endpoint)
    for _ in range(2):
        found = relay(context, endpoint)
        wait_until(lambda socket=found: publisher.reaches(socket), what="a message at the relay")
        found.close(0)
    assert publisher.counters.get("live.publish.redialled") == 0
    publisher.sink.close()


def test_an_endpoint_that_makes_no_sense_is_told_and_leaves_no_socket_open(context: Context) -> None:
    with pytest.raises(SettingsError, match="nonsense"):
        PublisherSink(context, [f"tcp://127.0.0.1:{free_port()}", "nonsense"], queue_max=10, counters=Counters())
    context.term()
