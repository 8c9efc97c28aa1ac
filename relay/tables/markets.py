"""Market message ↔ row of ``market.symbol_metadata``."""

from __future__ import annotations

from typing import Any

from relay.protocol.v1 import market_pb2

__all__ = ["market_of_row", "row_of_market"]

_COPIED = (
    "native_symbol",
    "base_asset",
    "quote_asset",
    "tick_denom",
    "base_denom",
    "quote_denom",
    "min_amount",
    "min_notional",
    "price_increment",
    "amount_increment",
)


def row_of_market(market: market_pb2.Market) -> dict[str, Any]:
    """Return the row of a market, without its place in the log."""
    row: dict[str, Any] = {name: getattr(market, name) for name in _COPIED}
    return row | {
        "ticker": market.market_id,
        "exchange": market.exchange_id,
        "settle_asset": market.settle_asset if market.HasField("settle_asset") else None,
        "market_type": market_pb2.Market.Type.Name(market.market_type),
        "status": market_pb2.Market.Status.Name(market.status),
        "supported_periods": list(market.supported_periods),
        "history_start_ns": market.history_start if market.HasField("history_start") else None,
        "alias_of": market.alias_of if market.HasField("alias_of") else None,
        "updated_at_ns": market.updated_at,
        "listing_id": market.listing_id or None,
        "listing_count": market.listing_count or None,
        "valid_from_ns": None,
    }


def market_of_row(row: dict[str, Any]) -> market_pb2.Market:
    """Return the message of a row."""
    market = market_pb2.Market(
        market_id=row["ticker"],
        exchange_id=row["exchange"],
        market_type=row["market_type"],
        status=row["status"],
        supported_periods=row["supported_periods"],
        updated_at=row["updated_at_ns"],
        **{name: row[name] for name in _COPIED},
    )
    for field, column in (
        ("settle_asset", "settle_asset"),
        ("history_start", "history_start_ns"),
        ("alias_of", "alias_of"),
        ("valid_from", "valid_from_ns"),
    ):
        if row[column] is not None:
            setattr(market, field, row[column])
    return market
