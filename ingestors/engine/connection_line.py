"""One connection of the plan: what is subscribed on it, what is waiting to be sent, and when it was last heard."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from ingestors.engine.connection_commands import LineProtocol, PlanCommand, SendPing, SendText
from ingestors.engine.values import Listing

__all__ = ["Line", "LinePhase"]

_SECOND_NS = 1_000_000_000


class LinePhase(Enum):
    """Life of a connection; a lost one is replaced by another with a new number."""

    WAITING = "waiting"
    OPENING = "opening"
    OPEN = "open"


@dataclass(slots=True)
class Line:
    """State of one connection; times monotonic, nanoseconds.

    Attributes:
        number: never used again.
        protocol: its side of the exchange's protocol.
        listings: subscribed or to be, by ticker.
        failures: attempts in a row that did not live long.
        due_ns: connect no earlier.
        replaces: the connection that is closed when everything is confirmed here.
        successor: the connection that will replace this one.
        fresh: listings to subscribe at the next tick.
        awaiting: since when subscriptions wait for their confirmation.
        confirmed: tickers whose subscription is confirmed.
        opened_ns, heard_ns: when it opened, and when the newest frame came.
        alive_wall_ns: wall clock of the newest frame.
        end_ns: replaced from then on.
        retire_ns: closed from then on.
    """

    number: int
    protocol: LineProtocol
    listings: dict[str, Listing]
    failures: int = 0
    due_ns: int = 0
    replaces: int | None = None
    successor: int | None = None
    phase: LinePhase = LinePhase.WAITING
    fresh: list[Listing] = field(default_factory=list)
    awaiting: dict[str, int] = field(default_factory=dict)
    confirmed: set[str] = field(default_factory=set)
    opened_ns: int = 0
    heard_ns: int = 0
    alive_wall_ns: int = 0
    end_ns: int | None = None
    retire_ns: int | None = None
    _outbox: deque[bytes] = field(default_factory=deque)
    _sent: deque[int] = field(default_factory=deque)
    _is_pinged: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every subscription is confirmed."""
        return self.phase is LinePhase.OPEN and len(self.confirmed) == len(self.listings)

    def opened(self, now_ns: int) -> None:
        """It is connected: everything is to be subscribed."""
        self.phase = LinePhase.OPEN
        self.opened_ns = self.heard_ns = now_ns
        self.fresh = list(self.listings.values())

    def heard(self, received_ns: int, now_ns: int) -> None:
        """A frame came."""
        self.heard_ns, self.alive_wall_ns = now_ns, received_ns
        self._is_pinged = False

    def put(self, listing: Listing) -> None:
        """Take a market on."""
        self.listings[str(listing.ticker)] = listing
        if self.phase is LinePhase.OPEN:
            self.fresh.append(listing)

    def drop(self, ticker: str, *, is_refused: bool = False) -> None:
        """Give a market up; one that the exchange refused is not subscribed there."""
        listing = self.listings.pop(ticker, None)
        self.confirmed.discard(ticker)
        self.awaiting.pop(ticker, None)
        if listing is None or self.phase is not LinePhase.OPEN:
            return
        if listing in self.fresh:
            self.fresh.remove(listing)
        elif not is_refused and self.listings:
            self._outbox.extend(self.protocol.unsubscribe([listing]))

    def subscribe_again(self, ticker: str, now_ns: int) -> None:
        """End a subscription and begin it anew."""
        listings = [self.listings[ticker]]
        self.confirmed.discard(ticker)
        self.awaiting[ticker] = now_ns
        self._outbox.extend([*self.protocol.unsubscribe(listings), *self.protocol.subscribe(listings)])

    def send_due(self, now_ns: int) -> list[PlanCommand]:
        """Return what may be sent now, within the exchange's messages a second."""
        if self.fresh:
            fresh, self.fresh = self.fresh, []
            self.awaiting.update((str(listing.ticker), now_ns) for listing in fresh)
            self._outbox.extend(self.protocol.subscribe(fresh))
        self._outbox.extend(self.protocol.on_tick(now_ns))
        commands: list[PlanCommand] = []
        while self._outbox and self._may_send(now_ns):
            commands.append(SendText(self.number, self._outbox.popleft()))
        if self._outbox:
            # Nothing that waits here can be confirmed yet.
            self.awaiting = dict.fromkeys(self.awaiting, now_ns)
        return commands

    def ping_due(self, now_ns: int) -> list[PlanCommand]:
        """Return a ping after half of the silence that is taken for death."""
        is_due = now_ns - self.heard_ns >= self.protocol.limits.silence_ns // 2
        if self._is_pinged or not is_due or not self._may_send(now_ns):
            return []
        self._is_pinged = True
        return [SendPing(self.number)]

    def is_silent(self, now_ns: int) -> bool:
        """Return whether no frame of any kind has come for too long."""
        return now_ns - self.heard_ns >= self.protocol.limits.silence_ns

    def _may_send(self, now_ns: int) -> bool:
        while self._sent and self._sent[0] <= now_ns - _SECOND_NS:
            self._sent.popleft()
        if len(self._sent) >= self.protocol.limits.messages_per_second_max:
            return False
        self._sent.append(now_ns)
        return True
