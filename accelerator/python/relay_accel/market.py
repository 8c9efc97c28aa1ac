"""Market messages between protobuf's bytes and records of Simple Binary Encoding, without an object between.

::

    0        1                                     9
    +--------+-------------------------------------+-------+--------------------------+
    |  0x02  | u16 block_length, template, 2, 0    | block | texts: u16 length, UTF-8 |   little-endian
    +--------+-------------------------------------+-------+--------------------------+

The template id is the platform's type id: 4 Tick, 5 OHLC, 13 Gap, 30 Heartbeat; 256 says a ticker's number. Blocks:
proto/spec/0018; schema: proto/market.xml; messages: proto/relay/protocol/v1/market.proto.

Protobuf is read as ``google.protobuf`` reads it (its own parser, upb): of a field that comes twice the last one counts,
messages inside of messages are merged, unknown fields and groups are passed over, and so is a known field in another
wire type; numbers are cut to their width. What ``FromString`` refuses is refused, nothing else. It is written as
``SerializeToString`` writes an equal message.

Refusals are :class:`relay_accel.sbe.DecodeError` (the bytes are no message) and :class:`relay_accel.sbe.EncodeError`
(it has no room in SBE: send it as protobuf); the text says what was expected, and at which byte. A call costs some
tenths of a microsecond; its answer is copied once. Example::

    symbol_ids = {"BTC/USDT.BINANCE": 1}
    record = market.to_sbe_by(4, body, symbol_ids)  # None where the ticker has no number: say market.define(…) first
    type_id, body = market.to_protobuf_by(record, {1: "BTC/USDT.BINANCE"})
"""

from __future__ import annotations

from relay_accel._native import market_define as define
from relay_accel._native import market_head as head
from relay_accel._native import market_ticker as ticker
from relay_accel._native import market_to_protobuf as to_protobuf
from relay_accel._native import market_to_protobuf_by as to_protobuf_by
from relay_accel._native import market_to_sbe as to_sbe
from relay_accel._native import market_to_sbe_by as to_sbe_by

__all__ = ["define", "head", "ticker", "to_protobuf", "to_protobuf_by", "to_sbe", "to_sbe_by"]
