"""JSON text to exact numbers: a number keeps its digits as text until it becomes a Decimal or whole nanoseconds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from ingestors.engine.outcomes import ExchangeError, Outcome, OutcomeKind
from ingestors.engine.values import EXACT, BadRow, Bar, BarsPage, Trade
from relay.errors import PeerError
from relay.protocol.scaled import parse_number

__all__ = [
    "as_list",
    "as_object",
    "decode_json",
    "increment",
    "number",
    "optional_number",
    "read_bars",
    "read_trades",
    "seconds_ns",
    "whole",
]

_NANOSECONDS = Decimal(10**9)
_WHOLE = re.compile(r"-?[0-9]{1,30}", re.ASCII)


def decode_json(text: str | bytes) -> object:
    """Decode JSON; numbers with a fraction or an exponent stay text, so that no digit is lost.

    Raises:
        ValueError: the text is no JSON.
    """
    try:
        decoded: object = json.loads(text, parse_float=str, parse_constant=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return decoded


def number(value: object) -> Decimal:
    """Return the exact number of a JSON string or number.

    Raises:
        PeerError: BAD_ANSWER.
    """
    return parse_number(str(value) if isinstance(value, str | int) and not isinstance(value, bool) else repr(value))


def optional_number(value: object) -> Decimal | None:
    """Return the number, or None when the exchange sent none."""
    return None if value is None or value == "" else number(value)


def increment(value: object) -> Decimal | None:
    """Return a price or amount step, or None when it is absent, zero or unreadable."""
    try:
        step = optional_number(value)
    except PeerError:
        return None
    return step or None


def whole(value: object) -> int:
    """Return a whole number sent as a number or as text.

    Raises:
        PeerError: BAD_ANSWER.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    exact = number(value)
    if exact != exact.to_integral_value():
        raise PeerError(f"expected a whole number, got {value!r}")
    return int(exact)


def seconds_ns(value: object) -> int:
    """Return nanoseconds of a time in seconds with any fraction, exactly; digits below a nanosecond are cut."""
    return int(EXACT.multiply(number(value), _NANOSECONDS))


def as_list(value: object, what: str) -> list[Any]:
    """Return a JSON array, or raise :class:`ExchangeError` that says what was expected."""
    if isinstance(value, list):
        return value
    raise _misshapen(f"expected {what} as an array", value)


def as_object(value: object, what: str) -> dict[str, Any]:
    """Return a JSON object, or raise :class:`ExchangeError` that says what was expected."""
    if isinstance(value, dict):
        return value
    raise _misshapen(f"expected {what} as an object", value)


def read_bars(rows: Sequence[Any], read: Callable[[Any], Bar], *, start_ns: Callable[[Any], int]) -> BarsPage:
    """Read rows one by one; a row that does not parse becomes a bad row of its bucket, the others stand."""
    bars, bad = [], []
    for row in rows:
        try:
            bars.append(read(row))
        except (PeerError, LookupError, TypeError) as error:
            bad.append(BadRow(_time_or_none(row, start_ns), f"unreadable row {str(row)[:80]}: {error}"))
    return BarsPage(tuple(bars), tuple(bad))


def read_trades(
    rows: Sequence[Any], read: Callable[[Any], Trade], *, time_ns: Callable[[Any], int]
) -> tuple[tuple[Trade, ...], tuple[BadRow, ...]]:
    """Read trades one by one, like :func:`read_bars`."""
    trades, bad = [], []
    for row in rows:
        try:
            trades.append(read(row))
        except (PeerError, LookupError, TypeError) as error:
            bad.append(BadRow(_time_or_none(row, time_ns), f"unreadable trade {str(row)[:80]}: {error}"))
    return tuple(trades), tuple(bad)


def _time_or_none(row: object, read_ns: Callable[[Any], int]) -> int | None:
    try:
        return read_ns(row)
    except (PeerError, LookupError, TypeError):
        return None


def _misshapen(expected: str, value: object) -> ExchangeError:
    return ExchangeError(Outcome(OutcomeKind.TRANSIENT, f"{expected}, got {str(value)[:120]!r}"))
