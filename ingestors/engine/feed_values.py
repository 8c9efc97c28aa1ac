"""Values of the live feed: what sockets deliver, and what a ticker's feed asks for. Exact integers only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import msgspec

__all__ = [
    "BadTrade",
    "Connected",
    "Disconnected",
    "FeedEvent",
    "Leave",
    "LiveLimits",
    "LiveTrade",
    "LostCause",
    "Muted",
    "Proof",
    "Refused",
    "SocketEvent",
    "Subscribed",
    "Trades",
]


class LiveTrade(msgspec.Struct, frozen=True, gc=False):
    """One trade as a socket or a REST page sent it; a struct because it is made for every trade.

    Attributes:
        number: the exchange's trade id, contiguous within a market.
        time_ns: exchange time.
        price: units of 10^-price_decimals.
        amount: units of 10^-amount_decimals.
        taker_buy: which side took.
        received_ns: wall clock before parsing.
        sequence: the exchange's own sequence, when it sends one.
    """

    number: int
    time_ns: int
    price: int
    amount: int
    price_decimals: int
    amount_decimals: int
    taker_buy: bool
    received_ns: int
    sequence: int | None = None


class LostCause(Enum):
    """Why trades may be missing; the names are those of the wire."""

    DISCONNECT = "DISCONNECT"
    SEQUENCE = "SEQUENCE"
    SILENCE = "SILENCE"
    DROPPED = "DROPPED"


@dataclass(frozen=True, slots=True)
class Trades:
    """Trades of one ticker in the order they came; a snapshot repeats what may be known already."""

    ticker: str
    trades: Sequence[LiveTrade]
    is_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """The exchange says that the newest trade up to ``time_ns`` is ``last_number``."""

    ticker: str
    last_number: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class Subscribed:
    """The exchange confirmed the subscription of a ticker."""

    ticker: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The exchange refused a subscription for good: unknown or delisted market."""

    ticker: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class BadTrade:
    """A trade that makes no sense (text, price or amount not above zero, time out of range); never emitted."""

    ticker: str
    text: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The connection is to be replaced: lost messages, a planned stop, or maintenance.

    Attributes:
        cause: what it means for the trades of its tickers.
        text: for the log.
        is_planned: the connection still works, so the next one is opened before this one is closed.
        wait_ns: connect no earlier than that.
    """

    cause: LostCause
    text: str
    is_planned: bool = False
    wait_ns: int = 0


FeedEvent = Trades | Proof | Subscribed | Refused | BadTrade | Leave
"""What a protocol reads out of one message."""


@dataclass(frozen=True, slots=True)
class Connected:
    """A ticker is subscribed on a working connection (again)."""

    ticker: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """A ticker has no connection now; trades from here on may be missed."""

    ticker: str
    cause: LostCause


@dataclass(frozen=True, slots=True)
class Muted:
    """A ticker's channel has been silent although its connection is up, beyond the watchdog's bound."""

    ticker: str


SocketEvent = Trades | Proof | Refused | BadTrade | Connected | Disconnected | Muted
"""What a ticker's feed is told."""


@dataclass(frozen=True, slots=True)
class LiveLimits:
    """An exchange's bounds on its sockets; times in nanoseconds.

    Attributes:
        tickers_max: subscriptions on one connection.
        messages_per_second_max: that we may send on one connection.
        connects_max, connects_window_ns: new connections per address.
        lifetime_ns: after it the exchange closes; replaced with overlap before. None for no bound.
        silence_ns: no frame of any kind for so long means that the connection is dead.
        subscribe_within_ns: of the connection's start. None for no bound.
    """

    tickers_max: int
    messages_per_second_max: int
    connects_max: int
    connects_window_ns: int
    silence_ns: int
    lifetime_ns: int | None = None
    subscribe_within_ns: int | None = None
