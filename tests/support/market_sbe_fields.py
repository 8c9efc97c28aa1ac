"""Fields of market messages, one by one: protobuf → values of ``market.xml``, and values in its order → protobuf.

What is optional has a bit that says whether it is there, because every number is a value: none is left to mean null.
A trade's id that is a number in plain decimal travels as that number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from google.protobuf.message import Message

from relay.protocol.registry import MessageType
from relay.protocol.v1 import common_pb2, market_pb2

__all__ = ["READERS", "WRITERS", "trade_number"]

_Values = tuple[Any, ...]
_NO_STAMP = {"publisher_epoch": 0, "topic_sequence": 0, "published_at": 0}
_ENUM_NUMBER_MAX = 254
"""The byte that is left is SBE's null."""
_UINT64_DIGITS = 20
_UINT64_MAX = 2**64 - 1

_TAKER_BUY, _TO_CLOSE, _BACKFILL, _LIQUIDATION, _BLOCK_TRADE, _POST_ONLY, _AUCTION = (1 << bit for bit in range(7))
_HAS_TO_CLOSE, _HAS_FLAGS, _HAS_QUOTE, _HAS_QUOTE_DECIMALS, _HAS_SEQUENCE, _HAS_STAMP, _HAS_NUMBER = (
    1 << bit for bit in range(7, 14)
)
_BAR_FINAL, _BAR_INCOMPLETE = 1, 2
_BAR_OPTIONAL = (
    ("quote_volume", 1 << 2),
    ("buy_volume", 1 << 3),
    ("sell_volume", 1 << 4),
    ("trades", 1 << 5),
    ("first_trade_id", 1 << 6),
    ("last_trade_id", 1 << 7),
)
_BAR_STAMP = 1 << 8
_BAR_TEXTS = ("volume", "quote_volume", "buy_volume", "sell_volume", "first_trade_id", "last_trade_id")
_GAP_STAMP = 1
_BEAT_OPTIONAL = (("ticker", 1), ("exchange_time_reached", 2), ("last_trade_id", 4))
_BEAT_STAMP = 8


def trade_number(trade_id: str) -> int | None:
    """Return the number that an id is; None where a number would not give the same text again."""
    if not (trade_id.isascii() and trade_id.isdigit()) or len(trade_id) > _UINT64_DIGITS:
        return None
    if trade_id[0] == "0" and trade_id != "0":
        return None
    number = int(trade_id)
    return number if number <= _UINT64_MAX else None


def _enum_byte(number: int) -> int:
    if not 0 <= number <= _ENUM_NUMBER_MAX:
        raise ValueError(f"expected an enum's number of 0 to {_ENUM_NUMBER_MAX}, got {number}")
    return number


def _stamp_of(message: Any) -> dict[str, int]:
    stamp = message.stamp
    return {
        "publisher_epoch": stamp.publisher_epoch,
        "topic_sequence": stamp.topic_sequence,
        "published_at": stamp.published_at,
    }


def _stamp(values: tuple[int, int, int]) -> common_pb2.PublishStamp:
    return common_pb2.PublishStamp(publisher_epoch=values[0], topic_sequence=values[1], published_at=values[2])


def _tick_bits(tick: market_pb2.Tick) -> int:
    has = tick.HasField
    bits = (
        (_TAKER_BUY if tick.taker_buy else 0)
        | (_BACKFILL if tick.backfill else 0)
        | (_HAS_QUOTE if has("quote_amount") else 0)
        | (_HAS_QUOTE_DECIMALS if has("quote_decimals") else 0)
        | (_HAS_SEQUENCE if has("sequence") else 0)
        | (_HAS_STAMP if has("stamp") else 0)
    )
    if has("to_close"):
        bits |= _HAS_TO_CLOSE | (_TO_CLOSE if tick.to_close else 0)
    return bits | _flag_bits(tick.flags) if has("flags") else bits


