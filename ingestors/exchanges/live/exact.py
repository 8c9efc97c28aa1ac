"""Text to scaled integers and nanoseconds on the hot path: no binary float, no Decimal, one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import TypeVar

import msgspec

from ingestors.engine.feed_values import BadTrade, LiveTrade
from ingestors.engine.values import Listing
from relay.errors import RelayError
from relay.protocol.scaled import INT64_MAX, STORED_DECIMALS, decimals_needed
from relay.protocol.times import TIME_NS_MAX, TIME_NS_MIN, parse_iso_ns

__all__ = [
    "BAD",
    "UNREADABLE",
    "IsoTimes",
    "Scale",
    "decoded_each",
    "excerpt",
    "make_trade",
    "rescaled",
    "scaled",
    "ticks_ns",
]

BAD = (ValueError, RelayError)
"""What reading a trade's fields raises."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding arbitrary bytes raises."""
TEXT_LENGTH_MAX = 64
_DECIMALS_SENT_MAX = 2 * STORED_DECIMALS
"""More cannot be cut to the decimals that are stored: 64 bits hold eighteen zeros at the end."""
_EXPONENT = re.compile(r"([0-9]+)(?:\.([0-9]+))?[eE]([+-]?[0-9]{1,2})", re.ASCII)
_POWERS: tuple[int, ...] = tuple(10**n for n in range(64))
_EXCERPT_LENGTH = 120

T = TypeVar("T")


class Scale(msgspec.Struct, frozen=True, gc=False):
    """A market's ticker and the fewest decimals that its numbers are said with."""

    ticker: str
    price_decimals: int
    amount_decimals: int

    @classmethod
    def of(cls, listing: Listing) -> Scale:
        """Return the scale that the listing's increments ask for."""
        return cls(str(listing.ticker), _decimals(listing.price_increment), _decimals(listing.amount_increment))


class IsoTimes:
    """Reads ISO 8601 times; trades of one second share the work."""

    __slots__ = ("_head", "_head_ns")

    def __init__(self) -> None:
        self._head, self._head_ns = "", 0

    def ns(self, text: str) -> int:
        """Return nanoseconds since the epoch.

        Raises:
            PeerError: the text is no time, or one outside of 1985 to 2100.
        """
        head, rest = text[:19], text[19:]
        if head != self._head:
            self._head_ns = parse_iso_ns(f"{head}Z")
            self._head = head
        fraction = rest[1:-1]
        if rest[:1] != "." or rest[-1:] != "Z" or len(fraction) > 9 or not (fraction.isascii() and fraction.isdigit()):
            return self._head_ns if rest == "Z" else parse_iso_ns(text)
        return self._head_ns + int(fraction) * _POWERS[9 - len(fraction)]


def ticks_ns(value: int) -> int:
    """Return nanoseconds of a time in milliseconds or microseconds, told by its magnitude.

    Raises:
        ValueError: it is a time of 1985 to 2100 in neither.
    """
    for unit_ns in (1_000, 1_000_000):
        if TIME_NS_MIN <= value * unit_ns <= TIME_NS_MAX:
            return value * unit_ns
    raise ValueError(f"time {value} is out of range in ms and in us")


def scaled(text: str, decimals_min: int) -> tuple[int, int]:
    """Return units and decimals of a number above zero, exactly.

    Args:
        text: plain (``0.10``) or with an exponent (``1e-7``).
        decimals_min: decimals at least; more when the text needs more, zeros beyond it are cut.

    Raises:
        ValueError: no such number, not above zero, more than 18 decimals, or no int64.
    """
    whole, dot, fraction = text.partition(".")
    digits = whole + fraction
    decimals = len(fraction)
    if not (digits.isascii() and digits.isdigit()) or len(text) > TEXT_LENGTH_MAX:
        digits, decimals = _with_exponent(text)
    elif not whole or (dot and not fraction):
        raise ValueError(f"expected a number, got {text!r}")
    if decimals > decimals_min:
        kept = digits.rstrip("0")
        cut = min(len(digits) - len(kept), decimals - decimals_min)
        if cut:
            digits, decimals = digits[:-cut], decimals - cut
    units = int(digits) if digits else 0
    if decimals < decimals_min:
        units *= _POWERS[decimals_min - decimals]
        decimals = decimals_min
    if not 0 < units <= INT64_MAX or decimals > STORED_DECIMALS:
        raise ValueError(f"expected a number above zero in 64 bits and 18 decimals, got {text[:TEXT_LENGTH_MAX]!r}")
    return units, decimals


