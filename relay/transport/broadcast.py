"""Market data from a relay to clients on its host, through one broadcast in shared memory (proto/spec/0013).

The relay makes one segment a start, named by its epoch, and writes there what some client wants by ``@topic``, before
it sends it. A client finds the name in the answer to its probe; that it can open the segment proves that memory is
shared. A record is the very message: topic, version and body as they go through the sockets.
"""

from __future__ import annotations

from contextlib import suppress

from relay.protocol.envelope import VERSION_FRAME
from relay.protocol.topics import TOPIC_BYTES_MAX
from relay.transport.segments import BROADCAST_PREFIX, RING_RECORD_BYTES_MAX, Places, memory_token, remove_stale

__all__ = ["BroadcastReader", "ClientBroadcast", "record_of", "split_record"]

_FRAME_BYTES_MAX = 16
"""What a record has beside topic and body: lengths, version, alignment."""
_RECORD_SHARE = 8
"""A record fills at most one part in so many of a broadcast."""
_GONE = ("left", "dead")
_SLEEP_MS = {0: 0, 2: 1}
_RECEIVE_MAX = 1_024


def record_of(topic: bytes, body: bytes, *, version: bytes = VERSION_FRAME) -> bytes:
    """Return a message as it lies in rings: topic length (u16, little-endian), topic, version, body."""
    return len(topic).to_bytes(2, "little") + topic + version + body


def split_record(record: bytes) -> tuple[bytes, bytes, bytes]:
    """Return topic, version and body; of what is no record, parts that are too short to be any."""
    begin = 2 + int.from_bytes(record[:2], "little")
    return record[2:begin], record[begin : begin + 1], record[begin + 1 :]


class ClientBroadcast:
    """The relay's writing end. One thread.

    Args:
        relay_epoch: of the relay's start.
        folder: of shared memory; empty for the usual one.
        length: bytes at least; more where one message would not fit otherwise, and always a power of two.
        body_bytes_max: longest body that comes by sockets.

    Attributes:
        name: of the segment.
        host_id: see :func:`~relay.transport.segments.memory_token`.
        transmitter: for the native way.
        refused: how many records it did not take; readers miss their stamps and ask for a replay.

    Raises:
        LookupError: memory cannot be shared; the text says why.
    """

    def __init__(self, relay_epoch: int, *, folder: str, length: int, body_bytes_max: int) -> None:
        try:
            import relay_accel
            from relay.transport.sbe_records import SbeRecords
        except ImportError as error:
            raise LookupError(f"the accelerator is not installed, or of another version: {error}") from error
        place: Places = {"directory": folder or None}
        needed = _RECORD_SHARE * (max(TOPIC_BYTES_MAX + body_bytes_max, RING_RECORD_BYTES_MAX) + _FRAME_BYTES_MAX)
        self.name = f"{BROADCAST_PREFIX}{relay_epoch:x}"
        try:
            remove_stale(place)
            self._segment = relay_accel.Broadcast.create(
                self.name, 1 << (max(length, needed) - 1).bit_length(), replace_stale=True, **place
            )
            self.transmitter = self._segment.transmitter()
        except relay_accel.AccelError as error:
            raise LookupError(f"{error} ({error.code})") from error
        self.host_id = memory_token(folder)
        self.refused = 0
        self._topics: set[bytes] = set()
        self._sbe = SbeRecords(relay_epoch)

    @property
    def topics(self) -> int:
        """How many topics are wanted here; in both forms is twice."""
        return len(self._topics) + len(self._sbe)

    @property
    def unfit(self) -> int:
        """How many messages were wanted in SBE and have no form in it."""
        return self._sbe.unfit

    @property
    def length(self) -> int:
        """Bytes of the ring."""
        return self._segment.length

    def want(self, topic: bytes, *, on: bool, is_sbe: bool = False) -> None:
        """Note that clients want a topic here, or that no client does any more; in SBE, or as it comes."""
        if not is_sbe:
            (self._topics.add if on else self._topics.discard)(topic)
        elif on:
            self._write(topic, self._sbe.begin(topic))
        else:
            self._sbe.end(topic)

    def has(self, topic: bytes) -> bool:
        """Return whether a topic's messages go here."""
        return topic in self._topics or topic in self._sbe

    def is_reshaped(self, topic: bytes) -> bool:
        """Return whether a topic's messages have to be offered one by one: SBE is not written natively."""
        return topic in self._sbe

    def offer(self, topic: bytes, body: bytes) -> None:
        """Write a message where its topic is wanted."""
        if topic in self._topics:
            self._offer(record_of(topic, body))
        if topic in self._sbe:
            self._write(topic, self._sbe.of(topic, body))

    def _write(self, topic: bytes, records: list[bytes]) -> None:
        for record in records:
            self._offer(record_of(topic, record, version=b""))

    def _offer(self, record: bytes) -> None:
        self.refused += self.transmitter.offer(record) != 0

    def records(self) -> int:
        """Return how many messages were written."""
        return dict(self.transmitter.counts())["records"]

    def close(self) -> None:
        """Give the end back, so that readers know, and remove the name."""
        import relay_accel

        self.transmitter.close()
        with suppress(relay_accel.AccelError):
            self._segment.unlink()


