"""The compiled part of :mod:`relay_accel.sbe`. Lengths and offsets are bytes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, final, overload

from typing_extensions import Buffer, Self, TypeVar, disjoint_base  # noqa: UP035

from relay_accel._native import AccelError

__all__ = [
    "Attribute",
    "BlockView",
    "CompositeView",
    "DecodeError",
    "EncodeError",
    "GroupIterator",
    "GroupView",
    "Schema",
    "SchemaError",
    "Unpacker",
]

_Row = tuple[str, int, str, str]
_Entry_co = TypeVar("_Entry_co", bound=BlockView, covariant=True, default=BlockView)

class SchemaError(AccelError):
    """A schema is refused: INVALID_SCHEMA. Fix the file; the text has a line for every fault."""

    faults: tuple[_Row, ...]

class DecodeError(AccelError):
    """Bytes are no message of the schema: INVALID_MESSAGE."""

class EncodeError(AccelError):
    """A value does not fit its field, or the message its buffer: INVALID_VALUE."""

@final
class Schema:
    """A compiled schema."""

    @staticmethod
    def from_path(path: str) -> Schema: ...
    @staticmethod
    def from_bytes(text: bytes) -> Schema: ...
    @property
    def package(self) -> str: ...
    @property
    def id(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def semantic_version(self) -> str | None: ...
    @property
    def description(self) -> str | None: ...
    @property
    def byte_order(self) -> Literal["little", "big"]: ...
    @property
    def header_length(self) -> int: ...
    @property
    def warnings(self) -> list[_Row]: ...
    @property
    def templates(self) -> list[tuple[str, int]]: ...
    def message_class(self, index: int) -> type[BlockView]: ...
    def decode(self, buffer: Buffer, offset: int = 0, *, validate: bool = False) -> BlockView: ...
    def frame(self, buffer: Buffer, offset: int) -> tuple[int, int]: ...
    def rust_module(self) -> str: ...
    def framing_header(self, message_length: int) -> bytes: ...

@disjoint_base
class BlockView:
    """A message or one entry of a group; a schema's classes derive from it and have its fields as attributes.

    Fields, groups and data are attributes: numbers as int and float, characters as str, enums as members of their enum
    (the number itself where the schema does not know it), sets as flags, composites as :class:`CompositeView`, groups
    as :class:`GroupView`, data as str where the schema names an encoding, else as a memoryview over the buffer. None is
    null, or newer than the message. A field that is named like a method here is reached by ``view["name"]``.

    The buffer is held: it can be neither resized nor released while a view of it lives.
    """

    sbe_id: ClassVar[int]
    sbe_name: ClassVar[str]

    def __new__(cls, seed: object) -> Self:
        """Views are made by :meth:`decode`: this raises TypeError."""

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0, *, validate: bool = False) -> Self:
        """Return a view of the message at ``offset``; its header is checked, fields when they are read.

        Args:
            buffer: holds the message.
            offset: of its first byte.
            validate: look at the whole message first: that all of it is there, that the schema knows every enum's
                value, and that numbers lie in the ranges that it says. Costs one walk over it.

        Raises:
            DecodeError: of another schema or template, or header and root are cut off; with ``validate`` also an enum's
                value that is unknown, or null where it is required, or a number outside of its range: the text has its
                path and byte.
        """

    @overload
    @classmethod
    def encode(
        cls, values: Mapping[str, Any] | BlockView | None = None, /, *, into: Buffer, offset: int = 0, **fields: Any
    ) -> int:
        """Write a message, header included; return its bytes, or its length where ``into`` is given.

        Args:
            values: fields by name, groups as sequences of mappings, data as str or bytes; or a view. Left out: null
                where that is allowed, empty for groups and data.
            into: writable buffer; it stays as it was when the message is refused.
            offset: where in it.
            fields: more values, over the first.

        Raises:
            EncodeError: a required field is missing, a value does not fit, a name is unknown, or the buffer is too
                short.
        """

    @overload
    @classmethod
    def encode(
        cls,
        values: Mapping[str, Any] | BlockView | None = None,
        /,
        *,
        into: None = None,
        offset: int = 0,
        **fields: Any,
    ) -> bytes: ...
    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return a view of a new message of these values."""

    def to_dict(self) -> dict[str, Any]:
        """Return all values by name, copied: composites as dicts, groups as lists of dicts, data as str or bytes."""

    def to_tuple(self) -> tuple[Any, ...]:
        """Return all values in the order of the schema, copied."""

    def to_json(self, *, indent: int | None = None) -> str:
        """Return all values as JSON: enums and sets by name, bytes in base64."""

    @property
    def sbe_version(self) -> int:
        """Version of the schema that wrote the message."""

    @property
    def sbe_block_length(self) -> int:
        """Length of the block, as the message says it."""

    @property
    def sbe_length(self) -> int:
        """Length of the message with header, groups and data; of an entry without header."""

    def sbe_raw(self, name: str) -> memoryview | None:
        """Return the bytes of a field as they are; None where the field is newer than the message."""

    def __getitem__(self, name: str, /) -> Any: ...

@final
class GroupView(Sequence[_Entry_co], Generic[_Entry_co]):
    """Entries of a group, in the buffer."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> _Entry_co: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[_Entry_co]: ...
    def __iter__(self) -> Iterator[_Entry_co]: ...
    def to_dicts(self) -> list[dict[str, Any]]: ...
    def to_tuples(self) -> list[tuple[Any, ...]]: ...
    def to_numpy(self) -> Any:
        """Return the entries' blocks as a read-only structured array of shape ``(len,)``.

        Without a copy where entries have no groups or data of their own; else the blocks are copied together.
        """

    def sbe_rows(self) -> tuple[dict[str, Any], bytes | memoryview[int], int, int]: ...

@disjoint_base
class CompositeView:
    """A composite in the buffer; a schema's classes derive from it and have its members as attributes."""

    def __new__(cls, seed: object) -> Self: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_tuple(self) -> tuple[Any, ...]: ...
    def __getitem__(self, name: str, /) -> Any: ...

@final
class GroupIterator(Iterator[BlockView]):
    """What ``iter()`` of a group is."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> BlockView: ...

@final
class Attribute:
    """A field, group or data as an attribute of its class."""

    @overload
    def __get__(self, view: None, owner: type | None = None, /) -> Attribute: ...
    @overload
    def __get__(self, view: object, owner: type | None = None, /) -> Any: ...

class _Codec:
    """What the class of a message knows of its layout, as ``_codec``."""

    def rows(
        self, buffer: Buffer, offset: int = 0, count: int | None = None
    ) -> tuple[dict[str, Any], bytes | memoryview[int], int, int]: ...
    def describe(self) -> dict[str, Any]: ...

@final
class Unpacker:
    """Reads the same fields of one message after the other, as tuples and without views: about what ``struct`` costs.

    Args:
        message: class of a schema's message.
        fields: of its root, by name, in the order of the tuples; all of them by default. Groups and data are no fields.

    Raises:
        KeyError: the root has no such field.
        TypeError: it is no class of a message.
    """

    def __new__(cls, message: type[BlockView], fields: Sequence[str] | None = None) -> Self: ...
    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]:
        """Return the fields of the message at ``offset``, in the order they were asked for: as the view's attributes,
        but composites are tuples; None for what is null or newer than the message.

        Raises:
            DecodeError: of another schema or template, or header and root are cut off.
        """

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, in the order of the tuple."""
