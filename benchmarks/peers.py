"""Processes to compare with, and to load: ``python -m benchmarks.peers echo|proxy|sink …``."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import threading
from pathlib import Path

import zmq

__all__ = ["main"]

READY = b"READY"


def echo(endpoint: str, durable: str = "") -> None:
    """Bare ROUTER that sends back what comes; with ``durable`` after one commit to disk."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "echo.sqlite", isolation_level=None)
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t (body BLOB)"):
            connection.execute(statement)
        router = zmq.Context.instance().socket(zmq.ROUTER)
        router.bind(endpoint)
        while True:
            frames = router.recv_multipart()
            if durable:
                connection.execute("INSERT INTO t VALUES (?)", (frames[-1],))
            router.send_multipart(frames)


def proxy(incoming: str, outgoing: str) -> None:
    """libzmq's own proxy between XSUB and XPUB."""
    context = zmq.Context.instance()
    xsub, xpub = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    for socket in (xsub, xpub):
        socket.setsockopt(zmq.SNDHWM, 1_000_000)
        socket.setsockopt(zmq.RCVHWM, 1_000_000)
    xsub.bind(incoming)
    xpub.bind(outgoing)
    zmq.proxy(xsub, xpub)


def sink(endpoint: str, report_to: str, topic: str, sockets: str) -> None:
    """Subscribers of one topic; says how many messages all of them together have received at each end marker."""
    context = zmq.Context.instance()
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


def main(name: str, *arguments: str) -> None:
    """Run one peer until it is killed, or until the process that started it is gone."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    {"echo": echo, "proxy": proxy, "sink": sink}[name](*arguments)


def _end_with_parent() -> None:
    """The starter holds the other end of standard input."""
    sys.stdin.buffer.read()
    import os

    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
