"""Binance spot trade streams in Simple Binary Encoding: binary events, JSON control messages, a key at the handshake.

The bytes are written here by hand, so that whoever reads them is tested by another hand than its own. Layout: see
``ingestors/exchanges/live/binance_sbe.py``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import groupby

from ingestors.simulation.binance_shapes import PLACES
from ingestors.simulation.binance_socket import BinanceSession
from ingestors.simulation.market_feed import MarketFeed
from ingestors.simulation.records import Trade
from ingestors.simulation.socket_values import Binary, Moment

__all__ = ["KEY_HEADER", "SIMULATED_KEY", "BinanceSbeSession", "trades_event"]

KEY_HEADER = "X-MBX-APIKEY"
SIMULATED_KEY = "simulated-key"
"""The one key that is accepted."""
_MICROSECOND_NS = 1_000
_TEMPLATE, _SCHEMA, _VERSION = 10_000, 1, 0
_ROOT = struct.Struct("<qqbb")
_HEADER = struct.Struct("<HHHH")
_GROUP = struct.Struct("<HI")
_ENTRY = struct.Struct("<qqqB")


class BinanceSbeSession(BinanceSession):
    """One connection: like that of JSON, but for the events. Aggregates do not exist and stay silent."""

    def traded(self, feed: MarketFeed, trades: Sequence[Trade], moment: Moment) -> Sequence[bytes]:
        """Return an event for the trades of each instant: one order that met several others."""
        if not self.has_stream(f"{feed.name.lower()}@trade"):
            return []
        event_us = moment.now_ns // _MICROSECOND_NS
        instants = groupby(trades, key=lambda trade: trade.time_ns // _MICROSECOND_NS)
        return [trades_event(feed, list(part), event_us=event_us, time_us=time_us) for time_us, part in instants]


def trades_event(feed: MarketFeed, trades: Sequence[Trade], *, event_us: int, time_us: int) -> Binary:
    """Return a ``TradesStreamEvent``; times in microseconds, numbers with eight decimals or those of the listing."""
    listing, symbol = feed.source.listing, feed.name.encode()
    price_decimals, size_decimals = max(listing.price_decimals, PLACES), max(listing.size_decimals, PLACES)
    price_factor = 10 ** (price_decimals - listing.price_decimals)
    size_factor = 10 ** (size_decimals - listing.size_decimals)
    entries = (
        _ENTRY.pack(t.trade_id, t.price_units * price_factor, t.size_units * size_factor, not t.taker_buy)
        for t in trades
    )
    return Binary(
        b"".join(
            (
                _HEADER.pack(_ROOT.size, _TEMPLATE, _SCHEMA, _VERSION),
                _ROOT.pack(event_us, time_us, -price_decimals, -size_decimals),
                _GROUP.pack(_ENTRY.size, len(trades)),
                *entries,
                bytes((len(symbol),)),
                symbol,
            )
        )
    )
