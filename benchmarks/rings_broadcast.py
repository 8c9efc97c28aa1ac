"""One transmitter, several receivers, each in a process of its own: how much of a broadcast does each get to read?"""

from __future__ import annotations

import os
import signal
import struct
import sys
import time
import traceback
import uuid
from typing import Any

from benchmarks.rings_work import deadline, pin

__all__ = ["received_by_each"]

CAPACITY = 1 << 20
MESSAGE, END = 1, 2
"""Type ids: what is counted, and what says that no more comes."""


def _receive(broadcast: Any, stretches: int, said: int) -> None:
    receiver = broadcast.receiver()
    os.write(said, struct.pack("<q", -1))
    for _ in range(stretches):
        count = 0
        while True:
            batch = receiver.poll_batch(1024)
            count += len(batch)
            if len(batch) and batch.type_id(-1) == END:
                break
        os.write(said, struct.pack("<q", count))


def _transmit(broadcast: Any, receivers: int, count: int, stretches: int, heard: int) -> list[tuple[float, float]]:
    transmitter, payloads, figures = broadcast.transmitter(), [b"\1" * 64] * 64, []
    for _ in range(receivers):
        os.read(heard, 8)
    for _ in range(stretches):
        start = time.perf_counter_ns()
        for _ in range(count // 64):
            transmitter.offer_batch(payloads, MESSAGE)
        took_ns = time.perf_counter_ns() - start
        transmitter.offer(b"", END)
        counts = [struct.unpack("<q", os.read(heard, 8))[0] for _ in range(receivers)]
        figures.append((count * 1e3 / took_ns, min(counts) * 1e3 / took_ns))
    return figures


def received_by_each(receivers: int, *, count: int, stretches: int) -> list[tuple[float, float]]:
    """Measure stretches of a broadcast in batches of 64 messages of 64 bytes.

    The transmitter waits for nobody and is kept on processor 0; the receivers share the others.

    Returns:
        For each stretch: millions of messages a second that were sent, and that the slowest receiver read of them.
    """
    import relay_accel

    broadcast = relay_accel.Broadcast.create(f"bench-{uuid.uuid4().hex}", CAPACITY)
    others = max(1, (os.cpu_count() or 2) - 1)
    affinity = os.sched_getaffinity(0)
    heard, said = os.pipe()
    children: list[int] = []
    try:
        for number in range(receivers):
            child = os.fork()
            if child == 0:
                try:
                    pin(1 + number % others)
                    _receive(broadcast, stretches, said)
                    signal.pause()
                except BaseException:  # noqa: BLE001 - nothing of the parent's may run on in the child
                    traceback.print_exc(file=sys.stderr)
                finally:
                    os._exit(1)
            children.append(child)
        pin(0)
        with deadline():
            return _transmit(broadcast, receivers, count, stretches, heard)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        os.close(heard)
        os.close(said)
        broadcast.unlink()
        os.sched_setaffinity(0, affinity)
