"""What the benchmark ``rings`` measures: one-way pipes between two processes, each with the loops that suit its calls.

A pipe is made before the fork and opened on each side behind it. The loops are written out for each style of call, so
that no pipe pays for a wrapper: a call that answers at once and is repeated, or one that waits by itself.
"""

from __future__ import annotations

import importlib
import mmap
import multiprocessing
import tempfile
import uuid
from collections.abc import Callable
from typing import Any

__all__ = ["BATCH", "PEERS", "Ceiling", "Pipe", "RelayChannel", "RelayRing", "found"]

BATCH = 64
CAPACITY = 1 << 18
FLOOR_BYTES = 384 + CAPACITY + 64
"""Of rings_floor.h."""
FORK = multiprocessing.get_context("fork")


class Pipe:
    """One way from one process to another; subclasses set ``put`` and ``get`` when they are opened.

    Attributes:
        put: writes one payload; falsy when it was written. ``is_waiting`` pipes wait inside instead.
        get: returns a payload, or None when there is none; ``is_waiting`` pipes wait inside instead.
        put_batch: writes of a list; returns how many. None where the pipe has no such call.
        get_batch: reads some; returns how many.
        get_asleep: as ``get``, but sleeps until there is something; None where it cannot.
        payload_bytes: of each message of the work, all equally long.
        payload_bytes_max: of the pipe.
        has_batches: whether it has a call for many messages.
    """

    name = ""
    is_waiting = False
    payload_bytes = 64
    payload_bytes_max = 4096
    has_batches = True
    put: Callable[[bytes], Any]
    get: Callable[[], Any]
    put_batch: Callable[[list[bytes]], int] | None = None
    get_batch: Callable[[], int] | None = None
    get_asleep: Callable[[], Any] | None = None

    def open_writer(self) -> None:
        """Take the writing side, behind the fork."""

    def open_reader(self) -> None:
        """Take the reading side, behind the fork."""

    def close(self) -> None:
        """Let go of everything."""


class RelayChannel(Pipe):
    """This library's channel."""

    name = "relay_accel channel"
    kind = "Channel"
    length = CAPACITY // 2

    def __init__(self) -> None:
        import relay_accel

        self.made = getattr(relay_accel, self.kind).create(f"bench-{uuid.uuid4().hex}", self.length)
        self.end: Any = None

    def open_writer(self) -> None:
        self.end = self.made.producer()
        self.put = self.end.offer
        offer_batch = self.end.offer_batch
        self.put_batch = lambda payloads: offer_batch(payloads)[0]

    def open_reader(self) -> None:
        self.end = self.made.consumer()
        take, poll_batch, wait = self.end.take, self.end.poll_batch, self.end.wait
        self.get = take
        self.get_batch = lambda: len(poll_batch(256))

        def get_asleep() -> Any:
            while (got := take()) is None:
                wait(1)
            return got

        self.get_asleep = get_asleep

    def close(self) -> None:
        if self.end is not None:
            self.end.close()
        self.made.unlink()


class RelayRing(RelayChannel):
    """This library's ring."""

    name = "relay_accel ring"
    kind = "Ring"
    length = CAPACITY


class Ceiling(Pipe):
    """The C floor behind a bare C extension, whose folder is on the path."""

    name = "C extension"

    def __init__(self) -> None:
        self.memory = mmap.mmap(-1, FLOOR_BYTES)

    def open_writer(self) -> None:
        ring = importlib.import_module("rings_extension").Ring(self.memory)
        self.put, self.put_batch = ring.put, ring.put_batch

    def open_reader(self) -> None:
        ring = importlib.import_module("rings_extension").Ring(self.memory)
        get_batch = ring.get_batch
        self.get = ring.get
        self.get_batch = lambda: len(get_batch(256)) // self.payload_bytes


class ZeroMq(Pipe):
    """PUSH and PULL over ``ipc``; a batch is one message of many parts."""

    name = "pyzmq ipc"
    is_waiting = True

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="rings-")
        self.sockets: list[Any] = []

    def _socket(self, kind: int, attach: str) -> Any:
        import zmq

        socket = zmq.Context().socket(kind)
        socket.setsockopt(zmq.SNDHWM if kind == zmq.PUSH else zmq.RCVHWM, 4096)
        socket.linger = 0
        getattr(socket, attach)(f"ipc://{self.folder.name}/socket")
        self.sockets.append(socket)
        return socket

    def open_writer(self) -> None:
        import zmq

        socket = self._socket(zmq.PUSH, "bind")
        self.put = socket.send

        def put_batch(payloads: list[bytes]) -> int:
            socket.send_multipart(payloads)
            return len(payloads)

        self.put_batch = put_batch

    def open_reader(self) -> None:
        import zmq

        socket = self._socket(zmq.PULL, "connect")
        self.get = self.get_asleep = socket.recv
        self.get_batch = lambda: len(socket.recv_multipart())

    def close(self) -> None:
        for socket in self.sockets:
            socket.close()
            socket.context.term()


