"""One market as an exchange's sockets send it: how far trades have gone out, to whom, and counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ingestors.simulation.records import MarketSource, Trade

if TYPE_CHECKING:
    from ingestors.simulation.socket_values import SocketSession

__all__ = ["FeedCounts", "MarketFeed"]


@dataclass(slots=True)
class FeedCounts:
    """Trades of a market since the start, on all connections together.

    Attributes:
        due: trades that came to exist while somebody was subscribed.
        dropped, doubled, reordered, spoiled, muted: what faults did to them.
        first_id, last_id: of the due ones; 0 before the first.
    """

    due: int = 0
    dropped: int = 0
    doubled: int = 0
    reordered: int = 0
    spoiled: int = 0
    muted: int = 0
    first_id: int = 0
    last_id: int = 0


@dataclass(slots=True)
class MarketFeed:
    """A market on the sockets of one exchange.

    The position moves only while somebody is subscribed. A snapshot ends at the position, so that it and the
    updates after it leave nothing out.

    Attributes:
        name: as the exchange writes it (``BTCUSDT``, ``BTC/USD``, ``BTC-USD``).
        source: the market that REST serves as well.
        position: trades before it have gone out.
        sessions: who is subscribed.
        counts: what went out.
    """

    name: str
    source: MarketSource
    position: int = 0
    sessions: dict[SocketSession, None] = field(default_factory=dict)
    counts: FeedCounts = field(default_factory=FeedCounts)

    def join(self, session: SocketSession, *, now_ns: int) -> None:
        """Subscribe a session; the first one starts at the trades that exist now."""
        if not self.sessions:
            self.position = self.source.position_at(now_ns + 1)
        self.sessions[session] = None

    def leave(self, session: SocketSession) -> None:
        """Unsubscribe a session."""
        self.sessions.pop(session, None)

    def is_listed(self, now_ns: int) -> bool:
        """Return whether the market exists at a time."""
        return self.source.listing.listed_ns <= now_ns

    def newest(self, count: int) -> list[Trade]:
        """Return the last ``count`` trades that have gone out, oldest first."""
        return self.source.trades(max(self.position - count, 0), self.position)

    def advance(self, now_ns: int, *, count_max: int) -> Sequence[Trade]:
        """Return trades that came to exist since the last call, at most ``count_max``, and move past them."""
        end = self.source.position_at(now_ns + 1)
        if end <= self.position:
            return ()
        trades = self.source.trades(self.position, min(end, self.position + count_max))
        self.position += len(trades)
        if trades:
            counts = self.counts
            counts.due += len(trades)
            counts.first_id = counts.first_id or trades[0].trade_id
            counts.last_id = trades[-1].trade_id
        return trades
