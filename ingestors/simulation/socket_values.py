"""What an exchange's WebSocket side is made of: limits, what a session is told and what it wants done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Trade

__all__ = ["ABRUPT", "Binary", "Close", "Moment", "Ping", "SocketLimits", "SocketSession", "ToSend"]

ABRUPT = 1006
"""Stands for an end without a close frame, as clients report it; never on the wire."""


@dataclass(frozen=True, slots=True)
class SocketLimits:
    """Bounds of the simulated exchanges' sockets; times in milliseconds of real time.

    Attributes:
        binance_streams_max: subscriptions on a connection.
        binance_messages_per_second: incoming messages, pings and pongs included; one more and it closes.
        connects_max, connects_window_ms: handshakes from one address, at every exchange; 429 beyond.
        life_ms: Binance closes a connection this old.
        ping_ms, pong_within_ms: Binance's pings and how long it waits for an answer.
        subscribe_within_ms: both Coinbase interfaces close a connection without a subscription.
        idle_ms: Coinbase Advanced closes a connection that has had nothing to send for so long.
        heartbeat_ms: Kraken when idle, Coinbase on its heartbeat channels.
        snapshot_trades: newest trades that a snapshot repeats.
        unsent_bytes_max: a client that takes so little in that more would have to be kept is cut off.
    """

    binance_streams_max: int = 1_024
    binance_messages_per_second: int = 5
    connects_max: int = 300
    connects_window_ms: int = 300_000
    life_ms: int = 86_400_000
    ping_ms: int = 20_000
    pong_within_ms: int = 60_000
    subscribe_within_ms: int = 5_000
    idle_ms: int = 90_000
    heartbeat_ms: int = 1_000
    snapshot_trades: int = 50
    unsent_bytes_max: int = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant.

    Attributes:
        now_ns: the exchange's time, by which trades exist and messages are dated.
        wall_ns: real time, by which limits and heartbeats run.
    """

    now_ns: int
    wall_ns: int


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection with a code; :data:`ABRUPT` drops it."""

    code: int = 1000
    reason: str = ""


class Binary(bytes):
    """A message that goes out in a binary frame."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Ping:
    """Send a ping frame."""

    payload: bytes = field(default=b"")


ToSend = bytes | Ping | Close
"""A message (text unless it is :class:`Binary`), a ping or the end."""


class SocketSession(Protocol):
    """One connection's side of an exchange's protocol: messages and time in, messages out; no socket inside."""

    def opened(self, moment: Moment) -> Sequence[ToSend]:
        """Return what is sent at once."""

    def received(self, text: bytes, moment: Moment) -> Sequence[ToSend]:
        """Return the answers to a message of the client."""

    def ponged(self, payload: bytes, moment: Moment) -> Sequence[ToSend]:
        """Take the answer to a ping."""

    def pinged(self, moment: Moment) -> Sequence[ToSend]:
        """Count a ping of the client; the pong is the connection's own work."""

    def turned(self, moment: Moment) -> Sequence[ToSend]:
        """Return heartbeats, pings and ends that are due; called often."""

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return the messages that carry trades of a subscribed market, oldest first."""

    def snapshot(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return the messages that repeat known trades of a subscribed market, as after subscribing."""

    def notice(self, kind: str, moment: Moment) -> Sequence[bytes]:
        """Return the exchange's own words for ``shutdown``, ``maintenance`` or ``online``; nothing when it has none."""

    def left(self) -> None:
        """Give every subscription back: the connection is gone."""
