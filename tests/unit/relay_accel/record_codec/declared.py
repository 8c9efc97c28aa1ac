"""Records that the tests declare; at the head of a module, because annotations are looked up there."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, NamedTuple

from tests.support.accelerator import accelerator

accelerator()
from relay_accel import Decimal64  # noqa: E402
from relay_accel.records import (  # noqa: E402
    At,
    Bytes,
    Characters,
    Number,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)

CENTS = Decimal64(-2)


class Level(IntEnum):
    LOW = 1
    HIGH = 200


class Action(Enum):
    NEW = b"0"
    CHANGE = b"1"


class Everything(NamedTuple):
    """Every kind of field, packed: no offset is said but the last."""

    a: u8
    b: i8
    c: u16
    d: i16
    e: u32
    f: i32
    g: u64
    h: i64
    single: f32
    double: f64
    level: Annotated[Level, Number("u8")]
    action: Annotated[Action, Bytes(1)]
    raw: Annotated[bytes, Bytes(3)]
    name: Annotated[str, Characters(6)]
    tag: Annotated[bytes, Characters(4)]
    price: Annotated[Decimal, Decimal64()]
    cents: Annotated[Decimal | None, CENTS]
    shown: Annotated[str | None, Decimal64(0), At(88)]


@dataclass(frozen=True)
class Quote:
    """The same as a dataclass."""

    at_ns: u64
    price: Annotated[Decimal, Decimal64()]
    symbol: Annotated[str, Characters(6)]
