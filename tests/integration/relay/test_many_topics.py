"""More topics at once than any queue of messages holds: every one is subscribed."""

from __future__ import annotations

import zmq

from relay.transport import SocketKind, SocketLimits, new_context, open_socket
from tests.support.gateway import Gateway
from tests.support.processes import wait_until

COUNT = 12_000
TOPICS = {b"T%d/USDT.BINANCE|tick" % number for number in range(COUNT)}


class Publisher:
    """What is subscribed at a publisher."""

    def __init__(self, socket: zmq.Socket) -> None:
        self.socket, self.topics = socket, set[bytes]()

    def wait(self) -> None:
        wait_until(self._has_all, what=f"{COUNT} topics")

    def _has_all(self) -> bool:
        while self.socket.poll(0):
            message = self.socket.recv()
            (self.topics.add if message[:1] == b"\x01" else self.topics.discard)(message[1:])
        return self.topics >= TOPICS


def test_a_subscriber_of_thousands_of_topics_has_them_all_at_once_and_again_after_a_reconnect() -> None:
    context = new_context()
    first, second = (Publisher(context.socket(zmq.XPUB)) for _ in range(2))
    for publisher in (first, second):
        publisher.socket.setsockopt(zmq.RCVHWM, 0)
        publisher.socket.linger = 0
    port = first.socket.bind_to_random_port("tcp://127.0.0.1")
    subscriber = open_socket(
        context, SocketKind.SUB, connect=[f"tcp://127.0.0.1:{port}"], limits=SocketLimits(1_000, 1_000)
    )
    try:
        for topic in TOPICS:
            subscriber.subscribe(topic)
        first.wait()
        first.socket.close()

        def is_bound() -> bool:
            # The subscriber's own thread must look at its socket for it to subscribe again.
            subscriber.poll(0)
            try:
                second.socket.bind(f"tcp://127.0.0.1:{port}")
            except zmq.ZMQError:
                return False
            return True

        wait_until(is_bound, what="the port to be free")

        def has_all() -> bool:
            subscriber.poll(0)
            return second._has_all()

        wait_until(has_all, what=f"{COUNT} topics again")
    finally:
        context.destroy(0)


def test_a_publisher_that_comes_late_is_told_of_every_topic_that_is_held(gateway: Gateway) -> None:
    early = Publisher(gateway.socket(zmq.XPUB, connect="fast_path"))
    subscriber = gateway.socket(zmq.SUB)
    subscriber.setsockopt(zmq.SNDHWM, 2 * COUNT)
    subscriber.connect(gateway.address("subscribe"))
    for topic in TOPICS:
        subscriber.subscribe(topic)
    early.wait()
    late = Publisher(gateway.socket(zmq.XPUB, connect="fast_path"))
    late.wait()
    # The gateway's loop counts them when it has a moment, a few times a second.
    wait_until(lambda: gateway.counters()["topics.upstream"] >= COUNT, what=f"{COUNT} topics to be counted")
