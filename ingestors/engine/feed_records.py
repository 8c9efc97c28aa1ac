"""Live trades, gaps and beats as they go on the wire, without their stamps."""

from __future__ import annotations

from dataclasses import dataclass

from ingestors.engine.feed_commands import EmitGap, FeedState
from ingestors.engine.feed_values import LiveTrade
from relay.protocol.registry import type_id_of
from relay.protocol.scaled import INT64_MAX
from relay.protocol.v1 import market_pb2

__all__ = ["FeedRecords"]

_TICK_ID = bytes([type_id_of(market_pb2.Tick())])
_GAP_ID = bytes([type_id_of(market_pb2.Gap())])
_BEAT_ID = bytes([type_id_of(market_pb2.Heartbeat())])


@dataclass(frozen=True, slots=True)
class FeedRecords:
    """Encodes what one attempt at a ticker says.

    Attributes:
        ticker: of everything.
        source_id: name of the ingestor.
        epoch: of the ingestor's publisher.
        attempt: of the job; lower ones are ignored by readers of beats.
    """

    ticker: str
    source_id: str
    epoch: int
    attempt: int

    def tick(self, trade: LiveTrade, *, is_backfill: bool) -> bytes:
        """Return type id and serialised Tick; the quote amount is exact or absent."""
        tick = market_pb2.Tick(
            trade_id=str(trade.number),
            ticker=self.ticker,
            timestamp=trade.time_ns,
            price=trade.price,
            amount=trade.amount,
            taker_buy=trade.taker_buy,
            received_at=trade.received_ns,
            price_decimals=trade.price_decimals,
            amount_decimals=trade.amount_decimals,
        )
        quote = trade.price * trade.amount
        if quote <= INT64_MAX:
            tick.quote_amount = quote
            tick.quote_decimals = trade.price_decimals + trade.amount_decimals
        if is_backfill:
            tick.backfill = True
        if trade.sequence is not None:
            tick.sequence = trade.sequence
        return _TICK_ID + tick.SerializeToString()

    def gap(self, gap: EmitGap) -> bytes:
        """Return type id and serialised Gap."""
        message = market_pb2.Gap(
            ticker=self.ticker,
            from_time=gap.from_ns,
            to_time=gap.to_ns,
            from_trade_id="" if gap.first is None else str(gap.first),
            to_trade_id="" if gap.last is None else str(gap.last),
            cause=gap.cause.value,
            state=gap.state.value,
        )
        return _GAP_ID + message.SerializeToString()

    def beat(self, state: FeedState, *, reached_ns: int, last_number: int | None, now_ns: int) -> bytes:
        """Return type id and serialised Heartbeat."""
        beat = market_pb2.Heartbeat(
            source=market_pb2.Heartbeat.INGESTOR,
            source_id=self.source_id,
            epoch=self.epoch,
            sent_at=now_ns,
            ticker=self.ticker,
            state=state.value,
            attempt=self.attempt,
        )
        if reached_ns:
            beat.exchange_time_reached = reached_ns
        if last_number is not None:
            beat.last_trade_id = str(last_number)
        return _BEAT_ID + beat.SerializeToString()
