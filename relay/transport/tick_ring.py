"""The fast path through shared memory, from an ingestor to a relay on the same host (proto/spec/0013).

A relay that can share memory makes a beacon, a segment that is named by its epoch, and subscribes ``RING:{epoch}`` at
its publishers. An ingestor that sees the subscription, and finds the beacon in its own folder, makes a channel for that
relay. The relay finds the channel by its name and reads it. The subscription ends with the connection, and with it the
channel.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from relay.errors import RetryableError
from relay.protocol.envelope import VERSION_FRAME
from relay.transport.passage import open_forwarder
from relay.transport.sockets import SendOutcome, Socket, send

if TYPE_CHECKING:
    import relay_accel

__all__ = ["RING_TOPIC", "RingIntake", "RingReader", "RingWriter", "record_of"]

RING_TOPIC = b"RING:"
_BEACON, _CHANNEL = "relay.", "ticks."
_TERM_BYTES = 1 << 20
_NUMBERS = itertools.count()
_SLEEP_MS = {0: 0, 2: 1}
_GONE_NS = 10_000_000_000
"""A writer whose process cannot be looked up (it lives in another container) is gone after so long without a beat."""
Places = dict[str, Any]


def record_of(topic: bytes, body: bytes) -> bytes:
    """Return a message as it lies in the ring: topic length (u16, little-endian), topic, version, body."""
    return len(topic).to_bytes(2, "little") + topic + VERSION_FRAME + body


class RingWriter:
    """An ingestor's way into one relay's ring.

    Args:
        topic: the relay's subscription.
        writer_epoch: random for each start of the ingestor.
        folder: of shared memory; empty for the usual one.

    Raises:
        LookupError: there is no such relay on this host, or memory cannot be shared with it.
    """

    def __init__(self, topic: bytes, *, writer_epoch: int, folder: str) -> None:
        try:
            import relay_accel

            place: Places = {"directory": folder or None}
            epoch = topic.removeprefix(RING_TOPIC).decode("ascii")
            relay_accel.Counters.open(_BEACON + epoch, **place)
            name = f"{_CHANNEL}{epoch}.{writer_epoch:x}-{next(_NUMBERS)}"
            self._channel = relay_accel.Channel.create(name, _TERM_BYTES, replace_stale=True, **place)
            self._producer = self._channel.producer()
        except (ImportError, UnicodeDecodeError) as error:
            raise LookupError(str(error)) from error
        except relay_accel.AccelError as error:
            raise LookupError(f"{error} ({error.code})") from error
        self._is_read = False

    @property
    def is_read(self) -> bool:
        """Whether the relay has begun to read."""
        return self._is_read

    def offer(self, topic: bytes, body: bytes) -> bool:
        """Write a message; False when the relay does not read yet, or is too far behind."""
        return self._is_read and self._producer.offer(record_of(topic, body)) == 0

    def look(self) -> bool:
        """Note that this side lives, and look at the other; False when the ring is of no use any more."""
        self._producer.beat()
        state, _ = self._producer.consumer_state()
        self._is_read = state in ("alive", "unknown")
        return state not in ("left", "dead") and self._channel.is_named

    def close(self) -> None:
        """End it; the relay reads what is left."""
        self._producer.close()


class RingReader:
    """A relay's reading end of one ingestor's ring."""

    def __init__(self, channel: relay_accel.Channel) -> None:
        self._channel, self.consumer = channel, channel.consumer()
        self.descriptor = self.consumer.fileno()
        self._seen_beat, self._beat_seen_ns = 0, 0

    def is_over(self, now_ns: int) -> bool:
        """Return whether its writer is gone and everything was read.

        Args:
            now_ns: monotonic time.
        """
        state, _ = self._channel.producer_state()
        beat, _ = self._channel.beats_ns()
        if beat != self._seen_beat or not self._beat_seen_ns:
            self._seen_beat, self._beat_seen_ns = beat, now_ns
        is_gone = state in ("left", "dead") or (state == "unknown" and now_ns - self._beat_seen_ns > _GONE_NS)
        return self.consumer.stop == "corrupt" or (is_gone and self.consumer.arm() != 0)

    def close(self) -> None:
        """Let go of it, and remove its name."""
        import relay_accel

        self.consumer.close()
        with suppress(relay_accel.AccelError):
            self._channel.unlink()


class RingIntake:
    """All rings that are written for one relay.

    Args:
        relay_epoch: of the relay's start.
        target: its publisher.
        folder: of shared memory; empty for the usual one.
        is_wanted, types_of: as of :class:`~relay.transport.passage.Passage`.

    Raises:
        LookupError: memory cannot be shared; the text says why.
    """

    def __init__(
        self,
        relay_epoch: int,
        target: Socket,
        *,
        folder: str,
        is_wanted: Callable[[bytes, bytes, int], bool],
        types_of: Callable[[bytes], bytes],
    ) -> None:
        native = open_forwarder()
        if native is None:
            raise LookupError("the accelerator is not installed, or does not reach the libzmq in use")
        import relay_accel

        self._native, self._target = native, target
        self._is_wanted, self._types_of = is_wanted, types_of
        self._place: Places = {"directory": folder or None}
        self._epoch = f"{relay_epoch:x}"
        self._readers: dict[str, RingReader] = {}
        try:
            _remove_stale(self._place)
            self._beacon = relay_accel.Counters.create(_BEACON + self._epoch, 1, pre_fault=False, **self._place)
        except relay_accel.AccelError as error:
            raise LookupError(f"{error} ({error.code})") from error

    @property
    def topic(self) -> bytes:
        """To be subscribed at the publishers."""
        return RING_TOPIC + self._epoch.encode()

    @property
    def readers(self) -> list[RingReader]:
        """The rings that are read."""
        return list(self._readers.values())

    def look(self, now_ns: int) -> tuple[list[RingReader], list[RingReader]]:
        """Find new rings and end those whose writers are gone.

        Returns:
            Rings that are read from now on, and rings that are no longer.
        """
        import relay_accel

        begun, ended = [], []
        for name, reader in list(self._readers.items()):
            if reader.is_over(now_ns):
                ended.append(self._readers.pop(name))
        for name in relay_accel.segment_names(**self._place):
            if name.startswith(f"{_CHANNEL}{self._epoch}.") and name not in self._readers:
                # Half made, or taken away again: looked at anew the next time.
                with suppress(relay_accel.AccelError):
                    channel = relay_accel.Channel.open(name, **self._place)
                    reader = self._readers[name] = RingReader(channel)
                    begun.append(reader)
        return begun, ended

    def arm(self, sleep_ms: int) -> int:
        """Say that the relay will sleep in a poller; return for how long at most, 0 when something is there (ms)."""
        for reader in self._readers.values():
            sleep_ms = min(sleep_ms, _SLEEP_MS.get(reader.consumer.arm(), sleep_ms))
        return sleep_ms

    def turn_all(self, messages_max: int) -> int:
        """Pass on what the rings hold, of each up to a bound; return how many messages were sent on."""
        return sum(self.turn(reader, messages_max)[1] for reader in self._readers.values())

    def turn(self, reader: RingReader, messages_max: int) -> tuple[int, int]:
        """Pass on what a ring holds, up to a bound; return how many messages were read, and how many sent on.

        Raises:
            RetryableError: the publisher refused.
        """
        try:
            read, sent, unknown = self._native.forward_records(reader.consumer, self._target.underlying, messages_max)
        except OSError as error:
            raise RetryableError(f"forwarding failed: {error}") from error
        return read, sent + sum(map(self._judge, unknown))

    def _judge(self, record: bytes) -> bool:
        length = int.from_bytes(record[:2], "little")
        topic, version, body = record[2 : 2 + length], record[2 + length : 3 + length], record[3 + length :]
        if len(topic) != length or not body or not self._is_wanted(topic, version, body[0]):
            return False
        if send(self._target, (topic, version, body)) is not SendOutcome.SENT:
            return False
        if type_ids := self._types_of(topic):
            self._native.pass_topic(topic, type_ids)
        return True

    def close(self) -> None:
        """Let go of all rings, and take the beacon down."""
        import relay_accel

        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        with suppress(relay_accel.AccelError):
            self._beacon.unlink()


def _remove_stale(place: Places) -> None:
    """Remove what relays and ingestors left that were killed."""
    import relay_accel

    for name in relay_accel.segment_names(**place):
        with suppress(relay_accel.AccelError):
            found: relay_accel.Counters | relay_accel.Channel
            if name.startswith(_BEACON):
                found = relay_accel.Counters.open(name, **place)
            elif name.startswith(_CHANNEL):
                found = relay_accel.Channel.open(name, **place)
            else:
                continue
            if found.is_stale:
                found.unlink()
