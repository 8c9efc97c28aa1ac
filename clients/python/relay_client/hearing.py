"""What the client's thread waits for and hears: its sockets, and the relay's broadcast where that is joined."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from relay.observability.shared_counters import SHARED_MEMORY_OFF
from relay.transport import BroadcastReader, Poller
from relay_client.engine.commands import OpenBroadcast
from relay_client.live import LiveFeeds
from relay_client.settings import ClientSettings

if TYPE_CHECKING:
    from relay_client.sbe_reading import SbeReader

__all__ = ["Heard", "Hearing"]

_LOG = logging.getLogger(__name__)

_MS = 1_000_000
_SOCKETS_NS = 1_000_000
"""While records come without a pause, or it spins, the thread looks at its sockets so often."""
_LOOK_NS = 1_000_000_000
_LEFT_MAX = 1_000
"""Turns at most that reading what is left takes: a relay that writes all the time must not hold up the end."""


class Heard(Enum):
    """What became of the broadcast in one turn."""

    FINE = "fine"
    LAPPED = "lapped"
    CORRUPT = "its memory holds what no relay writes"
    GONE = "the relay that wrote it is gone"


class Hearing:
    """The poller of the client's thread, and the reader of the relay's broadcast.

    Args:
        settings: folder, and how to wait.
        live: given the records.
        count: called with a counter's name.

    Attributes:
        poller: of the sockets; what is in it besides is this object's.
    """

    def __init__(self, settings: ClientSettings, live: LiveFeeds, count: Callable[[str], None]) -> None:
        self._settings, self._live, self._count = settings, live, count
        self.poller = Poller()
        self._reader: BroadcastReader | None = None
        self._is_reading = self._is_told = False
        self._sockets_due_ns = self._look_due_ns = 0
        self._heard_count = 0

    @property
    def is_reading(self) -> bool:
        """Whether a broadcast is read."""
        return self._is_reading

    def open(self, offered: OpenBroadcast) -> None:
        """Open a broadcast, to read what is written from now on.

        Raises:
            LookupError: with the reason why it cannot be read.
        """
        self.close()
        settings = self._settings
        if settings.shared_memory == SHARED_MEMORY_OFF:
            raise LookupError("shared memory is switched off")
        reader = BroadcastReader(
            offered.name,
            relay_epoch=offered.relay_epoch,
            host_id=offered.host_id,
            folder=settings.shared_memory,
            is_spinning=settings.idle == "spin",
        )
        self._reader = reader
        self._live.use_sbe(self._sbe_reader() if offered.is_sbe else None)
        if settings.encoding == "sbe" and not offered.is_sbe and not self._is_told:
            self._is_told = True
            _LOG.warning(
                "expected a relay that writes market data in SBE, as asked for, but the relay %x does not announce it; "
                "market data come in protobuf: update the relay, or ask for encoding protobuf",
                offered.relay_epoch,
            )
        self._live.expect_doubles(on=True)

    def _sbe_reader(self) -> SbeReader:
        # Not above: it needs the accelerator, which is there since the broadcast could be opened.
        from relay_client.sbe_reading import SbeReader

        return SbeReader(self._count)

    def read(self) -> None:
        """Begin to read it."""
        if self._reader is not None and not self._is_reading:
            self._is_reading = True
            if self._reader.descriptor is not None:
                self.poller.add(self._reader.descriptor)

    def close(self, *, is_draining: bool = True) -> None:
        """Read what is left, and then no longer; harmless when there is none."""
        reader = self._reader
        if reader is None:
            return
        if self._is_reading and reader.descriptor is not None:
            self.poller.remove(reader.descriptor)
        if self._is_reading and is_draining:
            for _ in range(_LEFT_MAX):
                if self.hear() is not Heard.FINE or not self._heard_count:
                    break
        self._live.expect_doubles(on=False)
        reader.close()
        self._reader, self._is_reading = None, False

    def wait(self, wait_ns: int) -> bool:
        """Wait until there is something, at most so long; return whether it is time to look at the sockets."""
        # Rounded up: a wait cut to whole milliseconds would spin until the due time.
        wait_ms = max(0, -(-wait_ns // _MS))
        reader = self._reader
        if reader is None or not self._is_reading:
            self.poller.wait(wait_ms)
            return True
        if reader.descriptor is None:
            reader.spin(max(0, min(wait_ns, _SOCKETS_NS)) / 1e9)
        elif not reader.spin(0) and self.poller.wait(reader.arm(wait_ms)) != {reader.descriptor}:
            self._sockets_due_ns = 0
        now_ns = time.monotonic_ns()
        if now_ns < self._sockets_due_ns:
            return False
        self._sockets_due_ns = now_ns + _SOCKETS_NS
        return True

    def hear(self) -> Heard:
        """Pass on what the broadcast holds, up to a bound."""
        reader, now_ns = self._reader, time.monotonic_ns()
        if reader is None or not self._is_reading:
            return Heard.FINE
        records = reader.take()
        self._heard_count = len(records)
        if records:
            self._live.take_records(records, now_ns)
            self._live.flush()
        if reader.is_corrupt:
            return Heard.CORRUPT
        if now_ns >= self._look_due_ns:
            self._look_due_ns = now_ns + _LOOK_NS
            if not records and reader.is_writer_gone():
                return Heard.GONE
        return Heard.LAPPED if reader.is_lapped else Heard.FINE
