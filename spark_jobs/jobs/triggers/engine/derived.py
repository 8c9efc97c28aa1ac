"""Conditions on conditions, for one trigger: N of M, and repeats. Both hold at the event that fills them."""

from __future__ import annotations

import msgspec

from relay.engine.pattern_values import NOfM, Repeat
from spark_jobs.jobs.triggers.engine.values import Item

__all__ = ["NOfMState", "RepeatState"]


class NOfMState(msgspec.Struct, omit_defaults=True, tag="n_of_m"):
    """When each member matched last."""

    last_ns: list[int | None]

    def judge(self, condition: NOfM, item: Item, mask: int) -> bool:
        """Take an event; return whether so many members lie in the window with it, and did not without it."""
        open_ns = item.time_ns - condition.window_ns
        before = self._count(open_ns)
        is_hit = False
        for place, member in enumerate(condition.members):
            if mask >> member & 1:
                self.last_ns[place] = item.time_ns
                is_hit = True
        return is_hit and before < condition.n <= self._count(open_ns)

    def _count(self, open_ns: int) -> int:
        return sum(1 for last_ns in self.last_ns if last_ns is not None and last_ns > open_ns)


class RepeatState(msgspec.Struct, omit_defaults=True, tag="repeat"):
    """Time and ordinal of the last matches; no more than are asked for."""

    matches: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def judge(self, condition: Repeat, item: Item, mask: int) -> bool:
        """Take an event; return whether so many matches lie in the window with it, and did not just before it."""
        if not mask >> condition.member & 1:
            return False
        needed = condition.n - 1
        is_full = not needed or self._is_inside(needed, condition, item.time_ns, item.ordinal)
        was_full = self._is_inside(condition.n, condition, item.time_ns, item.ordinal - 1)
        self.matches.append((item.time_ns, item.ordinal))
        del self.matches[: -condition.n]
        return is_full and not was_full

    def _is_inside(self, count: int, condition: Repeat, now_ns: int, newest: int) -> bool:
        """Return whether the last so many matches lie in the window that ends at a time and with an event."""
        if len(self.matches) < count:
            return False
        time_ns, ordinal = self.matches[-count]
        is_near = not condition.of_events or ordinal > newest - condition.of_events
        return is_near and (not condition.window_ns or time_ns > now_ns - condition.window_ns)
