"""Fetches an exchange's 24 h statistics: its calls a few at a time, each repeated by itself when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from ingestors.engine.day_statistics import DayStatistics, StatisticsPage
from ingestors.exchanges.exchange import Exchange
from ingestors.exchanges.port import StatisticsCall
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = ["fetch_statistics"]

_CALLS_MAX = 4
"""Calls under way at once; the host's budget decides how fast they go."""
T = TypeVar("T")


class Asking(Protocol):
    """Asks until there is an answer, or raises what the job ends by."""

    def __call__(self, ask: Callable[[], Awaitable[T]], /) -> Awaitable[T]: ...


async def fetch_statistics(
    exchange: Exchange, ask: Asking, *, now_ns: Callable[[], int]
) -> tuple[list[DayStatistics], int]:
    """Return the rows of all markets, and how many could not be read or were not to be had.

    One market of many that the exchange refuses to tell about is left out and counted; when it tells about none, the
    first refusal is raised.

    Raises:
        PeerError: the exchange does not answer, or nothing of what it answered makes sense.
        BannedError: the exchange lets nobody in.
    """
    listings = await ask(exchange.markets.recent)
    calls = exchange.adapter.statistics_calls(listings, now_ns=now_ns)
    turn = asyncio.Semaphore(_CALLS_MAX)

    async def one(call: StatisticsCall) -> StatisticsPage | PeerError:
        async with turn:
            try:
                return await ask(call)
            except PeerError as error:
                if len(calls) > 1 and error.code == ErrorCode.UNKNOWN_SYMBOL:
                    return error
                raise

    tasks = [asyncio.create_task(one(call)) for call in calls]
    try:
        answers = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    rows: list[DayStatistics] = []
    refused: list[PeerError] = []
    bad_count = 0
    for answer in answers:
        if isinstance(answer, PeerError):
            refused.append(answer)
        else:
            rows += answer.rows
            bad_count += answer.bad_count
    if calls and not rows:
        raise (
            refused[0]
            if refused
            else PeerError(
                f"expected 24 h statistics of {exchange.name}, got {bad_count} rows that make no sense",
                code=ErrorCode.BAD_ANSWER,
            )
        )
    return rows, bad_count + len(refused)
