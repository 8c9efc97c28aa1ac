"""Query parameters by Binance's rules, and its errors for what does not fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ingestors.simulation.answers import Answer, Call, RefusedCall, json_answer
from ingestors.simulation.grids import FixedGrid, Grid, MonthGrid
from relay.protocol.periods import WEEK_ORIGIN_SECONDS, WEEK_SECONDS, parse_period

__all__ = [
    "Bounds",
    "bounds_of",
    "check_known",
    "failure",
    "grid_of",
    "integer_of",
    "limit_of",
    "refused",
    "symbol_of",
    "unit_ns_of",
]

_MILLISECOND_NS, _MICROSECOND_NS = 10**6, 10**3
_MICROSECONDS_FROM = 10**14
_FIXED_INTERVALS = ("1s", "1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "8h", "12h", "1d", "3d", "1w")
_LIMIT, _LIMIT_MAX = 500, 1_000
_ZONE = re.compile(r"([+-]?)(\d{1,2})(?::(\d{2}))?", re.ASCII)
_MISSING = "Mandatory parameter '{}' was not sent, was empty/null, or malformed."


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range of a call, nanoseconds, both inclusive; None where not given."""

    start_ns: int | None
    end_ns: int | None


def failure(status: int, code: int | str, message: str) -> Answer:
    """Return ``{"code": …, "msg": …}``."""
    return json_answer({"code": code, "msg": message}, status=status)


def refused(code: int, message: str) -> RefusedCall:
    """Return what a handler raises to answer 400 with a code."""
    return RefusedCall(failure(400, code, message))


def check_known(call: Call, *known: str) -> None:
    """Refuse parameters that the endpoint does not read."""
    read, sent = sum(name in known for name in call.parameters), len(call.parameters)
    if read < sent:
        raise refused(-1104, f"Not all sent parameters were read; read '{read}' parameter(s) but was sent '{sent}'.")


def symbol_of(call: Call) -> str:
    """Return the mandatory symbol, as sent."""
    name = call.parameters.get("symbol", "")
    if not name:
        raise refused(-1102, _MISSING.format("symbol"))
    if re.fullmatch(r"[A-Z0-9-_.]{1,20}", name, re.ASCII) is None:
        legal = "legal range is '^[A-Z0-9-_.]{1,20}$'"
        raise refused(-1100, f"Illegal characters found in parameter 'symbol'; {legal}.")
    return name


def grid_of(call: Call) -> Grid:
    """Return the bars of the mandatory interval, in the zone of timeZone."""
    interval = call.parameters.get("interval", "")
    if not interval:
        raise refused(-1102, _MISSING.format("interval"))
    offset_seconds = _zone_seconds(call)
    if interval == "1M":
        return MonthGrid(offset_seconds)
    if interval not in _FIXED_INTERVALS:
        raise refused(-1120, "Invalid interval.")
    period_seconds = parse_period(interval)
    origin_seconds = WEEK_ORIGIN_SECONDS if period_seconds == WEEK_SECONDS else 0
    return FixedGrid(period_seconds, origin_seconds - offset_seconds)


def _zone_seconds(call: Call) -> int:
    match = _ZONE.fullmatch(call.parameters.get("timeZone", "0").strip())
    if match is not None:
        seconds = int(match[2]) * 3_600 + int(match[3] or 0) * 60
        seconds = -seconds if match[1] == "-" else seconds
        if -12 * 3_600 <= seconds <= 14 * 3_600:
            return seconds
    raise refused(-1130, "Data sent for parameter 'timeZone' is not valid.")


def bounds_of(call: Call) -> Bounds:
    """Return startTime and endTime, milliseconds or microseconds by size; none when the start is to be ignored."""
    start, end = _instant(call, "startTime"), _instant(call, "endTime")
    bounds = Bounds(None if start is None else start[0], None if end is None else end[1])
    return Bounds(None, None) if call.ignores_start else bounds


def _instant(call: Call, name: str) -> tuple[int, int] | None:
    """Return first and last nanosecond of what was sent: 5 ms is the whole millisecond when it is an end."""
    value = integer_of(call, name)
    if value is None:
        return None
    unit_ns = _MICROSECOND_NS if value >= _MICROSECONDS_FROM else _MILLISECOND_NS
    return value * unit_ns, (value + 1) * unit_ns - 1


def integer_of(call: Call, name: str) -> int | None:
    """Return a whole number, None when it was not sent."""
    text = call.parameters.get(name)
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,20}", text, re.ASCII) is None:
        legal = "legal range is '^[0-9]{1,20}$'"
        raise refused(-1100, f"Illegal characters found in parameter '{name}'; {legal}.")
    return int(text)


def limit_of(call: Call) -> int:
    """Return the page size: 500 by default, never above 1,000."""
    limit = integer_of(call, "limit")
    if limit == 0:
        raise refused(-1130, "Data sent for parameter 'limit' is not valid.")
    return min(limit or _LIMIT, _LIMIT_MAX)


def unit_ns_of(call: Call) -> int:
    """Return the unit of times in the answer, in nanoseconds."""
    unit = call.headers.get("x-mbx-time-unit", "MILLISECOND").upper()
    if unit not in ("MILLISECOND", "MICROSECOND"):
        raise refused(-1194, "Invalid value for time unit; expected either MICROSECOND or MILLISECOND.")
    return _MICROSECOND_NS if unit == "MICROSECOND" else _MILLISECOND_NS