class BroadcastReader:
    """A client's reading end; it begins behind the last record. One thread.

    Args:
        name: of the segment, as the relay told it.
        relay_epoch: of the relay that told it.
        host_id: as the relay told it; empty where it did not.
        folder: of shared memory; empty for the usual one.
        is_spinning: no sleeping: no bell is hung up.

    Attributes:
        descriptor: becomes readable when there is something to read, after :meth:`arm`; None when spinning.
        is_lapped, is_corrupt: whether records were overwritten before they were read; whether it is of no use any more.

    Raises:
        LookupError: it cannot be had; the text says why.
    """

    def __init__(self, name: str, *, relay_epoch: int, host_id: str, folder: str, is_spinning: bool) -> None:
        try:
            import relay_accel
        except ImportError as error:
            raise LookupError("the accelerator is not installed") from error
        if name != f"{BROADCAST_PREFIX}{relay_epoch:x}":
            raise LookupError(f"expected a segment named by the relay's epoch {relay_epoch:x}, got {name[:100]!r}")
        own = memory_token(folder)
        if host_id and own and host_id != own:
            raise LookupError("the relay's shared memory is not here: another host, container, user or folder")
        try:
            self._segment = relay_accel.Broadcast.open(name, directory=folder or None)
            state, pid = self._segment.transmitter_state()
            if state in (*_GONE, "vacant"):
                raise LookupError(f"the relay that wrote into {name} is gone (process {pid}: {state})")
            self._receiver = self._segment.receiver()
            self.descriptor = None if is_spinning else self._receiver.fileno()
        except relay_accel.AccelError as error:
            raise LookupError(f"{error} ({error.code})") from error
        self.is_lapped = self.is_corrupt = False

    def take(self) -> list[bytes]:
        """Return records that have come, up to a bound; :attr:`is_lapped` and :attr:`is_corrupt` tell of this call."""
        batch = self._receiver.poll_batch(_RECEIVE_MAX)
        self.is_lapped, self.is_corrupt = batch.lapped, batch.stop == "corrupt"
        return batch.payloads()

    def arm(self, sleep_ms: int) -> int:
        """Say that the reader will sleep in a poller; return for how long at most, 0 when something is there (ms)."""
        return min(sleep_ms, _SLEEP_MS.get(self._receiver.arm(), sleep_ms))

    def spin(self, seconds: float) -> bool:
        """Look without sleep for at most so long; return whether there is something. Lets other threads run."""
        return self._receiver.spin(seconds)

    def is_writer_gone(self) -> bool:
        """Return whether the relay has left, or is proven dead. Asks the system: not for each message."""
        return self._receiver.transmitter_state()[0] in _GONE

    def close(self) -> None:
        """End it; its bell is taken down."""
        self._receiver.close()
