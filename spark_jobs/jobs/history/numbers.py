"""Exact columns out of wire numbers: scaled integers and decimal text become decimal(38,18) without a float."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa

from relay.protocol.scaled import from_scaled
from relay.tables.schema import STORED_NUMBER

__all__ = ["stored_numbers_of_text", "stored_numbers_of_units"]


def stored_numbers_of_units(units: Sequence[int], decimals: Sequence[int]) -> pa.Array:
    """Return ``units x 10^-decimals`` as stored numbers.

    Args:
        units: int64 values.
        decimals: scale of each, mostly all the same.

    Raises:
        ValueError: a number is not exact at 18 decimals or too large.
    """
    if len(set(decimals)) > 1:
        exact: list[Decimal] = [from_scaled(u, d) for u, d in zip(units, decimals, strict=True)]
        return pa.array(exact, STORED_NUMBER)
    scale = decimals[0] if decimals else 0
    if not 0 <= scale <= 30:
        raise ValueError(f"expected 0 to 30 decimals, got {scale}")
    # A decimal128 is a 16-byte little-endian integer: widening int64 to it needs no arithmetic, only the sign.
    words = np.empty((len(units), 2), dtype=np.int64)
    words[:, 0] = units
    words[:, 1] = words[:, 0] >> 63
    widened = pa.Array.from_buffers(pa.decimal128(38, scale), len(units), [None, pa.py_buffer(words)])
    return widened.cast(STORED_NUMBER)


def stored_numbers_of_text(texts: Sequence[str]) -> pa.Array:
    """Return decimal texts as stored numbers; empty text is null.

    Raises:
        ValueError: a text is no plain decimal number, is not exact at 18 decimals, or is too large.
    """
    return pa.array([text or None for text in texts], pa.string()).cast(STORED_NUMBER)
