"""Rows and entries as Kraken's REST interface writes them."""

from __future__ import annotations

import msgspec

from ingestors.simulation.kraken_names import PairNames
from ingestors.simulation.number_text import fixed_text, ratio_units, seconds_number
from ingestors.simulation.records import Candle, Listing, Trade
from relay.protocol.periods import NANOSECONDS

__all__ = ["asset_pair", "ohlc_row", "trade_row"]

_LOT_PLACES = 8
_TRADE_PRICE_PLACES = 5
_TIME_PLACES = 7
_FEES = msgspec.Raw(b"[[0,0.4],[10000,0.35],[50000,0.24],[100000,0.22]]")
_MAKER_FEES = msgspec.Raw(b"[[0,0.25],[10000,0.2],[50000,0.14],[100000,0.12]]")


def ohlc_row(row: Candle, listing: Listing) -> list[object]:
    """Return the eight columns: time, open, high, low, close, vwap, volume, count.

    A recording without the average price or the count has 0 there, as Kraken itself has in bars without trades.
    """
    vwap_units = row.vwap_units
    if vwap_units is None:
        vwap_units = ratio_units(row.quote_units or 0, row.volume_units)
    price = listing.price_decimals
    return [
        row.start_ns // NANOSECONDS,
        fixed_text(row.open_units, price),
        fixed_text(row.high_units, price),
        fixed_text(row.low_units, price),
        fixed_text(row.close_units, price),
        fixed_text(vwap_units, price),
        fixed_text(row.volume_units, listing.size_decimals, _LOT_PLACES),
        row.trades or 0,
    ]


def trade_row(trade: Trade, listing: Listing) -> list[object]:
    """Return the seven columns: price, volume, time, side, order type, miscellaneous, id."""
    return [
        fixed_text(trade.price_units, listing.price_decimals, _TRADE_PRICE_PLACES),
        fixed_text(trade.size_units, listing.size_decimals, _LOT_PLACES),
        seconds_number(trade.time_ns, _TIME_PLACES),
        "b" if trade.taker_buy else "s",
        "m" if trade.trade_id % 3 else "l",
        "",
        trade.trade_id,
    ]


def asset_pair(names: PairNames, listing: Listing, *, now_ns: int) -> dict[str, object]:
    """Return an entry of AssetPairs."""
    halted = listing.halted_ns is not None and listing.halted_ns <= now_ns
    return {
        "altname": names.altname,
        "wsname": names.wsname,
        "aclass_base": "currency",
        "base": names.base,
        "aclass_quote": "currency",
        "quote": names.quote,
        "lot": "unit",
        "cost_decimals": max(5, listing.price_decimals),
        "pair_decimals": listing.price_decimals,
        "lot_decimals": _LOT_PLACES,
        "lot_multiplier": 1,
        "leverage_buy": [2, 3],
        "leverage_sell": [2, 3],
        "fees": _FEES,
        "fees_maker": _MAKER_FEES,
        "fee_volume_currency": "ZUSD",
        "margin_call": 80,
        "margin_stop": 40,
        "ordermin": fixed_text(5, max(listing.size_decimals, 1)),
        "costmin": "0.5",
        "tick_size": fixed_text(1, listing.price_decimals),
        "status": "cancel_only" if halted else "online",
        "long_position_limit": 80,
        "short_position_limit": 80,
    }
