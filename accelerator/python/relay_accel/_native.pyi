"""The compiled part. Lengths are bytes, times nanoseconds unless a name says otherwise, timeouts seconds.

A timeout of None is a day. Ends (producers, consumers, transmitters, receivers) are each for one thread at a time: a
call while another waits in the same end raises RuntimeError. A named ring's end that is held by a living process cannot
be taken (:class:`BusyError`, ``END_TAKEN``); it is given back by ``close()``, at the end of the object, and when its
process is proven dead. After a fork an end belongs to the parent: its use in the child raises RuntimeError.

Layouts: proto/spec/0012.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Literal, final

from typing_extensions import Buffer, Self  # noqa: UP035

from relay_accel import _sbe as _sbe
from relay_accel import _wire as _wire

__all__ = [
    "AccelError",
    "AccessError",
    "ArgumentError",
    "Batch",
    "Broadcast",
    "BusyError",
    "Channel",
    "Claim",
    "Consumer",
    "Counter",
    "Counters",
    "FixedConsumer",
    "FixedProducer",
    "FixedRing",
    "Forwarder",
    "MpscRing",
    "Producer",
    "Receiver",
    "Ring",
    "SegmentError",
    "StorageError",
    "Transmitter",
    "__version__",
    "_sbe",
    "_wire",
    "decimal_mantissa",
    "decimal_mantissas",
    "decimal_text",
    "decimal_texts",
    "default_directory",
    "market_define",
    "market_head",
    "market_ticker",
    "market_to_protobuf",
    "market_to_protobuf_by",
    "market_to_sbe",
    "market_to_sbe_by",
    "segment_names",
    "unlink",
]

__version__: str

_State = Literal["vacant", "left", "alive", "dead", "unknown"]
_Stop = Literal["limit", "empty", "in_progress", "closed", "corrupt"]

class AccelError(Exception):
    """Root of all errors of segments and ends."""

    code: str

class ArgumentError(AccelError):
    """A name, length or count is not allowed: INVALID_ARGUMENT, INVALID_NAME, INVALID_TERM_LENGTH."""

class SegmentError(AccelError):
    """The bytes are not what they should be.

    Codes: INVALID_CHANNEL, UNSUPPORTED_VERSION, WRONG_KIND, TERM_LENGTH_MISMATCH, CORRUPT_CHANNEL.
    """

class BusyError(AccelError):
    """Try again, or end the other: NOT_READY, END_TAKEN, NO_FREE_SLOT."""

class StorageError(AccelError):
    """ALREADY_EXISTS, NOT_FOUND, NO_SPACE, LOCK_BUSY, SYSTEM."""

class AccessError(AccelError):
    """Directory or file belong to somebody else, or others may write to them: ACCESS_DENIED."""

def default_directory() -> str:
    """Return where named segments lie when nothing else is said: below /dev/shm, for this user alone."""

def segment_names(*, directory: str | None = None) -> list[str]:
    """Return the names in a directory, sorted."""

def unlink(name: str, *, directory: str | None = None) -> bool:
    """Remove a name; who has the segment open keeps it. Return whether there was one."""

@final
class Batch(Sequence[bytes]):
    """Messages that were read, in memory of their own. Offers its payloads end to end as a read-only buffer.

    ``numpy.frombuffer(batch, dtype)`` is an array over that buffer, without a copy.
    """

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> bytes: ...  # type: ignore[override]
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def type_id(self, index: int) -> int:
        """Return the type of a message."""

    def payloads(self) -> list[bytes]:
        """Return all payloads."""

    def messages(self) -> list[tuple[int, bytes]]:
        """Return type and payload of all messages."""

    @property
    def ends(self) -> list[int]:
        """Where each payload ends in the buffer; it begins where the one before ends."""

    @property
    def type_ids(self) -> list[int]:
        """The type of each message."""

    @property
    def nbytes(self) -> int:
        """Bytes of all payloads."""

    @property
    def stop(self) -> _Stop:
        """Why the poll ended.

        ``limit`` (there may be more), ``empty``, ``in_progress`` (a claim is open), ``closed`` (read to the end, and
        the producer has left), ``corrupt`` (make the ring anew).
        """

    @property
    def lapped(self) -> bool:
        """Of a broadcast: whether messages were overwritten before they could be read."""

class _Named:
    @property
    def name(self) -> str | None:
        """Name of the segment; None on the heap."""

    @property
    def epoch_ns(self) -> int:
        """When the segment was made, since 1970: tells it from a later one of the same name."""

    def creator(self) -> tuple[_State, int]:
        """Return state and process id of who made the segment."""

    @property
    def is_stale(self) -> bool:
        """Whether its creator and all who held an end are proven dead or have left."""

    @property
    def is_named(self) -> bool:
        """Whether the name still leads to this segment."""

    def unlink(self, *, timeout: float = 1.0) -> bool:
        """Remove the name if it still leads here; return whether it did.

        Args:
            timeout: seconds to wait, at most, for a process that changes the directory; others run meanwhile.

        Raises:
            StorageError: LOCK_BUSY, and the name stays: ``create(replace_stale=True)`` replaces it when everybody who
                used the segment is gone.
        """

    def verify_length(self) -> None:
        """Raise SegmentError (TERM_LENGTH_MISMATCH) when the file was cut: stop using it then."""

    @property
    def huge_pages(self) -> str:
        """What came of asking for huge pages, in words."""

@final
class Ring(_Named):
    """A byte ring of one producer and one consumer. Capacity: a power of two from 64 bytes to 1 GiB."""

    @staticmethod
    def heap(length: int) -> Ring:
        """Make a ring of this process, for threads; each end can be taken once."""

    @staticmethod
    def create(
        name: str,
        length: int,
        *,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> Ring:
        """Make a named ring.

        Args:
            name: 1 to 128 of ``a-z 0-9 . _ -``, the first no dot.
            length: capacity in bytes.
            directory: made 0700 where it does not exist.
            pre_fault: touch every page now, so that no message pays for it.
            huge_pages: ask for them; :attr:`huge_pages` tells what came of it.
            replace_stale: replace a segment of this name that nobody can use any more.

        Raises:
            StorageError: ALREADY_EXISTS, NO_SPACE (all memory is taken here, never later), LOCK_BUSY (a stale one was
                to be replaced, and another process held the directory for a second).
            ArgumentError, AccessError: see there.
        """

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = True, huge_pages: bool = False) -> Ring:
        """Open a named ring; the length is its creator's.

        Raises:
            StorageError: NOT_FOUND.
            SegmentError: it is something else, or damaged.
        """

    def producer(self) -> Producer:
        """Take the writing end.

        Raises:
            BusyError: END_TAKEN.
            ValueError: that of a ring on the heap was taken before.
        """

    def consumer(self) -> Consumer:
        """Take the reading end; it goes on where the last one released. Raises as :meth:`producer`."""

    def producer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    def beats_ns(self) -> tuple[int, int]:
        """Return when producer and consumer last called ``beat()``, since 1970; 0 for never."""

    @property
    def length(self) -> int:
        """Capacity in bytes; of a channel the length of one of its three terms."""

@final
class Channel(_Named):
    """A log buffer of three terms. Term length: a power of two from 4,096 bytes to 1 GiB."""

    @staticmethod
    def heap(length: int) -> Channel:
        """Make a channel of this process; see :meth:`Ring.heap`."""

    @staticmethod
    def create(
        name: str,
        length: int,
        *,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> Channel:
        """Make a named channel of three terms of ``length`` bytes; see :meth:`Ring.create`."""

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = True, huge_pages: bool = False) -> Channel:
        """Open a named channel; see :meth:`Ring.open`."""

    def producer(self) -> Producer:
        """Take the writing end; see :meth:`Ring.producer`."""

    def consumer(self) -> Consumer:
        """Take the reading end; see :meth:`Ring.consumer`."""

    def producer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    def beats_ns(self) -> tuple[int, int]:
        """Return when producer and consumer last called ``beat()``, since 1970; 0 for never."""

    @property
    def length(self) -> int:
        """Bytes of one term."""

@final
class MpscRing(_Named):
    """A byte ring of many producers, who come and go, and one consumer."""

    @staticmethod
    def heap(length: int, *, slots: int = 32) -> MpscRing:
        """Make a ring of this process; ``slots`` is how many producers it can have at a time."""

    @staticmethod
    def create(
        name: str,
        length: int,
        *,
        slots: int = 32,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> MpscRing:
        """Make a named ring; see :meth:`Ring.create`."""

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = True, huge_pages: bool = False) -> MpscRing:
        """Open a named ring; see :meth:`Ring.open`."""

    def producer(self) -> Producer:
        """Take a producer's slot.

        Raises:
            BusyError: NO_FREE_SLOT.
        """

    def consumer(self) -> Consumer:
        """Take the reading end; see :meth:`Ring.consumer`."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    @property
    def length(self) -> int:
        """Capacity in bytes."""

    @property
    def slots(self) -> int:
        """How many producers it can have at a time."""

