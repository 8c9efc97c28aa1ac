"""Puts the live side of a process together: fast path, forwarder, spill, sockets of every exchange."""

from __future__ import annotations

from collections.abc import Mapping

from ingestors.clock import Clock
from ingestors.engine.budget import Jitter
from ingestors.engine.feed_commands import FeedRules
from ingestors.engine.feed_values import SocketEvent
from ingestors.exchanges.exchange import Exchange
from ingestors.live.desk import LiveDesk
from ingestors.live.feed_runtime import FeedOutlets
from ingestors.live.forwarder import LogForwarder
from ingestors.live.markets import LIVE_EXCHANGES, open_live
from ingestors.live.sinks import PublisherSink
from ingestors.live.spill import LogEntry, Spill
from ingestors.settings import IngestorSettings
from relay.eventlog import TICK_TOPIC, EventLog
from relay.observability import Counters
from relay.observability.shared_counters import SHARED_MEMORY_OFF
from relay.protocol.stamps import Stamper
from relay.transport import Context

__all__ = ["live_slots", "open_desk"]


def live_slots(settings: IngestorSettings, exchange: str) -> int:
    """Return how many tickers of an exchange this process takes; none where there is no live feed."""
    return settings.realtime_slots_of(exchange) if exchange in LIVE_EXCHANGES else 0


def open_desk(
    settings: IngestorSettings,
    exchanges: Mapping[str, Exchange],
    *,
    context: Context,
    log: EventLog,
    source_id: str,
    epoch: int,
    clock: Clock,
    jitter: Jitter,
    counters: Counters,
) -> LiveDesk:
    """Open the live side; nothing connects to an exchange before a ticker is wanted.

    Args:
        settings: of the ingestor.
        exchanges: REST sides by name.
        context: ZeroMQ's.
        log: event log.
        source_id: name of this ingestor in beats.
        epoch: of its publisher, random for each start.
        clock: time.
        jitter: randomness of back-off.
        counters: of the process.

    Raises:
        SettingsError: the spill folder is in use or cannot be made, or a relay's address does not fit.
    """
    desk: LiveDesk | None = None

    def acknowledged(entry: LogEntry) -> None:
        if desk is not None:
            desk.acknowledged(entry)

    def deliver(event: SocketEvent) -> None:
        if desk is not None:
            desk.deliver(event)

    spill = Spill(settings.spill_path, bytes_max=settings.spill_bytes_max)
    try:
        outlets = FeedOutlets(
            sink=PublisherSink(
                context,
                settings.relay_endpoints,
                queue_max=settings.fast_path_queue_max,
                counters=counters,
                epoch=epoch,
                shared_memory=None if settings.shared_memory == SHARED_MEMORY_OFF else settings.shared_memory,
            ),
            stamper=Stamper(epoch),
            forwarder=LogForwarder(log, spill, acknowledged=acknowledged, counters=counters),
            topic=settings.topic_prefix + TICK_TOPIC,
            wall_ns=clock.wall_ns,
            monotonic_ns=clock.monotonic_ns,
            counters=counters,
        )
        markets = {
            name: open_live(name, settings, exchange, clock=clock, counters=counters, jitter=jitter, deliver=deliver)
            for name, exchange in exchanges.items()
            if live_slots(settings, name)
        }
    except BaseException:
        spill.close()
        raise
    desk = LiveDesk(
        outlets=outlets,
        log=log,
        markets=markets,
        source_id=source_id,
        rules=FeedRules(hold_ns=settings.hole_hold_ms * 1_000_000, fill_trades_max=settings.fill_trades_max),
        clock=clock,
    )
    return desk
