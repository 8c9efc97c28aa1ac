"""Trades of Binance as both of its live transports say them: JSON texts, and one binary message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from ingestors.engine.feed_values import LiveTrade, Trades
from ingestors.exchanges.live.port import LiveProtocol

__all__ = ["SentTrade", "binary_values", "drawn_messages", "json_texts", "trades_of"]

_TIME_US = 1_700_000_000_000_000
_MANTISSA_MAX = 10**18
_INT64_MAX = 2**63 - 1
_DECIMALS = 8
"""Of prices and amounts, at least as many as tests list the ticker with."""


@dataclass(frozen=True, slots=True)
class SentTrade:
    """One trade; price and amount in units of the message's exponents."""

    number: int
    price: int
    amount: int
    buyer_was_maker: bool


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What a message says of ``BTCUSDT``."""

    time_us: int
    exponents: tuple[int, int]
    trades: Sequence[SentTrade]


def drawn_messages(*, trades_max: int = 5) -> st.SearchStrategy[SentMessage]:
    """Messages with sensible trades, several of them at one instant."""
    numbers = st.integers(1, _MANTISSA_MAX) | st.integers(1, 100).map(lambda n: n * 10**8)
    trade = st.builds(SentTrade, st.integers(0, 2**63 - 1), numbers, numbers, st.booleans())
    exponents = st.tuples(st.integers(-12, 0), st.integers(-12, 0)) | st.just((-8, -8))
    times = st.integers(0, 10**15).map(lambda us: _TIME_US + us)
    return st.builds(SentMessage, times, exponents, st.lists(trade, min_size=1, max_size=trades_max)).map(_fitting)


def _fitting(message: SentMessage) -> SentMessage:
    """The same with numbers that 64 bits hold in the ticker's decimals: what does not is refused, by both ways."""
    price_max, amount_max = (_INT64_MAX // 10 ** max(_DECIMALS + exponent, 0) for exponent in message.exponents)
    trades = [
        replace(t, price=(t.price - 1) % price_max + 1, amount=(t.amount - 1) % amount_max + 1) for t in message.trades
    ]
    return replace(message, trades=trades)


def binary_values(message: SentMessage) -> dict[str, Any]:
    """The fields of a ``TradesStreamEvent``."""
    return {
        "eventTime": message.time_us + 7,
        "transactTime": message.time_us,
        "priceExponent": message.exponents[0],
        "qtyExponent": message.exponents[1],
        "trades": [
            {"id": t.number, "price": t.price, "qty": t.amount, "isBuyerMaker": int(t.buyer_was_maker)}
            for t in message.trades
        ],
        "symbol": "BTCUSDT",
    }


def json_texts(message: SentMessage) -> list[bytes]:
    """A text for each trade, as the JSON stream ``@trade`` has them."""
    return [
        (
            f'{{"stream":"btcusdt@trade","data":{{"e":"trade","E":{message.time_us + 7},"s":"BTCUSDT","t":{t.number},'
            f'"p":"{_text(t.price, message.exponents[0])}","q":"{_text(t.amount, message.exponents[1])}",'
            f'"T":{message.time_us},"m":{"true" if t.buyer_was_maker else "false"},"M":true}}}}'
        ).encode()
        for t in message.trades
    ]


def trades_of(protocol: LiveProtocol, messages: Sequence[bytes], *, received_ns: int = 7) -> list[LiveTrade]:
    """All trades that a protocol reads; anything else fails."""
    found: list[LiveTrade] = []
    for message in messages:
        for event in protocol.on_message(message, received_ns):
            assert isinstance(event, Trades), event
            assert event.ticker == "BTC/USDT.BINANCE"
            found += event.trades
    return found


def _text(units: int, exponent: int) -> str:
    return format(Decimal(units).scaleb(exponent), "f")
