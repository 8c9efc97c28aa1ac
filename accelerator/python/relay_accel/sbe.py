"""Simple Binary Encoding: a schema at run time, messages as typed views over their own bytes.

Example::

    from relay_accel import sbe

    schema = sbe.load("example-schema.xml")
    Car = schema.messages.Car
    data = Car.encode(serialNumber=1234, modelYear=2013, ...)
    car = Car.decode(data)  # or schema.decode(data), by template id
    car.modelYear, car.engine.capacity, [figure.speed for figure in car.fuelFigures]
    car.to_dict(), car.fuelFigures.to_numpy()
    serial_and_year = sbe.Unpacker(Car, ["serialNumber", "modelYear"])
    serial_and_year.unpack_from(data)  # a tuple, without a view

A view holds its buffer and copies nothing; what is newer than the message is None. Errors: :class:`SchemaError` (all
faults with their lines), :class:`DecodeError`, :class:`EncodeError`, all of them ``relay_accel.AccelError``.
Layout and choices: proto/spec/0014.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from relay_accel import _sbe
from relay_accel._sbe import (
    BlockView,
    CompositeView,
    DecodeError,
    EncodeError,
    GroupView,
    SchemaError,
    Unpacker,
)

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BlockView",
    "CompositeView",
    "DecodeError",
    "EncodeError",
    "Fault",
    "GroupView",
    "Messages",
    "Schema",
    "SchemaError",
    "Unpacker",
    "describe",
    "generate",
    "generate_rust",
    "load",
    "to_numpy",
]

Framing = Literal["sofh"] | None


class Fault(NamedTuple):
    """One fault or warning of a schema: file, line from 1 on, element, reason."""

    file: str
    line: int
    element: str
    reason: str


def load(source: str | os.PathLike[str] | bytes) -> Schema:
    """Compile a schema, once for the life of a program.

    Args:
        source: path of an XML file, which may include files of its folder and below; or the XML itself as bytes, which
            may include nothing.

    Raises:
        SchemaError: the schema is refused; ``faults`` has every fault that was found.
    """
    if isinstance(source, bytes):
        return Schema(_sbe.Schema.from_bytes(source))
    return Schema(_sbe.Schema.from_path(os.fspath(source)))


class Messages(Mapping[str, type[BlockView]]):
    """Classes of a schema's messages, by name: ``messages.Car`` or ``messages["Car"]``; made when first asked for."""

    def __init__(self, native: _sbe.Schema) -> None:
        self._native = native
        self._index = {name: index for index, (name, _) in enumerate(native.templates)}

    def __getitem__(self, name: str) -> type[BlockView]:
        return self._native.message_class(self._index[name])

    def __getattr__(self, name: str) -> type[BlockView]:
        if name.startswith("__") or name not in self._index:
            raise AttributeError(f"expected one of the schema's messages, there is no {name}")
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._index})