def _flag_bits(flags: market_pb2.TradeFlags) -> int:
    return (
        _HAS_FLAGS
        | (_LIQUIDATION if flags.is_liquidation else 0)
        | (_BLOCK_TRADE if flags.is_block_trade else 0)
        | (_POST_ONLY if flags.maker_post_only else 0)
        | (_AUCTION if flags.is_auction else 0)
    )


def _tick_values(tick: market_pb2.Tick, symbol_id: int) -> dict[str, Any]:
    bits, trade_id = _tick_bits(tick), tick.trade_id
    number = trade_number(trade_id)
    return {
        "symbol_id": symbol_id,
        "timestamp": tick.timestamp,
        "price": tick.price,
        "amount": tick.amount,
        "received_at": tick.received_at,
        "trade_number": number or 0,
        "sequence": tick.sequence,
        "quote_amount": tick.quote_amount,
        "stamp": _stamp_of(tick) if bits & _HAS_STAMP else _NO_STAMP,
        "price_decimals": tick.price_decimals,
        "amount_decimals": tick.amount_decimals,
        "quote_decimals": tick.quote_decimals,
        "bits": bits if number is None else bits | _HAS_NUMBER,
        "trade_id": trade_id if number is None else "",
    }


def _tick(values: _Values, ticker: str) -> market_pb2.Tick:
    (_, timestamp, price, amount, received_at, number, sequence, quote, stamp, decimals, *amounts, flags, text) = values
    bits = int(flags)
    return market_pb2.Tick(
        trade_id=str(number) if bits & _HAS_NUMBER else text,
        ticker=ticker,
        timestamp=timestamp,
        price=price,
        amount=amount,
        quote_amount=quote if bits & _HAS_QUOTE else None,
        taker_buy=bool(bits & _TAKER_BUY),
        to_close=bool(bits & _TO_CLOSE) if bits & _HAS_TO_CLOSE else None,
        sequence=sequence if bits & _HAS_SEQUENCE else None,
        flags=_flags(bits) if bits & _HAS_FLAGS else None,
        received_at=received_at,
        price_decimals=decimals,
        amount_decimals=amounts[0],
        backfill=bool(bits & _BACKFILL),
        stamp=_stamp(stamp) if bits & _HAS_STAMP else None,
        quote_decimals=amounts[1] if bits & _HAS_QUOTE_DECIMALS else None,
    )


def _flags(bits: int) -> market_pb2.TradeFlags:
    return market_pb2.TradeFlags(
        is_liquidation=bool(bits & _LIQUIDATION),
        is_block_trade=bool(bits & _BLOCK_TRADE),
        maker_post_only=bool(bits & _POST_ONLY),
        is_auction=bool(bits & _AUCTION),
    )


def _bar_values(bar: market_pb2.OHLC, symbol_id: int) -> dict[str, Any]:
    bits = sum(bit for name, bit in _BAR_OPTIONAL if bar.HasField(name))
    bits |= (_BAR_FINAL if bar.is_final else 0) | (_BAR_INCOMPLETE if bar.incomplete else 0)
    has_stamp = bar.HasField("stamp")
    return {
        "symbol_id": symbol_id,
        "timestamp": bar.timestamp,
        "open": bar.open,
        "high": bar.high,
        "low": bar.low,
        "close": bar.close,
        "trades": bar.trades,
        "stamp": _stamp_of(bar) if has_stamp else _NO_STAMP,
        "period_seconds": bar.period_seconds,
        "revision": bar.revision,
        "price_decimals": bar.price_decimals,
        "bits": bits | (_BAR_STAMP if has_stamp else 0),
        "source": _enum_byte(bar.source),
        "volume": bar.volume,
        "quote_volume": bar.quote_volume,
        "buy_volume": bar.buy_volume,
        "sell_volume": bar.sell_volume,
        "first_trade_id": bar.first_trade_id,
        "last_trade_id": bar.last_trade_id,
    }


