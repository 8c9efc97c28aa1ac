"""Which word about a ticker's missing trades ends which other one (proto/spec/0008): one rule for bars and reports.

A first id of -1 is not known and lies before all; a last id of None says that the feed is interrupted from there on.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["GapIds"]


class GapIds(NamedTuple):
    """Ids of a word, inclusive."""

    first: int
    last: int | None

    @classmethod
    def of(cls, first: int | None, last: int | None) -> GapIds:
        """Return the ids of a word; None where one is not known."""
        return cls(-1 if first is None else first, last)

    def is_part_of(self, hole: GapIds) -> bool:
        """Return whether a word that closes is of an open hole: then it says nothing of an interruption."""
        if hole.last is None or self.last is None:
            return False
        return 0 <= hole.first <= self.first <= self.last <= hole.last

    def closes(self, gap: GapIds, *, is_of_hole: bool) -> bool:
        """Return whether FILLED or UNFILLABLE closes an open gap.

        Args:
            gap: that is open.
            is_of_hole: whether this word is part of any hole that is open.
        """
        if gap.last is None:
            return self.first == gap.first or (self.first <= gap.first and not is_of_hole)
        return self.first <= gap.first and self.last is not None and gap.last <= self.last

    def replaces(self, gap: GapIds) -> bool:
        """Return whether an interruption replaces an open gap: its opener answers for all from its first id on."""
        return gap.last is None or gap.last >= self.first