@final
class Producer:
    """A writing end."""

    def offer(self, payload: Buffer, type_id: int = 1) -> int:
        """Write one message; return an :class:`~relay_accel.Outcome`.

        Args:
            payload: bytes, or any contiguous buffer; empty works.
            type_id: greater than 0.
        """

    def offer_batch(self, payloads: list[bytes], type_id: int = 1) -> tuple[int, int]:
        """Write messages and show them together; return how many, and the outcome of the one after."""

    def offer_records(self, records: Buffer, record_length: int, type_id: int = 1) -> tuple[int, int]:
        """Write each ``record_length`` bytes of a buffer as one message; return as :meth:`offer_batch`."""

    def claim(self, length: int, type_id: int = 1) -> Claim | None:
        """Take room to be filled in parts; None when the ring is full now.

        Raises:
            ValueError: longer than this ring ever takes.
            RuntimeError: another claim is open.
        """

    def wait_for_room(self, length: int = 0, timeout: float | None = None) -> bool:
        """Sleep until a payload of ``length`` bytes fits; return whether it does now. Lets other threads run."""

    @property
    def payload_length_max(self) -> int:
        """Longest payload that this ring takes."""

    @property
    def position(self) -> int:
        """Bytes published since the ring was made. Raises ValueError for one producer of many."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    def counts(self) -> list[tuple[str, int]]:
        """Return frames, payload_bytes, back_pressured, aborted and corrupt since the end was made."""

    def beat(self) -> None:
        """Note in the segment that this end is alive now."""

    def close(self) -> None:
        """Give the end back; the consumer sees it when everything was read."""

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class Claim:
    """Room in a ring. Leaving the ``with`` block commits it; an exception in the block, or forgetting it, aborts it."""

    def __len__(self) -> int: ...
    def put(self, payload: Buffer, offset: int = 0) -> None:
        """Write a part.

        Raises:
            IndexError: it does not fit.
            RuntimeError: the claim is over.
        """

    def commit(self) -> None:
        """Show the message to the consumer. Raises RuntimeError when the claim is over."""

    def abort(self) -> None:
        """Give the room up."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None: ...

