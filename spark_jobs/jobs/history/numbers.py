"""Exact columns out of wire numbers: scaled integers and decimal text become decimal(38,18) without a float."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relay.protocol.scaled import from_scaled
from relay.tables.schema import STORED_NUMBER

__all__ = ["stored_numbers_of_text", "stored_numbers_of_units"]

_PLAIN = r"^-?0*[0-9]{1,20}(\.[0-9]{1,18}0*)?$"
_NEEDLESS_ZEROS = r"^(-?)0*([0-9]{1,20})(\.[0-9]{1,18}?)?0*$"
_CHARACTERS_MAX = 39
_UNITS_DECIMALS_MAX = 30


def stored_numbers_of_units(units: Sequence[int], decimals: Sequence[int]) -> pa.Array:
    """Return ``units x 10^-decimals`` as stored numbers.

    Args:
        units: int64 values.
        decimals: scale of each, mostly all the same.

    Raises:
        ValueError: a number is not exact at 18 decimals or too large.
    """
    if max(decimals, default=0) > _UNITS_DECIMALS_MAX:
        raise ValueError(f"expected 0 to {_UNITS_DECIMALS_MAX} decimals, got {max(decimals)}")
    if len(set(decimals)) > 1:
        exact: list[Decimal] = [from_scaled(u, d) for u, d in zip(units, decimals, strict=True)]
        return pa.array(exact, STORED_NUMBER)
    scale = decimals[0] if decimals else 0
    # A decimal128 is a 16-byte little-endian integer: widening int64 to it needs no arithmetic, only the sign.
    words = np.empty((len(units), 2), dtype=np.int64)
    words[:, 0] = units
    words[:, 1] = words[:, 0] >> 63
    widened = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [None, pa.py_buffer(words)])
    return widened.cast(STORED_NUMBER)


def stored_numbers_of_text(texts: Sequence[str]) -> pa.Array:
    """Return decimal texts as stored numbers; empty text is null.

    The digits are counted before the conversion: Arrow's own wraps around silently at 2^128.

    Raises:
        ValueError: a text is no plain decimal number, is not exact at 18 decimals, or is too large.
    """
    column = pa.array([text or None for text in texts], pa.string())
    is_plain = pc.match_substring_regex(column, _PLAIN)
    if not pc.all(is_plain, min_count=0).as_py():
        wrong = column.filter(pc.invert(is_plain))[0].as_py()
        raise ValueError(
            f"expected plain decimal notation of at most 20 digits before the point and 18 after, got {wrong[:60]!r}"
        )
    if (pc.max(pc.binary_length(column)).as_py() or 0) > _CHARACTERS_MAX:
        column = pc.replace_substring_regex(column, _NEEDLESS_ZEROS, r"\1\2\3")
    return column.cast(STORED_NUMBER)
