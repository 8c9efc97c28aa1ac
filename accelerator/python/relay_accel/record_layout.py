"""The layout of a record that an annotated class declares: which fields, where, and how each is converted."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal
from enum import Enum, Flag
from types import MappingProxyType, NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from relay_accel.decimals import Decimal64
from relay_accel.record_types import CODES, At, Bytes, Characters, Convert, Field, Number

__all__ = ["fields_of", "gaps"]


def fields_of(declared: type) -> tuple[Field, ...]:
    """Return the fields of a ``NamedTuple`` or frozen dataclass, each behind the other unless :class:`At` says where.

    Raises:
        TypeError: another class, or a field that is no fixed bytes.
        ValueError: fields overlap.
    """
    hints = get_type_hints(declared, include_extras=True)
    found: list[Field] = []
    for name in _names(declared):
        field = _field(f"{declared.__name__}.{name}", name, hints[name], found[-1].end if found else 0)
        if found and field.offset < found[-1].end:
            last = found[-1]
            raise ValueError(
                f"{declared.__name__}.{name}: byte {field.offset} belongs to {last.name}, which ends at {last.end}; "
                f"fields stand in the order of their offsets"
            )
        found.append(field)
    return tuple(found)


def _names(declared: type) -> tuple[str, ...]:
    if issubclass(declared, tuple) and hasattr(declared, "_fields"):
        return tuple(declared._fields)
    is_frozen = is_dataclass(declared) and declared.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if is_frozen and all(field.init and not field.kw_only for field in fields(declared)):
        return tuple(field.name for field in fields(declared))
    raise TypeError(
        f"expected a NamedTuple, or a dataclass(frozen=True) whose constructor takes all fields by position, "
        f"got {declared!r}"
    )


def _field(place: str, name: str, hint: Any, offset: int) -> Field:
    base, marks = (get_args(hint)[0], get_args(hint)[1:]) if get_origin(hint) is Annotated else (hint, ())
    for mark in (mark for mark in marks if isinstance(mark, At)):
        offset = mark.offset
    kinds = [mark for mark in marks if isinstance(mark, (Number, Bytes, Characters, Decimal64))]
    if len(kinds) != 1:
        raise TypeError(
            f"{place}: expected a type of fixed bytes (u8 … i64, f32, f64, Annotated[bytes, Bytes(n)], "
            f"Annotated[str, Characters(n)], Annotated[Decimal, Decimal64()]), got {hint!r}, which has a size or a "
            f"pointer that the bytes cannot hold"
        )
    return _of_kind(place, name, base, kinds[0], offset)


def _of_kind(place: str, name: str, base: Any, kind: Number | Bytes | Characters | Decimal64, offset: int) -> Field:
    field = _plain(name, kind, offset)
    if isinstance(base, type) and issubclass(base, Enum) and not isinstance(kind, Decimal64):
        return _enum(place, field, base)
    if isinstance(kind, Decimal64):
        return _decimal(place, field, base, kind)
    wanted: tuple[type, ...] = (bytes,)
    if isinstance(kind, Number):
        wanted = (float,) if kind.kind in ("f32", "f64") else (int,)
    elif isinstance(kind, Characters):
        wanted = (bytes, str)
    if base not in wanted:
        raise TypeError(f"{place}: expected {' or '.join(w.__name__ for w in wanted)} with {kind}, got {base!r}")
    if isinstance(kind, Bytes):
        return replace(field, write=lambda value: _exact(value, kind.length))
    if isinstance(kind, Characters):
        return _characters(field, kind.length, is_text=base is str)
    return field


def _plain(name: str, kind: Number | Bytes | Characters | Decimal64, offset: int) -> Field:
    if isinstance(kind, Number):
        length, letter = int(kind.kind[1:]) // 8, kind.kind[0]
        return Field(name, offset, length, CODES[kind.kind], f"{letter}{length}", _expected(letter, 8 * length))
    if isinstance(kind, Decimal64):
        return Field(name, offset, 8, "q", "i8", f"a decimal number in units of 1E{kind.exponent}")
    letter, says = ("V", "exactly") if isinstance(kind, Bytes) else ("S", "at most")
    return Field(name, offset, kind.length, f"{kind.length}s", f"{letter}{kind.length}", f"{says} {kind.length} bytes")


def _expected(letter: str, bits: int) -> str:
    if letter == "f":
        return f"a number that {bits} bits can hold"
    least, greatest = (0, (1 << bits) - 1) if letter == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return f"an integer from {least} to {greatest}"


def _enum(place: str, field: Field, base: type[Enum]) -> Field:
    if issubclass(base, Flag):
        raise TypeError(f"{place}: expected an Enum, got the flags {base.__name__}; take a number for them")
    try:
        for member in base:
            if struct.unpack(f"<{field.code}", struct.pack(f"<{field.code}", member.value)) != (member.value,):
                raise ValueError
    except (struct.error, ValueError) as error:
        raise TypeError(f"{place}: a value of {base.__name__} is not {field.expected}") from error
    names = {member.value: member.name for member in base}
    expected = "one of " + ", ".join(f"{value} ({name})" for value, name in names.items())
    members = {member.value: member for member in base}
    return replace(
        field,
        read=members.__getitem__,
        write=({value: value for value in names} | {member: member.value for member in base}).__getitem__,
        allowed=MappingProxyType(names),
        expected=expected,
    )


def _decimal(place: str, field: Field, base: Any, kind: Decimal64) -> Field:
    inner = [part for part in get_args(base) if part is not NoneType]
    is_optional = len(inner) == 1 and NoneType in get_args(base)
    shown = inner[0] if is_optional else base
    if shown not in (Decimal, str):
        raise TypeError(f"{place}: expected Decimal or str, or one of them | None, with {kind}, got {base!r}")
    read: Convert = kind.decimal if shown is Decimal else kind.text
    write: Convert = kind.mantissa
    if is_optional:
        return replace(field, read=read, write=write)
    return replace(field, read=lambda raw: _present(read(raw)), write=lambda value: write(_present(value)))


def _present(value: Any) -> Any:
    if value is None:
        raise ValueError("null in a field that is not declared as | None")
    return value


def _characters(field: Field, length: int, *, is_text: bool) -> Field:
    if is_text:
        return replace(
            field,
            read=lambda raw: raw.partition(b"\0")[0].decode("ascii"),
            write=lambda value: _padded(value.encode("ascii"), length, zeros="\0" in value),
            expected=f"ASCII text of at most {length} bytes without zero bytes",
        )
    return replace(
        field,
        read=lambda raw: raw.rstrip(b"\0"),
        write=lambda value: _padded(bytes(value), length, zeros=bytes(value).endswith(b"\0")),
        expected=f"at most {length} bytes, the last of them not zero",
    )


def _padded(value: bytes, length: int, *, zeros: bool) -> bytes:
    if len(value) > length or zeros:
        raise ValueError("it would not come back as it is")
    return value


def _exact(value: Any, length: int) -> bytes:
    raw = bytes(memoryview(value))
    if len(raw) != length:
        raise ValueError(f"{len(raw)} bytes")
    return raw


def gaps(found: Iterable[Field], length: int) -> tuple[tuple[int, int], ...]:
    """Return the stretches of a record that are padding, each from and to."""
    edges = [0, *(edge for field in found for edge in (field.offset, field.end)), length]
    return tuple((start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start)
