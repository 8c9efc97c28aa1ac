"""The two market records as codecs: a tick of 32 bytes, an order of 48. Layout: proto/spec/0015."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, NamedTuple

from relay_accel.record_codec import RecordCodec
from relay_accel.record_types import At, Number, i64, u32, u64

__all__ = ["ORDER_MESSAGES", "TICK_MESSAGES", "BookSide", "OrderKind", "OrderMessage", "OrderSide", "TickMessage"]


class BookSide(IntEnum):
    """Side of a book."""

    BID = 0
    ASK = 1


class OrderSide(IntEnum):
    """Whether an order buys or sells."""

    BUY = 0
    SELL = 1


class OrderKind(IntEnum):
    """What an order asks for: a price or better, any price, or that an earlier order ends."""

    LIMIT = 0
    MARKET = 1
    CANCEL = 2


class TickMessage(NamedTuple):
    """A tick of one symbol; price and volume are scaled integers whose scale both sides know."""

    timestamp_ns: Annotated[u64, At(0)]
    symbol_id: Annotated[u32, At(8)]
    price: Annotated[i64, At(12)]
    volume: Annotated[u64, At(20)]
    side: Annotated[BookSide, Number("u8"), At(28)]


class OrderMessage(NamedTuple):
    """An order for one symbol; price and quantity are scaled integers whose scale both sides know."""

    timestamp_ns: Annotated[u64, At(0)]
    order_id: Annotated[u64, At(8)]
    symbol_id: Annotated[u32, At(16)]
    price: Annotated[i64, At(20)]
    quantity: Annotated[u64, At(28)]
    side: Annotated[OrderSide, Number("u8"), At(36)]
    kind: Annotated[OrderKind, Number("u8"), At(37)]


TICK_MESSAGES = RecordCodec(TickMessage, length=32)
ORDER_MESSAGES = RecordCodec(OrderMessage, length=48)
