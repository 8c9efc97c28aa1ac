"""Bars into files: csv, parquet, arrow, json. Numbers in text are plain decimals, never rounded."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from relay.errors import SettingsError, StorageError
from relay.protocol.ranges import Range
from relay.protocol.scaled import plain_text
from relay.protocol.times import format_ns
from relay_client.history import BAR_COLUMNS

if TYPE_CHECKING:
    from relay_client.history import History

__all__ = ["check_format", "ranges_json", "write_file", "write_json"]


def check_format(path: Path) -> None:
    """Raise unless the file's name says a known format.

    Raises:
        SettingsError: names the known ones.
    """
    if path.suffix not in _WRITERS:
        raise SettingsError(f"expected a file name that ends in {', '.join(_WRITERS)}, got {path.name!r}")


def write_file(bars: History, path: Path) -> None:
    """Write bars in the format of the file's name; the file appears whole or not at all.

    Raises:
        StorageError: the file cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        _WRITERS[path.suffix](bars, unfinished)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise StorageError(f"cannot write {path}: {error}") from error


def write_json(bars: History, out: TextIO) -> None:
    """Write one JSON object: what was asked, how it ended, what is missing, and the bars."""
    query = bars.query
    head = {
        "ticker": query.ticker,
        "period_seconds": query.period_seconds,
        "start": format_ns(query.start_ns),
        "end": format_ns(query.end_ns),
        "status": str(bars.status),
        "warning": bars.warning,
        "snapshot_id": bars.snapshot_id,
        "coverage": ranges_json(bars.coverage),
        "missing": ranges_json(bars.missing),
        "requests": [outcome.request_id for outcome in bars.requests],
    }
    out.write(json.dumps(head)[:-1] + ', "bars": [')
    for index, bar in enumerate(bars):
        row = {name: _text(getattr(bar, name), keep=(bool, int)) for name in BAR_COLUMNS}
        out.write((",\n" if index else "\n") + json.dumps(row))
    out.write("]}\n")


def ranges_json(ranges: tuple[Range, ...]) -> list[dict[str, str]]:
    """Return ranges as objects of two times."""
    return [{"start": format_ns(r.start_ns), "end": format_ns(r.end_ns)} for r in ranges]


def _write_json_file(bars: History, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        write_json(bars, file)


def _write_csv(bars: History, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(BAR_COLUMNS)
        writer.writerows([_text(getattr(bar, name)) for name in BAR_COLUMNS] for bar in bars)


def _write_parquet(bars: History, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(bars.to_arrow(), path, compression="zstd")


def _write_arrow(bars: History, path: Path) -> None:
    import pyarrow as pa

    table = bars.to_arrow()
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _text(value: object, *, keep: tuple[type, ...] = ()) -> Any:
    """Return text of a cell; null stays null."""
    if value is None or isinstance(value, keep):
        return value
    if isinstance(value, Decimal):
        return plain_text(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value)


_WRITERS: dict[str, Callable[[History, Path], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".arrow": _write_arrow,
    ".json": _write_json_file,
}
