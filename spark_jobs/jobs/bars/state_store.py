"""The bars job's state on disk: whole snapshots, the newest that can be read counts."""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from pyarrow import fs

from relay.errors import RetryableError, StorageError
from relay.protocol.codes import ErrorCode

__all__ = ["BarsState", "StateStore"]

_LOG = logging.getLogger(__name__)
_MAGIC = b"MRBSNAP1"
_SUFFIX = ".state"
_KEPT = 2


class BarsState(msgspec.Struct, frozen=True):
    """What a restart needs.

    Attributes:
        cluster_id, topic_id: the log that the offsets belong to.
        tick_offsets: next offset to read, by partition of the tick topic.
        bar_offsets: by partition of the history topic, how far this job's own bars were known to reach.
        book: state of the engine.
        pending: buckets that wait for the store: (ticker, period_seconds, start_ns, trade_offset, gap_offset,
            partition).
    """

    cluster_id: str
    topic_id: str
    tick_offsets: dict[int, int]
    bar_offsets: dict[int, int]
    book: bytes
    pending: list[tuple[str, int, int, int, int, int]]


_DECODER = msgspec.msgpack.Decoder(BarsState)


class StateStore:
    """Snapshots in one folder: ``NUMBER.state``, magic, CRC-32 of the rest (u32 LE), MessagePack.

    Args:
        root: checkpoint folder or URL.
        job: folder under it.
    """

    def __init__(self, root: str, *, job: str) -> None:
        if "://" in root:
            self._fs, base = fs.FileSystem.from_uri(root)
        else:
            self._fs, base = fs.LocalFileSystem(), str(Path(root).resolve())
        self._folder = f"{base.rstrip('/')}/{job}-state"
        self._is_local = isinstance(self._fs, fs.LocalFileSystem)
        with _errors("opening", self._folder):
            self._fs.create_dir(self._folder, recursive=True)
            self._number = max(self._numbers(), default=0)

    def save(self, state: BarsState) -> int:
        """Write a snapshot and remove old ones; returns its size in bytes.

        Raises:
            RetryableError: the disk is full or away; the snapshots before stay.
        """
        body = msgspec.msgpack.encode(state)
        data = b"".join((_MAGIC, zlib.crc32(body).to_bytes(4, "little"), body))
        number = self._number + 1
        with _errors("writing", self._path(number)):
            if self._is_local:
                self._write_local(Path(self._path(number)), data)
            else:
                with self._fs.open_output_stream(self._path(number)) as stream:
                    stream.write(data)
            self._number = number
            for old in sorted(self._numbers())[:-_KEPT]:
                self._fs.delete_file(self._path(old))
        return len(data)

    def load(self) -> BarsState | None:
        """Return the newest snapshot that can be read; None without one."""
        for number in sorted(self._numbers(), reverse=True):
            path = self._path(number)
            with _errors("reading", path), self._fs.open_input_stream(path) as stream:
                data = stream.read()
            try:
                return _decoded(data)
            except StorageError as error:
                _LOG.error("bars_state_refused path=%s error=%s", path, error)
        return None

    def _numbers(self) -> list[int]:
        found = self._fs.get_file_info(fs.FileSelector(self._folder))
        names = [info.base_name for info in found if info.base_name.endswith(_SUFFIX)]
        return [int(name.removesuffix(_SUFFIX)) for name in names if name.removesuffix(_SUFFIX).isdigit()]

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:012}{_SUFFIX}"

    @staticmethod
    def _write_local(path: Path, data: bytes) -> None:
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def _decoded(data: bytes) -> BarsState:
    head, crc, body = data[: len(_MAGIC)], data[len(_MAGIC) : len(_MAGIC) + 4], data[len(_MAGIC) + 4 :]
    if head != _MAGIC:
        raise StorageError(f"expected a snapshot to begin with {_MAGIC!r}, got {head!r}")
    if zlib.crc32(body).to_bytes(4, "little") != crc:
        raise StorageError("it is damaged: its checksum does not fit")
    try:
        return _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise StorageError(f"it is not as this version writes it: {error}") from error


@contextlib.contextmanager
def _errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RetryableError(
            f"{doing} {path} failed: {error}; make room or choose another checkpoint_folder", code=ErrorCode.STORAGE
        ) from error
