"""Counters in shared memory, where the accelerator is installed: others read them while they are counted."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from relay.observability.counters import Cell, Counters

if TYPE_CHECKING:
    import relay_accel

__all__ = ["SHARED_MEMORY_OFF", "SharedSet", "new_counters", "read_shared_counters"]

SHARED_MEMORY_OFF = "off"
_PREFIX = "counters."
_SIZE = 512
"""Counters of one process; what is more stays in the process."""
_TYPE_ID = 1_000
_NUMBERS = itertools.count()
_NAMES_TRIED_MAX = 64
_LOCK_WAIT_S = 1.0
"""How long a start waits for a process that holds the folder, in all."""


class SharedSet:
    """The segment of one process's counters; removed when it is closed.

    Args:
        part: what the process is (``gateway``); letters, digits, ``-`` and ``_``.
        folder: where segments lie; empty for the accelerator's own place of this user.

    Raises:
        ImportError: the accelerator is not installed.
        relay_accel.AccelError: no shared memory can be had; the text says why.
    """

    def __init__(self, part: str, *, folder: str = "") -> None:
        _remove_stale(folder)
        self._set = _create(part.lower(), folder)
        self._close = weakref.finalize(self, _unlink, self._set, os.getpid())

    def new_cell(self, name: str) -> Cell | None:
        """Return the place of a new counter, None when its name is no label, too long for one, or the set is full."""
        with suppress(ValueError):
            return self._set.allocate(_TYPE_ID, name)
        return None

    def close(self) -> None:
        """Remove the name; the end of the process does it, too. Harmless when repeated.

        While another process holds the folder the name stays, after a second: it is shown until this process ends, and
        removed at the next start of any.
        """
        self._close()


def new_counters(part: str, *, shared_memory: str = "") -> tuple[Counters, SharedSet | None]:
    """Return the counters of this process, in shared memory where that can be had.

    Args:
        part: what the process is.
        shared_memory: folder, empty for the usual one, :data:`SHARED_MEMORY_OFF` for none.
    """
    if shared_memory == SHARED_MEMORY_OFF:
        return Counters(), None
    try:
        import relay_accel
    except ImportError:
        return Counters(), None
    try:
        shared = SharedSet(part, folder=shared_memory)
    except relay_accel.AccelError:
        # Counting must go on where there is no room: the process alone sees it then.
        return Counters(), None
    return Counters(shared.new_cell), shared


def read_shared_counters(*, shared_memory: str = "") -> Mapping[tuple[str, int], Mapping[str, int]]:
    """Return what the processes of this user count now, by part and process id.

    Args:
        shared_memory: as of :func:`new_counters`.

    Returns:
        Nothing where shared memory cannot be reached. A name has at most 64 characters and no control characters,
        whatever was written there: U+FFFD stands for what none of ours has.

    Raises:
        ImportError: the accelerator is not installed.
    """
    import relay_accel

    living: dict[tuple[str, int], dict[str, int]] = {}
    unknown: dict[tuple[str, int], dict[str, int]] = {}
    with suppress(relay_accel.AccelError):
        for name, counters in _sets(shared_memory):
            part, pid, _ = name.removeprefix(_PREFIX).rsplit(".", 2)
            if not counters.is_stale and pid.isdigit():
                found = living if counters.creator()[0] == "alive" else unknown
                _add_up(found.setdefault((part, int(pid)), {}), counters)
    # Process 1 of a container that ended long ago must not be counted with process 1 of this one.
    return unknown | living


def _add_up(values: dict[str, int], counters: relay_accel.Counters) -> None:
    for _, label, value in counters.snapshot():
        values[label] = values.get(label, 0) + value


def _create(part: str, folder: str) -> relay_accel.Counters:
    """Make a set; where containers share the folder, another's process of the same number may have had the name."""
    import relay_accel

    tries_left = _NAMES_TRIED_MAX
    while True:
        name = f"{_PREFIX}{part}.{os.getpid()}.{next(_NUMBERS)}"
        tries_left -= 1
        try:
            return relay_accel.Counters.create(name, _SIZE, directory=folder or None, pre_fault=False)
        except relay_accel.StorageError as error:
            if error.code != "ALREADY_EXISTS" or not tries_left:
                raise


def _unlink(counters: relay_accel.Counters, pid: int) -> None:
    """Remove a name; a forked child leaves its parent's alone."""
    import relay_accel

    if os.getpid() == pid:
        with suppress(relay_accel.AccelError):
            counters.unlink()


def _sets(folder: str) -> Iterator[tuple[str, relay_accel.Counters]]:
    import relay_accel

    place: dict[str, Any] = {"directory": folder or None}
    for name in relay_accel.segment_names(**place):
        if name.startswith(_PREFIX) and name.count(".") >= 3:
            # Another process may end, and take its counters along, at any time.
            with suppress(relay_accel.AccelError):
                yield name, relay_accel.Counters.open(name, **place)


def _remove_stale(folder: str) -> None:
    """Remove what processes left that were killed, or could not remove it; waits once for who holds the folder."""
    import relay_accel

    wait_s = _LOCK_WAIT_S
    for _, counters in _sets(folder):
        if counters.is_stale:
            try:
                counters.unlink(timeout=wait_s)
            except relay_accel.AccelError as error:
                wait_s = 0.0 if error.code == "LOCK_BUSY" else wait_s
