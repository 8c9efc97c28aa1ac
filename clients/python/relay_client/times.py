"""Times and spans as users write them, turned into nanoseconds; what is ambiguous is refused with what to do."""

from __future__ import annotations

import operator
import re
from datetime import UTC, date, datetime, timedelta
from typing import SupportsIndex

from relay.errors import PeerError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import TimeUnit, check_time_ns, format_ns, from_unit, parse_iso_ns

__all__ = ["TimeLike", "from_ns", "parse_range", "parse_span_ns", "parse_time_ns"]

TimeLike = datetime | date | str | SupportsIndex
"""Aware datetime (pandas Timestamp too), date or ISO text, or an integer whose unit is stated."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ("s", "ms", "us", "ns")
_SPAN = re.compile(r"([0-9]{1,9})(s|m|h|d|w)", re.ASCII)
_SPAN_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_SPAN_SECONDS_MAX = 36_525 * 86_400
"""A hundred years; how far back an exchange goes is another matter."""
_SHOWN_MAX = 80
_DIGITS = re.compile(r"[+-]?([0-9]+)(?:\.([0-9]*))?", re.ASCII)


def parse_time_ns(value: TimeLike, *, unit: TimeUnit | None = None, what: str = "time") -> int:
    """Return the nanoseconds of a time.

    Args:
        value: aware datetime or pandas Timestamp; ISO 8601 text with an offset or ``Z``; a date (midnight UTC); or an
            integer with ``unit``.
        unit: of an integer: ``s``, ``ms``, ``us`` or ``ns``; times of other types have their own.
        what: name of the argument, for the error.

    Raises:
        SettingsError: INVALID_TIME; naive, ambiguous, of no known type, or outside 1985 to 2100.
    """
    try:
        if isinstance(value, str):
            return _of_text(value, what)
        if isinstance(value, datetime):
            return _of_datetime(value, what)
        if isinstance(value, date):
            return parse_iso_ns(value.isoformat())
        return _of_integer(value, unit, what)
    except PeerError as error:
        raise SettingsError(f"{what}: {error}", code=ErrorCode.INVALID_TIME) from error


def parse_span_ns(text: str, *, what: str = "last") -> int:
    """Return the nanoseconds of a span such as ``90s``, ``15m``, ``1h``, ``7d`` or ``2w``.

    Raises:
        SettingsError: INVALID_TIME.
    """
    found = _SPAN.fullmatch(text.strip()) if isinstance(text, str) else None
    span_s = int(found[1]) * _SPAN_SECONDS[found[2]] if found else 0
    if not 1 <= span_s <= _SPAN_SECONDS_MAX:
        raise _refused(
            f"{what}: expected a span such as 15m, 1h, 7d, of 1s to {_SPAN_SECONDS_MAX // 86_400}d, got {text!a:.80}"
        )
    return span_s * NANOSECONDS


def parse_range(
    *,
    start: TimeLike | None,
    end: TimeLike | None,
    last: str | None,
    unit: TimeUnit | None,
    now_ns: int,
) -> tuple[int, int]:
    """Return start and end in nanoseconds; an end left out is the present.

    Raises:
        SettingsError: INVALID_TIME or INVALID_RANGE; neither or both of ``start`` and ``last`` were given.
    """
    if (start is None) == (last is None):
        raise SettingsError(
            "expected either start or last (such as last='1h'), got "
            + ("neither" if start is None else "both; leave one out"),
            code=ErrorCode.INVALID_RANGE,
        )
    end_ns = now_ns if end is None else parse_time_ns(end, unit=unit, what="end")
    if start is not None:
        start_ns = parse_time_ns(start, unit=unit, what="start")
    else:
        start_ns = end_ns - parse_span_ns("" if last is None else last)
        try:
            check_time_ns(start_ns, what="start")
        except PeerError as error:
            raise _refused(f"last: {last} before {format_ns(end_ns)} is before 1985; ask for less") from error
    if end_ns <= start_ns:
        later = "; a start without an end must lie in the past" if end is None else ""
        raise SettingsError(
            f"expected end after start, got start {format_ns(start_ns)} and end {format_ns(end_ns)}"
            f"{' (now)' if end is None else ''}{later}",
            code=ErrorCode.INVALID_RANGE,
        )
    return start_ns, end_ns


def from_ns(time_ns: int) -> datetime:
    """Return the aware datetime of nanoseconds, at microsecond resolution."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def _of_text(text: str, what: str) -> int:
    if number := _DIGITS.fullmatch(text.strip()):
        raise _refused(
            f"{what}: {text[:_SHOWN_MAX]!a} does not say its unit; {_with_unit(*number.groups())}, or ISO text"
        )
    return parse_iso_ns(text)


def _with_unit(whole: str, fraction: str | None) -> str:
    """Say how a number is passed, by one that can be."""
    digits = (fraction or "").rstrip("0")
    if not digits:
        return f"pass {whole[:_SHOWN_MAX]} as an integer with unit='s'"
    unit, width = next(((u, w) for u, w in (("ms", 3), ("us", 6)) if len(digits) <= w), ("ns", 9))
    return f"pass {(whole + digits[:width].ljust(width, '0'))[:_SHOWN_MAX]} as an integer with unit={unit!r}"


def _of_datetime(value: datetime, what: str) -> int:
    # Of all datetimes only pandas' NaT is unlike itself.
    if value != value:  # noqa: PLR0124
        raise _refused(f"{what}: expected a time, got NaT")
    if value.tzinfo is None or value.utcoffset() is None:
        raise _refused(f"{what}: {value} has no zone; make it aware, such as {type(value).__name__}(…, tzinfo=UTC)")
    nanosecond = int(getattr(value, "nanosecond", 0))
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime(warn=False)
    microseconds = (value - _EPOCH) // timedelta(microseconds=1)
    return check_time_ns(microseconds * 1000 + nanosecond, what=what)


def _of_integer(value: object, unit: TimeUnit | None, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _refused(
            f"{what}: expected an aware datetime, ISO text such as 2026-01-31T12:00:00Z, or an integer with its unit, "
            f"got {type(value).__name__} {value!r}"
        )
    if unit is None:
        raise _refused(f"{what}: the integer {value!r} does not say its unit; add unit='s', 'ms', 'us' or 'ns'")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise _refused(f"expected unit 's', 'ms', 'us' or 'ns', got {unit!r}")
    try:
        number = operator.index(value)
    except Exception as error:
        raise _refused(f"{what}: expected an integer, got a {type(value).__name__} that is none") from error
    return from_unit(number, unit)


def _refused(text: str) -> SettingsError:
    return SettingsError(text, code=ErrorCode.INVALID_TIME)
