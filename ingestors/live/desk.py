"""All live jobs of a process: one feed for each ticker, their beats, acknowledgements and ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog

from ingestors.clock import Clock
from ingestors.engine.feed import FeedEngine
from ingestors.engine.feed_commands import FeedRules
from ingestors.engine.feed_records import FeedRecords
from ingestors.engine.feed_values import Refused, SocketEvent
from ingestors.engine.job_state import JobResult
from ingestors.engine.logged_mark import Logged, LoggedMark
from ingestors.engine.values import Listing
from ingestors.live.feed_runtime import FeedOutlets, FeedRuntime, TradeFiller
from ingestors.live.spill import LogEntry
from relay.errors import RelayError, RetryableError
from relay.eventlog import EventLog
from relay.protocol.codes import ErrorCode
from relay.protocol.v1 import work_pb2

__all__ = ["LiveConnectionsPort", "LiveDesk", "LiveMarket", "LiveProgress"]

_LOG = structlog.get_logger(__name__)
_TURN_NS = 10_000_000
_BEAT_NS = 1_000_000_000
_BEAT_PHASE_NS = 100_000_000
"""Beats go out so long after each full second: bars end at full seconds, and wait for the beat behind their end."""
_FLUSH_TURNS_MAX = 200

LiveProgress = Callable[[int, int, Logged], None]
"""Called with emitted trades, the newest exchange time, and the highest settled id as text."""


class LiveConnectionsPort(Protocol):
    """The sockets of one exchange."""

    def add(self, listing: Listing) -> None:
        """Subscribe a market; its events come from now on."""

    def remove(self, ticker: str) -> None:
        """Unsubscribe a market."""

    def alive_ns(self, ticker: str) -> int:
        """Return the wall time of the newest frame on the ticker's connection, 0 without one."""

    async def close(self) -> None:
        """Close all connections."""


@dataclass(frozen=True, slots=True)
class LiveMarket:
    """One exchange's live side.

    Attributes:
        find: looks a listing up by ticker; raises ``RelayError`` when it is unknown or the exchange is away.
        feed: how trades come and whose ids they have, such as ``sbe trade`` or ``json aggTrade``.
    """

    connections: LiveConnectionsPort
    filler: TradeFiller
    find: Callable[[str], Awaitable[Listing]]
    feed: str = "json trade"


