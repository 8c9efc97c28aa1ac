"""What a record's fields can be: marks for annotations, and a field of a layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

__all__ = [
    "CODES",
    "LENGTH_MAX",
    "At",
    "Bytes",
    "Characters",
    "Convert",
    "Field",
    "Number",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]

LENGTH_MAX: Final = 1 << 20
"""Greatest length of a record in bytes."""

CODES: Final = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i8": "b", "i16": "h", "i32": "i", "i64": "q"} | {
    "f32": "f",
    "f64": "d",
}
"""Letters of the ``struct`` module."""


@dataclass(frozen=True, slots=True)
class Number:
    """Mark of a number: ``Annotated[int, Number("u8")]``, which is ``u8``, or ``Annotated[SomeEnum, Number("u8")]``."""

    kind: Literal["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f32", "f64"]

    def __post_init__(self) -> None:
        if self.kind not in CODES:
            raise ValueError(f"expected one of {', '.join(CODES)}, got {self.kind!r}")


@dataclass(frozen=True, slots=True)
class Bytes:
    """Mark of so many bytes, all of them meant: ``Annotated[bytes, Bytes(16)]``."""

    length: int

    def __post_init__(self) -> None:
        _check_length(self.length)


@dataclass(frozen=True, slots=True)
class Characters:
    """Mark of zero-padded text of at most so many bytes: ``Annotated[str, Characters(6)]`` (ASCII), or of ``bytes``."""

    length: int

    def __post_init__(self) -> None:
        _check_length(self.length)


@dataclass(frozen=True, slots=True)
class At:
    """Mark of an offset in bytes; what is left out before it is padding. A field without it follows the one before."""

    offset: int


u8 = Annotated[int, Number("u8")]
u16 = Annotated[int, Number("u16")]
u32 = Annotated[int, Number("u32")]
u64 = Annotated[int, Number("u64")]
i8 = Annotated[int, Number("i8")]
i16 = Annotated[int, Number("i16")]
i32 = Annotated[int, Number("i32")]
i64 = Annotated[int, Number("i64")]
f32 = Annotated[float, Number("f32")]
f64 = Annotated[float, Number("f64")]

Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layout.

    ``code`` is its letter in ``struct``, ``numpy`` its type in NumPy without a byte order, ``expected`` what errors
    say; ``read`` and ``write`` convert between the bytes' own value and the record's; ``allowed`` names the values of
    an enum.
    """

    name: str
    offset: int
    length: int
    code: str
    numpy: str
    expected: str
    read: Convert | None = None
    write: Convert | None = None
    allowed: Mapping[Any, str] | None = None

    @property
    def end(self) -> int:
        """Offset behind the field."""
        return self.offset + self.length


def _check_length(length: int) -> None:
    if not 0 < length <= LENGTH_MAX:
        raise ValueError(f"expected a length from 1 to {LENGTH_MAX} bytes, got {length}")
