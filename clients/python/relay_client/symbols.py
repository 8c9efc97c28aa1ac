"""Markets as a client sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from relay.protocol.v1 import market_pb2

__all__ = ["Symbol", "SymbolState", "states_of"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One market of an exchange. Increments and minima are exact decimal text; empty when the exchange names none.

    Attributes:
        ticker: ``BASE/QUOTE.EXCHANGE``.
        supported_periods_seconds: bar periods that the exchange serves itself.
        status: ACTIVE, HALTED, PRE, or DELISTED: the exchange does not list it any more.
        history_start_ns: the first bar known; None when unknown.
        alias_of: ticker whose book it shares.
        updated_at_ns: when the exchange last listed it so, or ceased to.
        valid_from_ns: since when all but ``history_start_ns`` is so, as far as is known; None when nothing is.
    """

    ticker: str
    exchange: str
    native_symbol: str
    base: str
    quote: str
    settle: str | None
    market_type: str
    status: str
    price_increment: str
    amount_increment: str
    min_amount: str
    min_notional: str
    supported_periods_seconds: tuple[int, ...]
    history_start_ns: int | None
    alias_of: str | None
    updated_at_ns: int
    valid_from_ns: int | None = None

    @classmethod
    def of(cls, market: market_pb2.Market) -> Symbol:
        """Return the value of a message."""
        return cls(
            ticker=market.market_id,
            exchange=market.exchange_id,
            native_symbol=market.native_symbol,
            base=market.base_asset,
            quote=market.quote_asset,
            settle=market.settle_asset if market.HasField("settle_asset") else None,
            market_type=market_pb2.Market.Type.Name(market.market_type),
            status=market_pb2.Market.Status.Name(market.status),
            price_increment=market.price_increment,
            amount_increment=market.amount_increment,
            min_amount=market.min_amount,
            min_notional=market.min_notional,
            supported_periods_seconds=tuple(market.supported_periods),
            history_start_ns=market.history_start if market.HasField("history_start") else None,
            alias_of=market.alias_of if market.HasField("alias_of") else None,
            updated_at_ns=market.updated_at,
            valid_from_ns=market.valid_from if market.HasField("valid_from") else None,
        )


@dataclass(frozen=True, slots=True)
class SymbolState:
    """What a market was in [valid_from_ns, valid_to_ns); None as the end: still so.

    An alias (``symbol.alias_of``) and a delisting (``symbol.status``) hold for this range.
    """

    valid_from_ns: int
    valid_to_ns: int | None
    symbol: Symbol


def states_of(changes: Sequence[market_pb2.Market]) -> list[SymbolState]:
    """Return the states of one market; each ends where the next one begins.

    Args:
        changes: oldest first, each with ``valid_from``.
    """
    starts = [change.valid_from for change in changes]
    ends: list[int | None] = [end for _, end in pairwise(starts)]
    return [
        SymbolState(start, end, Symbol.of(change))
        for start, end, change in zip(starts, [*ends, None], changes, strict=False)
    ]
