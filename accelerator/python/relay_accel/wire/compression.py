"""Compressed frames: whole byte strings with their length and a checksum, in the archive's tokens, LZ4 or Zstandard.

``bytes`` are worked on without the interpreter's lock. Layouts: proto/spec/0017.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from relay_accel import _wire

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Compression", "decompress"]


class Compression(StrEnum):
    """A format; ``token`` is the archive's own, ``lz4`` the quickest, ``zstd`` the smallest."""

    TOKEN = "token"  # noqa: S105 — the name of a format
    LZ4 = "lz4"
    ZSTD = "zstd"

    @classmethod
    def of_frame(cls, frame: Buffer) -> Compression | None:
        """Return the format of a frame by its first four bytes; None for other bytes."""
        name = _wire.format_of(frame)
        return None if name is None else cls(name)

    @property
    def is_built_in(self) -> bool:
        """Whether this build has it; one without a C compiler has no ``zstd``."""
        return self.value in _wire.formats()

    def compress_bound(self, length: int) -> int:
        """Return how many bytes a frame of ``length`` bytes has at most, whatever they are."""
        return _wire.compress_bound(self.value, length)

    def compress(self, data: Buffer) -> bytes:
        """Return the frame of ``data``.

        Raises:
            WireError: INVALID: more than 1 GiB for ``token``, or the format is not built in.
        """
        return _wire.compress(self.value, data)

    def declared_length(self, frame: Buffer) -> int:
        """Return the length that a frame says it has decompressed; nothing of that is decompressed yet.

        Raises:
            WireError: the header is cut, damaged, or says no length.
        """
        return _wire.declared_length(self.value, frame)

    def decompress(self, frame: Buffer, *, length_max: int) -> bytes:
        """Return the bytes of a frame, which is all of ``frame``.

        Args:
            frame: header to end.
            length_max: the most bytes that it may hold; checked before memory is taken.

        Raises:
            WireError: TRUNCATED, INVALID (damaged, too long, followed by something), CHECKSUM.
        """
        return _wire.decompress(self.value, frame, length_max)


def decompress(frame: Buffer, *, length_max: int) -> bytes:
    """Return the bytes of a frame of any format; ``length_max`` is the most bytes that it may hold.

    Raises:
        WireError: as of :meth:`Compression.decompress`.
        ValueError: the first four bytes are those of no format.
    """
    found = Compression.of_frame(frame)
    if found is None:
        raise ValueError("expected a frame of token, lz4 or zstd, got other bytes")
    return found.decompress(frame, length_max=length_max)
