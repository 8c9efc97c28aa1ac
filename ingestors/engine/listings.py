"""Market records out of listings."""

from __future__ import annotations

from decimal import Decimal

from ingestors.engine.values import Capabilities, Listing
from relay.protocol.scaled import STORED_DECIMALS, decimals_needed, plain_text
from relay.protocol.v1 import market_pb2

__all__ = ["market_record"]


def market_record(listing: Listing, capabilities: Capabilities, *, updated_at_ns: int) -> market_pb2.Market:
    """Return the Market record of a listing; denominators follow its increments."""
    price_decimals = _decimals(listing.price_increment)
    amount_decimals = _decimals(listing.amount_increment)
    ticker = listing.ticker
    market = market_pb2.Market(
        market_id=str(ticker),
        exchange_id=ticker.exchange,
        native_symbol=listing.native_symbol,
        base_asset=ticker.base,
        quote_asset=ticker.quote,
        settle_asset=ticker.settle,
        status=market_pb2.Market.Status.Name(listing.status),
        tick_denom=10**price_decimals,
        base_denom=10**amount_decimals,
        quote_denom=10 ** min(price_decimals + amount_decimals, STORED_DECIMALS),
        min_amount=_text(listing.min_amount),
        min_notional=_text(listing.min_notional),
        price_increment=_text(listing.price_increment),
        amount_increment=_text(listing.amount_increment),
        supported_periods=capabilities.native_periods,
        history_start=listing.history_start_ns,
        alias_of=listing.alias_of,
        updated_at=updated_at_ns,
    )
    if ticker.settle:
        market.market_type = market_pb2.Market.SWAP
    return market


def _decimals(increment: Decimal | None) -> int:
    return 0 if increment is None else min(decimals_needed((increment,)), STORED_DECIMALS)


def _text(number: Decimal | None) -> str:
    return "" if number is None else plain_text(number)
