"""Writes one attempt's records to the event log and knows what the log has acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from google.protobuf.message import Message

from ingestors.clock import Clock
from relay.errors import RetryableError, StorageError
from relay.eventlog import EventLog
from relay.observability import Counters
from relay.protocol.envelope import encode_record
from relay.protocol.ranges import Range, from_wire, union
from relay.protocol.v1 import market_pb2

__all__ = ["AttemptLog", "Progress"]

_OUTSTANDING_MAX = 8
_RETRY_NS = 500_000_000
_REFUSALS_MAX = 3

Progress = Callable[[int, tuple[Range, ...], int], None]
"""Called with rows, covered ranges and the newest bar's time, all acknowledged."""


class AttemptLog:
    """Appends the records of one attempt; the last one only when all others are acknowledged.

    Args:
        log: the event log.
        topic: where to.
        clock: time.
        counters: counted per record.
        progress: told after each acknowledgement.
    """

    def __init__(self, log: EventLog, *, topic: str, clock: Clock, counters: Counters, progress: Progress) -> None:
        self._log = log
        self._topic = topic
        self._clock = clock
        self._counters = counters
        self._progress = progress
        self._outstanding: set[asyncio.Task[None]] = set()
        self._rows = 0
        self._covered: list[Range] = []
        self._newest_ns = 0

    async def emit(self, batch: market_pb2.OHLCBatch) -> None:
        """Append a batch; several may be under way, except beside the last one.

        Raises:
            StorageError: the log refuses the record for good.
        """
        if batch.is_last:
            await self.settle()
            await self._write_batch(batch)
            return
        await self._start(self._write_batch(batch))

    async def emit_market(self, market: market_pb2.Market) -> None:
        """Append a market record, keyed by its ticker."""
        await self._start(self._write_market(market))

    async def emit_statistics(self, part: market_pb2.Ticker24h) -> None:
        """Append a part of an exchange's statistics, keyed by the exchange."""
        await self._start(self._write_statistics(part))

    async def settle(self) -> None:
        """Wait until everything appended is acknowledged."""
        while self._outstanding:
            await self._reap()

    async def abandon(self) -> None:
        """Start no further append; what the log already has in hand cannot be taken back."""
        tasks = list(self._outstanding)
        self._outstanding.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _start(self, write: Coroutine[None, None, None]) -> None:
        self._outstanding.add(asyncio.create_task(write))
        if len(self._outstanding) >= _OUTSTANDING_MAX:
            await self._reap()

    async def _reap(self) -> None:
        done, self._outstanding = await asyncio.wait(self._outstanding, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def _write_batch(self, batch: market_pb2.OHLCBatch) -> None:
        await self._write(batch.ticker, batch)
        self._counters.add("history.batches")
        self._counters.add("history.rows", len(batch.rows))
        self._rows += len(batch.rows)
        self._covered = union([*self._covered, *from_wire(batch.covered)])
        self._newest_ns = max([self._newest_ns, *(row.timestamp for row in batch.rows[-1:])])
        self._progress(self._rows, tuple(self._covered), self._newest_ns)

    async def _write_market(self, market: market_pb2.Market) -> None:
        await self._write(market.market_id, market)
        self._counters.add("symbols.markets")
        self._rows += 1
        self._progress(self._rows, (), market.updated_at)

    async def _write_statistics(self, part: market_pb2.Ticker24h) -> None:
        await self._write(part.exchange_id, part)
        self._counters.add("statistics.records")
        self._rows += len(part.tickers)
        self._progress(self._rows, (), part.generated_at)

    async def _write(self, key: str, message: Message) -> None:
        """Append until the log acknowledges; while it is away the record waits."""
        value = encode_record(message)
        refusals = 0
        while True:
            try:
                # On a thread: finding a topic that is new to the client may wait for the log.
                acknowledged = await asyncio.to_thread(self._log.append, self._topic, key=key.encode(), value=value)
                await asyncio.wrap_future(acknowledged)
            except RetryableError as error:
                self._counters.add("log.waits")
                wait_ns = error.retry_after_ms * 1_000_000 if error.retry_after_ms else _RETRY_NS
                await self._clock.sleep_ns(wait_ns)
            except StorageError:
                refusals += 1
                self._counters.add("log.refusals")
                if refusals >= _REFUSALS_MAX:
                    raise
                await self._clock.sleep_ns(_RETRY_NS)
            else:
                return
