"""What all triggers hold together, and its bound: a flood is the loss of whoever makes it."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from spark_jobs.jobs.triggers.engine.values import Outcome

__all__ = ["Backlog", "Holder"]


class Holder(Protocol):
    """One trigger's share."""

    @property
    def held(self) -> int:
        """How much it holds."""

    def halve(self, out: list[Outcome]) -> None:
        """Hold the older half no longer."""


class Backlog:
    """Counts what is held, by trigger; over the bound those give way that hold most.

    Args:
        held_max: of all triggers together.
        overflow: name of the counter of triggers that had to give way.
        counts: takes counters.
    """

    def __init__(self, held_max: int, overflow: str, counts: Counter[str]) -> None:
        self.held = 0
        self._held_max, self._overflow, self._counts = held_max, overflow, counts
        self._holders: dict[str, Holder] = {}
        self._noted: dict[str, int] = {}
        self._is_relieving = False

    def add(self, trigger_id: str, holder: Holder) -> None:
        """Take a trigger in, with what it holds."""
        self._holders[trigger_id], self._noted[trigger_id] = holder, holder.held
        self.held += holder.held

    def remove(self, trigger_id: str) -> None:
        """Take a trigger out, with what it still holds."""
        if self._holders.pop(trigger_id, None) is not None:
            self.held -= self._noted.pop(trigger_id)

    def note(self, trigger_id: str, out: list[Outcome]) -> None:
        """What a trigger holds has changed."""
        held = self._holders[trigger_id].held
        self.held += held - self._noted[trigger_id]
        self._noted[trigger_id] = held
        if self.held > self._held_max and not self._is_relieving:
            self._is_relieving = True
            self._relieve(out)
            self._is_relieving = False

    def _relieve(self, out: list[Outcome]) -> None:
        """Halve whatever is above half of the mean: at least a quarter of all goes, so this is seldom done."""
        holding = [(trigger_id, holder) for trigger_id, holder in self._holders.items() if holder.held]
        share = self.held // (2 * len(holding))
        for trigger_id, holder in holding:
            if holder.held > share:
                self._counts[self._overflow] += 1
                holder.halve(out)
                self.note(trigger_id, out)
