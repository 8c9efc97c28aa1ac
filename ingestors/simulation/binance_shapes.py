"""Rows and entries as Binance's spot REST interface writes them."""

from __future__ import annotations

from ingestors.simulation.number_text import fixed_text
from ingestors.simulation.records import Candle, Listing, Trade

__all__ = ["PLACES", "agg_trade_row", "kline_row", "symbol_entry", "trade_row"]

PLACES = 8


def kline_row(row: Candle, listing: Listing, *, end_ns: int, unit_ns: int) -> list[object]:
    """Return the twelve columns of a kline.

    What a recording does not hold (quote and taker volumes, count) is 0: the shape has no way to leave it out.
    """
    price, size, quote = listing.price_decimals, listing.size_decimals, listing.quote_decimals
    return [
        row.start_ns // unit_ns,
        fixed_text(row.open_units, price, PLACES),
        fixed_text(row.high_units, price, PLACES),
        fixed_text(row.low_units, price, PLACES),
        fixed_text(row.close_units, price, PLACES),
        fixed_text(row.volume_units, size, PLACES),
        end_ns // unit_ns - 1,
        fixed_text(row.quote_units or 0, quote, PLACES),
        row.trades or 0,
        fixed_text(row.buy_volume_units or 0, size, PLACES),
        fixed_text(row.buy_quote_units or 0, quote, PLACES),
        "0",
    ]


def trade_row(trade: Trade, listing: Listing, *, unit_ns: int) -> dict[str, object]:
    """Return a row of trades and historicalTrades."""
    return {
        "id": trade.trade_id,
        "price": fixed_text(trade.price_units, listing.price_decimals, PLACES),
        "qty": fixed_text(trade.size_units, listing.size_decimals, PLACES),
        "quoteQty": fixed_text(trade.price_units * trade.size_units, listing.quote_decimals, PLACES),
        "time": trade.time_ns // unit_ns,
        "isBuyerMaker": not trade.taker_buy,
        "isBestMatch": True,
    }


def agg_trade_row(trade: Trade, listing: Listing, *, unit_ns: int) -> dict[str, object]:
    """Return a row of aggTrades: each trade is an aggregate of its own."""
    return {
        "a": trade.trade_id,
        "p": fixed_text(trade.price_units, listing.price_decimals, PLACES),
        "q": fixed_text(trade.size_units, listing.size_decimals, PLACES),
        "f": trade.trade_id,
        "l": trade.trade_id,
        "T": trade.time_ns // unit_ns,
        "m": not trade.taker_buy,
        "M": True,
    }


def symbol_entry(listing: Listing, *, now_ns: int) -> dict[str, object]:
    """Return an entry of exchangeInfo's ``symbols``."""
    halted = listing.halted_ns is not None and listing.halted_ns <= now_ns
    tick = fixed_text(1, listing.price_decimals, PLACES)
    step = fixed_text(1, listing.size_decimals, PLACES)
    largest = fixed_text(9 * 10**9, 0, PLACES)
    return {
        "symbol": listing.symbol.replace("/", ""),
        "status": "BREAK" if halted else "TRADING",
        "baseAsset": listing.base,
        "baseAssetPrecision": PLACES,
        "quoteAsset": listing.quote,
        "quotePrecision": PLACES,
        "quoteAssetPrecision": PLACES,
        "baseCommissionPrecision": PLACES,
        "quoteCommissionPrecision": PLACES,
        "orderTypes": [
            "LIMIT",
            "LIMIT_MAKER",
            "MARKET",
            "STOP_LOSS",
            "STOP_LOSS_LIMIT",
            "TAKE_PROFIT",
            "TAKE_PROFIT_LIMIT",
        ],
        "icebergAllowed": True,
        "ocoAllowed": True,
        "otoAllowed": True,
        "opoAllowed": True,
        "quoteOrderQtyMarketAllowed": True,
        "allowTrailingStop": True,
        "cancelReplaceAllowed": True,
        "amendAllowed": True,
        "pegInstructionsAllowed": True,
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "filters": [
            {"filterType": "PRICE_FILTER", "minPrice": tick, "maxPrice": largest, "tickSize": tick},
            {"filterType": "LOT_SIZE", "minQty": step, "maxQty": largest, "stepSize": step},
            {"filterType": "ICEBERG_PARTS", "limit": 10},
            {
                "filterType": "MARKET_LOT_SIZE",
                "minQty": fixed_text(0, 0, PLACES),
                "maxQty": largest,
                "stepSize": fixed_text(0, 0, PLACES),
            },
            {
                "filterType": "NOTIONAL",
                "minNotional": "5.00000000",
                "applyMinToMarket": True,
                "maxNotional": largest,
                "applyMaxToMarket": False,
                "avgPriceMins": 5,
            },
            {"filterType": "MAX_NUM_ORDERS", "maxNumOrders": 200},
        ],
        "permissions": [],
        "permissionSets": [["SPOT"]],
        "defaultSelfTradePreventionMode": "EXPIRE_MAKER",
        "allowedSelfTradePreventionModes": ["EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH"],
    }
