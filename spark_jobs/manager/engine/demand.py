"""Which tickers are wanted live: read off the exact market topics that relays subscribe."""

from __future__ import annotations

from itertools import islice

from relay.errors import PeerError
from relay.protocol.periods import WANTED_PERIODS_MAX
from relay.protocol.topics import MarketTopic, parse_market_topic

__all__ = ["DemandBook"]

_WANTED_KINDS = frozenset({"tick", "ohlc", "gap"})


class DemandBook:
    """Topics held by at least one relay, by ticker; prefixes and private topics make no demand.

    Each period is work at every trade of its ticker, so only so many are wanted at once; the others wait.

    Args:
        periods_max: wanted periods of one ticker; the earliest asked for stay.
    """

    def __init__(self, *, periods_max: int = WANTED_PERIODS_MAX) -> None:
        self._periods_max = periods_max
        self._topics: dict[str, set[bytes]] = {}
        self._periods: dict[str, dict[int, None]] = {}

    @property
    def tickers(self) -> frozenset[str]:
        """Tickers that are wanted now."""
        return frozenset(self._topics)

    @property
    def periods(self) -> dict[str, frozenset[int]]:
        """Periods (seconds) of wanted bars, by ticker; tickers without are left out."""
        return {ticker: frozenset(islice(asked, self._periods_max)) for ticker, asked in self._periods.items()}

    @property
    def refused(self) -> dict[str, int]:
        """How many periods are asked for over the bound, by ticker; one is wanted as soon as another ends."""
        return {
            t: len(asked) - self._periods_max for t, asked in self._periods.items() if len(asked) > self._periods_max
        }

    def changed(self, topic: bytes, *, on: bool) -> bool:
        """Take a subscription or its end; return whether the set of wanted tickers has changed."""
        parsed = _parsed(topic)
        if parsed is None:
            return False
        ticker, period_seconds = str(parsed.ticker), parsed.period_seconds
        before = ticker in self._topics
        if on:
            self._topics.setdefault(ticker, set()).add(topic)
            if period_seconds:
                self._periods.setdefault(ticker, {}).setdefault(period_seconds)
        elif before:
            self._topics[ticker].discard(topic)
            if not self._topics[ticker]:
                del self._topics[ticker]
            if period_seconds and ticker in self._periods:
                self._periods[ticker].pop(period_seconds, None)
                if not self._periods[ticker]:
                    del self._periods[ticker]
        return before != (ticker in self._topics)


def _parsed(topic: bytes) -> MarketTopic | None:
    if b"|" not in topic:
        return None
    try:
        parsed = parse_market_topic(topic.decode("ascii"))
    except (PeerError, UnicodeDecodeError):
        return None
    # Only the form that publishers use: an alias would be a demand that nobody can serve.
    return parsed if parsed.kind in _WANTED_KINDS and str(parsed).encode() == topic else None
