"""Ticker grammar: ``{SYMBOL}.{EXCHANGE}``, split at the last dot.

``BTC/USDT.BINANCE``, ``BTC/USDT:USDT.BINANCE`` (derivative with its settle asset). The old
``EXCHANGE:BASE/QUOTE`` form is accepted on input and normalised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = ["TICKER_BYTES_MAX", "Ticker", "check_exchange", "parse_ticker"]

TICKER_BYTES_MAX = 128

_ASSET = r"[A-Z0-9][A-Z0-9_\-$]*"
_SYMBOL = re.compile(rf"(?P<base>{_ASSET})/(?P<quote>{_ASSET})(?::(?P<settle>{_ASSET}))?", re.ASCII)
_EXCHANGE = re.compile(r"[A-Z0-9_]+", re.ASCII)
_OLD = re.compile(rf"(?P<exchange>[A-Z0-9_]+):(?P<symbol>{_ASSET}/{_ASSET})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ticker:
    """A market of an exchange, in the unified form.

    Attributes:
        base, quote: assets, upper-case.
        settle: settle asset of a derivative, else None.
        exchange: upper-case ``[A-Z0-9_]+``.
    """

    base: str
    quote: str
    exchange: str
    settle: str | None = None

    @property
    def symbol(self) -> str:
        """``BASE/QUOTE`` with ``:SETTLE`` for derivatives."""
        return f"{self.base}/{self.quote}" + (f":{self.settle}" if self.settle else "")

    def __str__(self) -> str:
        return f"{self.symbol}.{self.exchange}"


def parse_ticker(text: str) -> Ticker:
    """Parse a ticker, old or new form.

    Raises:
        PeerError: INVALID_TICKER, with the expected form and an example.
    """
    if len(text) <= TICKER_BYTES_MAX:
        old = _OLD.fullmatch(text)
        if old is not None and "." not in text:
            text = f"{old['symbol']}.{old['exchange']}"
        symbol_text, dot, exchange = text.rpartition(".")
        symbol = _SYMBOL.fullmatch(symbol_text)
        if dot and symbol is not None and _EXCHANGE.fullmatch(exchange):
            return Ticker(symbol["base"], symbol["quote"], exchange, symbol["settle"])
    raise PeerError(
        f"expected a ticker BASE/QUOTE.EXCHANGE such as BTC/USDT.BINANCE (upper-case), got {text[:TICKER_BYTES_MAX]!r}",
        code=ErrorCode.INVALID_TICKER,
    )


def check_exchange(text: str) -> str:
    """Return an exchange's name.

    Raises:
        PeerError: INVALID_REQUEST, with the expected form and an example.
    """
    if len(text) > TICKER_BYTES_MAX or _EXCHANGE.fullmatch(text) is None:
        raise PeerError(
            f"expected an exchange such as BINANCE (upper-case), got {text[:TICKER_BYTES_MAX]!r}",
            code=ErrorCode.INVALID_REQUEST,
        )
    return text
