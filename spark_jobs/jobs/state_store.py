"""A job's state on disk: whole snapshots, the newest that can be read counts."""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from pyarrow import fs

from relay.errors import RetryableError, StorageError
from relay.eventlog import LogIdentity
from relay.protocol.codes import ErrorCode

__all__ = ["JobState", "StateStore"]

_LOG = logging.getLogger(__name__)
_MAGIC = b"MRBSNAP1"
_SUFFIX = ".state"
_KEPT = 2


class JobState(msgspec.Struct, frozen=True):
    """What every snapshot says.

    Attributes:
        cluster_id, topic_id: the log that the offsets belong to.
        tick_offsets: next offset to read, by partition of the tick topic.
    """

    cluster_id: str
    topic_id: str
    tick_offsets: dict[int, int]


S = TypeVar("S", bound=JobState)


class StateStore(Generic[S]):
    """Snapshots in one folder: ``NUMBER.state``, magic, CRC-32 of the rest (u32 LE), MessagePack.

    Args:
        root: checkpoint folder or URL.
        kind: what a snapshot holds.
        job: folder under it.
    """

    def __init__(self, root: str, kind: type[S], *, job: str) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        if "://" in root:
            self._fs, base = fs.FileSystem.from_uri(root)
        else:
            self._fs, base = fs.LocalFileSystem(), str(Path(root).resolve())
        self._folder = f"{base.rstrip('/')}/{job}-state"
        self._is_local = isinstance(self._fs, fs.LocalFileSystem)
        with _errors("opening", self._folder):
            self._fs.create_dir(self._folder, recursive=True)
            self._number = max(self._numbers(), default=0)

    def save(self, state: S) -> int:
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

    def load_of(self, identity: LogIdentity) -> S | None:
        """Return the newest snapshot that can be read, when its offsets are of this log."""
        state = self.load()
        if state is None or (state.cluster_id, state.topic_id) == (identity.cluster_id, identity.topic_id):
            return state
        _LOG.error("state_is_of_another_log cluster_id=%s topic_id=%s", state.cluster_id, state.topic_id)
        return None

    def load(self) -> S | None:
        """Return the newest snapshot that can be read; None without one."""
        for number in sorted(self._numbers(), reverse=True):
            path = self._path(number)
            with _errors("reading", path), self._fs.open_input_stream(path) as stream:
                data = stream.read()
            try:
                return self._decoder.decode(_checked(data))
            except (StorageError, msgspec.MsgspecError) as error:
                _LOG.error("state_refused path=%s error=%s", path, error)
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


def _checked(data: bytes) -> bytes:
    """Return the body of a snapshot."""
    head, crc, body = data[: len(_MAGIC)], data[len(_MAGIC) : len(_MAGIC) + 4], data[len(_MAGIC) + 4 :]
    if head != _MAGIC:
        raise StorageError(f"expected a snapshot to begin with {_MAGIC!r}, got {head!r}")
    if zlib.crc32(body).to_bytes(4, "little") != crc:
        raise StorageError("it is damaged: its checksum does not fit")
    return body


@contextlib.contextmanager
def _errors(doing: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RetryableError(
            f"{doing} {path} failed: {error}; make room or choose another checkpoint_folder", code=ErrorCode.STORAGE
        ) from error