@final
class Consumer:
    """The reading end."""

    def take(self) -> bytes | None:
        """Return the next payload, or None: :attr:`stop` says why."""

    def take_message(self) -> tuple[int, bytes] | None:
        """Return type and payload of the next message, or None."""

    def poll_batch(self, limit: int = 1024) -> Batch:
        """Return at most so many messages."""

    def wait(self, timeout: float | None = None, *, or_left: bool = False) -> bool:
        """Sleep until there is something to read; return whether there is. Lets other threads run.

        Args:
            timeout: seconds; None waits without end.
            or_left: do not sleep, or sleep on, once the producer has left: False then means that nothing will come,
                until another one takes its end. One that was killed has not left.

        Raises:
            ValueError: ``or_left`` of a ring of many producers, who come and go.
        """

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when there is something to read, after :meth:`arm`.

        For pollers: ``select``, asyncio's ``add_reader``, ZeroMQ's poller. Named rings only.

        Raises:
            ValueError: it has no name.
            BusyError: NO_FREE_SLOT: sixteen readers of this segment sleep so already.
        """

    def arm(self) -> int:
        """Say that this reader will sleep in a poller, and look once more; take the wake-up of before.

        Returns:
            0: there is something to read, do not sleep; 1: sleep, and look again after a second or so, for a publisher
            that has no descriptor left cannot ring; 2: sleep for a millisecond at most, for a publisher may miss it.
        """

    @property
    def stop(self) -> _Stop:
        """Why the last poll ended."""

    @property
    def position(self) -> int:
        """Bytes read since the ring was made."""

    def unblock(self) -> bool:
        """Skip the claim of a producer that is proven dead; return whether there was one."""

    def producer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def producer_states(self) -> list[tuple[_State, int]]:
        """Return the same of all producers."""

    def counts(self) -> list[tuple[str, int]]:
        """Return frames, payload_bytes, padding_bytes, unblocked and corrupt since the end was made."""

    def beat(self) -> None:
        """Note in the segment that this end is alive now."""

    def close(self) -> None:
        """Give the end back."""

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class FixedRing(_Named):
    """A ring of items of one size: whole batches are pushed and popped with one release."""

    @staticmethod
    def heap(item_length: int, item_count: int) -> FixedRing:
        """Make a ring of this process; ``item_count`` is a power of two."""

    @staticmethod
    def create(
        name: str,
        item_length: int,
        item_count: int,
        *,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> FixedRing:
        """Make a named ring; see :meth:`Ring.create`."""

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = True, huge_pages: bool = False) -> FixedRing:
        """Open a named ring; see :meth:`Ring.open`."""

    def producer(self) -> FixedProducer:
        """Take the writing end; see :meth:`Ring.producer`."""

    def consumer(self) -> FixedConsumer:
        """Take the reading end; see :meth:`Ring.consumer`."""

    def producer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    @property
    def item_length(self) -> int:
        """Bytes of one item."""

    @property
    def item_count(self) -> int:
        """Items that fit."""

@final
class FixedProducer:
    """A writing end of items."""

    def push(self, items: Buffer) -> int:
        """Push whole items; return how many were taken, from the first on, or an outcome below 0 for none.

        Raises:
            ValueError: the buffer is no whole number of items.
        """

    @property
    def item_length(self) -> int:
        """Bytes of one item."""

    @property
    def position(self) -> int:
        """Items pushed since the ring was made."""

    def consumer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the reading end."""

    def close(self) -> None:
        """Give the end back."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class FixedConsumer:
    """The reading end of items."""

    def pop(self) -> bytes | None:
        """Return the next item, or None."""

    def pop_batch(self, limit: int = 1024) -> Batch:
        """Return at most so many items, and at most 64 MiB of them."""

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there is something; return whether there is. Lets other threads run."""

    @property
    def item_length(self) -> int:
        """Bytes of one item."""

    @property
    def position(self) -> int:
        """Items popped since the ring was made."""

    def producer_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def close(self) -> None:
        """Give the end back."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class Broadcast(_Named):
    """One transmitter that waits for nobody, any number of receivers. Capacity: a power of two, 512 bytes to 1 GiB."""

    @staticmethod
    def heap(length: int) -> tuple[Transmitter, Receiver]:
        """Make a broadcast of this process, for threads; more receivers by :meth:`Receiver.another`."""

    @staticmethod
    def create(
        name: str,
        length: int,
        *,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> Broadcast:
        """Make a named broadcast; see :meth:`Ring.create`."""

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = True, huge_pages: bool = False) -> Broadcast:
        """Open a named broadcast; see :meth:`Ring.open`."""

    def transmitter(self) -> Transmitter:
        """Take the writing end. Raises BusyError: END_TAKEN."""

    def receiver(self) -> Receiver:
        """Begin a reading end, behind the last message."""

    def transmitter_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    @property
    def length(self) -> int:
        """Capacity in bytes."""

@final
class Transmitter:
    """The writing end of a broadcast."""

    def offer(self, payload: Buffer, type_id: int = 1) -> int:
        """Write one message; return ACCEPTED or TOO_LONG."""

    def offer_batch(self, payloads: list[bytes], type_id: int = 1) -> tuple[int, int]:
        """Write messages one behind the other; return how many, and the outcome of the one after."""

    @property
    def payload_length_max(self) -> int:
        """Longest payload: an eighth of the capacity, less 8."""

    @property
    def position(self) -> int:
        """Bytes written since the broadcast was made."""

    def counts(self) -> list[tuple[str, int]]:
        """Return records and payload_bytes since the end was made."""

    def close(self) -> None:
        """Give the end back."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class Receiver:
    """A reading end of a broadcast. ``Batch.lapped`` says that it was overtaken: it goes on with the newest message."""

    def poll_batch(self, limit: int = 1024) -> Batch:
        """Return at most so many messages, each whole."""

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep until there is something; return whether there is. Lets other threads run."""

    def spin(self, timeout: float) -> bool:
        """Look for something, without sleep, for at most so many seconds; return whether it is there. Others may run.

        The interpreter's lock is not held meanwhile.

        It keeps one processor busy, and sees a message a cache line's way after it was written.
        """

    def fileno(self) -> int:
        """Return a descriptor that becomes readable when there is something to read, after :meth:`arm`.

        For pollers: ``select``, asyncio's ``add_reader``, ZeroMQ's poller. Named rings only.

        Raises:
            ValueError: it has no name.
            BusyError: NO_FREE_SLOT: sixteen readers of this segment sleep so already.
        """

    def arm(self) -> int:
        """Say that this reader will sleep in a poller, and look once more; take the wake-up of before.

        Returns:
            0: there is something to read, do not sleep; 1: sleep, and look again after a second or so, for a publisher
            that has no descriptor left cannot ring; 2: sleep for a millisecond at most, for a publisher may miss it.
        """

    def another(self) -> Receiver:
        """Return another receiver, which begins behind the last message."""

    @property
    def position(self) -> int:
        """Bytes read since the broadcast was made."""

    def transmitter_state(self) -> tuple[_State, int]:
        """Return state and process id of who holds the writing end."""

    def counts(self) -> list[tuple[str, int]]:
        """Return records, payload_bytes, lapped, lost_bytes and corrupt since the end was made."""

    def close(self) -> None:
        """End it."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_args: object) -> None: ...

