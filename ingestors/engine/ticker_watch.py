"""One ticker's silence: a quiet market is not dead, so that only evidence of newer trades makes it mute."""

from __future__ import annotations

from dataclasses import dataclass, field

from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import Trades
from ingestors.engine.values import Listing

__all__ = ["TickerWatch"]

_DOUBLINGS_MAX = 5


@dataclass(slots=True)
class TickerWatch:
    """What is known of a ticker across its connections; times monotonic, nanoseconds.

    Attributes:
        listing: the market.
        serving: numbers of the connections on which it is confirmed.
        is_told: its feed was told last that it is connected.
        newest: highest trade id that a socket delivered, or the first that the exchange was heard to have.
        trade_ns: when it last rose.
        heard_ns: when the exchange last said anything about its trades.
        evidence: highest trade id that the exchange is known to have.
        behind_ns: since when it has newer trades than the socket delivered.
        mutes: how often it was mute since the last new trade.
        looks, looked_ns: REST looks since it was last heard of, and when the last one was.
    """

    listing: Listing
    serving: set[int] = field(default_factory=set)
    is_told: bool = False
    newest: int | None = None
    trade_ns: int = 0
    heard_ns: int = 0
    evidence: int = 0
    behind_ns: int | None = None
    mutes: int = 0
    looks: int = 0
    looked_ns: int = 0

    def on_trades(self, event: Trades, now_ns: int) -> None:
        """The socket delivered trades."""
        trades = event.trades
        number = max(trades[0].number, trades[-1].number)
        self.heard_ns, self.looks = now_ns, 0
        if self.newest is not None and number <= self.newest:
            return
        self.newest, self.trade_ns = number, now_ns
        if not event.is_snapshot:
            self.mutes = 0
        if number >= self.evidence:
            self.behind_ns = None

    def on_evidence(self, number: int, now_ns: int) -> None:
        """The exchange was heard to have a trade of this number."""
        self.evidence = max(self.evidence, number)
        if self.newest is None:
            self.newest = number
        elif number > self.newest and self.behind_ns is None:
            self.behind_ns = now_ns

    def is_mute(self, now_ns: int, rules: PlanRules) -> bool:
        """Return whether newer trades exist that the socket has kept silent about for too long."""
        if self.behind_ns is None:
            return False
        return now_ns - max(self.behind_ns, self.trade_ns) >= self.patience_ns(rules.mute_ns)

    def is_look_due(self, now_ns: int, rules: PlanRules) -> bool:
        """Return whether nothing at all has been heard of its trades for so long that the exchange is to be asked."""
        wait_ns = min(rules.look_ns << min(self.looks, 16), rules.look_max_ns)
        return now_ns - max(self.heard_ns, self.looked_ns) >= wait_ns

    def looked(self, now_ns: int) -> None:
        """The exchange is being asked."""
        self.looks, self.looked_ns = self.looks + 1, now_ns

    def muted(self, now_ns: int) -> None:
        """It was mute, and is subscribed again."""
        self.is_told = False
        self.mutes += 1
        self.serving.clear()
        if self.behind_ns is not None:
            self.behind_ns = now_ns

    def patience_ns(self, wait_ns: int) -> int:
        """Return a wait that grows with each time that it was mute in vain."""
        return wait_ns << min(self.mutes, _DOUBLINGS_MAX)
