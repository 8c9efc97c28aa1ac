"""The live table of ``relay watch``."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich import box
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from relay_client.cli.event_words import event_words, is_before_all
from relay_client.engine.items import Origin, Tick
from relay_client.engine.live_values import Gap, Loss
from relay_client.history import Bar
from relay_client.subscription import Subscription

__all__ = ["TickerStats", "WatchView"]

_RATE_NS = 5_000_000_000
_SAMPLES = 2_000
_EVENTS_SHOWN = 5
_COLUMNS = ("price", "size", "trades/s", "trades", "socket p50/p99", "wire p50/p99", "gaps", "lost")


@dataclass(slots=True)
class TickerStats:
    """What is shown of one ticker. Latencies compare clocks of two hosts; on one host they are exact.

    Attributes:
        from_socket, from_publisher: nanoseconds from the exchange's frame, and from its publication, to here.
    """

    last: Tick | None = None
    count: int = 0
    gaps: int = 0
    lost: int = 0
    arrivals: deque[int] = field(default_factory=deque)
    from_socket: deque[int] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    from_publisher: deque[int] = field(default_factory=lambda: deque(maxlen=_SAMPLES))

    def add(self, tick: Tick, now_ns: int) -> None:
        """Take a tick; only live ones say something about rate and latency."""
        self.count += 1
        if self.last is None or tick.time_ns >= self.last.time_ns:
            self.last = tick
        if tick.origin is not Origin.LIVE or tick.backfill:
            return
        self.arrivals.append(now_ns)
        self.from_socket.append(now_ns - tick.received_ns)
        self.from_publisher.append(now_ns - tick.published_ns)

    def rate(self, now_ns: int) -> int:
        """Return trades a second over the last five."""
        while self.arrivals and now_ns - self.arrivals[0] > _RATE_NS:
            self.arrivals.popleft()
        return len(self.arrivals) * 1_000_000_000 // _RATE_NS

    def row(self, now_ns: int) -> list[str]:
        """Return the cells."""
        price, size = (self.last.price_text, self.last.amount_text) if self.last is not None else ("", "")
        latencies = [_percentiles(self.from_socket), _percentiles(self.from_publisher)]
        return [price, size, str(self.rate(now_ns)), str(self.count), *latencies, str(self.gaps), str(self.lost)]


class WatchView:
    """A table that rich draws four times a second; used as a context manager."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._stats: dict[str, TickerStats] = {}
        self._bars: dict[tuple[str, int], Bar] = {}
        self._events: deque[str] = deque(maxlen=_EVENTS_SHOWN)
        self._live = Live(get_renderable=self.render, refresh_per_second=4)

    def update(self, item: Any, events: Iterable[Any]) -> None:
        """Take an item of data, or None, and events."""
        if isinstance(item, Tick):
            self._of(item.ticker).add(item, time.time_ns())
        elif isinstance(item, Bar):
            self._bars[item.ticker, item.period_seconds] = item
        for event in events:
            self._events.extend(filter(None, [event_words(event)]))
            if isinstance(event, Gap):
                self._of(event.ticker).gaps += event.state == "OPEN" and not is_before_all(event)
            elif isinstance(event, Loss):
                self._of(event.topic.partition("|")[0]).lost += event.count

    def say(self, words: str) -> None:
        """Show a line among the events."""
        self._events.append(words)

    def render(self) -> Group:
        """Return what is shown now."""
        now_ns, states = time.time_ns(), self._subscription.states
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("ticker", no_wrap=True)
        for name in _COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("state", no_wrap=True)
        for ticker in sorted(states):
            table.add_row(ticker, *self._of(ticker).row(now_ns), states[ticker])
        bars = [Text(f"{bar.ticker} {bar.period_seconds} s: {bar.close} ({bar.start})") for bar in self._bars.values()]
        return Group(table, *bars, *map(Text, self._events))

    def __enter__(self) -> WatchView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _of(self, ticker: str) -> TickerStats:
        return self._stats.setdefault(ticker, TickerStats())


def _percentiles(samples: Iterable[int]) -> str:
    ordered = sorted(samples)
    if not ordered:
        return ""
    shown = (ordered[len(ordered) * percent // 100] // 1_000 for percent in (50, 99))
    return "/".join(f"{us // 1000}.{us % 1000 // 100}" if us >= 0 else "?" for us in shown) + " ms"
