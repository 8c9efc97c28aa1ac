"""What all triggers of several sources hold back together, and its bound."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from spark_jobs.jobs.triggers.engine.values import Outcome

__all__ = ["Backlog", "Holder"]


class Holder(Protocol):
    """A trigger that holds hits back until its slowest source has come so far.

    Attributes:
        trigger_id: of the trigger.
    """

    trigger_id: str

    @property
    def held(self) -> int:
        """How many hits it holds back."""

    def halve(self, out: list[Outcome]) -> None:
        """Go on past the older half of what it holds back."""


class Backlog:
    """Counts the hits that are held back; over the bound those go on that hold most, so a flood is its maker's loss.

    Args:
        held_max: hits of all triggers together.
        counts: takes counters.
    """

    def __init__(self, held_max: int, counts: Counter[str]) -> None:
        self.held = 0
        self._held_max, self._counts = held_max, counts
        self._holders: dict[str, Holder] = {}

    def add(self, holder: Holder) -> None:
        """Take a trigger's hits in."""
        self._holders[holder.trigger_id] = holder
        self.held += holder.held

    def remove(self, holder: Holder) -> None:
        """Take a trigger out, with what it still holds."""
        if self._holders.pop(holder.trigger_id, None) is not None:
            self.held -= holder.held

    def push(self, out: list[Outcome]) -> None:
        """A trigger holds one more."""
        self.held += 1
        if self.held > self._held_max:
            self._relieve(out)

    def pop(self) -> None:
        """A trigger holds one less."""
        self.held -= 1

    def _relieve(self, out: list[Outcome]) -> None:
        """Halve whatever is above half of the mean: at least a quarter of all goes, so this is seldom done."""
        holding = [holder for holder in self._holders.values() if holder.held]
        share = self.held // (2 * len(holding))
        for holder in holding:
            if holder.held > share:
                self._counts["held_overflow"] += 1
                holder.halve(out)