def _bar(values: _Values, ticker: str) -> market_pb2.OHLC:
    (_, timestamp, first, high, low, close, trades, stamp, period, revision, decimals, flags, source, *texts) = values
    bits = int(flags)
    optional = {"trades": trades, **dict(zip(_BAR_TEXTS, texts, strict=True))}
    volume = optional.pop("volume")
    return market_pb2.OHLC(
        ticker=ticker,
        timestamp=timestamp,
        period_seconds=period,
        open=first,
        high=high,
        low=low,
        close=close,
        volume=volume,
        is_final=bool(bits & _BAR_FINAL),
        revision=revision,
        stamp=_stamp(stamp) if bits & _BAR_STAMP else None,
        source=int(source),  # type: ignore[arg-type]
        price_decimals=decimals,
        incomplete=bool(bits & _BAR_INCOMPLETE),
        **{name: optional[name] for name, bit in _BAR_OPTIONAL if bits & bit},
    )


def _gap_values(gap: market_pb2.Gap, symbol_id: int) -> dict[str, Any]:
    has_stamp = gap.HasField("stamp")
    return {
        "symbol_id": symbol_id,
        "from_time": gap.from_time,
        "to_time": gap.to_time,
        "stamp": _stamp_of(gap) if has_stamp else _NO_STAMP,
        "bits": _GAP_STAMP if has_stamp else 0,
        "cause": _enum_byte(gap.cause),
        "state": _enum_byte(gap.state),
        "from_trade_id": gap.from_trade_id,
        "to_trade_id": gap.to_trade_id,
    }


def _gap(values: _Values, ticker: str) -> market_pb2.Gap:
    _, from_time, to_time, stamp, flags, cause, state, from_id, to_id = values
    return market_pb2.Gap(
        ticker=ticker,
        from_time=from_time,
        to_time=to_time,
        from_trade_id=from_id,
        to_trade_id=to_id,
        cause=int(cause),  # type: ignore[arg-type]
        state=int(state),  # type: ignore[arg-type]
        stamp=_stamp(stamp) if int(flags) & _GAP_STAMP else None,
    )


def _beat_values(beat: market_pb2.Heartbeat, symbol_id: int) -> dict[str, Any]:
    has_stamp = beat.HasField("stamp")
    bits = sum(bit for name, bit in _BEAT_OPTIONAL if beat.HasField(name))
    return {
        "symbol_id": symbol_id,
        "epoch": beat.epoch,
        "sent_at": beat.sent_at,
        "exchange_time_reached": beat.exchange_time_reached,
        "stamp": _stamp_of(beat) if has_stamp else _NO_STAMP,
        "attempt": beat.attempt,
        "bits": bits | (_BEAT_STAMP if has_stamp else 0),
        "source": _enum_byte(beat.source),
        "state": _enum_byte(beat.state),
        "source_id": beat.source_id,
        "last_trade_id": beat.last_trade_id,
    }


def _beat(values: _Values, ticker: str) -> market_pb2.Heartbeat:
    _, epoch, sent_at, reached, stamp, attempt, flags, source, state, source_id, last_id = values
    bits = int(flags)
    optional = {"ticker": ticker, "exchange_time_reached": reached, "last_trade_id": last_id}
    return market_pb2.Heartbeat(
        source=int(source),  # type: ignore[arg-type]
        source_id=source_id,
        epoch=epoch,
        sent_at=sent_at,
        state=int(state),  # type: ignore[arg-type]
        attempt=attempt,
        stamp=_stamp(stamp) if bits & _BEAT_STAMP else None,
        **{name: optional[name] for name, bit in _BEAT_OPTIONAL if bits & bit},
    )


WRITERS: Mapping[int, Callable[[Any, int], dict[str, Any]]] = MappingProxyType(
    {
        MessageType.TICK: _tick_values,
        MessageType.OHLC: _bar_values,
        MessageType.GAP: _gap_values,
        MessageType.HEARTBEAT: _beat_values,
    }
)
"""By type id: values of a message by the schema's names, given the number of its ticker."""

READERS: Mapping[int, Callable[[_Values, str], Message]] = MappingProxyType(
    {MessageType.TICK: _tick, MessageType.OHLC: _bar, MessageType.GAP: _gap, MessageType.HEARTBEAT: _beat}
)
"""By type id: the message of values in the schema's order, given its ticker."""
