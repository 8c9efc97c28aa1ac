"""The port that every exchange's live side stands behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ingestors.engine.feed_values import FeedEvent, LiveLimits
from ingestors.engine.values import Listing

__all__ = ["LiveProtocol"]


class LiveProtocol(Protocol):
    """One connection's side of an exchange's protocol: messages and time in, events and messages out; no socket.

    Whatever the bytes, nothing is raised: a trade that makes no sense is a ``BadTrade`` of its ticker, a message that
    cannot be read a ``BadTrade`` of the ticker "", and kinds of messages that were not asked for are ignored.
    """

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
        """Read a message; ``received_ns`` is the wall clock when it came."""

    def on_tick(self, now_ns: int) -> list[bytes]:
        """Return the messages that are due; ``now_ns`` is monotonic."""
