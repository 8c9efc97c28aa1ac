"""What is asked for again out of the log, by time: one question in flight, back-off, a word when it goes on failing."""

from __future__ import annotations

from relay_client.engine.live_values import ReplayQuestion

__all__ = ["TimeReplay"]

_BACKOFF_NS = 200_000_000
_BACKOFF_MAX_NS = 10_000_000_000
_TOLD_AFTER_NS = 15_000_000_000
_BEGIN = 1
"""Start of a replay of everything; on the wire 0 means that there is no start."""


class TimeReplay:
    """Asks for everything of a topic since a time, page by page.

    Args:
        topic: exact.
        since_ns: ask from here on as soon as the subscription is in force; None for nothing yet.
    """

    def __init__(self, topic: str, *, since_ns: int | None = None) -> None:
        self._topic, self._asked_ns = topic, since_ns
        self._cursor, self._due_ns, self._failures = 0, 0, 0
        self._failing_ns, self._is_told, self._is_in_force = 0, False, False
        self._question: ReplayQuestion | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a replay is to be asked for."""
        return self._asked_ns is not None and self._question is None and self._is_in_force

    def on_in_force(self) -> None:
        """The subscription is in force (again)."""
        self._is_in_force = True

    def on_relay_away(self) -> None:
        """The relay is silent: nothing can be asked."""
        self._is_in_force = False

    def ask_from(self, from_ns: int, now_ns: int) -> None:
        """Have a replay asked for; one that is under way may have passed what was lost, so it decides nothing now."""
        self._asked_ns = from_ns if self._asked_ns is None else min(self._asked_ns, from_ns)
        self._question, self._cursor, self._due_ns = None, 0, now_ns

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the replay to ask for now."""
        if not self.is_busy or now_ns < self._due_ns or self._asked_ns is None:
            return None
        self._question = ReplayQuestion(self._topic, "time", max(_BEGIN, self._asked_ns), 0, cursor=self._cursor)
        return self._question

    def on_answer(self, question: ReplayQuestion, next_from: int, now_ns: int) -> bool:
        """Note an answer whose records have been taken; return whether all that was asked for has come."""
        if question is not self._question:
            return False
        self._question = None
        self._failures, self._failing_ns, self._is_told = 0, 0, False
        self._cursor, self._due_ns = next_from, now_ns
        if not next_from:
            self._asked_ns = None
        return self._asked_ns is None

    def on_failed(self, question: ReplayQuestion, now_ns: int, *, is_final: bool) -> bool:
        """Note that a replay was refused for good, or not answered in time; return whether it is time to say so."""
        if question is not self._question:
            return False
        self._question = None
        self._failures += 1
        self._failing_ns = self._failing_ns or now_ns
        self._due_ns = now_ns + min(_BACKOFF_MAX_NS, _BACKOFF_NS << min(self._failures, 16))
        if is_final:
            self._asked_ns, self._cursor = None, 0
        if (is_final or now_ns - self._failing_ns > _TOLD_AFTER_NS) and not self._is_told:
            self._is_told = True
            return True
        return False
