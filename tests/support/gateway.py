"""A gateway process, and a scripted manager and clients around it."""

from __future__ import annotations

import json
import urllib.request
import uuid
from pathlib import Path

import zmq

from relay.protocol.envelope import decode, encode
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, request_pb2
from tests.support.forked import ForkedRelay
from tests.support.processes import free_port, wait_until

__all__ = ["Gateway"]


class Gateway:
    """A gateway process, and a scripted manager and clients around it."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.settings = settings
        names = ("request", "subscribe", "fast_path", "manager_publish", "manager_request")
        self.ports = {name: free_port() for name in names} | {"status": free_port()}
        self.log = folder / "gateway.log"
        self.context = zmq.Context()
        self.manager_pub = self.socket(zmq.XPUB)
        self.manager_router = self.socket(zmq.ROUTER)
        self.manager_pub.bind(self.address("manager_publish"))
        self.manager_router.bind(self.address("manager_request"))
        self.process = self.start()

    def start(self) -> ForkedRelay:
        environment = {f"RELAY_GATEWAY_{n.upper()}_ENDPOINT": self.address(n) for n in self.ports if n != "status"}
        environment["RELAY_GATEWAY_STATUS_PORT"] = str(self.ports["status"])
        environment |= {f"RELAY_GATEWAY_{name.upper()}": str(value) for name, value in self.settings.items()}
        return ForkedRelay(["gateway"], log=self.log, environment=environment)

    def address(self, name: str) -> str:
        return f"tcp://127.0.0.1:{self.ports[name]}"

    def socket(self, kind: int, *, connect: str = "") -> zmq.Socket:
        socket = self.context.socket(kind)
        socket.linger = 0
        socket.rcvtimeo = 20_000
        if kind == zmq.REQ:
            socket.setsockopt(zmq.REQ_RELAXED, 1)
            socket.setsockopt(zmq.REQ_CORRELATE, 1)
        if connect:
            socket.connect(self.address(connect))
        return socket

    def ask(self, message) -> object:
        req = self.socket(zmq.REQ, connect="request")
        req.send_multipart(encode(message))
        return decode(req.recv_multipart(), Channel.CLIENT_REPLY).message

    def beat(self) -> bool:
        self.manager_pub.send_multipart([b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat())])
        return bool(self.ask(request_pb2.Probe(nonce=str(uuid.uuid4()))).manager_available)

    def barrier(self, sub: zmq.Socket) -> None:
        nonce = str(uuid.uuid4())
        topic = f"PROBE:{nonce}".encode()
        sub.subscribe(topic)
        wait_until(lambda: self.ask(request_pb2.Probe(nonce=nonce)) and sub.poll(50), what="the probe's echo")
        while sub.recv_multipart()[0] != topic:
            pass
        sub.unsubscribe(topic)

    def counters(self) -> dict[str, int]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['status']}/status", timeout=20) as answer:
            return json.load(answer)["counters"]

    def close(self) -> None:
        self.process.kill()
        self.context.destroy(0)
