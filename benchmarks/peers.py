"""Processes to compare with, and to load: ``python -m benchmarks.peers echo|proxy|sink|pulse …``."""

from __future__ import annotations

import itertools
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import zmq

from benchmarks.report import Latency

__all__ = ["main"]

READY = b"READY"


def echo(endpoint: str, durable: str = "") -> None:
    """Bare ROUTER that sends back what comes; with ``durable`` after one commit to disk."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "echo.sqlite", isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t (body BLOB)"):
            connection.execute(statement)
        router: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        router.bind(endpoint)
        while True:
            frames = router.recv_multipart()
            if durable:
                connection.execute("INSERT INTO t VALUES (?)", (frames[-1],))
            router.send_multipart(frames)


def proxy(incoming: str, outgoing: str) -> None:
    """libzmq's own proxy between XSUB and XPUB."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    xsub, xpub = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for socket in (xsub, xpub):
        socket.setsockopt(zmq.SNDHWM, 1_000_000)
        socket.setsockopt(zmq.RCVHWM, 1_000_000)
    xsub.bind(incoming)
    xpub.bind(outgoing)
    zmq.proxy(xsub, xpub)


def sink(endpoint: str, report_to: str, topic: str, sockets: str) -> None:
    """Subscribers of one topic; says how many messages all of them together have received at each end marker."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    report = context.socket(zmq.PUSH)
    report.connect(report_to)
    subscribers = []
    for _ in range(int(sockets)):
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.subscribe(topic.encode())
        socket.connect(endpoint)
        subscribers.append(socket)
    poller = zmq.Poller()
    for socket in subscribers:
        poller.register(socket, zmq.POLLIN)
    received, ended = 0, 0
    while True:
        for socket, _ in poller.poll():
            try:
                for _ in range(1_000):
                    socket.recv(zmq.NOBLOCK)
                    socket.recv()
                    body = socket.recv()
                    if body[1:].startswith(b"END"):
                        ended += 1
                        if ended == len(subscribers):
                            report.send(b"%d" % received)
                            received, ended = 0, 0
                    elif body[1:].startswith(READY):
                        report.send(READY)
                    else:
                        received += 1
            except zmq.Again:
                continue


def pulse(publish_to: str, subscribe_at: str, asked_at: str, per_second: str) -> None:
    """A steady stream through a forwarder back to here; each question is answered with the latencies since the last.

    Latencies are microseconds from the moment a message was due, so that a sender that is held up hides nothing.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
    topic = b"PULSE/USDT.BINANCE|tick"
    publisher, subscriber, asked = context.socket(zmq.PUB), context.socket(zmq.SUB), context.socket(zmq.REP)
    publisher.connect(publish_to)
    subscriber.subscribe(topic)
    subscriber.connect(subscribe_at)
    asked.connect(asked_at)
    poller = zmq.Poller()
    for socket in (subscriber, asked):
        poller.register(socket, zmq.POLLIN)
    step_ns, due_ns = 10**9 // int(per_second), time.monotonic_ns()
    latency, first, newest, received = Latency(), 0, 0, 0
    for number in itertools.count(1):
        due_ns += step_ns
        while (left_ns := due_ns - time.monotonic_ns()) > 0:
            ready = dict(poller.poll(left_ns // 1_000_000 + 1 if left_ns > 1_000_000 else 0))
            if subscriber in ready:
                body = subscriber.recv_multipart()[2]
                latency.record_ns(time.monotonic_ns() - int.from_bytes(body[1:9], "big"))
                newest, received = int.from_bytes(body[9:], "big"), received + 1
                first = first or newest
            if asked in ready:
                asked.recv()
                lost = newest - first + 1 - received if received else 0
                asked.send(json.dumps({**latency.row(), "lost": lost}).encode())
                latency, first, received = Latency(), newest + 1 if newest else 0, 0
        publisher.send_multipart((topic, b"\x01", b"\x04" + due_ns.to_bytes(8, "big") + number.to_bytes(8, "big")))


def main(name: str, *arguments: str) -> None:
    """Run one peer until it is killed, or until the process that started it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    peers: dict[str, Callable[..., None]] = {"echo": echo, "proxy": proxy, "sink": sink, "pulse": pulse}
    peers[name](*arguments)


def _end_with_parent() -> None:
    """The starter holds the other end of standard input."""
    sys.stdin.buffer.read()
    import os

    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
