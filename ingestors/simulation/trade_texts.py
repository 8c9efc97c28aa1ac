"""Trades as the exchanges' sockets write them; made by hand because tens of thousands a second are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingestors.simulation.records import Listing, Trade
from relay.protocol.periods import NANOSECONDS
from relay.protocol.times import format_ns

__all__ = ["iso_texts", "number_writer", "order_id", "sequence_of"]

_SEQUENCE_STEP = 23
_MIX = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def number_writer(decimals: int, places: int = 0, *, is_shortest: bool = False) -> Callable[[int], str]:
    """Return a fast writer of ``units x 10^-decimals`` for units from 0.

    Args:
        decimals: scale of the units; all of them are written.
        places: decimals at least.
        is_shortest: leave needless zeros at the end out instead.
    """
    factor = 10 ** max(places - decimals, 0)
    shown = max(decimals, places)
    if shown == 0:
        return str
    width = shown + 1

    def write(units: int) -> str:
        digits = str(units * factor).rjust(width, "0")
        return f"{digits[:-shown]}.{digits[-shown:]}"

    return (lambda units: write(units).rstrip("0").rstrip(".")) if is_shortest else write


def iso_texts(trades: Sequence[Trade]) -> list[str]:
    """Return each trade's time as ISO 8601 text in UTC with six decimals."""
    texts: list[str] = []
    known, head = -1, ""
    for trade in trades:
        seconds, rest = divmod(trade.time_ns, NANOSECONDS)
        if seconds != known:
            known, head = seconds, format_ns(seconds * NANOSECONDS)[:-1]
        texts.append(f"{head}.{rest // 1_000:06d}Z")
    return texts


def sequence_of(trade_id: int) -> int:
    """Return a number of the order-book event that made a trade: rises with the id, but in uneven steps."""
    return trade_id * _SEQUENCE_STEP + (trade_id * trade_id * _MIX >> 40) % _SEQUENCE_STEP


def order_id(trade_id: int, listing: Listing, *, role: int) -> str:
    """Return the maker's (0) or taker's (1) order id of a trade, in UUID form; always the same one."""
    seed = (trade_id * 2 + role + 1) * _MIX & _WORD
    text = f"{seed:016x}{(seed ^ len(listing.symbol)) * _MIX & _WORD:016x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-9{text[17:20]}-{text[20:32]}"