@final
class Counters(_Named):
    """Counters that other processes read while they are counted."""

    @staticmethod
    def heap(count: int = 64) -> Counters:
        """Make counters of this process."""

    @staticmethod
    def create(
        name: str,
        count: int = 64,
        *,
        directory: str | None = None,
        pre_fault: bool = True,
        huge_pages: bool = False,
        replace_stale: bool = False,
    ) -> Counters:
        """Make a named set of ``count`` counters (1 to 65,536); see :meth:`Ring.create`."""

    @staticmethod
    def open(name: str, *, directory: str | None = None, pre_fault: bool = False, huge_pages: bool = False) -> Counters:
        """Open a named set, to read or to count in; see :meth:`Ring.open`."""

    @staticmethod
    def standard() -> list[tuple[int, str]]:
        """Return type id and label of the standard counters."""

    def allocate(self, type_id: int, label: str) -> Counter | None:
        """Take a free place; None when all are taken.

        Args:
            type_id: of :meth:`standard`, or one's own from 1,000 on.
            label: at most 64 bytes of UTF-8, no control characters.

        Raises:
            ValueError: it is no such label.
        """

    def find(self, type_id: int, label: str) -> Counter | None:
        """Return the counter of a type and label, where there is one."""

    def snapshot(self) -> list[tuple[int, str, int]]:
        """Return type id, label and value of all counters. Each value is whole; together they are of no one instant.

        Another process may have written anything: a label has at most 64 characters, and U+FFFD stands for control
        characters and bytes that are no UTF-8.
        """

    def reset(self) -> None:
        """Set all counters to 0."""

    def __len__(self) -> int: ...

