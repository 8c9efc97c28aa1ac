"""Composition root of the gateway process."""

from __future__ import annotations

import secrets
import signal
import threading

import structlog

from relay.engine.gateway import GatewayEngine, GatewayFacts
from relay.gateway.loop import GatewayLoop
from relay.gateway.settings import GatewaySettings
from relay.observability import StatusServer, new_counters, watch_parent
from relay.protocol.envelope import EnvelopeLimits
from relay.transport import Waker, new_context

__all__ = ["run_gateway"]

_LOG = structlog.get_logger()


def run_gateway(settings: GatewaySettings, *, parent_pid: int | None = None) -> int:
    """Run the gateway until SIGTERM, SIGINT or the parent's death; returns the exit code.

    Raises:
        SettingsError: an address cannot be bound.
    """
    waker, stopping = Waker(), threading.Event()
    counters, shared = new_counters("gateway", shared_memory=settings.shared_memory)
    facts = GatewayFacts(
        relay_epoch=secrets.randbits(63),
        source_id=settings.source_id,
        catalog_uri=settings.catalog_uri,
        catalog_name=settings.catalog_name,
        warehouse=settings.warehouse,
        object_store_endpoint=settings.object_store_endpoint,
        address=settings.subscribe_endpoint,
    )
    engine = GatewayEngine(facts, EnvelopeLimits(settings.request_bytes_max, settings.request_frames_max), counters.add)
    context = new_context(sockets_max=settings.connections_max)
    loop = GatewayLoop(settings, engine, context, counters)

    def stop() -> None:
        stopping.set()
        waker.wake()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop())
    watch_parent(parent_pid, stop)
    status = StatusServer(
        address=settings.status_address,
        port=settings.status_port,
        counters=counters,
        status=lambda: {
            "ready": not stopping.is_set(),
            "relay_epoch": facts.relay_epoch,
            "in_flight": engine.in_flight,
            "native_forwarding": loop.is_native,
        },
    )
    _LOG.info("gateway_started", requests=settings.request_endpoint, subscribe=settings.subscribe_endpoint)
    try:
        loop.run(stopping.is_set, waker)
    finally:
        status.close()
        loop.close()
        context.term()
        waker.close()
        if shared is not None:
            shared.close()
    _LOG.info("gateway_stopped", in_flight=engine.in_flight)
    return 0
