"""Ticks into a Parquet file that appears whole or not at all."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

import pyarrow.parquet as pq

from relay.errors import StorageError
from relay_client.batches import DECIMAL_COLUMNS, record_batch
from relay_client.engine.items import Tick

__all__ = ["TickFile"]

_ROWS_MAX = 50_000


class TickFile:
    """A file being written; used as a context manager. Ctrl-C ends it well, any other error removes it.

    Args:
        path: where it appears at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._unfinished = path, path.with_name(f".{path.name}.unfinished")
        self._ticks: list[Tick] = []
        try:
            self._writer = pq.ParquetWriter(self._unfinished, DECIMAL_COLUMNS, compression="zstd")
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error}") from error

    def append(self, tick: Tick) -> None:
        """Add a tick."""
        self._ticks.append(tick)
        if len(self._ticks) >= _ROWS_MAX:
            self._flush()

    def __enter__(self) -> TickFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._flush()
            self._writer.close()
            if kind is None or issubclass(kind, KeyboardInterrupt):
                self._unfinished.replace(self._path)
        except OSError as failed:
            raise StorageError(f"cannot write {self._path}: {failed}") from failed
        finally:
            self._unfinished.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._ticks:
            self._writer.write_batch(record_batch(self._ticks, is_scaled=False))
            self._ticks = []