@final
class Counter:
    """One counter, a signed number of 64 bits that wraps. Any number of threads and processes may count."""

    def add(self, amount: int = 1) -> None:
        """Add."""

    def set(self, value: int) -> None:
        """Set it."""

    def get(self) -> int:
        """Return its value."""

    def take(self) -> int:
        """Set it to 0 and return what it was."""

    def free(self) -> None:
        """Give its place back; other objects of this counter must not be used any more."""

@final
class Forwarder:
    """Passes published messages from one ZeroMQ socket to another, as long as their topics are known.

    Args:
        libzmq: path of the very library that the caller's binding has loaded.
        version: what the second of three frames must be.
        topics_max: topics that are remembered; beyond it all are forgotten, and asked about again.

    Raises:
        OSError: the path is no usable libzmq.
    """

    def __new__(cls, libzmq: str, *, version: bytes, topics_max: int = 100_000) -> Self: ...
    def pass_topic(self, topic: bytes, type_ids: bytes, *, broadcast: bool = False) -> None:
        """Let messages of a topic pass whose body begins with one of these bytes.

        Args:
            topic: exact.
            type_ids: first bytes of bodies.
            broadcast: write them into the broadcast, too, where a call names one.
        """

    def forget_topic(self, topic: bytes) -> None:
        """Let messages of a topic pass no longer."""

    def __len__(self) -> int: ...
    def forward(
        self, source: int, target: int, limit: int, *, broadcast: Transmitter | None = None
    ) -> tuple[int, bool, list[bytes] | None]:
        """Receive without blocking and send on what may pass, untouched.

        Args:
            source, target: addresses of open sockets of this thread (``pyzmq``: ``socket.underlying``); the target is a
                publisher, whose sends never block.
            limit: messages at most.
            broadcast: what passes on topics that are marked for it is written there first, as a record of the form of
                :meth:`forward_records`.

        Returns:
            How many were sent on, whether there may be more, and the frames of a message that may not pass by what is
            known: it was received and sent nowhere. Of a message of many frames the first eight.

        Raises:
            OSError: a socket refused, with libzmq's error number.
        """

    def forward_records(
        self, consumer: Consumer, target: int, limit: int, *, broadcast: Transmitter | None = None
    ) -> tuple[int, int, list[bytes]]:
        """Send on what records in a ring hold, each as three frames.

        A record is ``u16 topic length (little-endian), topic, version, body``.

        Args:
            consumer: of a ring of records.
            target: address of an open publisher of this thread.
            limit: records at most.
            broadcast: as of :meth:`forward`; records are written there as they came.

        Returns:
            How many records were read, how many were sent on, and those that may not pass by what is known, in their
            order: they were sent nowhere.

        Raises:
            OSError: the socket refused, with libzmq's error number.
        """

