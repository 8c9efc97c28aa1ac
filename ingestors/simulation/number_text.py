"""Scaled integers as exchanges write them: fixed decimals in text, or a bare JSON number. Never a binary float."""

from __future__ import annotations

import msgspec

__all__ = ["fixed_text", "json_number", "ratio_units", "seconds_number", "shortest_text"]

_EXPONENT_BELOW_ZEROS = 6


def fixed_text(units: int, decimals: int, places: int = 0) -> str:
    """Return ``units x 10^-decimals`` with all its decimals, and at least ``places`` of them."""
    if decimals < places:
        units, decimals = units * 10 ** (places - decimals), places
    if decimals == 0:
        return str(units)
    sign, digits = ("-", -units) if units < 0 else ("", units)
    whole, rest = divmod(digits, 10**decimals)
    return f"{sign}{whole}.{rest:0{decimals}d}"


def shortest_text(units: int, decimals: int) -> str:
    """Return ``units x 10^-decimals`` in plain notation without needless zeros."""
    text = fixed_text(units, decimals)
    return text.rstrip("0").rstrip(".") if "." in text else text


def json_number(units: int, decimals: int) -> msgspec.Raw:
    """Return a bare JSON number; below 10^-6 in exponent form (``1e-7``), as JavaScript servers print it."""
    text = shortest_text(units, decimals)
    fraction = text.removeprefix("0.")
    zeros = len(fraction) - len(fraction.lstrip("0"))
    if text.startswith("0.") and zeros >= _EXPONENT_BELOW_ZEROS:
        digits = fraction.lstrip("0")
        mantissa = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
        text = f"{mantissa}e-{zeros + 1}"
    return msgspec.Raw(text.encode())


def seconds_number(time_ns: int, places: int) -> msgspec.Raw:
    """Return seconds as a bare JSON number, cut (not rounded: it must not cross into the next bar) to ``places``."""
    return msgspec.Raw(shortest_text(time_ns // 10 ** (9 - places), places).encode())


def ratio_units(numerator: int, denominator: int) -> int:
    """Return the quotient rounded half up, 0 for an empty denominator."""
    return (2 * numerator + denominator) // (2 * denominator) if denominator else 0
