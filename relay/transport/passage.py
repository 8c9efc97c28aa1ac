"""The way of published messages from one socket to a publisher: judged once a topic, then untouched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from relay.errors import RetryableError
from relay.protocol.envelope import VERSION_FRAME
from relay.transport.broadcast import ClientBroadcast
from relay.transport.forwarding import forward
from relay.transport.sockets import SendOutcome, Socket, send

if TYPE_CHECKING:
    import relay_accel

__all__ = ["Passage", "open_forwarder"]

_MAPS = Path("/proc/self/maps")


class Passage:
    """Passes published messages from one socket to a publisher, untouched and without blocking.

    A topic is judged in Python once; its next messages go on natively, with every check that counts for them: three
    frames, the version, the topic in full, the type.

    Args:
        source: received from.
        target: a publisher, whose sends never block.
        is_wanted: asked with topic, version frame and type id of a message of three frames.
        on_misshaped: given every other message, which goes no further.
        types_of: type ids that pass on a topic from now on without being asked about; empty for none.
        broadcast: what passes on topics that are wanted there is written into it first.
        is_native: use the accelerator where it is installed and speaks to the libzmq that pyzmq has loaded.
    """

    def __init__(
        self,
        source: Socket,
        target: Socket,
        *,
        is_wanted: Callable[[bytes, bytes, int], bool],
        on_misshaped: Callable[[list[bytes]], None],
        types_of: Callable[[bytes], bytes],
        broadcast: ClientBroadcast | None = None,
        is_native: bool = True,
    ) -> None:
        self._source, self._target, self._broadcast = source, target, broadcast
        self._is_wanted, self._on_misshaped, self._types_of = is_wanted, on_misshaped, types_of
        self._native = open_forwarder() if is_native else None

    @property
    def is_native(self) -> bool:
        """Whether known topics pass natively."""
        return self._native is not None

    def forget(self, topic: bytes) -> None:
        """Have a topic judged anew: where its messages go has changed."""
        if self._native is not None:
            self._native.forget_topic(topic)

    def turn(self, messages_max: int) -> tuple[int, int]:
        """Pass on what is there, up to a bound; return how many messages were received, and how many sent on.

        Raises:
            RetryableError: a socket refused.
        """
        if self._native is not None:
            return self._turn_natively(self._native, messages_max)
        return forward(
            self._source,
            self._target,
            is_wanted=self._is_wanted,
            on_misshaped=self._on_misshaped,
            broadcast=self._broadcast,
            messages_max=messages_max,
        )

    def _turn_natively(self, native: relay_accel.Forwarder, messages_max: int) -> tuple[int, int]:
        source, target = self._source.underlying, self._target.underlying
        beside = self._broadcast.transmitter if self._broadcast is not None else None
        received = sent = 0
        while received < messages_max:
            try:
                passed, _, frames = native.forward(source, target, messages_max - received, broadcast=beside)
            except OSError as error:
                raise RetryableError(f"forwarding failed: {error}") from error
            received, sent = received + passed, sent + passed
            if frames is None:
                break
            received += 1
            sent += self._judge(native, frames)
        return received, sent

    def _judge(self, native: relay_accel.Forwarder, frames: list[bytes]) -> bool:
        if len(frames) != 3 or not frames[2]:
            self._on_misshaped(frames)
            return False
        topic, version, body = frames
        if not self._is_wanted(topic, version, body[0]):
            return False
        beside = self._broadcast
        if beside is not None:
            beside.offer(topic, body)
        if send(self._target, frames) is not SendOutcome.SENT:
            return False
        if (type_ids := self._types_of(topic)) and not (beside is not None and beside.is_reshaped(topic)):
            native.pass_topic(topic, type_ids, broadcast=beside is not None and beside.has(topic))
        return True


def open_forwarder() -> relay_accel.Forwarder | None:
    try:
        import relay_accel
    except ImportError:
        return None
    try:
        library = next(line.split()[-1] for line in _MAPS.read_text().splitlines() if "libzmq" in line)
        return relay_accel.Forwarder(library, version=VERSION_FRAME)
    except (OSError, StopIteration):
        # A libzmq that is linked in under no name of its own: Python forwards then.
        return None
