"""The work of the benchmark ``rings``: one process sends, another receives, each on its own processor."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from benchmarks.rings_pipes import BATCH, Pipe

__all__ = ["Work", "best_tenth", "deadline", "median", "pin", "stretches_of"]

DEADLINE_S = 120


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work.

    Attributes:
        name: of its rows.
        kind: ``single`` (one call a message), ``batched`` (64 a call), ``round_trip`` (spinning where the pipe can),
            ``sleeping`` (a round trip whose reader sleeps), ``in_turn`` (one call a message, by one process that writes
            and reads in turn), ``batches_in_turn``.
        payload_bytes: of each message.
        count: messages of one stretch.
    """

    name: str
    kind: str
    payload_bytes: int
    count: int

    @property
    def is_time(self) -> bool:
        """Whether figures are nanoseconds, else millions of messages a second."""
        return self.kind not in ("single", "batched")


def median(values: list[float]) -> float:
    """Return the middle value."""
    return sorted(values)[len(values) // 2]


def best_tenth(values: list[float], *, is_lower_better: bool) -> float:
    """Return the value that a tenth of all are better than: what the code can do where the machine has other work."""
    ordered = sorted(values, reverse=not is_lower_better)
    return ordered[len(values) // 10]


def pin(processor: int) -> None:
    """Keep this process on one processor; where it is refused, the figures are those of a wandering process."""
    with suppress(OSError):
        os.sched_setaffinity(0, {processor})


def _send(pipe: Pipe, work: Work) -> None:
    payload, left = b"\1" * work.payload_bytes, work.count
    if work.kind == "batched" and pipe.put_batch is not None:
        put_batch, payloads = pipe.put_batch, [payload] * BATCH
        while left >= BATCH:
            left -= put_batch(payloads)
    put = pipe.put
    if pipe.is_waiting:
        for _ in range(left):
            put(payload)
        return
    for _ in range(left):
        while put(payload):
            pass


def _receive(pipe: Pipe, work: Work) -> None:
    left = work.count
    if work.kind == "batched" and pipe.get_batch is not None:
        get_batch = pipe.get_batch
        while left > 0:
            left -= get_batch()
        return
    get = pipe.get
    if pipe.is_waiting:
        for _ in range(left):
            get()
        return
    while left:
        if get() is not None:
            left -= 1


def _ping(there: Pipe, back: Pipe, work: Work) -> list[int]:
    put, get, clock, payload = there.put, back.get, time.perf_counter_ns, b"\1" * work.payload_bytes
    times: list[int] = []
    if there.is_waiting or work.kind == "sleeping":
        get = back.get_asleep or get
        for _ in range(work.count):
            start = clock()
            put(payload)
            get()
            times.append(clock() - start)
        return times
    for _ in range(work.count):
        start = clock()
        while put(payload):
            pass
        while get() is None:
            pass
        times.append(clock() - start)
    return times


def _pong(there: Pipe, back: Pipe, work: Work) -> None:
    put, get = back.put, there.get
    if there.is_waiting or work.kind == "sleeping":
        get = there.get_asleep or get
        for _ in range(work.count):
            put(get())
        return
    for _ in range(work.count):
        while (got := get()) is None:
            pass
        while put(got):
            pass


def _child(there: Pipe, back: Pipe | None, work: Work, stretches: int, ready: int) -> None:
    pin(1)
    there.open_reader()
    there.payload_bytes = work.payload_bytes
    if back is not None:
        back.open_writer()
    for _ in range(stretches):
        os.write(ready, b"r")
        if back is not None:
            _pong(there, back, work)
        else:
            _receive(there, work)
            os.write(ready, b"d")


def _parent(there: Pipe, back: Pipe | None, work: Work, stretches: int, ready: int) -> Iterator[tuple[float, ...]]:
    pin(0)
    there.open_writer()
    if back is not None:
        back.open_reader()
    for _ in range(stretches):
        _expect(ready)
        if back is not None:
            times = sorted(_ping(there, back, work))
            yield tuple(float(times[len(times) * percent // 100]) for percent in (50, 99))
        else:
            start = time.perf_counter_ns()
            _send(there, work)
            _expect(ready)
            yield (work.count * 1e3 / (time.perf_counter_ns() - start),)


def _in_turn(pipe: Pipe, work: Work) -> float:
    put, get, payload = pipe.put, pipe.get, b"\1" * work.payload_bytes
    put_batch, get_batch, payloads = pipe.put_batch, pipe.get_batch, [payload] * BATCH
    start = time.perf_counter_ns()
    if work.kind == "in_turn":
        for _ in range(work.count):
            while put(payload):
                pass
            while get() is None:
                pass
    elif put_batch is not None and get_batch is not None:
        for _ in range(work.count // BATCH):
            put_batch(payloads)
            get_batch()
    return (time.perf_counter_ns() - start) / work.count


def _expect(ready: int) -> None:
    if not os.read(ready, 1):
        raise RuntimeError("the other process of the measurement ended early")


@contextmanager
def deadline() -> Iterator[None]:
    """Raise TimeoutError in the block when it takes far too long: a process that spins never ends by itself."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"a measurement took more than {DEADLINE_S} s: did the other process end?")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(DEADLINE_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def stretches_of(make: Callable[[], Pipe], work: Work, stretches: int) -> list[tuple[float, ...]]:
    """Measure stretches of work through a new pipe, with a new process at its other end.

    Args:
        make: makes the pipe, before the fork.
        work: what is done.
        stretches: how often.

    Returns:
        A figure for each: millions of messages a second, or the p50 and p99 of a
        round trip in nanoseconds, or the nanoseconds of a message in turn.
    """
    there = make()
    if work.kind.endswith("in_turn"):
        there.payload_bytes = work.payload_bytes
        there.open_writer()
        there.open_reader()
        try:
            return [(_in_turn(there, work),) for _ in range(stretches)]
        finally:
            there.close()
    back = make() if work.kind in ("round_trip", "sleeping") else None
    reader, writer = os.pipe()
    affinity = os.sched_getaffinity(0)
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            gc.disable()
            _child(there, back, work, stretches, writer)
            # The parent closes first: some queues lose what was not read when an end closes.
            signal.pause()
        except BaseException:  # noqa: BLE001 - nothing of the parent's may run on in the child
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(1)
    os.close(writer)
    gc.disable()
    try:
        with deadline():
            return list(_parent(there, back, work, stretches, reader))
    finally:
        gc.enable()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        for pipe in filter(None, (there, back)):
            pipe.close()
        os.sched_setaffinity(0, affinity)
