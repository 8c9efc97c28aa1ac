"""What all fillers share: REST rows to live trades, and how a range of ids is paged upwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ingestors.engine.feed_values import LiveTrade
from ingestors.engine.outcomes import ExchangeError, Outcome, OutcomeKind
from ingestors.engine.values import Listing
from ingestors.exchanges.live.exact import BAD, Scale

__all__ = ["PAGES_MAX", "IdPage", "LiveFiller", "not_shown", "page_by_id", "read_rows"]

PAGES_MAX = 2_000

ReadRow = Callable[[Any, Scale, int], LiveTrade]
"""Reads a row, given the scale and the wall time of the answer."""


class LiveFiller(Protocol):
    """An exchange's trades by REST. Every method raises ``ExchangeError`` with a classified outcome."""

    def fill(
        self, listing: Listing, *, first: int, last: int | None, after_time_ns: int
    ) -> AsyncIterator[Sequence[LiveTrade]]:
        """Yield pages of the trades first to last (None: up to now), ascending; what the exchange lost is left out.

        ``after_time_ns`` is the time of a trade before ``first``, 0 when none is known.
        """

    async def newest(self, listing: Listing) -> int | None:
        """Return the id of the newest trade, None when there is none."""


@dataclass(frozen=True, slots=True)
class IdPage:
    """One answer, ascending.

    Attributes:
        trades: in whatever range the exchange answered.
        is_end: nothing newer existed.
    """

    trades: Sequence[LiveTrade]
    is_end: bool


async def page_by_id(
    fetch: Callable[[int], Awaitable[IdPage]], *, first: int, last: int | None
) -> AsyncIterator[Sequence[LiveTrade]]:
    """Page upwards through ids.

    Args:
        fetch: returns trades from an id on.
        first, last: ids, inclusive; None for everything up to now.

    Raises:
        ExchangeError: the exchange does not show the last one (yet), or pages without end.
    """
    wanted = first
    for _ in range(PAGES_MAX):
        page = await fetch(wanted)
        rows = [t for t in page.trades if t.number >= wanted and (last is None or t.number <= last)]
        if rows:
            yield rows
        newest = page.trades[-1].number if page.trades else wanted - 1
        if last is not None and newest >= last:
            return
        if page.is_end:
            if last is not None:
                raise not_shown(newest, last)
            return
        if newest < wanted:
            raise ExchangeError(Outcome(OutcomeKind.TRANSIENT, f"expected trades from {wanted} on, got up to {newest}"))
        wanted = newest + 1
    raise ExchangeError(Outcome(OutcomeKind.UNKNOWN, f"expected the end within {PAGES_MAX} pages, reached {wanted}"))


def read_rows(
    rows: Iterable[Any], read: ReadRow, *, listing: Listing, received_ns: int
) -> tuple[Sequence[LiveTrade], int]:
    """Return the trades of an answer, ascending and unique, and how many rows were none."""
    scale, found, bad = Scale.of(listing), dict[int, LiveTrade](), 0
    for row in rows:
        try:
            trade = read(row, scale, received_ns)
        except (*BAD, LookupError, TypeError):
            bad += 1
            continue
        found[trade.number] = trade
    return [found[number] for number in sorted(found)], bad


def not_shown(newest: int, last: int) -> ExchangeError:
    """Return the error that makes the range be asked for again: REST lags behind the sockets by up to a second."""
    return ExchangeError(Outcome(OutcomeKind.TRANSIENT, f"the exchange shows trades up to {newest} yet, not {last}"))
