"""A product as Coinbase Advanced Trade describes it."""

from __future__ import annotations

from collections.abc import Sequence

from ingestors.simulation.coinbase import iso_microseconds
from ingestors.simulation.number_text import fixed_text, ratio_units, shortest_text
from ingestors.simulation.records import MarketSource

__all__ = ["product_entry"]

_PERCENT_PLACES = 14
_SAMPLE_TRADES = 200
_EMPTY_TEXTS = (
    "market_cap",
    "base_cbrn",
    "quote_cbrn",
    "product_cbrn",
    "icon_color",
    "icon_url",
    "display_name_overwrite",
    "about_description",
    "best_bid_price",
    "best_ask_price",
    "mid_market_price",
)


def product_entry(source: MarketSource, *, aliases: Sequence[str], now_ns: int) -> dict[str, object]:
    """Return an entry of ``products``; the "24 h" figures are of the last 200 trades, which is enough for a shape.

    Args:
        source: the market.
        aliases: products that share its book.
        now_ns: the exchange's time.
    """
    listing = source.listing
    end = source.position_at(now_ns + 1)
    trades = source.trades(end - _SAMPLE_TRADES, end)
    last_units, first_units = (trades[-1].price_units, trades[0].price_units) if trades else (0, 0)
    change = ratio_units((last_units - first_units) * 10 ** (_PERCENT_PLACES + 2), first_units)
    volume = shortest_text(sum(trade.size_units for trade in trades), listing.size_decimals)
    halted = listing.halted_ns is not None and listing.halted_ns <= now_ns
    name = listing.symbol.replace("/", "-")
    return {
        "product_id": name,
        "price": shortest_text(last_units, listing.price_decimals),
        "price_percentage_change_24h": fixed_text(change, _PERCENT_PLACES),
        "volume_24h": volume,
        "volume_percentage_change_24h": "0",
        "base_increment": shortest_text(1, listing.size_decimals),
        "quote_increment": shortest_text(1, listing.price_decimals),
        "price_increment": shortest_text(1, listing.price_decimals),
        "quote_min_size": "1",
        "quote_max_size": "150000000",
        "base_min_size": shortest_text(1, listing.size_decimals),
        "base_max_size": "3400",
        "base_name": listing.base,
        "quote_name": listing.quote,
        "watched": False,
        "is_disabled": halted,
        "new": False,
        "status": "delisted" if halted else "online",
        "cancel_only": False,
        "limit_only": False,
        "post_only": False,
        "trading_disabled": halted,
        "auction_mode": False,
        "product_type": "SPOT",
        "quote_currency_id": listing.quote,
        "base_currency_id": listing.base,
        "fcm_trading_session_details": None,
        "alias": (listing.alias_of or "").replace("/", "-"),
        "alias_to": list(aliases),
        "base_display_symbol": listing.base,
        "quote_display_symbol": listing.quote,
        "view_only": False,
        "display_name": name,
        "product_venue": "CBE",
        "approximate_quote_24h_volume": volume,
        "new_at": iso_microseconds(listing.listed_ns),
        "is_alpha_testing": False,
        **dict.fromkeys(_EMPTY_TEXTS, ""),
    }
