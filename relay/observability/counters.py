"""Counters and gauges of a process, under the same names in ``relay stat`` and the metrics endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

__all__ = ["Cell", "Counters", "shown_name"]


class Cell(Protocol):
    """Where one counter's value lies; one in shared memory can be read by other processes."""

    def add(self, amount: int = 1) -> None:
        """Add."""

    def set(self, value: int) -> None:
        """Set it."""

    def get(self) -> int:
        """Return its value."""


def shown_name(name: str, *, encoding: str = "utf-8") -> str:
    """Return a counter's name on one line, for people: what cannot be printed or encoded is replaced."""
    line = "".join(one if one.isprintable() else "\ufffd" for one in name)
    return line.encode(encoding, "replace").decode(encoding)


class _OwnCell:
    """A value that this process alone sees; of any size."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value = 0

    def add(self, amount: int = 1) -> None:
        self._value += amount

    def set(self, value: int) -> None:
        self._value = value

    def get(self) -> int:
        return self._value


class Counters:
    """Named whole numbers. Counting costs a look into a dictionary and one addition; reading takes a copy.

    Names are dotted lower-case (``relay.requests.forwarded``). Increments come from one thread (the owner's loop),
    reads from any.

    Args:
        new_cell: makes the place of a new counter; where it returns None, or is None, this process alone sees it.
    """

    def __init__(self, new_cell: Callable[[str], Cell | None] | None = None) -> None:
        self._new_cell = new_cell
        self._cells: dict[str, Cell] = {}

    def add(self, name: str, amount: int = 1) -> None:
        """Add to a counter; it starts at zero."""
        cell = self._cells.get(name)
        if cell is None:
            cell = self._begin(name)
        cell.add(amount)

    def set(self, name: str, value: int) -> None:
        """Set a gauge."""
        cell = self._cells.get(name)
        if cell is None:
            cell = self._begin(name)
        cell.set(value)

    def get(self, name: str) -> int:
        """Return a value, zero when it was never counted."""
        cell = self._cells.get(name)
        return 0 if cell is None else cell.get()

    def snapshot(self) -> Mapping[str, int]:
        """Return a sorted copy of all values."""
        return {name: cell.get() for name, cell in sorted(self._cells.copy().items())}

    def _begin(self, name: str) -> Cell:
        made = self._new_cell(name) if self._new_cell is not None else None
        return self._cells.setdefault(name, made if made is not None else _OwnCell())
