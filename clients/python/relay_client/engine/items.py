"""What a subscription yields: ticks that convert their numbers only when they are asked for."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from relay.protocol.scaled import from_scaled, plain_text
from relay.protocol.v1 import market_pb2
from relay_client.history import Bar
from relay_client.times import from_ns

__all__ = ["Origin", "Tick", "bar_of"]


class Origin(StrEnum):
    """How a tick came: published live, by a replay after a loss, or as history before the live ones."""

    LIVE = "live"
    REPAIR = "repair"
    HISTORY = "history"


class Tick:
    """One trade of a ticker; immutable. Times are nanoseconds since the epoch (UTC).

    ``price``, ``amount`` and ``quote_amount`` are Decimals, or integers in units of ``10^-decimals`` for a subscription
    with ``numbers="scaled"``. Conversion happens at access: a tick that is only counted costs none.
    """

    __slots__ = ("_is_scaled", "_message", "origin")

    def __init__(self, message: market_pb2.Tick, origin: Origin = Origin.LIVE, is_scaled: bool = False) -> None:
        self._message, self.origin, self._is_scaled = message, origin, is_scaled

    @property
    def ticker(self) -> str:
        """``BASE/QUOTE.EXCHANGE``."""
        return self._message.ticker

    @property
    def trade_id(self) -> str:
        """The exchange's own id."""
        return self._message.trade_id

    @property
    def time_ns(self) -> int:
        """Exchange time."""
        return self._message.timestamp

    @property
    def time(self) -> datetime:
        """Exchange time, at microsecond resolution."""
        return from_ns(self._message.timestamp)

    @property
    def price(self) -> Decimal | int:
        """Price, exact."""
        message = self._message
        return message.price if self._is_scaled else from_scaled(message.price, message.price_decimals)

    @property
    def amount(self) -> Decimal | int:
        """Amount of the base asset, exact."""
        message = self._message
        return message.amount if self._is_scaled else from_scaled(message.amount, message.amount_decimals)

    @property
    def quote_amount(self) -> Decimal | int | None:
        """Amount of the quote asset as sent, or exact; None when it is neither."""
        message = self._message
        if not message.HasField("quote_amount"):
            return None
        return message.quote_amount if self._is_scaled else from_scaled(message.quote_amount, message.quote_decimals)

    @property
    def price_decimals(self) -> int:
        """Scale of the price as an integer."""
        return self._message.price_decimals

    @property
    def amount_decimals(self) -> int:
        """Scale of the amount as an integer."""
        return self._message.amount_decimals

    @property
    def taker_buy(self) -> bool:
        """Whether the taker bought."""
        return self._message.taker_buy

    @property
    def backfill(self) -> bool:
        """Whether the ingestor fetched it after a hole; later than its neighbours, then."""
        return self._message.backfill

    @property
    def repaired(self) -> bool:
        """Whether it was lost on the way and came by a replay; later than its neighbours, then."""
        return self.origin is Origin.REPAIR

    @property
    def received_ns(self) -> int:
        """When the ingestor's socket gave it, before parsing."""
        return self._message.received_at

    @property
    def published_ns(self) -> int:
        """When the ingestor published it."""
        return self._message.stamp.published_at

    @property
    def sequence(self) -> int | None:
        """The exchange's own sequence, when it sends one."""
        return self._message.sequence if self._message.HasField("sequence") else None

    @property
    def message(self) -> market_pb2.Tick:
        """The wire message itself, everything in scaled integers; not to be changed."""
        return self._message

    @property
    def price_text(self) -> str:
        """Price as plain decimal text."""
        return plain_text(from_scaled(self._message.price, self._message.price_decimals))

    @property
    def amount_text(self) -> str:
        """Amount as plain decimal text."""
        return plain_text(from_scaled(self._message.amount, self._message.amount_decimals))

    def __repr__(self) -> str:
        return (
            f"Tick({self.ticker} {self.trade_id}: {self.amount_text} at {self.price_text}, {self.time}, {self.origin})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tick):
            return NotImplemented
        return self._message == other._message and self.origin == other.origin and self._is_scaled == other._is_scaled

    def __hash__(self) -> int:
        return hash((self.ticker, self.trade_id))

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (self._message.SerializeToString(), str(self.origin), self._is_scaled)


def _unpickled(body: bytes, origin: str, is_scaled: bool) -> Tick:
    return Tick(market_pb2.Tick.FromString(body), Origin(origin), is_scaled)


def bar_of(message: market_pb2.OHLC) -> Bar:
    """Return the bar of a message."""
    scale = message.price_decimals
    open_, high, low, close = (
        from_scaled(units, scale) for units in (message.open, message.high, message.low, message.close)
    )
    return Bar(
        ticker=message.ticker,
        period_seconds=message.period_seconds,
        start=from_ns(message.timestamp),
        open=open_,
        high=high,
        low=low,
        close=close,
        volume=Decimal(message.volume or 0),
        quote_volume=_optional(message, "quote_volume"),
        buy_volume=_optional(message, "buy_volume"),
        sell_volume=_optional(message, "sell_volume"),
        trades=message.trades if message.HasField("trades") else None,
        first_trade_id=message.first_trade_id if message.HasField("first_trade_id") else None,
        last_trade_id=message.last_trade_id if message.HasField("last_trade_id") else None,
        source=market_pb2.OHLC.Source.Name(message.source),
        is_final=message.is_final,
        incomplete=message.incomplete,
        revision=message.revision,
    )


def _optional(message: market_pb2.OHLC, name: str) -> Decimal | None:
    return Decimal(getattr(message, name)) if message.HasField(name) else None
