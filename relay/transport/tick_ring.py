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
from typing import TYPE_CHECKING

from relay.errors import RetryableError
from relay.protocol.topics import RING_TOPIC
from relay.transport.broadcast import ClientBroadcast, record_of, split_record
from relay.transport.passage import open_forwarder
from relay.transport.segments import BEACON_PREFIX, CHANNEL_PREFIX, RING_TERM_BYTES, Places, remove_stale
from relay.transport.sockets import SendOutcome, Socket, send

if TYPE_CHECKING:
    import relay_accel

__all__ = ["RingIntake", "RingReader", "RingWriter"]

_NUMBERS = itertools.count()
_SLEEP_MS = {0: 0, 2: 1}
_GONE_NS = 10_000_000_000
"""A writer whose process cannot be looked up (it lives in another container) is gone after so long without a beat."""
_LOCK_WAIT_S = 0.02
"""For a process that changes the folder. Its work takes microseconds; loops that carry ticks do not wait longer."""


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
            relay_accel.Counters.open(BEACON_PREFIX + epoch, **place)
            name = f"{CHANNEL_PREFIX}{epoch}.{writer_epoch:x}-{next(_NUMBERS)}"
            self._channel = relay_accel.Channel.create(name, RING_TERM_BYTES, replace_stale=True, **place)
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
        """End it; the relay reads what is left, and removes the name if it cannot be removed here now."""
        import relay_accel

        self._producer.close()
        # Whoever has it open keeps it. Of a relay that was killed nobody else would ever remove the name.
        with suppress(relay_accel.AccelError):
            self._channel.unlink(timeout=_LOCK_WAIT_S)


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
        """Let go of it, and remove its name; if that cannot be now, the writer does, or the next look."""
        import relay_accel

        self.consumer.close()
        with suppress(relay_accel.AccelError):
            self._channel.unlink(timeout=_LOCK_WAIT_S)


class RingIntake:
    """All rings that are written for one relay.

    Args:
        relay_epoch: of the relay's start.
        target: its publisher.
        folder: of shared memory; empty for the usual one.
        is_wanted, types_of, broadcast: as of :class:`~relay.transport.passage.Passage`.

    Attributes:
        trouble: what hinders a look into the folder; empty when nothing does.

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
        broadcast: ClientBroadcast | None = None,
    ) -> None:
        native = open_forwarder()
        if native is None:
            raise LookupError("the accelerator is not installed, or does not reach the libzmq in use")
        import relay_accel

        self._native, self._target, self._broadcast = native, target, broadcast
        self._is_wanted, self._types_of = is_wanted, types_of
        self._place: Places = {"directory": folder or None}
        self._epoch = f"{relay_epoch:x}"
        self._readers: dict[str, RingReader] = {}
        self.trouble = ""
        try:
            remove_stale(self._place)
            self._beacon = relay_accel.Counters.create(BEACON_PREFIX + self._epoch, 1, pre_fault=False, **self._place)
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
        for name in self._names():
            if name.startswith(f"{CHANNEL_PREFIX}{self._epoch}.") and name not in self._readers:
                # Half made, or taken away again: looked at anew the next time.
                with suppress(relay_accel.AccelError):
                    reader = RingReader(relay_accel.Channel.open(name, **self._place))
                    if reader.is_over(now_ns):
                        # It was read before, and its name could not be removed then.
                        reader.close()
                        continue
                    self._readers[name] = reader
                    begun.append(reader)
        return begun, ended

    def _names(self) -> list[str]:
        """Return the names in the folder; none while it cannot be read: rings that are open go on, new ones wait."""
        import relay_accel

        try:
            names, self.trouble = relay_accel.segment_names(**self._place), ""
        except relay_accel.AccelError as error:
            names, self.trouble = [], f"{error} ({error.code})"
        return names

    def forget(self, topic: bytes) -> None:
        """Have a topic judged anew: where its messages go has changed."""
        self._native.forget_topic(topic)

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
        beside = self._broadcast
        try:
            read, sent, unknown = self._native.forward_records(
                reader.consumer,
                self._target.underlying,
                messages_max,
                broadcast=beside.transmitter if beside is not None else None,
            )
        except OSError as error:
            raise RetryableError(f"forwarding failed: {error}") from error
        return read, sent + sum(map(self._judge, unknown))

    def _judge(self, record: bytes) -> bool:
        topic, version, body = split_record(record)
        if not body or not self._is_wanted(topic, version, body[0]):
            return False
        beside = self._broadcast
        if beside is not None:
            beside.offer(topic, body)
        if send(self._target, (topic, version, body)) is not SendOutcome.SENT:
            return False
        if (type_ids := self._types_of(topic)) and not (beside is not None and beside.is_reshaped(topic)):
            self._native.pass_topic(topic, type_ids, broadcast=beside is not None and beside.has(topic))
        return True

    def close(self) -> None:
        """Let go of all rings, and take the beacon down."""
        import relay_accel

        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        with suppress(relay_accel.AccelError):
            self._beacon.unlink()
