"""Exact columns out of wire numbers: scaled integers and decimal text become decimal(38,18) without a float."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from relay.tables.schema import STORED_NUMBER

__all__ = ["stored_numbers_of_text", "stored_numbers_of_units"]

_PLAIN = r"^-?0*[0-9]{1,20}(\.[0-9]{1,18}0*)?$"
_NEEDLESS_ZEROS = r"^(-?)0*([0-9]{1,20})(\.[0-9]{1,18}?)?0*$"
_CHARACTERS_MAX = 39
_UNITS_DECIMALS_MAX = 30


def stored_numbers_of_units(units: Sequence[int | None], decimals: Sequence[int]) -> pa.Array:
    """Return ``units x 10^-decimals`` as stored numbers, null where there are no units.

    Args:
        units: int64 values.
        decimals: scale of each, mostly all the same; of a null it may be any.

    Raises:
        ValueError: a number is not exact at 18 decimals or too large.
    """
    numbers = pa.array(units, pa.int64())
    is_there = numbers.is_valid().to_numpy(zero_copy_only=False)
    whole = numbers.fill_null(0).to_numpy()
    scales = np.asarray(decimals, dtype=np.int64)
    result = pa.nulls(len(numbers), STORED_NUMBER)
    for scale in np.unique(scales[is_there]).tolist():
        if scale > _UNITS_DECIMALS_MAX:
            raise ValueError(f"expected 0 to {_UNITS_DECIMALS_MAX} decimals, got {scale}")
        chosen = is_there & (scales == scale)
        # A decimal128 is a 16-byte little-endian integer: widening int64 to it needs no arithmetic, only the sign.
        words = np.empty((len(numbers), 2), dtype=np.int64)
        words[:, 0] = np.where(chosen, whole, 0)
        words[:, 1] = words[:, 0] >> 63
        widened = pa.Array.from_buffers(pa.decimal128(38, scale), len(numbers), [None, pa.py_buffer(words)])
        result = pc.if_else(pa.array(chosen), widened.cast(STORED_NUMBER), result)
    return result


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