class Connection(Pipe):
    """``multiprocessing.Pipe``."""

    name = "multiprocessing.Pipe"
    is_waiting = True
    has_batches = False

    def __init__(self) -> None:
        self.reader, self.writer = FORK.Pipe(duplex=False)

    def open_writer(self) -> None:
        self.put = self.writer.send_bytes

    def open_reader(self) -> None:
        self.get = self.get_asleep = self.reader.recv_bytes

    def close(self) -> None:
        self.reader.close()
        self.writer.close()


class SimpleQueue(Pipe):
    """``multiprocessing.SimpleQueue``; a batch is one pickled list."""

    name = "multiprocessing.SimpleQueue"
    is_waiting = True

    def __init__(self) -> None:
        self.queue: Any = FORK.SimpleQueue()

    def open_writer(self) -> None:
        queue = self.queue
        self.put = queue.put

        def put_batch(payloads: list[bytes]) -> int:
            queue.put(payloads)
            return len(payloads)

        self.put_batch = put_batch

    def open_reader(self) -> None:
        queue = self.queue
        self.get = self.get_asleep = queue.get
        self.get_batch = lambda: len(queue.get())

    def close(self) -> None:
        self.queue.close()


class Queue(SimpleQueue):
    """``multiprocessing.Queue``, with its feeding thread."""

    name = "multiprocessing.Queue"

    def __init__(self) -> None:
        self.queue = FORK.Queue(4096)

    def close(self) -> None:
        self.queue.cancel_join_thread()
        self.queue.close()


class Interprocess(Pipe):
    """The queue of ``cloudtoid-interprocess``."""

    name = "cloudtoid-interprocess"

    def __init__(self) -> None:
        self.module = importlib.import_module("cloudtoid_interprocess")
        self.key = f"rings{uuid.uuid4().hex[:12]}"
        # The queue is gone with its last user: this one stays until both sides are there.
        self.ends: list[Any] = [self.module.Subscriber(self.key, CAPACITY)]

    def open_writer(self) -> None:
        end = self.module.Publisher(self.key, CAPACITY)
        self.ends.append(end)
        try_send, self.put_batch = end.try_send, end.try_send_batch
        self.put = lambda payload: not try_send(payload)

    def open_reader(self) -> None:
        end = self.module.Subscriber(self.key, CAPACITY)
        self.ends.append(end)
        self.get = end.try_receive
        receive = end.receive
        self.get_asleep = lambda: receive(60)

    def close(self) -> None:
        for end in self.ends:
            end.close()


class FasterFifo(SimpleQueue):
    """The queue of ``faster-fifo``."""

    name = "faster-fifo"

    def __init__(self) -> None:
        self.queue = importlib.import_module("faster_fifo").Queue(CAPACITY)

    def open_writer(self) -> None:
        queue = self.queue
        self.put = queue.put

        def put_batch(payloads: list[bytes]) -> int:
            queue.put_many(payloads)
            return len(payloads)

        self.put_batch = put_batch

    def open_reader(self) -> None:
        queue = self.queue
        self.get = self.get_asleep = queue.get
        self.get_batch = lambda: len(queue.get_many(max_messages_to_get=256))


class ZeroQ(Pipe):
    """The queue of ``zeroq``."""

    name = "zeroq"
    is_waiting = True
    has_batches = False
    payload_bytes_max = 64

    def __init__(self) -> None:
        self.module = importlib.import_module("zeroq")
        self.key = f"rings{uuid.uuid4().hex[:12]}"
        self.queue = self.module.Queue(self.key, element_size=64, capacity=4096)

    def open_writer(self) -> None:
        self.put = self.queue.put

    def open_reader(self) -> None:
        self.get = self.get_asleep = self.queue.get


PEERS: tuple[type[Pipe], ...] = (
    ZeroMq,
    Connection,
    SimpleQueue,
    Queue,
    Interprocess,
    FasterFifo,
    ZeroQ,
)
"""Others' ways; the last three only where they are installed."""


def found() -> tuple[list[type[Pipe]], list[str]]:
    """Return the peers that can be made here, and the names of those that cannot."""
    there: list[type[Pipe]] = []
    missing: list[str] = []
    for peer in PEERS:
        try:
            peer().close()
        except ImportError:
            missing.append(peer.name)
        else:
            there.append(peer)
    return there, missing
