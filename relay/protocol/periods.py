"""Bar periods: seconds, aligned to the epoch; whole weeks start on Monday (origin 345600 s)."""

from __future__ import annotations

import re

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = [
    "NANOSECONDS",
    "PERIOD_SECONDS_MAX",
    "WANTED_PERIODS_MAX",
    "WEEK_ORIGIN_SECONDS",
    "WEEK_SECONDS",
    "align_down_ns",
    "align_up_ns",
    "bar_count",
    "check_period",
    "format_period",
    "origin_seconds",
    "parse_period",
]

NANOSECONDS = 1_000_000_000
WEEK_SECONDS = 604_800
WEEK_ORIGIN_SECONDS = 345_600
PERIOD_SECONDS_MAX = 52 * WEEK_SECONDS
WANTED_PERIODS_MAX = 64
"""So many periods of one ticker's bars can be subscribed at once (0010): each is work at every trade."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": WEEK_SECONDS}
_TEXT = re.compile(r"([1-9][0-9]{0,8})(s|m|h|d|w)", re.ASCII)


def check_period(period_seconds: int) -> int:
    """Return the period, or raise when it is no whole positive number of seconds in range.

    Raises:
        PeerError: INVALID_PERIOD.
    """
    if isinstance(period_seconds, bool) or not 1 <= period_seconds <= PERIOD_SECONDS_MAX:
        raise PeerError(
            f"expected a period of 1 to {PERIOD_SECONDS_MAX} seconds, got {period_seconds}",
            code=ErrorCode.INVALID_PERIOD,
        )
    return period_seconds


def parse_period(value: str | int) -> int:
    """Parse ``1m``, ``4h``, ``1d``, ``1w`` or whole seconds into seconds.

    Raises:
        PeerError: INVALID_PERIOD; calendar months (``1M``, ``1mo``) are refused because they are no fixed time.
    """
    if isinstance(value, int):
        return check_period(value)
    text = value.strip()
    match = _TEXT.fullmatch(text)
    if match is not None:
        return check_period(int(match[1]) * _UNITS[match[2]])
    if text.isascii() and text.isdigit():
        return check_period(int(text))
    if re.fullmatch(r"[0-9]*\s*(M|mo|mon|month|months|y|Y|year)", text):
        raise PeerError(
            f"calendar months and years are no fixed number of seconds: {value!r} is refused; "
            "ask for 1d bars and group them by month",
            code=ErrorCode.INVALID_PERIOD,
        )
    raise PeerError(
        f"expected a period such as 1s, 1m, 4h, 1d, 1w or whole seconds, got {value!r}", code=ErrorCode.INVALID_PERIOD
    )


def format_period(period_seconds: int) -> str:
    """Return the shortest text of a period (60 is ``1m``, 90 is ``90s``)."""
    for unit in ("w", "d", "h", "m"):
        if period_seconds % _UNITS[unit] == 0:
            return f"{period_seconds // _UNITS[unit]}{unit}"
    return f"{period_seconds}s"


def origin_seconds(period_seconds: int) -> int:
    """Return the origin of a period's grid: Monday 1970-01-05 for whole weeks, else the epoch."""
    return WEEK_ORIGIN_SECONDS if period_seconds % WEEK_SECONDS == 0 else 0


def align_down_ns(time_ns: int, period_seconds: int) -> int:
    """Return the start of the bucket that holds a time (nanoseconds)."""
    period_ns = period_seconds * NANOSECONDS
    origin_ns = origin_seconds(period_seconds) * NANOSECONDS
    return (time_ns - origin_ns) // period_ns * period_ns + origin_ns


def align_up_ns(time_ns: int, period_seconds: int) -> int:
    """Return the first bucket start that is not before a time (nanoseconds)."""
    return align_down_ns(time_ns + period_seconds * NANOSECONDS - 1, period_seconds)


def bar_count(start_ns: int, end_ns: int, period_seconds: int) -> int:
    """Return how many bucket starts lie in [start, end)."""
    first = align_up_ns(start_ns, period_seconds)
    if end_ns <= first:
        return 0
    return (end_ns - 1 - first) // (period_seconds * NANOSECONDS) + 1
