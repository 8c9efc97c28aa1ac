"""Fixed records: packed structs of one length, from an annotated class or a NumPy dtype.

Example::

    class Quote(NamedTuple):
        at_ns: u64
        price: Annotated[Decimal, Decimal64()]
        symbol: Annotated[str, Characters(6)]

    QUOTES = RecordCodec(Quote, length=24)
    data = QUOTES.encode(Quote(1, Decimal("67000.25"), "BTC"))
    QUOTES.decode(data).price, QUOTES.to_numpy(data * 1000)["at_ns"]

One record is converted by the standard ``struct`` module, which is compiled code already: the same tick as a message of
:mod:`relay_accel.sbe`, whose views are native, took 1.2 times as long to read and twice as long to write. Batches are
NumPy's arrays over the bytes themselves.
Errors: :class:`~relay_accel.sbe.DecodeError`, :class:`~relay_accel.sbe.EncodeError`. Layout: proto/spec/0015.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from relay_accel._sbe import DecodeError, EncodeError
from relay_accel.record_faults import FAULTS, cut_off, unreadable, unwritable
from relay_accel.record_layout import fields_of, gaps
from relay_accel.record_types import LENGTH_MAX, Field

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from typing_extensions import Buffer

__all__ = ["RecordCodec"]

T = TypeVar("T")
_WORD = 8
# What the struct module raises for offsets behind the end.
_BEYOND = (struct.error, IndexError, OverflowError)


class RecordCodec(Generic[T]):
    """Encodes and decodes records of one class; frozen, made once for the life of a program.

    Args:
        value: a ``NamedTuple`` (the quickest) or a ``dataclass(frozen=True)``, whose fields are annotated with types of
            :mod:`relay_accel.records`. Packed: no alignment but what :class:`At` asks for.
        length: of a record in bytes, with the padding behind the last field; a multiple of 8.
        byte_order: of all numbers.

    Raises:
        TypeError: a field is no fixed bytes.
        ValueError: fields overlap, or the length is too short or no whole words.
    """

    def __init__(
        self, value: type[T], *, length: int | None = None, byte_order: Literal["little", "big"] = "little"
    ) -> None:
        if byte_order not in ("little", "big"):
            raise ValueError(f"expected byte order 'little' or 'big', got {byte_order!r}")
        self._value: Any = value
        self._fields = fields_of(value)
        self._length = _length(value.__name__, self._fields, length)
        self._order = "<" if byte_order == "little" else ">"
        self._struct = struct.Struct(self._order + _codes(self._fields, self._length))
        self._bytes = struct.Struct(f"{self._length}s")
        self._reads = tuple((i, f.read) for i, f in enumerate(self._fields) if f.read is not None)
        self._writes = tuple((i, f.write) for i, f in enumerate(self._fields) if f.write is not None)
        make: Any = getattr(value, "_make", None)
        self._make = make or (lambda raw: self._value(*raw))
        names = [field.name for field in self._fields]
        self._row: Any = iter if make else lambda record: [getattr(record, name) for name in names]

    @classmethod
    def of_dtype(cls, dtype: npt.DTypeLike, *, name: str = "Record") -> RecordCodec[Any]:
        """Return the codec of a structured dtype: its offsets, padding and byte order; values are named tuples.

        Fields are numbers of all sizes but half floats, ``S`` (zero-padded bytes) and ``V`` (bytes), in the order of
        their offsets, all numbers in one byte order.

        Raises:
            TypeError: another type, with the reason.
            ValueError: fields overlap, or the length is no multiple of 8.
            ImportError: NumPy is not installed (extra ``numpy``).
        """
        from relay_accel.record_arrays import declared_by

        value, length, byte_order = declared_by(dtype, name)
        return RecordCodec(value, length=length, byte_order=byte_order)

    @property
    def value(self) -> type[T]:
        """Class of the records."""
        found: type[T] = self._value
        return found

    @property
    def fields(self) -> tuple[Field, ...]:
        """The layout, by offset."""
        return self._fields

    @property
    def length(self) -> int:
        """Length of a record in bytes, padding counted."""
        return self._length

    @property
    def byte_order(self) -> Literal["little", "big"]:
        """Byte order of all numbers."""
        return "little" if self._order == "<" else "big"

    @property
    def padding(self) -> tuple[tuple[int, int], ...]:
        """Stretches of bytes that belong to no field, each from and to: written as zero, ignored when read."""
        return gaps(self._fields, self._length)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The same layout in NumPy: enums are their numbers, Decimal64 fields their mantissas."""
        from relay_accel.record_arrays import dtype_of

        return dtype_of(self._fields, self._length, self._order)

    def encode(self, record: T) -> bytes:
        """Return a record's bytes.

        Raises:
            EncodeError: a value does not fit its field, or is not exact in it.
            TypeError: not a record of this codec's class.
        """
        if not isinstance(record, self._value):
            raise TypeError(f"expected a {self._value.__name__}, got {type(record).__name__}")
        raw = [*self._row(record)]
        try:
            for index, write in self._writes:
                raw[index] = write(raw[index])
            return self._struct.pack(*raw)
        except FAULTS as error:
            raise unwritable(self._value.__name__, self._fields, self._row(record)) from error

    def encode_into(self, buffer: Buffer, record: T, offset: int = 0) -> int:
        """Write a record into a caller's buffer; return where it ends.

        Args:
            buffer: writable and contiguous: bytearray, memoryview, an array. (A claim takes ``put(encode(record))``.)
            offset: of the record, in bytes.

        Raises:
            EncodeError: as of :meth:`encode`, or the buffer ends before; nothing was written then.
        """
        data = self.encode(record)
        if offset < 0:
            raise EncodeError(f"expected an offset of 0 or more, got {offset}")
        try:
            self._bytes.pack_into(buffer, offset, data)
        except _BEYOND as error:
            raise EncodeError(cut_off(memoryview(buffer).nbytes, offset, self._length)) from error
        return offset + self._length

    def encode_all(self, records: Iterable[T]) -> bytes:
        """Return records back to back, as :meth:`FixedProducer.push` takes them.

        Raises:
            EncodeError, TypeError: as of :meth:`encode`; the text begins with the record's index.
        """
        done: list[bytes] = []
        try:
            done.extend(map(self.encode, records))
        except (EncodeError, TypeError) as error:
            raise type(error)(f"record {len(done)}: {error}") from error
        return b"".join(done)

    def decode(self, buffer: Buffer, offset: int = 0) -> T:
        """Return the record at ``offset``; padding is ignored.

        Raises:
            DecodeError: cut off, or an enum's or a text's bytes are none of the allowed ones.
        """
        if offset < 0:
            raise DecodeError(f"expected an offset of 0 or more, got {offset}")
        try:
            raw: Any = self._struct.unpack_from(buffer, offset)
        except _BEYOND as error:
            raise DecodeError(cut_off(memoryview(buffer).nbytes, offset, self._length)) from error
        return self._made(raw, offset)

    def decode_all(self, buffer: Buffer, offset: int = 0, count: int | None = None) -> list[T]:
        """Return records that stand back to back; see :meth:`to_numpy` for many.

        Args:
            buffer: a ``Batch`` of a fixed-item ring, or any bytes.
            offset: of the first, in bytes.
            count: how many; all that follow by default.

        Raises:
            DecodeError: as of :meth:`decode`, or the last is cut off.
        """
        span = self._span(buffer, offset, count)
        rows = self._struct.iter_unpack(_octets(buffer)[offset : offset + span])
        return [self._made(raw, at) for at, raw in zip(range(offset, offset + span, self._length), rows, strict=True)]

    def to_numpy(self, buffer: Buffer, offset: int = 0, count: int | None = None) -> npt.NDArray[Any]:
        """Return records that stand back to back as a read-only structured array over the buffer, without a copy.

        Args:
            buffer, offset, count: as of :meth:`decode_all`; the array keeps the buffer.

        Returns:
            Shape ``(count,)``, of :attr:`dtype`. Enums' values are checked, all of them at once.

        Raises:
            DecodeError: as of :meth:`decode_all`.
            ImportError: NumPy is not installed (extra ``numpy``).
        """
        from relay_accel.record_arrays import array_over

        span = self._span(buffer, offset, count)
        return array_over(self, _octets(buffer)[offset : offset + span], offset)

    def from_numpy(self, records: npt.NDArray[Any]) -> memoryview:
        """Return records' bytes: the array's own memory where it is contiguous and its padding zero, else a copy.

        Args:
            records: one-dimensional, of :attr:`dtype`.

        Raises:
            EncodeError: an enum's value is unknown.
            ValueError: of another dtype or shape.
        """
        from relay_accel.record_arrays import bytes_of

        return bytes_of(self, records)

    def __repr__(self) -> str:
        return f"RecordCodec({self._value.__name__}, {self._length} bytes, {self.byte_order}-endian)"

    def _made(self, raw: Any, offset: int) -> T:
        try:
            values = [*raw] if self._reads else raw
            for index, read in self._reads:
                values[index] = read(values[index])
            made: T = self._make(values)
        except FAULTS as error:
            raise unreadable(self._value.__name__, self._fields, raw, offset, error) from error
        return made

    def _span(self, buffer: Buffer, offset: int, count: int | None) -> int:
        left = memoryview(buffer).nbytes - offset
        whole = left // self._length if count is None else count
        if offset < 0 or left < 0 or whole < 0 or (count is None and left % self._length):
            raise DecodeError(
                f"expected whole records of {self._length} bytes from byte {offset} on, {left} bytes are there"
            )
        if whole * self._length > left:
            raise DecodeError(f"expected {whole} records of {self._length} bytes, {left} bytes are there")
        return whole * self._length


def _octets(buffer: Buffer) -> memoryview:
    """The buffer as bytes; one without any may have a shape that cannot be cast."""
    view = memoryview(buffer)
    return view.cast("B") if view.nbytes else memoryview(b"")


def _length(name: str, fields: tuple[Field, ...], wanted: int | None) -> int:
    end = fields[-1].end if fields else 0
    length = end if wanted is None else wanted
    if length < end:
        raise ValueError(f"{name}: expected a length of at least {end} bytes, where the last field ends, got {length}")
    if not 0 < length <= LENGTH_MAX or length % _WORD:
        whole = max(-(-end // _WORD), 1) * _WORD
        raise ValueError(
            f"{name}: expected a length that is a multiple of {_WORD}, at most {LENGTH_MAX}, got {length}; "
            f"pad it with length={whole}"
        )
    return length


def _codes(fields: tuple[Field, ...], length: int) -> str:
    """Format of ``struct``: fields, and padding that it writes as zero."""
    parts, end = [], 0
    for field in fields:
        parts += [f"{field.offset - end}x", field.code]
        end = field.end
    return "".join([*parts, f"{length - end}x"])
