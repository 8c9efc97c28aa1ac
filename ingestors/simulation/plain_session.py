"""What sessions share whose exchange takes no notice of pings and has no words for its own stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.socket_values import Moment, SocketLimits, SocketSession, ToSend

__all__ = ["PlainSession"]


class PlainSession(SocketSession):
    """A connection's start.

    Args:
        feeds: by the name that the exchange uses.
        limits: bounds.
    """

    def __init__(self, feeds: Mapping[str, MarketFeed], *, limits: SocketLimits) -> None:
        self._feeds = feeds
        self._limits = limits

    def ponged(self, payload: bytes, moment: Moment) -> Sequence[ToSend]:  # noqa: ARG002 - the port's signature
        """Take no notice."""
        return ()

    def pinged(self, moment: Moment) -> Sequence[ToSend]:  # noqa: ARG002 - the port's signature
        """Take no notice."""
        return ()

    def notice(self, kind: str, moment: Moment) -> Sequence[bytes]:  # noqa: ARG002 - the port's signature
        """Say nothing: there is no such message."""
        return ()

    def left(self) -> None:
        """Leave every market."""
        for feed in self._feeds.values():
            feed.leave(self)
