"""Ticks of one ticker in the order of their ids: what is missing is waited for, within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from relay_client.engine.items import Tick
from relay_client.engine.live_values import FeedRules, Skipped
from relay_client.engine.loss_book import FeedCounters
from relay_client.engine.spans import Span, SpanSet

__all__ = ["StrictOrder"]


class StrictOrder:
    """Holds ticks back until those before them have come, are declared unfillable, or were waited for long enough.

    Args:
        topic: for events.
        rules: bounds of time and size.
        counters: ``late`` is kept here.
        out: ticks and events are appended, in order.
    """

    def __init__(self, topic: str, *, rules: FeedRules, counters: FeedCounters, out: list[object]) -> None:
        self._topic, self._rules, self._counters, self._out = topic, rules, counters, out
        self._next: int | None = None
        self._held: dict[int, Tick] = {}
        self._never = SpanSet(spans_max=rules.spans_max)
        self._blocked_ns = 0

    def __bool__(self) -> bool:
        return bool(self._held)

    def take(self, tick: Tick, number: int | None, now_ns: int) -> None:
        """Take a tick that is no repeat; one without a number has no place in the order and passes."""
        if number is None:
            self._out.append(tick)
        elif self._next is None or number == self._next:
            self._out.append(tick)
            self._next = number + 1
            if self._held or self._never:
                self._advance(now_ns)
        elif number < self._next:
            self._counters.late += 1
        else:
            if not self._held:
                self._blocked_ns = now_ns
            self._held[number] = tick
            if self._never:
                self._advance(now_ns)
            if len(self._held) > self._rules.order_max:
                self._skip(now_ns, f"{self._rules.order_max} ticks were held")

    def skip(self, spans: Sequence[Span], now_ns: int) -> None:
        """Ids that will never come, as somebody has said already."""
        for first, last in spans:
            self._never.add_span(first, last)
        self._advance(now_ns)

    def on_tick(self, now_ns: int) -> None:
        """Go on after the bounded wait."""
        if self._held and now_ns - self._blocked_ns >= self._rules.order_wait_ns:
            self._skip(now_ns, f"waited {self._rules.order_wait_ns // 1_000_000} ms in vain")

    def _advance(self, now_ns: int) -> None:
        begun = self._next
        while self._next is not None:
            tick = self._held.pop(self._next, None)
            if tick is not None:
                self._out.append(tick)
                self._next += 1
            elif self._next in self._never:
                self._next = self._never.present(self._next, 2**63)[0][1] + 1
            else:
                break
        if self._next != begun:
            self._blocked_ns = now_ns

    def _skip(self, now_ns: int, text: str) -> None:
        lowest = min(self._held)
        if self._next is not None:
            missing = self._never.absent(self._next, lowest - 1)
            count = sum(last - first + 1 for first, last in missing)
            self._out.append(Skipped(self._topic, count, str(self._next), str(lowest - 1), text))
        self._next = lowest
        self._advance(now_ns)
