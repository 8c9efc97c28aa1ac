"""Aeron's own flyweights, in one Java process that answers lines of commands."""

from __future__ import annotations

from pathlib import Path

from benchmarks.java_peer import AERON
from tests.support.java_reference import JavaReference

__all__ = ["AeronReference"]

SOURCE = Path(__file__).with_name("Reference.java")


class AeronReference(JavaReference):
    """The process; one for a test run."""

    def __init__(self, folder: Path, *, fetch: bool) -> None:
        super().__init__(AERON, SOURCE, folder, fetch=fetch)

    def written(self, flyweight: str, length: int, values: dict[str, object]) -> bytes:
        """The bytes that a flyweight's setters make of zeros."""
        words = [word for name, value in values.items() for word in (name, "null" if value is None else value)]
        return bytes.fromhex(self.ask("write", flyweight, length, *words)[0])

    def read(self, flyweight: str, frame: bytes, names: list[str]) -> list[str]:
        """What a flyweight's getters say of a frame, as text."""
        return self.ask("read", flyweight, frame.hex(), *names)

    def position(self, term_id: int, term_offset: int, shift: int, initial_term_id: int) -> int:
        """A position in the stream, in bytes."""
        return int(self.ask("position", term_id, term_offset, shift, initial_term_id)[0])

    def term_id(self, position: int, shift: int, initial_term_id: int) -> int:
        """The term of a position."""
        return int(self.ask("term", position, shift, initial_term_id)[0])
