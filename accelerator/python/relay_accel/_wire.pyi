"""The compiled part of :mod:`relay_accel.wire`. Lengths and offsets are bytes."""

from collections.abc import Sequence
from typing import Any, Literal, final

from typing_extensions import Buffer

from relay_accel._native import AccelError

__all__ = [
    "TermPositions",
    "WireError",
    "compress",
    "compress_bound",
    "crc32",
    "declared_length",
    "decode",
    "decompress",
    "encode",
    "fnv1a64",
    "format_of",
    "formats",
    "message_id",
    "reassembly_key",
    "session_id",
    "walk",
]

class WireError(AccelError):
    """Bytes are no frame, or a value does not fit its field: TRUNCATED, INVALID, CHECKSUM.

    The text names field, offset from the start of the buffer, what was expected and what it was; these are attributes,
    too.
    """

    field: str
    offset: int
    expected: str
    got: str

def decode(kind: str, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]: ...
def encode(kind: str, values: tuple[Any, ...]) -> bytes: ...
def walk(datagram: Buffer) -> tuple[list[tuple[int, str, tuple[Any, ...]]], WireError | None]: ...
def compress(name: str, buffer: Buffer) -> bytes: ...
def compress_bound(name: str, length: int) -> int: ...
def declared_length(name: str, frame: Buffer) -> int: ...
def decompress(name: str, frame: Buffer, length_max: int) -> bytes: ...
def format_of(frame: Buffer) -> Literal["token", "lz4", "zstd"] | None: ...
def formats() -> list[str]: ...
def crc32(data: Buffer) -> int: ...
def fnv1a64(data: Buffer) -> int: ...
def message_id(parts: Sequence[bytes], counter: int) -> int: ...
def session_id(random: int, address: str) -> int: ...
def reassembly_key(stream_id: int, message_id: int) -> int: ...

@final
class TermPositions:
    """How a stream counts: (term id, term offset) ↔ position in bytes. Term ids wrap at 2³¹.

    Args:
        initial_term_id: the first term of the stream.
        term_length: bytes of a term, a power of two from 65,536 to 1 GiB.

    Raises:
        WireError: the length is another.
    """

    def __new__(cls, initial_term_id: int, term_length: int) -> TermPositions: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def shift(self) -> int:
        """log2 of the term length."""

    @property
    def position_max(self) -> int:
        """The last position that the stream can reach: 2³¹ terms."""

    def position(self, term_id: int, term_offset: int) -> int:
        """Return the position of a byte; 0 before the first term, an offset outside of the term is its end."""

    def term_at(self, position: int) -> tuple[int, int]:
        """Return term id and offset; of 0 when it is negative, of the last byte behind the end."""
