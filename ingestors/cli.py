"""The ``ingestor`` command: one process that serves one or several exchanges."""

from __future__ import annotations

import asyncio
import random
import signal
import socket
from pathlib import Path

import click
import structlog

from ingestors.clock import system_clock
from ingestors.engine.batches import BatchLimits
from ingestors.engine.job_state import ExchangeSlots
from ingestors.engine.slots import SlotEngine
from ingestors.exchanges.exchange import open_exchange
from ingestors.job_runner import JobRunner
from ingestors.live.opening import live_slots, open_desk
from ingestors.settings import IngestorSettings
from ingestors.worker import Worker
from relay.config import load_settings
from relay.errors import RelayError, SettingsError
from relay.eventlog import EventLog
from relay.observability import StatusServer, configure_logging, new_counters, watch_parent
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.transport import new_context

__all__ = ["command", "serve"]

_LOG = structlog.get_logger(__name__)


@click.command(name="ingestor")
@click.option(
    "--exchange",
    "exchanges",
    multiple=True,
    metavar="NAME",
    help="Exchange to serve, for example BINANCE; may be given several times. [default: from the settings]",
)
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with an [ingestor] table.")
@click.option("--broker-endpoint", metavar="URL", help="Where the manager's broker listens.")
@click.option("--log-bootstrap-servers", metavar="HOST:PORT", help="Where the event log listens.")
@click.option("--status-port", type=click.IntRange(0, 65_535), help="Port of /metrics, /status and /health; 0: any.")
@click.option("--parent-pid", type=int, help="Leave when this process is no longer the parent.")
def command(
    exchanges: tuple[str, ...],
    config: Path | None,
    broker_endpoint: str | None,
    log_bootstrap_servers: str | None,
    status_port: int | None,
    parent_pid: int | None,
) -> None:
    """Fetch history, symbols and live trades from exchanges and write them to the event log.

    Offers its slots to the manager and works for it until SIGTERM, which lets running jobs end shortly.
    Exit code 0 after a clean stop, 2 when the settings are wrong.
    """
    overrides = {
        "exchanges": tuple(name.upper() for name in exchanges) or None,
        "broker_endpoint": broker_endpoint,
        "log_bootstrap_servers": log_bootstrap_servers,
        "status_port": status_port,
    }
    try:
        settings = load_settings(IngestorSettings, overrides=overrides, config_file=config)
        configure_logging(process="ingestor", level=settings.log_level)
        watch_parent(parent_pid, lambda: None)
        log = _open_log(settings)
        try:
            asyncio.run(serve(settings, log, parent_pid=parent_pid))
        finally:
            log.close()
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    except RelayError as error:
        raise click.ClickException(f"{error} ({error.code})") from error


async def serve(settings: IngestorSettings, log: EventLog, *, parent_pid: int | None = None) -> None:
    """Run an ingestor until SIGTERM or SIGINT.

    Raises:
        SettingsError: an exchange has no adapter, the spill folder is in use, or the status port is taken.
    """
    clock, randomness = system_clock(), random.SystemRandom()
    counters, shared = new_counters("ingestor", shared_memory=settings.shared_memory)
    exchanges = {
        name: open_exchange(name, settings, clock=clock, jitter=randomness.randrange, counters=counters)
        for name in settings.exchanges
    }
    ingestor_id = settings.ingestor_id or f"{socket.gethostname()}:{'+'.join(exchanges)}"
    epoch = randomness.getrandbits(63)
    engine = SlotEngine(
        ingestor_id=ingestor_id,
        ingestor_epoch=epoch,
        slots=[ExchangeSlots(n, settings.slots_of(n), live_slots(settings, n)) for n in exchanges],
    )
    runner = JobRunner(
        exchanges=exchanges,
        log=log,
        topic_prefix=settings.topic_prefix,
        clock=clock,
        jitter=randomness.randrange,
        limits=BatchLimits(settings.batch_rows_max, settings.batch_bytes_max),
        counters=counters,
    )
    context = new_context()
    desk = open_desk(
        settings,
        exchanges,
        context=context,
        log=log,
        source_id=ingestor_id,
        epoch=epoch,
        clock=clock,
        jitter=randomness.randrange,
        counters=counters,
    )
    desk.start()
    worker = Worker(
        engine, runner, desk=desk, exchanges=exchanges, clock=clock, counters=counters, parent_pid=parent_pid
    )
    status = StatusServer(
        address=settings.status_address, port=settings.status_port, counters=counters, status=worker.status
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, lambda: worker.stop(within_ns=settings.drain_seconds * NANOSECONDS))
    _LOG.info("ingestor_started", ingestor_id=ingestor_id, exchanges=list(exchanges), status_port=status.port)
    try:
        await worker.run(context, settings.broker_endpoint, message_bytes_max=settings.message_bytes_max)
    finally:
        status.close()
        await desk.close()
        for exchange in exchanges.values():
            await exchange.adapter.close()
        context.term()
        if shared is not None:
            shared.close()
    _LOG.info("ingestor_stopped")


def _open_log(settings: IngestorSettings) -> EventLog:
    try:
        from relay.eventlog.kafka import KafkaEventLog
    except ImportError as error:
        raise SettingsError(
            "the event log's client is not installed; install the extra market-relay[kafka]",
            code=ErrorCode.MISSING_EXTRA,
        ) from error
    return KafkaEventLog(
        settings.log_bootstrap_servers, client_id="ingestor", buffer_bytes_max=settings.log_buffer_bytes_max
    )
