"""Decimal64: decimal numbers as 64-bit mantissas with one exponent for all of a field; exact, or refused."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any, ClassVar

from relay_accel._native import decimal_mantissa, decimal_mantissas, decimal_text, decimal_texts
from relay_accel._sbe import EncodeError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Decimal64"]

# A mantissa has at most 19 digits: nothing is rounded here, whatever the caller's own context is.
_EXACT = Context(prec=19, Emax=999, Emin=-999, traps=[Inexact, InvalidOperation])
_DIGITS_MAX = 1 << 64


@dataclass(frozen=True, slots=True)
class Decimal64:
    """A format of decimal numbers: ``number = mantissa * 10**exponent``; it holds no number and does no arithmetic.

    Numbers go in as text, ``decimal.Decimal``, int or None (null), and one that is not exact in the format is refused
    unless the caller names a rounding of the ``decimal`` module. Also a mark of record fields:
    ``Annotated[Decimal, Decimal64()]``.

    Args:
        exponent: -18 to 0, the same for all mantissas.

    Layout: proto/spec/0015.
    """

    exponent: int = -7
    NULL: ClassVar[int] = (1 << 63) - 1
    """The mantissa that is no number."""

    def __post_init__(self) -> None:
        decimal_text(0, self.exponent)

    def mantissa(self, number: Decimal | str | int | None, *, rounding: str | None = None) -> int:
        """Return a number's mantissa; None gives null.

        Args:
            number: text is digits, perhaps with a minus sign, a point between digits, and an exponent.
            rounding: ``decimal.ROUND_HALF_EVEN`` and the like (not ``ROUND_05UP``); None refuses what is not exact.

        Raises:
            EncodeError: no number, not exact, or too great.
            TypeError: a float, which holds no decimal digits, or another type.
        """
        return self.NULL if number is None else decimal_mantissa(_text(number), self.exponent, rounding)

    def from_scaled(self, units: int, decimals: int, *, rounding: str | None = None) -> int:
        """Return the mantissa of ``units * 10**-decimals``.

        Raises:
            EncodeError: as of :meth:`mantissa`.
        """
        return decimal_mantissa(f"{_text(units)}E{-_whole(decimals)}", self.exponent, rounding)

    def decimal(self, mantissa: int) -> Decimal | None:
        """Return the number, with all decimals of the format; None for null."""
        units = _checked(mantissa)
        return None if units == self.NULL else Decimal(units).scaleb(self.exponent, _EXACT)

    def text(self, mantissa: int) -> str | None:
        """Return the number as the shortest plain text, such as ``-0.5``; None for null."""
        return decimal_text(_checked(mantissa), self.exponent)

    def scaled(self, mantissa: int) -> tuple[int, int] | None:
        """Return units and decimals, a scaled integer; None for null."""
        units = _checked(mantissa)
        return None if units == self.NULL else (units, -self.exponent)

    def mantissas(
        self, numbers: Iterable[Decimal | str | int | None], *, rounding: str | None = None
    ) -> npt.NDArray[np.int64]:
        """Return a column's mantissas as an array of its own, nulls as :attr:`NULL`.

        Raises:
            EncodeError, TypeError: as of :meth:`mantissa`; the text begins with the item's index.
            ImportError: NumPy is not installed (extra ``numpy``).
        """
        numpy = _numpy()
        texts = [_item(index, number) for index, number in enumerate(numbers)]
        column: npt.NDArray[np.int64] = numpy.frombuffer(decimal_mantissas(texts, self.exponent, rounding), numpy.int64)
        return column

    def decimals(self, mantissas: npt.NDArray[np.int64]) -> list[Decimal | None]:
        """Return a column's numbers; see :meth:`decimal`.

        Raises:
            TypeError: no array of int64.
        """
        return [self.decimal(units) for units in _column(mantissas).tolist()]

    def texts(self, mantissas: npt.NDArray[np.int64]) -> list[str | None]:
        """Return a column's texts; see :meth:`text`.

        Raises:
            TypeError: no array of int64.
        """
        return decimal_texts(_column(mantissas).data, self.exponent)


def _text(number: object) -> str:
    """Exact text of a number; whatever it is, the native side checks it."""
    if isinstance(number, str):
        return number
    if isinstance(number, Decimal):
        return str(number)
    if isinstance(number, float) or type(number).__name__.startswith(("float", "longdouble")):
        raise TypeError(
            f"expected a decimal number, got the binary float {number!r}, whose digits are not exact "
            f"(0.1 is 0.1000000000000000055…); give its text, a decimal.Decimal or a scaled integer"
        )
    return str(_whole(number))


def _whole(number: object) -> int:
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        kind = type(number).__name__
        raise TypeError(f"expected text, a decimal.Decimal, an int or None, got {kind}")
    whole = operator.index(number)
    if abs(whole) >= _DIGITS_MAX:
        raise EncodeError(f"expected an integer of at most 64 bits, got one of {whole.bit_length()} bits")
    return whole


def _item(index: int, number: object) -> str | None:
    try:
        return None if number is None else _text(number)
    except (TypeError, EncodeError) as error:
        raise type(error)(f"item {index}: {error}") from None


def _checked(mantissa: int) -> int:
    units = operator.index(mantissa)
    if not -(1 << 63) <= units < 1 << 63:
        raise ValueError(f"expected a mantissa of 64 bits, got {units}")
    return units


def _column(mantissas: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    numpy = _numpy()
    if not isinstance(mantissas, numpy.ndarray) or mantissas.dtype.newbyteorder("=") != numpy.int64:
        raise TypeError(f"expected an array of int64 mantissas, got {getattr(mantissas, 'dtype', type(mantissas))}")
    column: npt.NDArray[np.int64] = numpy.ascontiguousarray(mantissas, numpy.int64)
    return column


def _numpy() -> Any:
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("columns need NumPy; install relay-accel[numpy]") from error
    return np
