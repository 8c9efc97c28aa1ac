"""Trades and candles out of a table: columns by their usual names, times by size, numbers from exact text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from ingestors.simulation.recorded_files import Cell, Table
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.scaled import parse_number
from relay.protocol.times import check_time_ns, from_unit, magnitude_unit, parse_iso_ns

__all__ = ["CandleRow", "TradeRow", "candle_rows", "is_candles", "trade_rows"]

_TIME = ("timestamp", "time", "date", "datetime", "opentime", "ts", "t", "start", "starttime", "transacttime")
_NAMES: dict[str, tuple[str, ...]] = {
    "time": _TIME,
    "id": ("id", "tradeid", "aggtradeid", "a"),
    "price": ("price", "p"),
    "size": ("amount", "size", "qty", "quantity", "volume", "q", "vol", "basevolume"),
    "side": ("side", "takerside"),
    "maker": ("isbuyermaker", "buyermaker", "m"),
    "open": ("open", "o"),
    "high": ("high", "h"),
    "low": ("low", "l"),
    "close": ("close", "c"),
    "volume": ("volume", "vol", "v", "basevolume", "amount"),
    "quote_volume": ("quotevolume", "quoteassetvolume", "turnover"),
    "count": ("count", "trades", "numtrades", "numberoftrades", "tradecount"),
    "buy_volume": ("takerbuyvolume", "takerbuybasevolume", "takerbuybaseassetvolume", "buyvolume"),
    "buy_quote_volume": ("takerbuyquotevolume", "takerbuyquoteassetvolume"),
    "vwap": ("vwap",),
}
_BUY, _SELL = frozenset({"buy", "b", "bid"}), frozenset({"sell", "s", "ask"})
_TRUE, _FALSE = frozenset({"true", "1", "t"}), frozenset({"false", "0", "f"})
_PRICES = ("open", "high", "low", "close")


@dataclass(frozen=True, slots=True)
class _Columns:
    """A table with its columns found once."""

    table: Table
    names: Mapping[str, str | None]

    def cell(self, name: str, n: int) -> Cell:
        column = self.names[name]
        return None if column is None else self.table.columns[column][n]


@dataclass(frozen=True, slots=True)
class TradeRow:
    """A trade as recorded."""

    trade_id: int
    time_ns: int
    price: Decimal
    size: Decimal
    taker_buy: bool


@dataclass(frozen=True, slots=True)
class CandleRow:
    """A candle as recorded; None where the file has no such column."""

    start_ns: int
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    quote_volume: Decimal | None
    trades: int | None
    buy_volume: Decimal | None
    buy_quote_volume: Decimal | None
    vwap: Decimal | None


def is_candles(table: Table) -> bool:
    """Return whether the table holds candles; False when it holds trades.

    Raises:
        PeerError: it holds neither.
    """
    names = _found(table).names
    if all(names[name] for name in ("time", *_PRICES, "volume")):
        return True
    if all(names[name] for name in ("time", "price", "size")):
        return False
    found = ", ".join(table.columns)
    raise PeerError(
        "expected columns of candles (time, open, high, low, close, volume) or of trades (time, price, amount, "
        f"side or is_buyer_maker); found {found}",
        code=ErrorCode.INVALID_REQUEST,
    )


def candle_rows(table: Table) -> list[CandleRow]:
    """Return the candles of a table.

    Raises:
        PeerError: a cell is no time or no number; names the row.
    """
    rows = []
    columns = _found(table)
    for n, start_ns in enumerate(_times(columns)):
        prices = [_number(columns, name, n) for name in _PRICES]
        opened, high, low, close = prices
        if not 0 < low <= min(opened, close) <= max(opened, close) <= high:
            raise _wrong(n, f"expected 0 < low <= open, close <= high, got {', '.join(map(str, prices))}")
        count = _optional(columns, "count", n)
        rows.append(
            CandleRow(
                start_ns=start_ns,
                open=opened,
                high=high,
                low=low,
                close=close,
                volume=_number(columns, "volume", n),
                quote_volume=_optional(columns, "quote_volume", n),
                trades=None if count is None else int(count),
                buy_volume=_optional(columns, "buy_volume", n),
                buy_quote_volume=_optional(columns, "buy_quote_volume", n),
                vwap=_optional(columns, "vwap", n),
            )
        )
    return rows


def trade_rows(table: Table) -> list[TradeRow]:
    """Return the trades of a table.

    Without an id column ids count from 1. Without a side a trade counts as bought when its price did not fall.

    Raises:
        PeerError: a cell is no time, number or side; names the row.
    """
    rows: list[TradeRow] = []
    columns = _found(table)
    for n, time_ns in enumerate(_times(columns)):
        price, size = _number(columns, "price", n), _number(columns, "size", n)
        if price <= 0 or size < 0:
            raise _wrong(n, f"expected a price above 0 and a size from 0, got {price} and {size}")
        taker_buy = _taker_buy(columns, n)
        if taker_buy is None:
            taker_buy = not rows or price >= rows[-1].price
        trade_id = int(_number(columns, "id", n)) if columns.names["id"] else n + 1
        rows.append(TradeRow(trade_id, time_ns, price, size, taker_buy))
    return rows


def _found(table: Table) -> _Columns:
    normal = {column.lower().replace("_", "").replace(" ", ""): column for column in reversed(list(table.columns))}
    names = {name: next((normal[a] for a in aliases if a in normal), None) for name, aliases in _NAMES.items()}
    return _Columns(table, names)


def _times(columns: _Columns) -> Iterator[int]:
    column = columns.names["time"] or ""
    exact = column in columns.table.times_ns
    for n, cell in enumerate(columns.table.columns[column]):
        try:
            yield check_time_ns(cell) if exact and isinstance(cell, int) else _time_ns(cell)
        except PeerError as error:
            raise _wrong(n, f"column {column!r}: {error}") from error


def _time_ns(cell: Cell) -> int:
    """Return a time of any unit: whole or decimal numbers by size, ISO text with a zone."""
    text = str(cell).strip()
    if not (text.isascii() and text.replace(".", "", 1).isdigit()):
        return parse_iso_ns(text)
    whole, _, fraction = text.partition(".")
    value = int(whole or 0)
    unit = magnitude_unit(value)
    unit_ns = from_unit(value, unit) // value
    return from_unit(value, unit) + int(Decimal(f"0.{fraction or 0}") * unit_ns)


def _number(columns: _Columns, name: str, n: int) -> Decimal:
    number = _optional(columns, name, n)
    if number is None:
        raise _wrong(n, f"expected a number in column {columns.names[name]!r}, got nothing")
    return number


def _optional(columns: _Columns, name: str, n: int) -> Decimal | None:
    cell = columns.cell(name, n)
    if cell is None or cell == "":
        return None
    try:
        return parse_number(str(cell).strip())
    except PeerError as error:
        raise _wrong(n, f"column {columns.names[name]!r}: {error}") from error


def _taker_buy(columns: _Columns, n: int) -> bool | None:
    if columns.names["side"]:
        name, yes, no, expected = "side", _BUY, _SELL, "buy or sell"
    elif columns.names["maker"]:
        name, yes, no, expected = "maker", _FALSE, _TRUE, "true or false"
    else:
        return None
    text = str(columns.cell(name, n)).strip().lower()
    if text in yes or text in no:
        return text in yes
    raise _wrong(n, f"expected {expected} in column {columns.names[name]!r}, got {text!r}")


def _wrong(n: int, text: str) -> PeerError:
    return PeerError(f"row {n + 1}: {text}", code=ErrorCode.INVALID_REQUEST)
