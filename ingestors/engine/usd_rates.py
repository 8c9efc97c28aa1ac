"""What a quote currency is worth in USD, out of one exchange's own statistics; pure and exact.

::

    rate 1      USD, and the stable coins of :data:`USD_COINS`                      path: none
    one hop     the most liquid market of the currency against one of those         path: that market
    two hops    else the most liquid market against a currency of one hop           path: both markets
    else        no rate: nothing is guessed

A market counts when it has traded in these 24 hours and all its numbers are finite. Its liquidity is what the better
known side turned over, in USD.
Rates have 20 significant digits and USD volumes 8 decimals, both rounded half to even, once.
Specification: ``proto/spec/0011-statistics.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Protocol

from relay.protocol.tickers import Ticker

__all__ = ["RATE_DIGITS", "USD_COINS", "USD_DECIMALS", "UsdRate", "usd_rates", "usd_volume"]

USD_COINS = frozenset({"USDT", "USDC", "FDUSD", "TUSD", "BUSD", "DAI", "USDP", "PYUSD", "GUSD", "RLUSD", "USD1"})
"""Stable coins that count 1 USD, everywhere and always: what is compared across exchanges must not move with them."""
RATE_DIGITS = 20
USD_DECIMALS = 8

_ROUNDED = Context(prec=RATE_DIGITS, rounding=ROUND_HALF_EVEN)
_WIDE = Context(prec=260, rounding=ROUND_HALF_EVEN)
_ONE = Fraction(1)


class TradedMarket(Protocol):
    """What is needed of a market's statistics."""

    @property
    def ticker(self) -> Ticker: ...
    @property
    def time_ns(self) -> int: ...
    @property
    def last(self) -> Decimal | None: ...
    @property
    def volume(self) -> Decimal | None: ...
    @property
    def quote_volume(self) -> Decimal | None: ...


@dataclass(frozen=True, slots=True)
class UsdRate:
    """USD for one unit of a currency.

    Attributes:
        path: tickers of the markets that led to USD; empty where the rate is 1 by definition.
        time_ns: of the oldest price on the path.
    """

    currency: str
    rate: Decimal
    path: tuple[str, ...]
    time_ns: int


@dataclass(frozen=True, slots=True)
class _Edge:
    """A market seen from one of its assets: ``price`` units of ``other`` for one of this asset."""

    other: str
    price: Fraction
    turnover: Fraction
    ticker: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class _Way:
    rate: Fraction
    path: tuple[str, ...]
    time_ns: int


def usd_rates(rows: Iterable[TradedMarket], *, known_at_ns: int) -> Mapping[str, UsdRate]:
    """Return the rates of all quote currencies that have one, by currency.

    Args:
        rows: an exchange's statistics; their order does not matter.
        known_at_ns: time of the rates that are 1 by definition.
    """
    markets = list(rows)
    edges = _edges(markets)
    anchors = {name: _Way(_ONE, (), known_at_ns) for name in ("USD", *USD_COINS)}
    near = {**_reached(edges, anchors), **anchors}
    far = {**_reached(edges, near), **near}
    quotes = {row.ticker.quote for row in markets}
    return {name: _published(name, far[name]) for name in quotes if name in far}


def usd_volume(quote_volume: Decimal, rate: UsdRate) -> Decimal:
    """Return a quote volume in USD: the exact product with the published rate, rounded to 8 decimals."""
    return _WIDE.multiply(quote_volume, rate.rate).quantize(Decimal(1).scaleb(-USD_DECIMALS), context=_WIDE)


def _reached(edges: Mapping[str, list[_Edge]], known: Mapping[str, _Way]) -> dict[str, _Way]:
    """Return the ways of all currencies that a market joins to a known one: through the most liquid."""
    found = {}
    for name, candidates in edges.items():
        usable = [edge for edge in candidates if edge.other in known]
        if usable:
            best = min(usable, key=lambda edge: (-edge.turnover * known[edge.other].rate, edge.ticker))
            rest = known[best.other]
            found[name] = _Way(best.price * rest.rate, (best.ticker, *rest.path), _oldest(best, rest))
    return found


def _oldest(edge: _Edge, rest: _Way) -> int:
    return min(edge.time_ns, rest.time_ns) if rest.path else edge.time_ns


def _edges(rows: Iterable[TradedMarket]) -> dict[str, list[_Edge]]:
    """Return of each asset its markets that have traded, derivatives left out."""
    edges: dict[str, list[_Edge]] = {}
    for row in rows:
        ticker = row.ticker
        sent = [number for number in (row.last, row.volume, row.quote_volume) if number is not None]
        if not all(number.is_finite() for number in sent):
            continue
        if row.last is None or row.last <= 0 or ticker.settle is not None or ticker.base == ticker.quote:
            continue
        price = Fraction(row.last)
        quote_turnover, base_turnover = _turnover(row, price)
        if quote_turnover <= 0 or base_turnover <= 0:
            continue
        name = str(ticker)
        up = _Edge(ticker.quote, price, quote_turnover, name, row.time_ns)
        down = _Edge(ticker.base, _inverse(price), base_turnover, name, row.time_ns)
        edges.setdefault(ticker.base, []).append(up)
        edges.setdefault(ticker.quote, []).append(down)
    return edges


def _turnover(row: TradedMarket, price: Fraction) -> tuple[Fraction, Fraction]:
    """Return what was traded in units of the quote and of the base asset; one that was not sent by the last price."""
    if row.quote_volume is not None:
        quote = Fraction(row.quote_volume)
        return quote, Fraction(row.volume) if row.volume is not None else quote * _inverse(price)
    if row.volume is not None:
        return Fraction(row.volume) * price, Fraction(row.volume)
    return Fraction(0), Fraction(0)


def _inverse(price: Fraction) -> Fraction:
    return Fraction(price.denominator, price.numerator)


def _published(currency: str, way: _Way) -> UsdRate:
    rate = _ROUNDED.divide(Decimal(way.rate.numerator), Decimal(way.rate.denominator))
    return UsdRate(currency, rate, way.path, way.time_ns)
