"""Names of the segments of shared memory that the tick path uses, and what is left of them by the dead."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import relay_accel

__all__ = [
    "BEACON_PREFIX",
    "BROADCAST_PREFIX",
    "CHANNEL_PREFIX",
    "LOCK_BUSY",
    "LOCK_WAIT_S",
    "RING_RECORD_BYTES_MAX",
    "RING_TERM_BYTES",
    "Places",
    "memory_token",
    "remove_stale",
]

BEACON_PREFIX, CHANNEL_PREFIX, BROADCAST_PREFIX = "relay.", "ticks.", "fanout."
RING_TERM_BYTES = 1 << 20
RING_RECORD_BYTES_MAX = RING_TERM_BYTES // 8
"""Of a message with its topic; an ingestor sends a longer one through the socket."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOKEN_DIGITS = 32
LOCK_BUSY = "LOCK_BUSY"
"""Code of the error when another process holds the folder."""
LOCK_WAIT_S = 1.0
"""How long a start waits for such a process, in all."""
Places = dict[str, Any]


def memory_token(folder: str) -> str:
    """Return a text that is the same for two processes when they use one folder of one running kernel.

    Equal texts promise nothing, different ones tell that a segment there cannot be this one: another host, container,
    user or folder.

    Args:
        folder: of shared memory; empty for the usual one.

    Returns:
        Empty where it cannot be told.

    Raises:
        ImportError: the accelerator is not installed.
    """
    import relay_accel

    try:
        place = Path(folder or relay_accel.default_directory()).stat()
        text = f"{_BOOT_ID.read_text().strip()} {place.st_dev} {place.st_ino}"
    except OSError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:_TOKEN_DIGITS]


def remove_stale(place: Places) -> None:
    """Remove what relays and ingestors left that were killed, or that could not remove it themselves.

    What cannot be removed is left to the next start; none of it is waited for twice.

    Raises:
        relay_accel.AccelError: the folder cannot be read.
    """
    import relay_accel

    wait_s = LOCK_WAIT_S
    for name in relay_accel.segment_names(**place):
        try:
            found = _opened(name, place)
            if found is not None and found.is_stale:
                found.unlink(timeout=wait_s)
        except relay_accel.AccelError as error:
            wait_s = 0.0 if error.code == LOCK_BUSY else wait_s


def _opened(name: str, place: Places) -> relay_accel.Counters | relay_accel.Channel | relay_accel.Broadcast | None:
    import relay_accel

    if name.startswith(BEACON_PREFIX):
        return relay_accel.Counters.open(name, **place)
    if name.startswith(CHANNEL_PREFIX):
        return relay_accel.Channel.open(name, pre_fault=False, **place)
    if name.startswith(BROADCAST_PREFIX):
        return relay_accel.Broadcast.open(name, pre_fault=False, **place)
    return None
