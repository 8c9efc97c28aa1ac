"""The markets of the model, and which exchange lists them."""

from __future__ import annotations

from dataclasses import dataclass

from ingestors.simulation.records import Listing
from relay.protocol.times import parse_iso_ns

__all__ = [
    "BINANCE",
    "BINANCE_SBE",
    "COINBASE",
    "COINBASE_ADVANCED",
    "EXCHANGES",
    "KRAKEN",
    "MODEL_MARKETS",
    "ModelMarket",
]

BINANCE = "binance"
BINANCE_SBE = "binance-sbe"
"""Binance's binary streams: sockets of their own over the markets and faults of :data:`BINANCE`."""
KRAKEN = "kraken"
COINBASE = "coinbase"
COINBASE_ADVANCED = "coinbase-advanced"
EXCHANGES = (BINANCE, KRAKEN, COINBASE, COINBASE_ADVANCED)

_BINANCE_KRAKEN = frozenset({BINANCE, KRAKEN})
_DOLLAR = frozenset({KRAKEN, COINBASE, COINBASE_ADVANCED})
_COINBASES = frozenset({COINBASE, COINBASE_ADVANCED})
_BINANCE_ONLY = frozenset({BINANCE})


@dataclass(frozen=True, slots=True)
class ModelMarket:
    """A listing and its character.

    Attributes:
        listing: facts of the market.
        exchanges: who lists it.
        price_units: middle of its price path.
        size_units: sizes are drawn up to this.
        busy: trades in a minute that has some, on average.
        quiet_percent: minutes without any trade.
    """

    listing: Listing
    exchanges: frozenset[str]
    price_units: int
    size_units: int
    busy: int
    quiet_percent: int


def _market(
    symbol: str,
    exchanges: frozenset[str],
    *,
    price: tuple[int, int],
    size: tuple[int, int],
    listed: str,
    halted: str | None = None,
    alias_of: str | None = None,
    busy: int = 3,
    quiet_percent: int = 20,
) -> ModelMarket:
    listing = Listing(
        symbol=symbol,
        price_decimals=price[1],
        size_decimals=size[1],
        listed_ns=parse_iso_ns(listed),
        halted_ns=None if halted is None else parse_iso_ns(halted),
        alias_of=alias_of,
    )
    return ModelMarket(listing, exchanges, price[0], size[0], busy, quiet_percent)


MODEL_MARKETS = (
    _market(
        "BTC/USDT",
        _BINANCE_KRAKEN,
        price=(6_000_000, 2),
        size=(30_000, 5),
        listed="2017-08-17T04:00:00Z",
        busy=6,
        quiet_percent=3,
    ),
    _market(
        "ETH/USDT",
        _BINANCE_KRAKEN,
        price=(300_000, 2),
        size=(50_000, 4),
        listed="2017-08-17T04:00:00Z",
        busy=4,
        quiet_percent=8,
    ),
    _market("SOL/USDT", _BINANCE_KRAKEN, price=(15_000, 2), size=(40_000, 3), listed="2020-08-11T06:00:00Z"),
    _market(
        "XRP/ETH", _BINANCE_KRAKEN, price=(141_000, 8), size=(900, 0), listed="2018-01-09T03:00:00Z", quiet_percent=30
    ),
    _market("DOGE/USDT", _BINANCE_ONLY, price=(15_000, 5), size=(20_000, 0), listed="2019-07-05T12:00:00Z"),
    _market("PEPE/USDT", _BINANCE_ONLY, price=(1_000, 8), size=(90_000_000, 0), listed="2023-05-05T16:00:00Z"),
    _market(
        "BTTC/USDT",
        _BINANCE_ONLY,
        price=(10, 8),
        size=(2_000_000_000, 0),
        listed="2022-01-26T08:00:00Z",
        quiet_percent=50,
    ),
    _market(
        "MATIC/USDT",
        _BINANCE_ONLY,
        price=(5_000, 4),
        size=(30_000, 1),
        listed="2019-04-26T12:00:00Z",
        halted="2024-09-10T03:00:00Z",
    ),
    _market("POL/USDT", _BINANCE_ONLY, price=(5_000, 4), size=(30_000, 1), listed="2024-09-13T10:00:00Z"),
    _market(
        "BTC/USD",
        _DOLLAR,
        price=(6_000_000, 2),
        size=(30_000_000, 8),
        listed="2015-01-14T16:00:00Z",
        busy=5,
        quiet_percent=5,
    ),
    _market(
        "ETH/USD",
        _DOLLAR,
        price=(300_000, 2),
        size=(500_000_000, 8),
        listed="2016-05-18T00:00:00Z",
        busy=4,
        quiet_percent=10,
    ),
    _market("SOL/USD", _DOLLAR, price=(15_000, 2), size=(4_000_000_000, 8), listed="2021-06-17T16:00:00Z"),
    _market("XRP/USD", _DOLLAR, price=(5_000, 4), size=(900_000_000, 6), listed="2019-02-26T17:00:00Z"),
    _market("DOGE/USD", _DOLLAR, price=(15_000, 5), size=(90_000, 1), listed="2021-06-03T16:00:00Z", quiet_percent=40),
    _market(
        "SHIB/USD", _COINBASES, price=(100, 8), size=(90_000_000, 0), listed="2021-09-09T16:00:00Z", quiet_percent=50
    ),
    _market(
        "BTC/USDC",
        _COINBASES,
        price=(6_000_000, 2),
        size=(30_000_000, 8),
        listed="2015-01-14T16:00:00Z",
        alias_of="BTC/USD",
        busy=5,
        quiet_percent=5,
    ),
)
"""Price and size are (middle or largest units, decimals): 0.0000001 is traded on BTTC/USDT."""
