"""Kraken's names: assets with X and Z prefixes, XBT and XDG, and the several names of one pair."""

from __future__ import annotations

from dataclasses import dataclass

from ingestors.simulation.records import Listing

__all__ = ["PairNames", "pair_names"]

_SHORT = {"BTC": "XBT", "DOGE": "XDG"}
_LEGACY_BASES = {"BTC": "XXBT", "ETH": "XETH", "XRP": "XXRP", "DOGE": "XXDG", "LTC": "XLTC", "XLM": "XXLM"}
_LEGACY_QUOTES = {"USD": "ZUSD", "EUR": "ZEUR", "GBP": "ZGBP", "BTC": "XXBT", "ETH": "XETH"}
_SHORT_KEYED = frozenset({"DOGE"})
"""Bases whose pairs are keyed by their short name although both assets have a prefix (XDGUSD)."""


@dataclass(frozen=True, slots=True)
class PairNames:
    """The names of one pair.

    Attributes:
        key: canonical name, under which results come (``XXBTZUSD``).
        altname: ``XBTUSD``.
        wsname: ``XBT/USD``.
        display: ``BTC/USD``, the key when assetVersion is 1.
        base, quote: asset names (``XXBT``, ``ZUSD``).
    """

    key: str
    altname: str
    wsname: str
    display: str
    base: str
    quote: str

    @property
    def all(self) -> frozenset[str]:
        """Every name that a pair parameter may hold."""
        return frozenset({self.key, self.altname, self.wsname, self.display, self.display.replace("/", "")})


def pair_names(listing: Listing) -> PairNames:
    """Return the names of a listing's pair."""
    short_base, short_quote = _SHORT.get(listing.base, listing.base), _SHORT.get(listing.quote, listing.quote)
    base, quote = _LEGACY_BASES.get(listing.base), _LEGACY_QUOTES.get(listing.quote)
    legacy = base is not None and quote is not None and listing.base not in _SHORT_KEYED
    return PairNames(
        key=f"{base}{quote}" if legacy else short_base + short_quote,
        altname=short_base + short_quote,
        wsname=f"{short_base}/{short_quote}",
        display=listing.symbol,
        base=base or short_base,
        quote=quote or short_quote,
    )
