"""Reads fields of a pattern; what is wrong is refused with its place."""

from __future__ import annotations

import re
from typing import TypeVar

from relay.engine.pattern_values import LEVEL_DECIMALS, LEVEL_DIGITS, NS_PER_MS
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import check_period
from relay.protocol.tickers import parse_ticker

__all__ = ["PatternError", "choice", "duration_ns", "period", "ticker", "units", "whole"]

E = TypeVar("E")

_DECIMAL = re.compile(r"(-?)([0-9]{1,60})(?:\.([0-9]{1,60}))?", re.ASCII)
_SHOWN_MAX = 80


class PatternError(PeerError):
    """A pattern is wrong; ``place`` says where, as ``steps[1].threshold.price``."""

    default_code = ErrorCode.INVALID_PATTERN

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


def units(place: str, text: str, *, decimals: int = LEVEL_DECIMALS, scale: int, positive_max: int | None = None) -> int:
    """Return a decimal text in units of ``10^-scale``.

    Args:
        place: of the field.
        text: plain decimal notation.
        decimals: at most so many after the point.
        scale: of the result.
        positive_max: when given, the number is above 0 and at most this.

    Raises:
        PatternError: it is no such number.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise PatternError(place, f"expected a plain decimal number such as 50000.5, got {_shown(text)}")
    sign, whole_digits, fraction = match[1], match[2].lstrip("0"), (match[3] or "").rstrip("0")
    if len(whole_digits) > LEVEL_DIGITS or len(fraction) > decimals:
        raise PatternError(
            place, f"expected at most {LEVEL_DIGITS} digits before the point and {decimals} after, got {_shown(text)}"
        )
    number: int = int((whole_digits + fraction) or "0") * 10 ** (scale - len(fraction))
    number = -number if sign else number
    if positive_max is not None and not 0 < number <= positive_max * 10**scale:
        raise PatternError(place, f"expected a number above 0 and up to {positive_max}, got {_shown(text)}")
    return number


def duration_ns(place: str, milliseconds: int, *, max_ms: int, is_optional: bool = False) -> int:
    """Return a duration in nanoseconds; 0 stands for none where it is optional.

    Raises:
        PatternError: it is 0 though it is needed, or too long.
    """
    if not (is_optional or milliseconds > 0) or milliseconds > max_ms:
        low = "0 (no limit)" if is_optional else "1"
        raise PatternError(place, f"expected {low} to {max_ms} milliseconds, got {milliseconds}")
    return milliseconds * NS_PER_MS


def whole(place: str, number: int, *, low: int, high: int) -> int:
    """Return a whole number inside its bounds.

    Raises:
        PatternError: it is outside.
    """
    if not low <= number <= high:
        raise PatternError(place, f"expected a whole number of {low} to {high}, got {number}")
    return number


def ticker(place: str, text: str) -> str:
    """Return a ticker in its unified form.

    Raises:
        PatternError: it is none.
    """
    try:
        return str(parse_ticker(text))
    except PeerError as error:
        raise PatternError(place, str(error)) from error


def period(place: str, seconds: int) -> int:
    """Return a bar's period.

    Raises:
        PatternError: it is none.
    """
    try:
        return check_period(seconds)
    except PeerError as error:
        raise PatternError(place, str(error)) from error


def choice(place: str, kind: type[E], number: int) -> E:
    """Return the member of an enumeration; proto3 lets any number through.

    Raises:
        PatternError: the number means nothing.
    """
    try:
        return kind(number)  # type: ignore[call-arg]
    except ValueError as error:
        names = ", ".join(f"{member.value} {member.name}" for member in kind)  # type: ignore[attr-defined]
        raise PatternError(place, f"expected one of {names}, got {number}") from error


def _shown(text: str) -> str:
    return repr(text[:_SHOWN_MAX])
