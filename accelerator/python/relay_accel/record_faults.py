"""What is wrong with a record: looked for field by field, once something was refused."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from relay_accel._native import AccelError
from relay_accel._sbe import DecodeError, EncodeError
from relay_accel.record_types import Field

__all__ = ["FAULTS", "cut_off", "unreadable", "unwritable"]

FAULTS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, struct.error, AccelError)
"""What conversions and classes raise for values that are none of theirs."""


def cut_off(available: int, offset: int, length: int) -> str:
    """Say how many of a record's bytes a buffer has; all in bytes."""
    return f"byte {offset}: expected {length} bytes, {max(available - offset, 0)} are left"


def unwritable(record: str, fields: Iterable[Field], values: Iterable[Any]) -> EncodeError:
    """Return the error for the first value that its field does not take; ``record`` is the class's name."""
    for field, value in zip(fields, values, strict=True):
        try:
            struct.pack(f"<{field.code}", value if field.write is None else field.write(value))
        except FAULTS as error:
            shown, why = repr(value), "" if field.write is None else _why(error)
            return EncodeError(f"{record}.{field.name}: expected {field.expected}, got {shown:.80}{why}")
    return EncodeError(f"{record}: its values changed while it was written")


def unreadable(
    record: str, fields: Iterable[Field], values: Iterable[Any], offset: int, refusal: Exception
) -> DecodeError:
    """Return the error for the first raw value that its field refuses, else for what the class itself refused."""
    raw = tuple(values)
    for field, value in zip(fields, raw, strict=True):
        try:
            if field.read is not None:
                field.read(value)
        except FAULTS as error:
            place, shown = f"byte {offset + field.offset}: {record}.{field.name}", repr(value)
            return DecodeError(f"{place} is {shown:.80}, expected {field.expected}{_why(error)}")
    return DecodeError(f"byte {offset}: {record} refuses {raw!r:.200}: {refusal}")


def _why(error: Exception) -> str:
    """A look into a table says nothing that the expectation does not."""
    return "" if isinstance(error, KeyError) else f": {error}"
