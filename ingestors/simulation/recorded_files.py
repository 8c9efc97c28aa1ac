"""Tables out of files: CSV, Parquet, Feather and Arrow, JSON and JSON lines. Cells stay exact text or whole numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq

from relay.errors import SettingsError
from relay.protocol.periods import NANOSECONDS

__all__ = ["Table", "read_table"]

Cell = str | int | bool | None

_EXPECTED = "expected a file of trades or candles ending in .csv, .parquet, .feather, .arrow, .json, .jsonl or .ndjson"
_KLINE_COLUMNS = (
    "open_time",
    "open",
    "high",
    "low",
    "close",
    "volume",
    "close_time",
    "quote_volume",
    "count",
    "taker_buy_volume",
    "taker_buy_quote_volume",
    "ignore",
)
_KRAKEN_COLUMNS = ("time", "open", "high", "low", "close", "vwap", "volume", "count")
_HEADERLESS = {
    12: _KLINE_COLUMNS,
    11: _KLINE_COLUMNS[:11],
    8: ("agg_trade_id", "price", "quantity", "first_trade_id", "last_trade_id", "time", "is_buyer_maker", "best"),
    7: ("id", "price", "qty", "quote_qty", "time", "is_buyer_maker", "best"),
    3: ("time", "price", "volume"),
}
"""Layouts of well-known files without a header line, by count of columns."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a file.

    Attributes:
        name: of the file, for error texts.
        columns: cells by column name as written.
        times_ns: columns that are known to hold nanoseconds.
        cursor_ns: the cursor of a Kraken answer (its last closed row), else None.
    """

    name: str
    columns: Mapping[str, Sequence[Cell]]
    times_ns: frozenset[str] = field(default_factory=frozenset)
    cursor_ns: int | None = None


def read_table(path: Path) -> Table:
    """Read a file.

    Raises:
        SettingsError: it is missing, of another kind, damaged or empty.
    """
    if not path.is_file():
        raise SettingsError(f"{_EXPECTED}; there is no file {path}")
    suffix = path.suffix.lower()
    try:
        if suffix in (".parquet", ".feather", ".arrow", ".ipc"):
            table = _of_arrow(path, pq.ParquetFile(path).read() if suffix == ".parquet" else _read_feather(path))
        elif suffix == ".csv":
            table = _of_csv(path)
        elif suffix in (".json", ".jsonl", ".ndjson"):
            table = _of_json(path)
        else:
            raise SettingsError(f"{_EXPECTED}; got {path}")
    except (pa.ArrowException, OSError, ValueError, csv.Error) as error:
        raise SettingsError(f"{_EXPECTED}; {path} cannot be read as {suffix}: {error}") from error
    if not any(table.columns.values()):
        raise SettingsError(f"{_EXPECTED}; {path} holds no rows")
    return table


def _read_feather(path: Path) -> pa.Table:
    try:
        return pf.read_table(path)
    except pa.ArrowInvalid:
        with pa.memory_map(str(path)) as source:  # the stream form of the same format
            return pa.ipc.open_stream(source).read_all()


def _of_arrow(path: Path, table: pa.Table) -> Table:
    columns: dict[str, Sequence[Cell]] = {}
    times_ns = set()
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_timestamp(column.type):
            if column.type.tz is None:
                raise SettingsError(f"{path}: column {name!r} holds times without a zone; store them as UTC")
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
            times_ns.add(name)
        columns[name] = [_cell(value) for value in column.to_pylist()]
    return Table(path.name, columns, frozenset(times_ns))


def _cell(value: object) -> Cell:
    """Return a value as it was meant: a double by its shortest decimal text."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value)


def _of_csv(path: Path) -> Table:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        rows = [row for row in csv.reader(lines) if row]
    if not rows:
        return Table(path.name, {})
    header, body = rows[0], rows[1:]
    if header[0].strip()[:1].isdigit():
        header, body = list(_headerless(path, len(header))), rows
    return _of_rows(path, header, body)


def _headerless(path: Path, count: int) -> Sequence[str]:
    if count not in _HEADERLESS:
        raise SettingsError(f"{path}: expected a header line with column names, got {count} columns of numbers")
    return _HEADERLESS[count]


def _of_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Table:
    columns: list[list[Cell]] = [[] for _ in header]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise SettingsError(f"{path}: expected {len(header)} columns, row {number} has {len(row)}")
        for column, cell in zip(columns, row, strict=True):
            column.append(_cell(cell))
    return Table(path.name, dict(zip((name.strip() for name in header), columns, strict=True)))


def _of_json(path: Path) -> Table:
    text = path.read_text(encoding="utf-8")
    try:
        value = json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError:
        value = [json.loads(line, parse_float=Decimal) for line in text.splitlines() if line.strip()]
    if isinstance(value, dict) and isinstance(value.get("result"), dict):
        return _of_kraken(path, value["result"])
    if isinstance(value, dict):
        value = [value]
    if value and all(isinstance(row, dict) for row in value):
        names = list(dict.fromkeys(name for row in value for name in row))
        return _of_rows(path, names, ([row.get(name) for name in names] for row in value))
    if value and all(isinstance(row, list) for row in value):
        return _of_rows(path, _headerless(path, len(value[0])), value)
    raise SettingsError(f"{path}: expected JSON objects or rows, one by line or in one list")


def _of_kraken(path: Path, result: Mapping[str, object]) -> Table:
    pages = [rows for name, rows in result.items() if name != "last" and isinstance(rows, list)]
    if len(pages) != 1 or not all(isinstance(row, list) and len(row) == len(_KRAKEN_COLUMNS) for row in pages[0]):
        raise SettingsError(f"{path}: expected an OHLC answer with one pair and rows of 8 columns")
    table = _of_rows(path, _KRAKEN_COLUMNS, pages[0])
    last = result.get("last")
    cursor_ns = last * NANOSECONDS if isinstance(last, int) else None
    return Table(table.name, table.columns, table.times_ns, cursor_ns)
