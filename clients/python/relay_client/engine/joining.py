"""History first, then live: ticks from a time on, joined with the live ones at the trade id."""

from __future__ import annotations

from enum import Enum

from relay_client.engine.items import Tick
from relay_client.engine.live_values import FeedRules, ReplayQuestion

__all__ = ["Join", "JoinPhase"]


class JoinPhase(Enum):
    """::

        WAITING ──(subscription in force)──► READING ──(end of the log, or met the live ones)──► CLOSING ──► DONE

    CLOSING waits for what lies between the newest of history and the oldest live one.
    """

    WAITING = "waiting"
    READING = "reading"
    CLOSING = "closing"
    DONE = "done"


class Join:
    """What one ticker's history is up to; live ticks are held meanwhile.

    Args:
        topic: of the ticks.
        start_ns: exchange time of the first tick.
        rules: bounds.

    Attributes:
        held: live ticks, as they came, with their numbers.
        newest: highest id of history; None before.
        beat: last id that a beat named.
        text: why history is not complete; empty while it is.
    """

    def __init__(self, topic: str, start_ns: int, *, rules: FeedRules) -> None:
        self._topic, self._start_ns, self._rules = topic, start_ns, rules
        self._cursor = 0
        self._is_asked = False
        self._due_ns = self._failing_ns = 0
        self._failures = 0
        self._ended_ns = 0
        self.phase = JoinPhase.WAITING
        self.held: list[tuple[Tick, int | None]] = []
        self.newest: int | None = None
        self.beat: int | None = None
        self.overflowed: tuple[int, int] | None = None
        self.text = ""

    def begin(self, now_ns: int) -> None:
        """The subscription is in force at the relay: what is published from now on is held."""
        if self.phase is JoinPhase.WAITING:
            self.phase, self._due_ns, self._failing_ns = JoinPhase.READING, now_ns, now_ns

    def hold(self, tick: Tick, number: int | None) -> list[tuple[Tick, int | None]]:
        """Hold a live tick; returns those that must be forgotten, for there are too many: history will bring them."""
        self.held.append((tick, number))
        if len(self.held) <= self._rules.hold_max:
            return []
        dropped, self.held = self.held, []
        numbers = [n for _, n in dropped if n is not None]
        if numbers:
            first, last = self.overflowed or (numbers[0], numbers[0])
            self.overflowed = min(first, *numbers), max(last, *numbers)
        return dropped

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the next page to ask for."""
        if self.phase is not JoinPhase.READING or self._is_asked or now_ns < self._due_ns:
            return None
        self._is_asked = True
        return ReplayQuestion(self._topic, "time", self._start_ns, 0, cursor=self._cursor)

    def on_page(self, next_from: int, highest: int | None, now_ns: int) -> None:
        """Take note of a page whose records have been taken; ``highest`` is its highest id."""
        self._is_asked, self._failures, self._failing_ns, self._due_ns = False, 0, now_ns, now_ns
        if highest is not None:
            self.newest = highest if self.newest is None else max(self.newest, highest)
        lowest_held = min((n for _, n in self.held if n is not None), default=None)
        has_met = lowest_held is not None and self.newest is not None and self.newest >= lowest_held
        if not next_from or next_from <= self._cursor or has_met:
            self._close(now_ns)
        self._cursor = next_from

    def on_failed(self, text: str, now_ns: int, *, is_final: bool) -> None:
        """Take note that a page did not come."""
        self._is_asked = False
        self._failures += 1
        wait_ns = min(self._rules.backoff_max_ns, self._rules.backoff_ns << min(self._failures - 1, 16))
        self._due_ns = now_ns + wait_ns
        if is_final or now_ns - self._failing_ns >= self._rules.repair_ns:
            self.text = text
            self._close(now_ns)

    def bounds(self, now_ns: int) -> tuple[int, int] | None:
        """While CLOSING: return the ids between history and live; (1, 0) for none, None while not known yet."""
        lowest = min((n for _, n in self.held if n is not None), default=None)
        last = lowest - 1 if lowest is not None else self.beat
        if self.newest is None or (last is None and self.held):
            return (1, 0)
        if last is not None:
            return (self.newest + 1, last)
        return (1, 0) if now_ns - self._ended_ns >= self._rules.join_wait_ns else None

    def _close(self, now_ns: int) -> None:
        self.phase, self._ended_ns = JoinPhase.CLOSING, now_ns
