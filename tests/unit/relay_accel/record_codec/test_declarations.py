"""Records that a user declares: from annotated classes and from dtypes, and what is refused with its reason."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from enum import Flag, IntEnum
from itertools import product
from typing import Annotated, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accelerator import accelerator
from tests.unit.relay_accel.record_codec.declared import CENTS, Action, Everything, Level, Quote

accelerator()
np = pytest.importorskip("numpy")
from relay_accel import Decimal64, sbe  # noqa: E402
from relay_accel.records import At, Bytes, Characters, Number, RecordCodec, u8, u32, u64  # noqa: E402

ascii_names = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=6)
prices = st.integers(-(1 << 63), (1 << 63) - 2)


def whole(bits: int, *, signed: bool = False) -> st.SearchStrategy[int]:
    least = -(1 << (bits - 1)) if signed else 0
    return st.integers(least, least + (1 << bits) - 1)


everything = st.builds(
    Everything,
    *(whole(bits, signed=signed) for bits in (8, 16, 32, 64) for signed in (False, True)),
    st.floats(width=32, allow_nan=False),
    st.floats(allow_nan=False),
    st.sampled_from(Level),
    st.sampled_from(Action),
    st.binary(min_size=3, max_size=3),
    ascii_names,
    st.binary(max_size=4).map(lambda tag: tag.rstrip(b"\0")),
    prices.map(Decimal64().decimal),
    st.none() | prices.map(CENTS.decimal),
    st.none() | prices.map(str),
)


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_every_kind_of_field_comes_back_alone_in_lists_and_in_arrays(byte_order):
    codec = RecordCodec(Everything, byte_order=byte_order)
    assert codec.length == 96
    assert [(field.name, field.offset) for field in codec.fields][:4] == [("a", 0), ("b", 1), ("c", 2), ("d", 4)]
    assert codec.padding == ((73, 88),)

    @given(everything)
    def comes_back(record: Everything) -> None:
        data = codec.encode(record)
        assert codec.decode(data) == record
        assert codec.decode_all(data * 2) == [record, record]
        row = codec.to_numpy(data)[0]
        assert [row[name].item() for name in "abcdefgh"] == list(record[:8])
        assert row["level"] == record.level
        assert row["price"] == Decimal64().mantissa(record.price)
        assert row["raw"].tobytes() == record.raw
        assert row["tag"] == record.tag
        assert not any(data[73:88])

    comes_back()


def test_a_dataclass_is_read_and_written_like_a_named_tuple():
    codec = RecordCodec(Quote, length=24)
    quote = Quote(1, Decimal("67000.25"), "BTC")
    data = codec.encode(quote)
    assert data == struct.pack("<Qq6s2x", 1, 670_002_500_000, b"BTC")
    assert codec.decode(data) == quote
    assert codec.decode(data[:22] + b"\xff\xff") == quote, "padding is ignored"
    assert codec.dtype.fields["symbol"] == (np.dtype("S6"), 16)
    assert repr(codec) == "RecordCodec(Quote, 24 bytes, little-endian)"
    assert codec.value is Quote


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"raw": b"12"}, "Everything.raw: expected exactly 3 bytes, got b'12'"),
        ({"raw": "123"}, "Everything.raw: expected exactly 3 bytes"),
        ({"name": "1234567"}, "Everything.name: expected ASCII text of at most 6 bytes"),
        ({"name": "a\0b"}, "Everything.name: expected ASCII text of at most 6 bytes without zero bytes"),
        ({"name": "ä"}, "Everything.name: expected ASCII"),
        ({"tag": b"a\0"}, "Everything.tag: expected at most 4 bytes, the last of them not zero"),
        ({"price": None}, "Everything.price: .*null in a field"),
        ({"price": Decimal("0.00000001")}, "Everything.price: .*not exact with 7 decimals"),
        ({"price": 1.5}, "Everything.price: .*digits are not exact"),
        ({"cents": Decimal("0.001")}, "Everything.cents: .*not exact with 2 decimals"),
        ({"single": 1e300}, "Everything.single: expected a number that 32 bits can hold"),
        ({"double": "1"}, "Everything.double: expected a number that 64 bits can hold"),
        ({"level": 2}, r"Everything.level: expected one of 1 \(LOW\), 200 \(HIGH\), got 2"),
        ({"action": b"9"}, r"Everything.action: expected one of b'0' \(NEW\), b'1' \(CHANGE\)"),
    ],
)
def test_a_value_that_would_not_come_back_is_refused_with_its_field(change, text):
    record = Everything(*([0] * 10), Level.LOW, Action.NEW, b"123", "name", b"tag", Decimal(1), None, None)._replace(
        **change
    )
    with pytest.raises(sbe.EncodeError, match=text):
        RecordCodec(Everything).encode(record)


def test_bytes_that_are_no_value_are_refused_with_their_place():
    codec = RecordCodec(Everything)
    good = codec.encode(Everything(*([0] * 10), Level.LOW, Action.NEW, b"123", "name", b"tag", Decimal(1), None, None))
    places = {field.name: field.offset for field in codec.fields}
    null = struct.pack("<q", Decimal64.NULL)
    for name, raw, text in (
        ("level", b"\x02", r"is 2, expected one of 1 \(LOW\), 200 \(HIGH\)"),
        ("action", b"x", "is b'x', expected one of"),
        ("name", b"\xff", "expected ASCII text"),
        ("price", null, "null in a field that is not declared as"),
    ):
        broken = bytearray(b"....") + good
        broken[4 + places[name] : 4 + places[name] + len(raw)] = raw
        with pytest.raises(sbe.DecodeError, match=f"byte {4 + places[name]}: Everything.{name} .*{text}"):
            codec.decode(broken, 4)


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize(("name", "raw"), [("level", b"\x02"), ("action", b"x"), ("step", b"\x01\x01")])
def test_enums_over_any_bytes_are_checked_in_arrays_of_them(name, raw, byte_order):
    codec = RecordCodec(Steps, length=8, byte_order=byte_order)
    records = [Steps(*values) for values in product(Level, Action, Step)]
    data = bytearray(codec.encode_all(records))
    assert len(codec.to_numpy(data)) == len(records)
    at = 3 * 8 + {field.name: field.offset for field in codec.fields}[name]
    data[at : at + len(raw)] = raw
    for many in (codec.to_numpy, codec.decode_all):
        with pytest.raises(sbe.DecodeError, match=f"byte {at}: Steps.{name} is .*, expected one of"):
            many(data)
    with pytest.raises(sbe.EncodeError, match=rf"record 3: Steps.{name} is"):
        codec.from_numpy(np.frombuffer(data, codec.dtype))


class Step(IntEnum):
    NONE = 0
    FAR = 0x0102


class Steps(NamedTuple):
    level: Annotated[Level, Number("u8")]
    action: Annotated[Action, Bytes(1)]
    step: Annotated[Step, Number("u16")]


class Backwards(NamedTuple):
    first: Annotated[u8, At(8)]
    second: Annotated[u8, At(8)]


class Unsized(NamedTuple):
    number: int


class Pointer(NamedTuple):
    text: Annotated[str, "some mark"]


class Mixed(NamedTuple):
    text: Annotated[str, Number("u8")]


class Floating(NamedTuple):
    price: Annotated[float, Decimal64()]


class Bits(Flag):
    ONE = 1


class Flags(NamedTuple):
    bits: Annotated[Bits, Number("u8")]


class Wide(IntEnum):
    MANY = 256


class TooWide(NamedTuple):
    wide: Annotated[Wide, Number("u8")]


class Twelve(NamedTuple):
    a: u64
    b: u32


class Plain:
    a: u64


@dataclass
class Thawed:
    a: u64


@dataclass(frozen=True, kw_only=True)
class ByName:
    a: u64


@dataclass(frozen=True)
class Even:
    a: u64

    def __post_init__(self) -> None:
        if self.a % 2:
            raise ValueError("it is odd")


class Empty(NamedTuple):
    pass


@pytest.mark.parametrize(
    ("declared", "error", "text"),
    [
        (Backwards, ValueError, "Backwards.second: byte 8 belongs to first, which ends at 9"),
        (Unsized, TypeError, "Unsized.number: expected a type of fixed bytes"),
        (Pointer, TypeError, "a pointer that the bytes cannot hold"),
        (Mixed, TypeError, "Mixed.text: expected int with Number"),
        (Floating, TypeError, "Floating.price: expected Decimal or str"),
        (Flags, TypeError, "Flags.bits: expected an Enum, got the flags Bits"),
        (TooWide, TypeError, "TooWide.wide: a value of Wide is not an integer from 0 to 255"),
        (Twelve, ValueError, "multiple of 8, at most 1048576, got 12; pad it with length=16"),
        (Plain, TypeError, "expected a NamedTuple, or a dataclass"),
        (Thawed, TypeError, "frozen=True"),
        (ByName, TypeError, "all fields by position"),
        (Empty, ValueError, "multiple of 8"),
    ],
)
def test_a_class_that_declares_no_record_is_refused_with_the_reason(declared, error, text):
    with pytest.raises(error, match=text):
        RecordCodec(declared)


def test_what_a_class_of_its_own_refuses_is_no_record_of_it():
    codec = RecordCodec(Even)
    assert codec.decode(bytes(8)) == Even(0)
    with pytest.raises(sbe.DecodeError, match=r"byte 8: Even refuses \(1,\): it is odd"):
        codec.decode_all(bytes(8) + b"\1" + bytes(7))


def test_lengths_orders_and_marks_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least 12 bytes"):
        RecordCodec(Twelve, length=8)
    with pytest.raises(ValueError, match="multiple of 8"):
        RecordCodec(Twelve, length=1 << 40)
    with pytest.raises(ValueError, match="byte order"):
        RecordCodec(Twelve, length=16, byte_order="middle")
    for mark in (lambda: Bytes(0), lambda: Characters(-1), lambda: Bytes(1 << 30), lambda: Number("u9")):
        with pytest.raises(ValueError, match="expected"):
            mark()


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_dtype_declares_a_record_with_its_offsets_padding_and_byte_order(order):
    dtype = np.dtype(
        {
            "names": ["price", "at_ns", "side", "name", "raw", "level"],
            "formats": [order + "i8", order + "u8", "u1", "S6", "V3", order + "f4"],
            "offsets": [8, 0, 16, 18, 24, 32],
            "itemsize": 40,
        }
    )
    codec = RecordCodec.of_dtype(dtype, name="Row")
    assert codec.value._fields == ("at_ns", "price", "side", "name", "raw", "level")
    assert codec.padding == ((17, 18), (27, 32), (36, 40))
    rows = np.zeros(3, codec.dtype)
    rows["price"], rows["name"], rows["raw"], rows["level"] = [-1, 2, 3], b"BTC", b"\1\2\0", 0.5
    records = codec.decode_all(codec.from_numpy(rows))
    assert records[0] == (0, -1, 0, b"BTC", b"\1\2\0", 0.5)
    assert codec.encode_all(records) == rows.tobytes()
    assert all(codec.dtype.fields[name] == dtype.fields[name] for name in dtype.names)
    assert RecordCodec.of_dtype(codec.dtype).dtype == codec.dtype
    assert codec.byte_order == {"<": "little", ">": "big"}[order]


def test_an_aligned_dtype_is_as_good_as_a_packed_one():
    dtype = np.dtype([("side", "u1"), ("price", "i8")], align=True)
    codec = RecordCodec.of_dtype(dtype)
    assert (codec.length, codec.padding) == (16, ((1, 8),))
    assert bytes(codec.from_numpy(np.zeros(2, dtype))) == bytes(32)


@pytest.mark.parametrize(
    ("dtype", "error", "text"),
    [
        ([("a", "O")], TypeError, "Record.a: .*objects are pointers"),
        ([("a", "U4")], TypeError, "four bytes a character; take S"),
        ([("a", "M8[ns]")], TypeError, "a time needs its unit"),
        ([("a", "m8[ns]")], TypeError, "a duration needs its unit"),
        ([("a", "?")], TypeError, "take u1"),
        ([("a", "c16")], TypeError, "take two floats"),
        ([("a", "f2")], TypeError, "there is no type for it"),
        ([("a", "<i8", (2,))], TypeError, "arrays and structs inside"),
        ([("a", [("b", "<i8")])], TypeError, "arrays and structs inside"),
        ([("a", "<i8"), ("b", ">i8")], TypeError, "one byte order, got both"),
        ([("a b", "<i8")], TypeError, "names that can be attributes"),
        ([("class", "<i8")], TypeError, "names that can be attributes"),
        ("<i8", TypeError, "structured dtype"),
        ([("a", "<i4")], ValueError, "multiple of 8"),
        (
            {"names": ["a", "b"], "formats": ["<i8", "<i8"], "offsets": [0, 4], "itemsize": 16},
            ValueError,
            "belongs to a",
        ),
    ],
)
def test_a_dtype_that_declares_no_record_is_refused_with_the_reason(dtype: Any, error, text):
    with pytest.raises(error, match=text):
        RecordCodec.of_dtype(dtype)
