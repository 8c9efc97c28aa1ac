"""What all values with a layout can do."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from relay_accel import _wire

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["WireValue", "refusal"]


class WireValue:
    """A frozen value whose bytes are laid out by a specification. Fields are checked when it is decoded or encoded."""

    __slots__ = ()
    _kind: ClassVar[str]

    @classmethod
    def decode(cls, buffer: Buffer, offset: int = 0) -> Self:
        """Read the value that begins at ``offset``; its bytes are copied.

        Args:
            buffer: contiguous bytes.
            offset: bytes from its start on.

        Raises:
            WireError: TRUNCATED (the buffer ends too early), INVALID (a field cannot have its value), CHECKSUM.
            ValueError: the offset is outside of the buffer.
        """
        return cls._of(_wire.decode(cls._kind, buffer, offset))

    def encode(self, buffer: Buffer, offset: int = 0) -> int:
        """Write the value into a buffer, whole or not at all; return the bytes written.

        Args:
            buffer: contiguous and writable.
            offset: where to begin, in bytes.

        Raises:
            WireError: INVALID (a field cannot have its value), TRUNCATED (the buffer ends too early).
            ValueError: the offset is outside of the buffer.
        """
        data = self.to_bytes()
        with memoryview(buffer) as given, given.cast("B") as view:
            if not 0 <= offset <= len(view):
                raise ValueError(f"expected an offset within the buffer of {len(view)} bytes, got {offset}")
            if len(data) > len(view) - offset:
                left = len(view) - offset
                raise refusal("TRUNCATED", "buffer", offset, f"{len(data)} bytes", f"{left} bytes")
            view[offset : offset + len(data)] = data
        return len(data)

    def to_bytes(self) -> bytes:
        """Return the bytes of the value.

        Raises:
            WireError: INVALID: a field cannot have its value.
            OverflowError: a number is too large for its field.
        """
        return _wire.encode(self._kind, self._values())

    @classmethod
    def _of(cls, values: tuple[Any, ...]) -> Self:
        return cls(*values)

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


def refusal(code: str, field: str, offset: int, expected: str, got: str) -> _wire.WireError:
    """Return an error as the compiled part makes them."""
    error = _wire.WireError(f"{field} at byte {offset}: expected {expected}, got {got}")
    error.code, error.field, error.offset, error.expected, error.got = code, field, offset, expected, got
    return error
