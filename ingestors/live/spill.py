"""Records that wait on disk while the event log is away: bounded, in order, kept over a restart.

A segment is a file of frames; the newest is appended to, the oldest read and then deleted::

    frame     length u32 LE | crc32 u32 LE | payload (length bytes)
    payload   first i64 | last i64 | topic length u16 | key length u16 | topic | key | value

``first`` and ``last`` are the trade ids that the record settles (0 and -1 for none). A frame that is cut short or
damaged ends its segment: what was written behind it is counted as lost, never read as something else.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from relay.errors import SettingsError, StorageError

__all__ = ["LogEntry", "Spill"]

_FRAME = struct.Struct("<II")
_HEAD = struct.Struct("<qqHH")
_SUFFIX = ".spill"


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A record for the event log, and the trade ids that are settled once it is acknowledged."""

    topic: str
    key: bytes
    value: bytes
    first: int = 0
    last: int = -1

    def encode(self) -> bytes:
        """Return the payload of a frame."""
        topic = self.topic.encode()
        head = _HEAD.pack(self.first, self.last, len(topic), len(self.key))
        return b"".join((head, topic, self.key, self.value))

    @classmethod
    def decode(cls, payload: bytes) -> LogEntry:
        """Return the entry of a payload.

        Raises:
            ValueError: it is too short for its lengths.
        """
        if len(payload) < _HEAD.size:
            raise ValueError("expected a spill payload of at least 20 bytes")
        first, last, topic_length, key_length = _HEAD.unpack_from(payload)
        key_at = _HEAD.size + topic_length
        value_at = key_at + key_length
        if len(payload) < value_at:
            raise ValueError("expected a spill payload as long as its lengths say")
        topic = payload[_HEAD.size : key_at].decode()
        return cls(topic, payload[key_at:value_at], payload[value_at:], first, last)


class Spill:
    """A queue on disk; one process at a time.

    Args:
        folder: made when it does not exist.
        bytes_max: bound of everything that waits.
        segment_bytes: size at which the next segment begins.

    Raises:
        SettingsError: the folder cannot be used, or another process uses it.
    """

    def __init__(self, folder: Path, *, bytes_max: int, segment_bytes: int = 16 * 1024 * 1024) -> None:
        self._folder, self._bytes_max, self._segment_bytes = folder, bytes_max, segment_bytes
        self._lock = _locked(folder)
        self._segments: deque[Path] = deque(sorted(folder.glob(f"*{_SUFFIX}")))
        self._sizes = {path: path.stat().st_size for path in self._segments}
        self._number = int(self._segments[-1].stem) if self._segments else 0
        self._writer: BinaryIO | None = None
        self._reading: Iterator[LogEntry] | None = None
        self._next: LogEntry | None = None
        self.damaged = 0

    @property
    def waiting_bytes(self) -> int:
        """Bytes on disk that are not forwarded yet, read segments included."""
        return sum(self._sizes.values())

    def __bool__(self) -> bool:
        return bool(self._segments)

    def append(self, entry: LogEntry, *, is_kept: bool = False) -> bool:
        """Keep an entry; return False when the bound is reached.

        Args:
            entry: what to keep.
            is_kept: may exceed the bound by a tenth, for the few records that explain the others.

        Raises:
            StorageError: the disk is full or broken.
        """
        payload = entry.encode()
        frame = _FRAME.pack(len(payload), zlib.crc32(payload)) + payload
        bound = self._bytes_max + (self._bytes_max // 10 if is_kept else 0)
        if self.waiting_bytes + len(frame) > bound:
            return False
        writer = self._segment()
        try:
            writer.write(frame)
            writer.flush()
        except OSError as error:
            self._abandon_segment()
            raise StorageError(f"cannot keep records in {self._folder}: {error}; make room there") from error
        self._sizes[self._segments[-1]] += len(frame)
        if self._sizes[self._segments[-1]] >= self._segment_bytes:
            self._end_segment()
        return True

    def peek(self) -> LogEntry | None:
        """Return the oldest entry without taking it; None when nothing waits."""
        while self._next is None and self._segments:
            if self._reading is None:
                if self._writer is not None and len(self._segments) == 1:
                    self._end_segment()
                self._reading = self._read(self._segments[0])
            self._next = next(self._reading, None)
            if self._next is None:
                self._drop_oldest()
        return self._next

    def take(self) -> None:
        """Take the entry that was peeked at."""
        self._next = None

    def close(self) -> None:
        """Close; what waits stays for the next start, from the beginning of its segment."""
        self._end_segment()
        self._lock.close()

    def _segment(self) -> BinaryIO:
        if self._writer is None:
            self._number += 1
            path = self._folder / f"{self._number:012}{_SUFFIX}"
            try:
                self._writer = path.open("ab")
            except OSError as error:
                raise StorageError(f"cannot open {path}: {error}") from error
            self._segments.append(path)
            self._sizes[path] = 0
        return self._writer

    def _abandon_segment(self) -> None:
        """End a segment whose last frame may be cut short; the reader stops there."""
        with contextlib.suppress(OSError):
            self._end_segment()

    def _end_segment(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _drop_oldest(self) -> None:
        path = self._segments.popleft()
        del self._sizes[path]
        self._reading = None
        path.unlink(missing_ok=True)

    def _read(self, path: Path) -> Iterator[LogEntry]:
        data = path.read_bytes()
        at = 0
        while at < len(data):
            payload = _payload(data, at)
            if payload is None:
                self.damaged += 1
                return
            try:
                entry = LogEntry.decode(payload)
            except ValueError:
                self.damaged += 1
                return
            yield entry
            at += _FRAME.size + len(payload)


def _payload(data: bytes, at: int) -> bytes | None:
    if len(data) - at < _FRAME.size:
        return None
    length, crc = _FRAME.unpack_from(data, at)
    payload = data[at + _FRAME.size : at + _FRAME.size + length]
    return payload if len(payload) == length and zlib.crc32(payload) == crc else None


def _locked(folder: Path) -> BinaryIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("ab")
    except OSError as error:
        raise SettingsError(f"cannot use {folder} for records that wait: {error}") from error
    try:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise SettingsError(f"{folder} is in use by another ingestor; give each its own spill_path") from error
    os.set_inheritable(lock.fileno(), False)
    return lock
