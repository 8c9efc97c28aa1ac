"""One ticker's feed at work: executes its engine's commands on the fast path, the log and the exchange's REST side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from ingestors.engine.feed import FeedEngine
from ingestors.engine.feed_commands import Emit, EmitGap, FeedCommand, Fill, GapState
from ingestors.engine.feed_records import FeedRecords
from ingestors.engine.feed_values import (
    BadTrade,
    Connected,
    Disconnected,
    LiveTrade,
    LostCause,
    Muted,
    Proof,
    SocketEvent,
    Trades,
)
from ingestors.engine.logged_mark import Logged, LoggedMark
from ingestors.engine.outcomes import ExchangeError, OutcomeKind
from ingestors.engine.values import Listing
from ingestors.live.forwarder import LogForwarder
from ingestors.live.sinks import TickSink
from ingestors.live.spill import LogEntry
from relay.observability import Counters
from relay.protocol.envelope import VERSION_FRAME
from relay.protocol.stamps import Stamper
from relay.protocol.topics import market_topic

__all__ = ["FeedOutlets", "FeedRuntime", "TradeFiller"]

_LOG = structlog.get_logger(__name__)
_FINAL = (OutcomeKind.BAD_SYMBOL, OutcomeKind.BAD_INTERVAL)


class TradeFiller(Protocol):
    """Fetches trades by their ids."""

    def fill(
        self, listing: Listing, *, first: int, last: int | None, after_time_ns: int
    ) -> AsyncIterator[Sequence[LiveTrade]]:
        """Yield pages of the trades first to last (None: up to now), ascending; what the exchange lost is left out.

        Raises:
            ExchangeError: with a classified outcome.
        """


@dataclass(frozen=True, slots=True)
class FeedOutlets:
    """What all feeds of a process share.

    Attributes:
        sink: fast path.
        stamper: of this process's publisher.
        forwarder: towards the event log.
        topic: of the event log.
        wall_ns, monotonic_ns: time.
        counters: of the process.
    """

    sink: TickSink
    stamper: Stamper
    forwarder: LogForwarder
    topic: str
    wall_ns: Callable[[], int]
    monotonic_ns: Callable[[], int]
    counters: Counters


class FeedRuntime:
    """Drives one feed; everything runs on the event loop and returns at once.

    Args:
        listing: the market.
        engine: its feed.
        records: encodes what it says.
        outlets: shared.
        filler: REST side of its exchange.
        mark: begins where the engine resumed; without a number for a first attempt.
    """

    def __init__(
        self,
        *,
        listing: Listing,
        engine: FeedEngine,
        records: FeedRecords,
        outlets: FeedOutlets,
        filler: TradeFiller,
        mark: LoggedMark,
    ) -> None:
        self._listing, self._engine, self._records = listing, engine, records
        self._outlets, self._filler = outlets, filler
        self._mark = mark
        self._key = records.ticker.encode()
        self._tick_topic, self._gap_topic, self._beat_topic = (
            market_topic(records.ticker, kind).encode() for kind in ("tick", "gap", "heartbeat")
        )
        self._dropped: tuple[LiveTrade, LiveTrade] | None = None
        self._fills: set[asyncio.Task[None]] = set()
        self.emitted = 0
        self.newest_ns = 0

    @property
    def logged(self) -> Logged:
        """Up to where everything is in the log or given up."""
        return self._mark.logged

    def start(self) -> None:
        """Begin, before the first beat."""
        self._execute(self._engine.start())

    def on_event(self, event: SocketEvent) -> None:
        """Take what the ticker's socket delivered."""
        now_ns = self._outlets.monotonic_ns()
        if isinstance(event, Trades):
            self._execute(self._engine.on_trades(event.trades, now_ns, is_snapshot=event.is_snapshot))
            return
        match event:
            case Proof():
                self._execute(self._engine.on_proof(event, now_ns))
            case Connected():
                self._execute(self._engine.on_connected(now_ns))
            case Disconnected(_, cause):
                self._execute(self._engine.on_interrupted(cause, now_ns))
            case Muted():
                self._execute(self._engine.on_interrupted(LostCause.SILENCE, now_ns))
            case BadTrade(_, text):
                self._outlets.counters.add("live.trades.bad")
                _LOG.warning("trade_refused", ticker=self._records.ticker, reason=text)

    def on_alive(self, wall_ns: int) -> None:
        """A frame came on the ticker's connection."""
        self._engine.on_alive(wall_ns, self._outlets.monotonic_ns())

    def on_tick(self, now_ns: int) -> None:
        """Do what is due."""
        self._declare_dropped(now_ns)
        self._execute(self._engine.on_tick(now_ns))

    def on_acknowledged(self, entry: LogEntry) -> None:
        """The log has a record of this ticker."""
        self._mark.settle(entry.first, entry.last)

    def beat(self) -> None:
        """Publish and log the ticker's beat; not into the log while trades of it are missing there undeclared."""
        body = self._records.beat(
            self._engine.state,
            reached_ns=self._engine.exchange_time_reached_ns,
            last_number=self._engine.last_number,
            now_ns=self._outlets.wall_ns(),
        )
        stamped = self._publish(self._beat_topic, body)
        if self._dropped is None:
            self._log(stamped)

    def stop(self) -> None:
        """End: no more fetching, a gap from here on, and a last beat that says DOWN."""
        for task in self._fills:
            task.cancel()
        self._execute(self._engine.stop(self._outlets.monotonic_ns()))
        self.beat()

    def _execute(self, commands: Iterable[FeedCommand]) -> None:
        for command in commands:
            if isinstance(command, Emit):
                self._emit(command)
            elif isinstance(command, EmitGap):
                self._emit_gap(command)
            else:
                task = asyncio.get_running_loop().create_task(self._fill(command))
                self._fills.add(task)
                task.add_done_callback(self._fills.discard)

    def _emit(self, command: Emit) -> None:
        if self._mark.number is None:
            self._mark.begin(command.trades[0].number - 1)
        records, topic = self._records, self._tick_topic
        for trade in command.trades:
            number = trade.number
            stamped = self._publish(topic, records.tick(trade, is_backfill=command.is_backfill))
            if not command.is_backfill:
                self._mark.saw(number, trade.time_ns)
            if not self._log(stamped, number, number):
                self._drop(trade)
        self.emitted += len(command.trades)
        self.newest_ns = max(self.newest_ns, command.trades[-1].time_ns)
        self._outlets.counters.add("live.ticks", len(command.trades))

    def _emit_gap(self, gap: EmitGap) -> None:
        stamped = self._publish(self._gap_topic, self._records.gap(gap))
        is_given_up = gap.state is GapState.UNFILLABLE and gap.first is not None and gap.last is not None
        first, last = (gap.first or 0, gap.last or 0) if is_given_up else (0, -1)
        self._log(stamped, first, last, is_kept=True)
        self._outlets.counters.add(f"live.gaps.{gap.state.value.lower()}")

    def _publish(self, topic: bytes, body: bytes) -> bytes:
        stamped = self._outlets.stamper.stamp(topic, body, now_ns=self._outlets.wall_ns())
        self._outlets.sink.publish(topic, stamped)
        return stamped

    def _log(self, body: bytes, first: int = 0, last: int = -1, *, is_kept: bool = False) -> bool:
        entry = LogEntry(self._outlets.topic, self._key, VERSION_FRAME + body, first, last)
        return self._outlets.forwarder.append(entry, is_kept=is_kept)

    def _drop(self, trade: LiveTrade) -> None:
        """Remember what is missing in the log, by its lowest and highest id."""
        self._outlets.counters.add("live.ticks.dropped")
        low, high = self._dropped or (trade, trade)
        self._dropped = (min(low, trade, key=_number), max(high, trade, key=_number))

    def _declare_dropped(self, now_ns: int) -> None:
        """Say which trades the log lacks as soon as it takes records again, and fetch them."""
        if self._dropped is None or not self._outlets.forwarder.is_straight:
            return
        dropped, self._dropped = self._dropped, None
        self._execute(self._engine.on_dropped(*dropped, now_ns))

    async def _fill(self, fill: Fill) -> None:
        monotonic_ns = self._outlets.monotonic_ns
        try:
            pages = self._filler.fill(self._listing, first=fill.first, last=fill.last, after_time_ns=fill.after_ns)
            async for page in pages:
                self._execute(self._engine.on_filled(page))
        except ExchangeError as error:
            self._outlets.counters.add("live.fills.failed")
            is_final = error.outcome.kind in _FINAL
            self._execute(self._engine.on_fill_failed(fill, monotonic_ns(), is_final=is_final))
        except Exception:  # noqa: BLE001 - one broken fetch must not end the feed
            _LOG.exception("fill_broke", ticker=self._records.ticker, first=fill.first, last=fill.last)
            self._execute(self._engine.on_fill_failed(fill, monotonic_ns(), is_final=False))
        else:
            self._execute(self._engine.on_fill_done(fill))


def _number(trade: LiveTrade) -> int:
    return trade.number
