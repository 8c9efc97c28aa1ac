"""Times: unsigned 64-bit nanoseconds since the epoch, UTC; the unit of a foreign integer is never guessed unseen."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = [
    "TIME_NS_MAX",
    "TIME_NS_MIN",
    "TimeUnit",
    "check_time_ns",
    "format_ns",
    "from_unit",
    "magnitude_unit",
    "parse_iso_ns",
]

TimeUnit = Literal["s", "ms", "us", "ns"]
_UNIT_NS: dict[TimeUnit, int] = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

TIME_NS_MIN = 1_000_000_000 * 10**9 // 2
"""1985: nothing an exchange sends is older."""
TIME_NS_MAX = 4_102_444_800 * 10**9
"""2100-01-01."""

_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9}))?)?\s*(Z|z|[+-]\d{2}:?\d{2})?", re.ASCII
)


def check_time_ns(time_ns: int, *, what: str = "time") -> int:
    """Return the time, or raise when it is outside 1985..2100 (the unit is then most likely wrong).

    Raises:
        PeerError: INVALID_TIME.
    """
    if not TIME_NS_MIN <= time_ns <= TIME_NS_MAX:
        raise PeerError(
            f"expected {what} in nanoseconds between 1985 and 2100, got {time_ns}; check the unit",
            code=ErrorCode.INVALID_TIME,
        )
    return time_ns


def from_unit(value: int, unit: TimeUnit) -> int:
    """Return nanoseconds of a whole number with a stated unit."""
    return check_time_ns(value * _UNIT_NS[unit], what=f"time {value} {unit}")


def magnitude_unit(value: int) -> TimeUnit:
    """Return the unit that a present-day time of this magnitude can only have (s 1e9, ms 1e12, us 1e15, ns 1e18).

    Raises:
        PeerError: INVALID_TIME when no unit gives a year of 1985 to 2100.
    """
    for unit, factor in _UNIT_NS.items():
        if TIME_NS_MIN <= value * factor <= TIME_NS_MAX:
            return unit
    raise PeerError(f"expected a time of 1985 to 2100 in s, ms, us or ns, got {value}", code=ErrorCode.INVALID_TIME)


def parse_iso_ns(text: str) -> int:
    """Parse ISO 8601 with an offset (or ``Z``) into nanoseconds; a bare date is midnight UTC.

    Raises:
        PeerError: INVALID_TIME; a date with a time but no offset is ambiguous and refused.
    """
    match = _ISO.fullmatch(text.strip())
    if match is None:
        raise PeerError(f"expected a time such as 2026-01-31T12:00:00Z, got {text[:80]!r}", code=ErrorCode.INVALID_TIME)
    date, clock, fraction, zone = match.groups()
    if clock is not None and zone is None:
        raise PeerError(f"{text!r} has no zone; add Z for UTC or an offset such as +01:00", code=ErrorCode.INVALID_TIME)
    offset = "+00:00" if zone is None or zone in "Zz" else zone
    try:
        instant = datetime.fromisoformat(f"{date}T{clock or '00:00'}{offset}")
    except ValueError as error:
        raise PeerError(f"expected a real date and time, got {text!r}: {error}", code=ErrorCode.INVALID_TIME) from error
    whole_seconds = (instant - _EPOCH) // timedelta(seconds=1)
    return check_time_ns(whole_seconds * 10**9 + int((fraction or "").ljust(9, "0")), what=f"time {text}")


def format_ns(time_ns: int) -> str:
    """Return ISO 8601 text in UTC, with as many decimals as needed."""
    seconds, rest = divmod(time_ns, 10**9)
    text = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09d}".rstrip("0") + "Z" if rest else text + "Z"
