"""Which tickers are wanted live: read off the exact market topics that relays subscribe."""

from __future__ import annotations

from relay.errors import PeerError
from relay.protocol.topics import parse_market_topic

__all__ = ["DemandBook"]

_WANTED_KINDS = frozenset({"tick", "ohlc", "gap"})


class DemandBook:
    """Topics held by at least one relay, by ticker; prefixes and private topics make no demand."""

    def __init__(self) -> None:
        self._topics: dict[str, set[bytes]] = {}

    @property
    def tickers(self) -> frozenset[str]:
        """Tickers that are wanted now."""
        return frozenset(self._topics)

    @property
    def periods(self) -> dict[str, frozenset[int]]:
        """Periods (seconds) of wanted bars, by ticker; tickers without are left out."""
        found = {ticker: frozenset(filter(None, map(_period, topics))) for ticker, topics in self._topics.items()}
        return {ticker: periods for ticker, periods in found.items() if periods}

    def changed(self, topic: bytes, *, on: bool) -> bool:
        """Take a subscription or its end; return whether the set of wanted tickers has changed."""
        ticker = _ticker(topic)
        if ticker is None:
            return False
        before = ticker in self._topics
        if on:
            self._topics.setdefault(ticker, set()).add(topic)
        elif before:
            self._topics[ticker].discard(topic)
            if not self._topics[ticker]:
                del self._topics[ticker]
        return before != (ticker in self._topics)


def _period(topic: bytes) -> int | None:
    return parse_market_topic(topic.decode("ascii")).period_seconds


def _ticker(topic: bytes) -> str | None:
    if b"|" not in topic:
        return None
    try:
        parsed = parse_market_topic(topic.decode("ascii"))
    except (PeerError, UnicodeDecodeError):
        return None
    # Only the form that publishers use: an alias would be a demand that nobody can serve.
    return str(parsed.ticker) if parsed.kind in _WANTED_KINDS and str(parsed).encode() == topic else None