class Schema:
    """A compiled schema; ``str()`` of it is the layout, a line an element. Made by :func:`load`."""

    def __init__(self, native: _sbe.Schema) -> None:
        self._native = native
        self._by_template: dict[int, type[BlockView]] = {}
        self.messages = Messages(native)

    @property
    def package(self) -> str:
        """Name of the package."""
        return self._native.package

    @property
    def id(self) -> int:
        """Schema id, as every message header has it."""
        return self._native.id

    @property
    def version(self) -> int:
        """Version that :meth:`BlockView.encode` writes."""
        return self._native.version

    @property
    def byte_order(self) -> Literal["little", "big"]:
        """Byte order of all numbers."""
        return self._native.byte_order

    @property
    def header_length(self) -> int:
        """Length of the message header in bytes."""
        return self._native.header_length

    @property
    def description(self) -> str | None:
        """What the schema says it is."""
        return self._native.description

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """What is allowed but doubtful."""
        return tuple(Fault(*row) for row in self._native.warnings)

    @property
    def by_template(self) -> Mapping[int, type[BlockView]]:
        """Classes of the messages, by template id."""
        if not self._by_template:
            self._by_template = {number: self.messages[name] for name, number in self._native.templates}
        return self._by_template

    def decode(self, buffer: Buffer, offset: int = 0, *, validate: bool = False) -> BlockView:
        """Return a view of the message at ``offset``, of the class that its template id names.

        Args:
            buffer: holds the message.
            offset: of its first byte.
            validate: check the whole message first, as :meth:`BlockView.decode` does.

        Raises:
            DecodeError: of another schema, of an unknown template, or cut off; refused by ``validate``.
        """
        return self._native.decode(buffer, offset, validate=validate)

    def decode_all(
        self, buffer: Buffer, offset: int = 0, *, framing: Framing = None, validate: bool = False
    ) -> Iterator[BlockView]:
        """Yield views of the messages that stand back to back, until the buffer ends.

        Args:
            buffer: whole messages. Without framing a message ends where this schema says it does: groups or data that a
                later version has put behind cannot be skipped.
            offset: of the first, in bytes.
            framing: ``"sofh"``: each has a Simple Open Framing Header of six bytes before it, whose length is trusted
                over the schema's.
            validate: check each message as a whole first, as :meth:`BlockView.decode` does.

        Raises:
            DecodeError: at the first that is no message of this schema.
        """
        end = memoryview(buffer).nbytes
        while offset < end:
            if framing == "sofh":
                start, length = self._native.frame(buffer, offset)
                view = self.decode(buffer, start, validate=validate)
                if view.sbe_length > length:
                    raise DecodeError(f"the message at byte {start} is longer than its frame of {length} bytes")
                offset = start + length
            else:
                view = self.decode(buffer, offset, validate=validate)
                offset += view.sbe_length
            yield view

    def framed(self, message: Buffer) -> bytes:
        """Return a message with a Simple Open Framing Header before it."""
        raw = memoryview(message).cast("B")
        return self._native.framing_header(raw.nbytes) + raw.tobytes()

    def __str__(self) -> str:
        return str(self._native)

    def __repr__(self) -> str:
        return repr(self._native)


def describe(message: type[BlockView]) -> dict[str, Any]:
    """Return a message's layout as plain values: fields with offsets, kinds and notes, groups, data."""
    from relay_accel.sbe_rows import described

    return described(message)


def to_numpy(message: type[BlockView], buffer: Buffer, offset: int = 0, count: int | None = None) -> Any:
    """Return messages of one fixed-length template that stand back to back as one array, without a copy or a loop.

    Args:
        message: a class without groups and data.
        buffer: the messages, each with its header; the array keeps it.
        offset: of the first, in bytes.
        count: how many; all that follow by default.

    Returns:
        Structured array of shape ``(count,)``, read-only, strided over the headers; fields that the messages' version
        has. Enums and sets are their numbers, characters ``S`` items.

    Raises:
        DecodeError: a message is cut off or its header is not that of the first.
        TypeError: the message has groups or data.
        ImportError: NumPy is not installed (extra ``numpy``).
    """
    from relay_accel.sbe_rows import of_messages

    return of_messages(message, buffer, offset, count)


def generate(schema: Schema, source: str) -> str:
    """Return the text of a typed Python module with the schema's classes, for editors and type checkers.

    Args:
        schema: compiled.
        source: path of the schema's file, relative to the folder where the module will be.
    """
    from relay_accel.sbe_module import module_text

    return module_text(schema, source)


def generate_rust(schema: Schema) -> str:
    """Return the text of a Rust module with a decoder and an encoder for each message.

    Offsets, lengths, null values and versions are constants of the text. It needs nothing but ``core`` (Rust 1.83 or
    later), has no unsafe code, and depends on nothing but the schema: the same schema, the same text.
    """
    return schema._native.rust_module()