def rescaled(units: int, decimals: int, decimals_min: int) -> tuple[int, int]:
    """Return units and decimals of ``units x 10^-decimals`` as :func:`scaled` does of the same number as text.

    Args:
        units: above zero, 64 bits.
        decimals: of the units; below zero for tens.
        decimals_min: decimals at least; more when the number needs more.

    Raises:
        ValueError: not above zero, more than 18 decimals, or no int64.
    """
    if units > 0 and decimals_min <= decimals <= _DECIMALS_SENT_MAX:
        found, rest = divmod(units, _POWERS[decimals - decimals_min])
        if not rest and found <= INT64_MAX:
            # What happens nearly always.
            return found, decimals_min
    found, shown = _without_zeros(units, decimals) if units > 0 else (0, 0)
    if shown < decimals_min:
        found, shown = found * _POWERS[min(decimals_min - shown, STORED_DECIMALS + 1)], decimals_min
    if not 0 < found <= INT64_MAX or shown > STORED_DECIMALS:
        raise ValueError(
            f"expected a number above zero in 64 bits and 18 decimals, got {units} with {decimals} decimals"
        )
    return found, shown


def make_trade(
    scale: Scale,
    number: int,
    time_ns: int,
    *,
    price: str,
    amount: str,
    taker_buy: bool,
    received_ns: int,
    sequence: int | None = None,
) -> LiveTrade:
    """Return a trade out of an exchange's texts.

    Raises:
        ValueError: price, amount or id make no sense.
    """
    if not 0 <= number <= INT64_MAX:
        raise ValueError(f"expected a trade id in 64 bits, got {number}")
    price_units, price_decimals = scaled(price, scale.price_decimals)
    amount_units, amount_decimals = scaled(amount, scale.amount_decimals)
    return LiveTrade(
        number,
        time_ns,
        price_units,
        amount_units,
        price_decimals,
        amount_decimals,
        taker_buy,
        received_ns,
        sequence,
    )


def decoded_each(
    raws: Iterable[msgspec.Raw], decoder: msgspec.json.Decoder[T], *, ticker: str, bad: list[BadTrade]
) -> list[T]:
    """Decode the rows of a message one by one, when it does not decode as a whole; the bad ones are noted."""
    rows: list[T] = []
    for raw in raws:
        try:
            rows.append(decoder.decode(raw))
        except UNREADABLE as error:
            bad.append(BadTrade(ticker, f"unreadable trade: {error}; {excerpt(raw)}"))
    return rows


def excerpt(data: bytes | msgspec.Raw) -> str:
    """Return the beginning of a message for a log."""
    return bytes(memoryview(data)[:_EXCERPT_LENGTH]).decode("utf-8", "replace")


def _with_exponent(text: str) -> tuple[str, int]:
    match = _EXPONENT.fullmatch(text) if len(text) <= TEXT_LENGTH_MAX else None
    if match is None:
        raise ValueError(f"expected a number, got {text[:TEXT_LENGTH_MAX]!r}")
    fraction = match[2] or ""
    decimals = len(fraction) - int(match[3])
    digits = match[1] + fraction
    return (digits, decimals) if decimals >= 0 else (digits + "0" * -decimals, 0)


def _without_zeros(units: int, decimals: int) -> tuple[int, int]:
    """Cut zeros at the end of units above zero."""
    while units % 10 == 0:
        units, decimals = units // 10, decimals - 1
    return units, decimals


def _decimals(increment: Decimal | None) -> int:
    return 0 if increment is None else min(decimals_needed((increment,)), STORED_DECIMALS)
