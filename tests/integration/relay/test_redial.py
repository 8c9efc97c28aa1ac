"""A foreign peer on the manager's port for a moment does not cut the relay off for ever."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import zmq

from relay.protocol.envelope import encode
from relay.protocol.v1 import market_pb2, request_pb2
from tests.support.gateway import Gateway
from tests.support.processes import wait_until


@contextmanager
def usurped(gateway: Gateway, name: str, own: zmq.Socket, kind: int) -> Iterator[None]:
    """Let a socket of another kind hold a port for the length of a block."""
    own.close(0)
    foreign = gateway.socket(kind)
    wait_until(lambda: not _fails(foreign, gateway.address(name)), what="the port to be free")
    try:
        yield
    finally:
        foreign.close(0)


def ask(gateway: Gateway, router: zmq.Socket | None = None) -> bool:
    """Send a request; return whether it comes through to the manager's socket, where that is given."""
    req = gateway.socket(zmq.REQ, connect="request")
    req.send_multipart(encode(request_pb2.RequestStatusQuery(request_id=str(uuid.uuid4()))))
    found = bool((router or req).poll(200))
    req.close(0)
    return found and router is not None


def is_redialled(gateway: Gateway, side: str) -> bool:
    """Whether the gateway has given a connection up and made it anew."""
    return gateway.counters().get(f"{side}.redialled", 0) >= 1


def is_served(gateway: Gateway, router: zmq.Socket) -> bool:
    """Whether a request comes through to the manager's socket."""
    gateway.beat()
    return ask(gateway, router)


def test_requests_find_the_manager_again_after_a_foreign_peer_held_its_port(gateway: Gateway) -> None:
    wait_until(lambda: is_served(gateway, gateway.manager_router), what="a request to reach the manager")
    with usurped(gateway, "manager_request", gateway.manager_router, zmq.XPUB):

        def is_given_up() -> bool:
            # Only requests of which none goes through show the gateway that the connection is dead.
            gateway.beat()
            ask(gateway)
            return is_redialled(gateway, "manager")

        wait_until(is_given_up, what="the gateway to dial anew")
    router = gateway.socket(zmq.ROUTER)
    wait_until(lambda: not _fails(router, gateway.address("manager_request")), what="the port to be free")
    wait_until(lambda: is_served(gateway, router), what="a request to reach the manager again")


def test_beats_are_heard_again_after_a_foreign_peer_held_the_publishers_port(gateway: Gateway) -> None:
    wait_until(gateway.beat, what="the manager to be heard")
    with usurped(gateway, "manager_publish", gateway.manager_pub, zmq.ROUTER):
        wait_until(lambda: is_redialled(gateway, "publisher"), what="the gateway to dial anew")
    gateway.manager_pub = gateway.socket(zmq.XPUB)
    wait_until(lambda: not _fails(gateway.manager_pub, gateway.address("manager_publish")), what="the port to be free")

    def is_heard() -> bool:
        gateway.manager_pub.send_multipart([b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat())])
        return bool(gateway.ask(request_pb2.Probe(nonce=str(uuid.uuid4()))).manager_available)

    wait_until(is_heard, what="the manager to be heard again")


def _fails(socket: zmq.Socket, address: str) -> bool:
    try:
        socket.bind(address)
    except zmq.ZMQError:
        return True
    return False
