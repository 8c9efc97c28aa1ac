"""Memory between threads and processes: rings, channels, broadcast and counters over a Rust core.

Everything is made on the heap for threads (``Ring.heap(65536)``) or by name for processes that were started separately
(``Ring.create("ticks", 65536)`` in one, ``Ring.open("ticks")`` in the other). Expected outcomes are values
(:class:`Outcome`, ``None``, ``Batch.stop``); exceptions are for the unexpected, all of them :class:`AccelError` with a
stable ``code``, or ValueError and RuntimeError for misuse.

Example::

    ring = relay_accel.Ring.create("ticks", 1 << 20, replace_stale=True)
    with ring.producer() as producer:
        while producer.offer(b"hello", type_id=7) == Outcome.BACK_PRESSURED:  # ACCEPTED is 0: compare, do not negate
            producer.wait_for_room(5, timeout=1.0)
"""

from __future__ import annotations

from relay_accel._native import (
    AccelError,
    AccessError,
    ArgumentError,
    Batch,
    Broadcast,
    BusyError,
    Channel,
    Claim,
    Consumer,
    Counter,
    Counters,
    FixedConsumer,
    FixedProducer,
    FixedRing,
    Forwarder,
    MpscRing,
    Producer,
    Receiver,
    Ring,
    SegmentError,
    StorageError,
    Transmitter,
    __version__,
    default_directory,
    segment_names,
    unlink,
)
from relay_accel.agents import (
    Agent,
    AgentRunner,
    Backoff,
    BusySpin,
    CompositeAgent,
    DutyCycle,
    IdleStrategy,
    NoOp,
    Sleeping,
    Yielding,
)
from relay_accel.decimals import Decimal64
from relay_accel.outcome import Outcome
from relay_accel.placement import Pinning, pin_thread
from relay_accel.records import RecordCodec, RecordPublisher, RecordSubscriber
from relay_accel.waiting import SleepingReader, ready

__all__ = [
    "AccelError",
    "AccessError",
    "Agent",
    "AgentRunner",
    "ArgumentError",
    "Backoff",
    "Batch",
    "Broadcast",
    "BusyError",
    "BusySpin",
    "Channel",
    "Claim",
    "CompositeAgent",
    "Consumer",
    "Counter",
    "Counters",
    "Decimal64",
    "DutyCycle",
    "FixedConsumer",
    "FixedProducer",
    "FixedRing",
    "Forwarder",
    "IdleStrategy",
    "MpscRing",
    "NoOp",
    "Outcome",
    "Pinning",
    "Producer",
    "Receiver",
    "RecordCodec",
    "RecordPublisher",
    "RecordSubscriber",
    "Ring",
    "SegmentError",
    "Sleeping",
    "SleepingReader",
    "StorageError",
    "Transmitter",
    "Yielding",
    "__version__",
    "default_directory",
    "pin_thread",
    "ready",
    "segment_names",
    "unlink",
]
