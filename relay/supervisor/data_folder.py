"""The data folder of one supervisor: its lock, what it says of its parts, and who holds it.

::

    run/lock         held (flock, exclusive) while a supervisor runs; text: its pid and when it started; empty after a
                     clean stop
    run/state.json   the parts, as the holder knows them
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import psutil

from relay.errors import SettingsError

__all__ = ["DataFolder", "check_data_folder", "read_state"]

STATE_FILE, _LOCK_FILE = Path("run") / "state.json", Path("run") / "lock"
_FOLDERS = ("logs", "run", "lake", "manager")
_LOCK_S = 1.0
"""Readers hold the lock for an instant, shared; a start tries as long as that can take."""
_SAME_START_S = 2
_UNSAFE = '#?%,\\*[]{}"'
"""End or change a URL, a list of folders, a properties file or a pattern somewhere on the way to a disk."""


def check_data_folder(folder: Path) -> Path:
    """Return the absolute path of a data folder that every part can write in its own kind of address.

    Raises:
        SettingsError: the path holds a character that ends or changes an address, or is no folder.
    """
    resolved = folder.resolve()
    found = sorted({c for c in str(resolved) if c in _UNSAFE or not c.isprintable()})
    if found:
        raise SettingsError(
            f"expected a data folder whose path has no {' '.join(_UNSAFE)} and no control characters, which mean "
            f"something else in the addresses of tables and log, got {str(resolved)!r} with "
            f"{' '.join(map(ascii, found))}; choose another --data folder"
        )
    if resolved.is_file():
        raise SettingsError(f"expected a data folder at {resolved}, but there is a file; choose another --data folder")
    return resolved


class DataFolder:
    """The folder while this process holds it.

    Args:
        folder: made when it is not there.

    Raises:
        SettingsError: another supervisor holds it, or it cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = check_data_folder(folder)
        try:
            for name in _FOLDERS:
                (self.path / name).mkdir(parents=True, exist_ok=True)
            self._lock = _lock(self.path)
        except OSError as error:
            raise SettingsError(
                f"expected a data folder at {self.path} that can be written, but {error.filename or self.path}: "
                f"{error.strerror}; mend its rights or free some space, or choose another --data folder"
            ) from error
        self.was_stopped_cleanly = not self._lock.read()
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(f"{os.getpid()} {_started_s(os.getpid())}")
        self._lock.flush()
        (self.path / STATE_FILE).unlink(missing_ok=True)

    def write_state(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Replace what readers are told of the parts.

        Raises:
            OSError: the disk is full or broken; readers still see the former text.
        """
        draft = (self.path / STATE_FILE).with_suffix(".draft")
        draft.write_text(json.dumps({"pid": os.getpid(), "parts": parts}, indent=1))
        draft.replace(self.path / STATE_FILE)

    def release(self) -> None:
        """Give the folder free, as stopped cleanly."""
        with suppress(OSError):
            (self.path / STATE_FILE).unlink(missing_ok=True)
            self._lock.truncate(0)
        self._lock.close()


def read_state(data_folder: Path) -> dict[str, Any] | None:
    """Return what a running supervisor has written about its parts; None when none runs on the folder.

    The pid is the lock holder's; None while it cannot be told for sure. Reading never stands in a start's way.

    Raises:
        SettingsError: the path is no data folder, or must not be read.
    """
    folder = check_data_folder(data_folder)
    try:
        with (folder / _LOCK_FILE).open() as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = _living_holder(handle.read())
            else:
                return None
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{folder} cannot be read as a data folder: {error.strerror}; check --data") from error
    try:
        state = json.loads((folder / STATE_FILE).read_text())
    except (OSError, ValueError):
        state = None
    if pid is None or not isinstance(state, dict) or state.get("pid") != pid:
        return {"pid": pid, "parts": []}
    return state


def _lock(folder: Path) -> IO[str]:
    handle = (folder / _LOCK_FILE).open("a+")
    until_s = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            pid = _living_holder(handle.read())
            if pid is None and time.monotonic() < until_s:
                time.sleep(0.01)
                continue
            handle.close()
            raise SettingsError(
                f"another relay up (pid {pid or 'unknown'}) runs on {folder}; "
                "stop it (relay down) or choose another --data folder"
            ) from None
        handle.seek(0)
        return handle


def _living_holder(text: str) -> int | None:
    """Return the pid that a lock's text names, when that process is the one which wrote it."""
    pid, _, started = text.strip().partition(" ")
    if not (pid.isdigit() and started.isdigit()):
        return None
    now = _started_s(int(pid))
    return int(pid) if now is not None and abs(now - int(started)) <= _SAME_START_S else None


def _started_s(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).create_time())
    except psutil.Error:
        return None
