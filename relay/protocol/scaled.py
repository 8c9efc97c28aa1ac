"""Scaled integers: exact numbers between an exchange's text, the wire and storage. No binary float anywhere.

A number is ``units x 10^-decimals``. Denominators are powers of ten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal, Inexact, InvalidOperation

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = [
    "DECIMALS_MAX",
    "INT64_MAX",
    "INT64_MIN",
    "STORED_DECIMALS",
    "decimals_needed",
    "denominator_decimals",
    "from_scaled",
    "is_storable",
    "parse_number",
    "plain_text",
    "to_scaled",
]

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
DECIMALS_MAX = 30
STORED_DECIMALS = 18
"""Scale of decimal(38,18), the stored type of prices and volumes."""
_STORED_BELOW = 10**20

_NUMBER = re.compile(r"-?[0-9]{1,60}(\.[0-9]{1,60})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_EXACT = Context(prec=130, traps=[Inexact, InvalidOperation])


def parse_number(text: str) -> Decimal:
    """Parse a number as exchanges write it, exactly.

    Raises:
        PeerError: BAD_ANSWER when it is no finite decimal number, or of absurd size.
    """
    if _NUMBER.fullmatch(text) is None:
        raise PeerError(f"expected a decimal number, got {text[:80]!r}", code=ErrorCode.BAD_ANSWER)
    number = _EXACT.create_decimal(text)
    if number and not -60 <= number.adjusted() <= 60:
        raise PeerError(f"expected a number below 10^60, got {text[:80]!r}", code=ErrorCode.BAD_ANSWER)
    return number


def decimals_needed(numbers: Iterable[Decimal]) -> int:
    """Return the smallest count of decimals at which every number is exact."""
    needed = 0
    for number in numbers:
        exponent = number.normalize(_EXACT).as_tuple().exponent
        if isinstance(exponent, int) and -exponent > needed:
            needed = -exponent
    return needed


def is_storable(number: Decimal) -> bool:
    """Return whether a stored number can hold it: exact with 18 decimals, at most 20 digits before the point."""
    return abs(number) < _STORED_BELOW and decimals_needed((number,)) <= STORED_DECIMALS


def to_scaled(number: Decimal, decimals: int) -> int:
    """Return the number in units of ``10^-decimals``.

    Raises:
        PeerError: BAD_ANSWER when it is not exact at that scale or fits no int64; never rounded.
    """
    scaled = number.scaleb(decimals, _EXACT)
    units = int(scaled)
    if units != scaled:
        raise PeerError(f"{plain_text(number)} is not exact with {decimals} decimals", code=ErrorCode.BAD_ANSWER)
    if not INT64_MIN <= units <= INT64_MAX:
        raise PeerError(
            f"{plain_text(number)} with {decimals} decimals does not fit 64 bits", code=ErrorCode.BAD_ANSWER
        )
    return units


def from_scaled(units: int, decimals: int) -> Decimal:
    """Return the exact number of a scaled integer."""
    return Decimal(units).scaleb(-decimals, _EXACT)


def denominator_decimals(denominator: int) -> int:
    """Return the decimals of a power-of-ten denominator (100 gives 2).

    Raises:
        PeerError: INVALID_REQUEST when it is no power of ten.
    """
    text = str(denominator)
    if denominator < 1 or text.rstrip("0") != "1":
        raise PeerError(f"expected a power of ten as denominator, got {denominator}", code=ErrorCode.INVALID_REQUEST)
    return len(text) - 1


def plain_text(number: Decimal) -> str:
    """Return a number in plain notation without needless zeros (``0.0000001``, never ``1E-7``)."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text
