"""What the connection plan asks its driver to do, and its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ingestors.engine.feed_values import FeedEvent, LiveLimits, SocketEvent
from ingestors.engine.values import Listing

__all__ = ["Close", "LineProtocol", "Look", "Open", "PlanCommand", "PlanRules", "SendPing", "SendText", "Tell"]

_SECOND_NS = 1_000_000_000


class LineProtocol(Protocol):
    """What the plan needs of an exchange's protocol; one object a connection."""

    @property
    def limits(self) -> LiveLimits:
        """The exchange's bounds."""

    def endpoint(self, listings: Sequence[Listing]) -> str:
        """Return path and query below the base URL."""

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """Return the messages that subscribe markets."""

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        """Return the messages that end subscriptions."""

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        """Read a message."""

    def on_tick(self, now_ns: int) -> list[bytes]:
        """Return the messages that are due."""


@dataclass(frozen=True, slots=True)
class PlanRules:
    """Bounds of the plan; times in nanoseconds.

    Attributes:
        tickers_max: subscriptions on one connection, when the exchange allows more.
        retry_first_ns: the first retry comes within this.
        retry_ns, retry_max_ns: wait before the second retry, doubled up to the bound.
        settled_ns: a connection that lived so long had nothing to do with earlier failures.
        refused_ns: pause of all connections when the exchange refused one and named no time, doubled up to
            ``retry_max_ns``.
        overlap_ns: how long both connections of a hand-over run after the new one has confirmed everything.
        confirm_ns: a subscription that is not confirmed within this is mute.
        mute_ns: silence of a ticker after evidence of newer trades that makes it mute.
        look_ns, look_max_ns: silence of a ticker after which the exchange is asked, doubled up to the bound.
        sweep_ns: how often tickers are looked through.
    """

    tickers_max: int = 200
    retry_first_ns: int = _SECOND_NS // 10
    retry_ns: int = _SECOND_NS
    retry_max_ns: int = 60 * _SECOND_NS
    settled_ns: int = 60 * _SECOND_NS
    refused_ns: int = 5 * _SECOND_NS
    overlap_ns: int = 2 * _SECOND_NS
    confirm_ns: int = 10 * _SECOND_NS
    mute_ns: int = 10 * _SECOND_NS
    look_ns: int = 60 * _SECOND_NS
    look_max_ns: int = 600 * _SECOND_NS
    sweep_ns: int = _SECOND_NS // 2


@dataclass(frozen=True, slots=True)
class Open:
    """Connect; then ``on_opened`` or ``on_open_failed``."""

    line: int
    path: str


@dataclass(frozen=True, slots=True)
class Close:
    """Close a connection, or stop connecting; nothing is to be told about it any more."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class SendText:
    """Send a text message."""

    line: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SendPing:
    """Send a ping frame."""

    line: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Deliver an event to its ticker's feed."""

    event: SocketEvent


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the exchange which trade is a silent market's newest; then ``on_look``."""

    listing: Listing


PlanCommand = Open | Close | SendText | SendPing | Tell | Look