def decimal_mantissa(text: str, exponent: int, rounding: str | None = None) -> int:
    """Return text as a mantissa; see :class:`relay_accel.Decimal64`."""

def decimal_mantissas(texts: list[str | None] | list[str], exponent: int, rounding: str | None = None) -> bytearray:
    """Return texts as mantissas of eight bytes each, in the machine's byte order; None is null."""

def decimal_text(mantissa: int, exponent: int) -> str | None:
    """Return the shortest plain text of a mantissa."""

def decimal_texts(mantissas: Buffer, exponent: int) -> list[str | None]:
    """Return the shortest plain texts of mantissas of eight bytes each, in the machine's byte order."""

def market_ticker(type_id: int, protobuf: Buffer) -> str:
    """Return the ticker of a message in protobuf; empty where it has none. See :mod:`relay_accel.market`.

    Raises:
        KeyError: a type without a form in SBE; the text says which have one.
        DecodeError: no protobuf: exactly what ``FromString`` refuses.
    """

def market_to_sbe(type_id: int, protobuf: Buffer, symbol_id: int) -> bytes:
    """Return the record of a message in protobuf; unknown fields are left out. See :mod:`relay_accel.market`.

    Args:
        type_id: 4, 5, 13 or 30.
        protobuf: the message alone, without version or type id.
        symbol_id: of its ticker; 0 where that is empty.

    Raises:
        KeyError: a type without a form in SBE.
        DecodeError: no protobuf: exactly what ``FromString`` refuses.
        EncodeError: a text of more than 65,534 bytes, or an enum's number that is not 0 … 254.
    """

def market_to_sbe_by(type_id: int, protobuf: Buffer, symbol_ids: dict[str, int]) -> bytes | None:
    """Return the record of a message in protobuf, by the numbers of tickers; None where its own has none.

    One walk over the message instead of two by :func:`market_ticker` and :func:`market_to_sbe`, whose errors it has.
    The empty ticker is number 0 always. See :mod:`relay_accel.market`.
    """

def market_to_protobuf_by(record: Buffer, tickers: dict[int, str]) -> tuple[int, bytes] | None:
    """Return type id and protobuf of a record, by the tickers of numbers.

    None for a definition, and where its number means no ticker: :func:`market_head` tells them apart. One walk over the
    record instead of two by :func:`market_head` and :func:`market_to_protobuf`, whose errors it has; number 0 is the
    empty ticker always. See :mod:`relay_accel.market`.
    """

def market_define(symbol_id: int, epoch: int, ticker: str) -> bytes:
    """Return the record that says a ticker's number; see :mod:`relay_accel.market`.

    Raises:
        EncodeError: a ticker of more than 65,534 bytes.
    """

def market_head(record: Buffer) -> tuple[int, int, int, str]:
    """Return template id, symbol_id, and of a definition (256) epoch and ticker, which are 0 and empty of a message.

    All lengths and texts are checked; bytes behind the record are passed over. See :mod:`relay_accel.market`.

    Raises:
        DecodeError: no record of version 0x02.
    """

def market_to_protobuf(record: Buffer, ticker: str) -> bytes:
    """Return the message of a record in protobuf: what ``SerializeToString`` gives. See :mod:`relay_accel.market`.

    Args:
        record: from its version byte on.
        ticker: what its symbol_id means; left out of a Heartbeat that has none.

    Raises:
        DecodeError: no record of version 0x02, a definition, or an enum that is null.
    """
