"""All sockets of one exchange: who is connected, what each turn sends, and what faults do to it. No socket inside."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from ingestors.simulation.bent_trades import Batch, TradeBender
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.socket_faults import SocketFaultBook, SocketFaultKind
from ingestors.simulation.socket_values import ABRUPT, Binary, Close, Moment, SocketLimits, SocketSession, ToSend

__all__ = ["Line", "SocketHub"]

_KIND = SocketFaultKind
_TURN_TRADES_MAX = 4_000
_BEAT_NS = 20 * 10**6
_GOING_AWAY = 1001


class Line(Protocol):
    """An open connection as the hub sees it."""

    @property
    def session(self) -> SocketSession:
        """Its side of the protocol."""

    @property
    def unsent_bytes(self) -> int:
        """What the client has not taken yet."""

    def send(self, items: list[ToSend]) -> None:
        """Send in order; a close is the last."""


class SocketHub:
    """One exchange.

    Args:
        name: of the exchange.
        feeds: its markets, by the name that sessions use.
        limits: bounds.
        faults: asked at every turn.
    """

    def __init__(
        self, name: str, feeds: Mapping[str, MarketFeed], *, limits: SocketLimits, faults: SocketFaultBook
    ) -> None:
        self.name = name
        self.feeds = feeds
        self.limits = limits
        self.faults = faults
        self.connects = 0
        self._lines: dict[SocketSession, Line] = {}
        self._benders = {id(feed): TradeBender(name, feed, faults) for feed in feeds.values()}
        self._handshakes: dict[str, deque[int]] = {}
        self._beat_ns = 0
        self._system = "online"
        self._ends: list[tuple[int, Line]] = []

    @property
    def lines(self) -> int:
        """Open connections."""
        return len(self._lines)

    @property
    def unsent_bytes(self) -> int:
        """The most that any client has not taken yet."""
        return max((line.unsent_bytes for line in self._lines.values()), default=0)

    @property
    def is_subscribed(self) -> bool:
        """Whether any trades are asked for."""
        return any(feed.sessions for feed in self.feeds.values())

    def admits(self, address: str, *, wall_ns: int) -> bool:
        """Count a handshake; False when the address makes too many."""
        seen = self._handshakes.setdefault(address, deque())
        while seen and seen[0] <= wall_ns - self.limits.connects_window_ms * 10**6:
            seen.popleft()
        if len(seen) >= self.limits.connects_max:
            return False
        seen.append(wall_ns)
        return True

    def add(self, line: Line, moment: Moment) -> None:
        """Take a new connection and send what comes first."""
        self.connects += 1
        self._lines[line.session] = line
        items = list(line.session.opened(moment))
        if self._system != "online":
            items = list(line.session.notice(self._system, moment))
        self.say(line, items)

    def remove(self, line: Line) -> None:
        """Forget a connection that is gone."""
        if self._lines.pop(line.session, None) is not None:
            line.session.left()

    def say(self, line: Line, items: list[ToSend]) -> None:
        """Send answers, unless the exchange is mute."""
        if self.faults.holds(_KIND.MUTE, self.name, channel="all"):
            items = [item for item in items if isinstance(item, Close)]
        self._send(line, items)

    def turn(self, moment: Moment) -> int:
        """Send everything that is due and return how many trades came to exist."""
        trades = 0
        for feed in self.feeds.values():
            if feed.sessions:
                trades += self._publish(feed, moment)
        if moment.wall_ns - self._beat_ns >= _BEAT_NS:
            self._beat_ns = moment.wall_ns
            self._beat(moment)
        return trades

    def _publish(self, feed: MarketFeed, moment: Moment) -> int:
        trades = feed.advance(moment.now_ns, count_max=_TURN_TRADES_MAX)
        bender = self._benders[id(feed)]
        if not trades and not bender.is_holding:
            return 0
        batches = bender.bend(trades, wall_ns=moment.wall_ns)
        if self.faults.holds(_KIND.MUTE, self.name, symbol=feed.source.listing.symbol, channel="trades"):
            feed.counts.muted += sum(len(batch.trades) for batch in batches)
            return len(trades)
        for session in list(feed.sessions):
            self._deliver(self._lines[session], feed, batches, moment)
        return len(trades)

    def _send(self, line: Line, items: list[ToSend]) -> None:
        if items:
            line.send(items)
            if isinstance(items[-1], Close):
                self.remove(line)

    def _deliver(self, line: Line, feed: MarketFeed, batches: list[Batch], moment: Moment) -> None:
        items: list[ToSend] = []
        for batch in batches:
            if batch.trades:
                items += _spoiled(line.session.traded(feed, batch.trades, moment), batch.spoiled)
            if batch.ends_with is not None:
                items.append(Close(batch.ends_with))
                break
        if line.unsent_bytes > self.limits.unsent_bytes_max:
            items = [Close(ABRUPT, "slow consumer")]
        self._send(line, items)

    def _beat(self, moment: Moment) -> None:
        is_mute = self.faults.holds(_KIND.MUTE, self.name, channel="heartbeats")
        for line in list(self._lines.values()):
            items = line.session.turned(moment)
            if is_mute:
                items = [item for item in items if isinstance(item, Close)]
            elif self.faults.holds(_KIND.NO_PING, self.name):
                items = [item for item in items if isinstance(item, bytes)]
            self.say(line, list(items))
        self._follow_faults(moment)

    def _follow_faults(self, moment: Moment) -> None:
        for line in list(self._lines.values()):
            fault = self.faults.take(_KIND.DISCONNECT, self.name)
            if fault is not None:
                self._send(line, [Close(fault.close_code)])
        while (fault := self.faults.take(_KIND.SNAPSHOT, self.name)) is not None:
            self._repeat(fault.symbol, moment)
        if self._ends or self.faults.holds(_KIND.SHUTDOWN, self.name):
            self._shut_down(moment)
        system = "maintenance" if self.faults.holds(_KIND.MAINTENANCE, self.name) else "online"
        if system != self._system:
            self._system = system
            for line in list(self._lines.values()):
                self.say(line, list(line.session.notice(system, moment)))

    def _repeat(self, symbol: str, moment: Moment) -> None:
        for feed in self.feeds.values():
            if not fnmatchcase(feed.source.listing.symbol, symbol):
                continue
            newest = feed.newest(self.limits.snapshot_trades) if feed.sessions else []
            for session in list(feed.sessions) if newest else ():
                self.say(self._lines[session], list(session.snapshot(feed, newest, moment)))

    def _shut_down(self, moment: Moment) -> None:
        fault = self.faults.take(_KIND.SHUTDOWN, self.name)
        if fault is not None:
            for line in list(self._lines.values()):
                self.say(line, list(line.session.notice("shutdown", moment)))
                self._ends.append((moment.wall_ns + fault.delay_ms * 10**6, line))
        for end_ns, line in self._ends:
            if moment.wall_ns >= end_ns and line.session in self._lines:
                self._send(line, [Close(_GOING_AWAY, "server shutdown")])
        self._ends = [(end_ns, line) for end_ns, line in self._ends if moment.wall_ns < end_ns]


def _spoiled(texts: Sequence[bytes], kind: SocketFaultKind | None) -> list[bytes]:
    if kind is None:
        return list(texts)
    if kind == _KIND.DROP:
        return []
    if kind == _KIND.TRUNCATED:
        return [type(text)(text[: len(text) // 2]) for text in texts]
    return [_garbled(text) for text in texts]


def _garbled(text: bytes) -> bytes:
    """Return what nobody can read: no JSON, or a message of an unknown schema."""
    if isinstance(text, Binary):
        return Binary(text[:4] + b"\xff\xff" + text[6:])
    return b"{" + text.replace(b'":', b'"=')