class LiveDesk:
    """Runs live jobs until they are cancelled.

    Args:
        outlets: shared by all feeds.
        log: event log, to learn its topic.
        markets: live side by exchange.
        source_id: name of this ingestor.
        rules: bounds of feeds.
        clock: time.
    """

    def __init__(
        self,
        *,
        outlets: FeedOutlets,
        log: EventLog,
        markets: Mapping[str, LiveMarket],
        source_id: str,
        rules: FeedRules,
        clock: Clock,
    ) -> None:
        self._outlets, self._log, self._markets = outlets, log, markets
        self._source_id, self._rules, self._clock = source_id, rules, clock
        self._feeds: dict[str, FeedRuntime] = {}
        self._refused: dict[str, asyncio.Future[Refused]] = {}
        self._pump: asyncio.Task[None] | None = None

    @property
    def feeds(self) -> Mapping[str, str]:
        """How the trades of each exchange come and whose ids they have."""
        return {name: market.feed for name, market in self._markets.items()}

    def start(self) -> None:
        """Begin to forward what waits for the log, also from before a restart; inside the running loop."""
        self._pump = asyncio.get_running_loop().create_task(self._turns())

    def deliver(self, event: SocketEvent) -> None:
        """Take an event of a socket; one for a ticker that has just ended is dropped."""
        if isinstance(event, Refused):
            waiting = self._refused.get(event.ticker)
            if waiting is not None and not waiting.done():
                waiting.set_result(event)
            return
        feed = self._feeds.get(event.ticker)
        if feed is not None:
            feed.on_event(event)

    def acknowledged(self, entry: LogEntry) -> None:
        """Take an acknowledgement of the log."""
        feed = self._feeds.get(entry.key.decode())
        if feed is not None:
            feed.on_acknowledged(entry)

    async def run(self, request: work_pb2.DataRequest, progress: LiveProgress) -> JobResult:
        """Run one live attempt until it is cancelled or the exchange refuses the ticker.

        Raises:
            RelayError: the ticker is unknown, or its feed runs already.
            asyncio.CancelledError: after the feed has said its end.
        """
        ticker, exchange = request.ticker, request.ticker.rpartition(".")[2]
        market = self._markets.get(exchange)
        if market is None:
            raise RelayError(f"expected an exchange with a live feed, got {exchange}", code=ErrorCode.UNKNOWN_EXCHANGE)
        if ticker in self._feeds:
            raise RetryableError(f"{ticker} runs here already", code=ErrorCode.UNAVAILABLE)
        listing = await market.find(ticker)
        feed = self._new_feed(listing, market, request)
        refused = self._refused[ticker] = asyncio.get_running_loop().create_future()
        self._feeds[ticker] = feed
        try:
            feed.start()
            market.connections.add(listing)
            while not refused.done():
                progress(feed.emitted, feed.newest_ns, feed.logged)
                feed.on_alive(market.connections.alive_ns(ticker))
                feed.beat()
                await asyncio.wait([refused], timeout=_until_beat_ns(self._clock.wall_ns()) / 1e9)
            return JobResult(False, feed.emitted, refused.result().code, refused.result().text)
        finally:
            market.connections.remove(ticker)
            feed.stop()
            await self._settle(feed, progress)
            del self._feeds[ticker], self._refused[ticker]

    async def close(self) -> None:
        """Close the sockets; every job has ended before."""
        if self._pump is not None:
            self._pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pump
        for market in self._markets.values():
            await market.connections.close()
        self._outlets.sink.close()
        self._outlets.forwarder.close()

    def _new_feed(self, listing: Listing, market: LiveMarket, request: work_pb2.DataRequest) -> FeedRuntime:
        text = request.realtime.resume_after_trade_id
        resume_after = int(text) if text.isascii() and text.isdigit() else None
        resumed_ns = request.realtime.resume_after_time
        counters = self._outlets.counters
        return FeedRuntime(
            listing=listing,
            engine=FeedEngine(resume_after=resume_after, resumed_ns=resumed_ns, rules=self._rules, count=counters.add),
            records=FeedRecords(request.ticker, self._source_id, self._outlets.stamper.epoch, request.attempt),
            outlets=self._outlets,
            filler=market.filler,
            mark=LoggedMark(resume_after, resumed_ns),
        )

    async def _settle(self, feed: FeedRuntime, progress: LiveProgress) -> None:
        """Let the last records reach the log, as far as it takes them, so that the next attempt resumes behind them."""
        for _ in range(_FLUSH_TURNS_MAX):
            self._outlets.forwarder.turn()
            if not self._outlets.forwarder.outstanding:
                break
            await self._clock.sleep_ns(_TURN_NS)
        progress(feed.emitted, feed.newest_ns, feed.logged)

    async def _turns(self) -> None:
        """Every few milliseconds: acknowledgements, what waits for the log, and what is due in feeds."""
        preparing = asyncio.create_task(self._prepare())
        try:
            while True:
                now_ns = self._clock.monotonic_ns()
                self._outlets.forwarder.turn()
                self._outlets.sink.turn(now_ns)
                for feed in tuple(self._feeds.values()):
                    feed.on_tick(now_ns)
                self._outlets.counters.set("live.tickers", len(self._feeds))
                await self._clock.sleep_ns(_TURN_NS)
        finally:
            preparing.cancel()

    async def _prepare(self) -> None:
        """Learn the log's topic on a thread; until then every record waits on disk, and the fast path goes on."""
        while True:
            try:
                await asyncio.to_thread(self._log.prepare, self._outlets.topic)
            except RelayError:
                await self._clock.sleep_ns(_BEAT_NS)
            else:
                self._outlets.forwarder.is_prepared = True
                return


def _until_beat_ns(wall_ns: int) -> int:
    return _BEAT_NS - (wall_ns - _BEAT_PHASE_NS) % _BEAT_NS
