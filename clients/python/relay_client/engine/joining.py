"""History first, then live: ticks from a time on, joined with the live ones at the trade id."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from relay_client.engine.items import Origin, Tick
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

    History goes on while live ticks come, so its last page may overtake them: trades behind a held one are held, too.
    What the ingestor fetched after a hole comes live with an id of long ago, and says nothing of how far history is.

    Args:
        topic: of the ticks.
        start_ns: exchange time of the first tick.
        rules: bounds.

    Attributes:
        held: ticks, as they came, with their numbers; :meth:`in_order` puts them in order.
        newest: highest id of history before those that are held; None before.
        beat: last id that a beat named.
        is_to_reread: whether what is left of a page has to wait: it is read again.
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
        self._lowest: int | None = None
        self._texts: set[str] = set()
        self._has_met = self._is_mixed = self.is_to_reread = False
        self.newest: int | None = None
        self.beat: int | None = None
        self.overflowed: tuple[int, int] | None = None
        self.text = ""

    def begin(self, now_ns: int) -> None:
        """The subscription is in force at the relay: what is published from now on is held."""
        if self.phase is JoinPhase.WAITING:
            self.phase, self._due_ns, self._failing_ns = JoinPhase.READING, now_ns, now_ns

    def hold(self, tick: Tick, number: int | None) -> list[tuple[Tick, int | None]]:
        """Hold a tick; returns those that must be forgotten, for there are too many: history will bring them."""
        self.held.append((tick, number))
        self._is_mixed = self._is_mixed or tick.origin is not Origin.LIVE
        if number is None:
            self._texts.add(tick.trade_id)
        elif not tick.backfill:
            self._lowest = number if self._lowest is None else min(number, self._lowest)
        if len(self.held) <= self._rules.hold_max:
            return []
        dropped, self.held = self.held, []
        # Those without numbers are found by reading on: the page that has met them already is read again.
        self.is_to_reread = self.is_to_reread or self._has_met
        self._lowest, self._has_met, self._is_mixed = None, False, False
        self._texts.clear()
        numbers = [n for _, n in dropped if n is not None]
        if numbers:
            first, last = self.overflowed or (numbers[0], numbers[0])
            self.overflowed = min(first, *numbers), max(last, *numbers)
        return dropped

    def on_known(self, trade_id: str) -> None:
        """History repeats a trade; where that one is held and has no number, others of its time follow."""
        self._has_met = self._has_met or trade_id in self._texts

    def is_behind(self, number: int | None, *, is_repair: bool) -> bool:
        """Return whether a trade that history or a repair brings belongs behind one that is held."""
        if is_repair and (number is None or self._lowest is None):
            return bool(self.held)
        if number is None:
            return self._has_met
        return self._lowest is not None and number > self._lowest

    def in_order(self) -> list[tuple[Tick, int | None]]:
        """Return what is held: live ticks as they came; by id where others came among them, last those without."""
        if not self._is_mixed:
            return self.held
        return sorted(self.held, key=lambda held: (held[1] is None, held[1] or 0))

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the next page to ask for."""
        if self.phase is not JoinPhase.READING or self._is_asked or now_ns < self._due_ns:
            return None
        self._is_asked = True
        return ReplayQuestion(self._topic, "time", self._start_ns, 0, cursor=self._cursor)

    def on_page(self, next_from: int, numbers: Sequence[int], now_ns: int) -> None:
        """Take note of a page whose records, with these ids, have been taken."""
        self._is_asked, self._failures, self._failing_ns, self._due_ns = False, 0, now_ns, now_ns
        if self.is_to_reread:
            self.is_to_reread = False
            return
        before = [n for n in numbers if self._lowest is None or n < self._lowest]
        has_met = self._has_met or len(before) < len(numbers)
        if before:
            self.newest = max(before) if self.newest is None else max(self.newest, *before)
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
        last = self._lowest - 1 if self._lowest is not None else self.beat
        if self.newest is None or (last is None and self._texts):
            return (1, 0)
        if last is not None:
            return (self.newest + 1, last)
        return (1, 0) if now_ns - self._ended_ns >= self._rules.join_wait_ns else None

    def _close(self, now_ns: int) -> None:
        self.phase, self._ended_ns = JoinPhase.CLOSING, now_ns
