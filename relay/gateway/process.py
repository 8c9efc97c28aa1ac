"""Composition root of the gateway process."""

from __future__ import annotations

import secrets
import signal
import threading

import structlog

from relay.engine.gateway import GatewayEngine, GatewayFacts
from relay.gateway.descriptors import OWN_DESCRIPTORS, allow_descriptors
from relay.gateway.loop import GatewayLoop
from relay.gateway.settings import GatewaySettings
from relay.observability import StatusServer, new_counters, watch_parent
from relay.observability.shared_counters import SHARED_MEMORY_OFF
from relay.protocol.envelope import EnvelopeLimits
from relay.transport import ClientBroadcast, Waker, new_context

__all__ = ["run_gateway"]

_LOG = structlog.get_logger()


def run_gateway(settings: GatewaySettings, *, parent_pid: int | None = None) -> int:
    """Run the gateway until SIGTERM, SIGINT or the parent's death; returns the exit code.

    Raises:
        SettingsError: an address cannot be bound.
    """
    waker, stopping = Waker(), threading.Event()
    counters, shared = new_counters("gateway", shared_memory=settings.shared_memory)
    relay_epoch = secrets.randbits(63)
    _allow_connections(settings.connections_max)
    broadcast = _open_broadcast(settings, relay_epoch)
    facts = GatewayFacts(
        relay_epoch=relay_epoch,
        source_id=settings.source_id,
        catalog_uri=settings.catalog_uri,
        catalog_name=settings.catalog_name,
        warehouse=settings.warehouse,
        object_store_endpoint=settings.object_store_endpoint,
        address=settings.subscribe_endpoint,
        broadcast_name=broadcast.name if broadcast is not None else "",
        host_id=broadcast.host_id if broadcast is not None else "",
    )
    engine = GatewayEngine(facts, EnvelopeLimits(settings.request_bytes_max, settings.request_frames_max), counters.add)
    context = new_context(sockets_max=settings.connections_max)
    try:
        loop = GatewayLoop(settings, engine, context, counters, broadcast=broadcast)
    except BaseException:
        if broadcast is not None:
            broadcast.close()
        raise

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
            "broadcast_bytes": broadcast.length if broadcast is not None else 0,
        },
    )
    _LOG.info("gateway_started", requests=settings.request_endpoint, subscribe=settings.subscribe_endpoint)
    try:
        loop.run(stopping.is_set, waker)
    finally:
        status.close()
        loop.close()
        if broadcast is not None:
            broadcast.close()
        context.term()
        waker.close()
        if shared is not None:
            shared.close()
    _LOG.info("gateway_stopped", in_flight=engine.in_flight)
    return 0


def _allow_connections(connections_max: int) -> None:
    wanted = connections_max + OWN_DESCRIPTORS
    allowed = allow_descriptors(wanted)
    if allowed < wanted:
        advice = f"the system allows {max(allowed - OWN_DESCRIPTORS, 0)} connections; raise its limit (ulimit -Hn)"
        _LOG.warning("few_descriptors", allowed=allowed, wanted=wanted, advice=advice)


def _open_broadcast(settings: GatewaySettings, relay_epoch: int) -> ClientBroadcast | None:
    """Return the broadcast to clients on this host, None where it is switched off or cannot be had."""
    if not settings.client_broadcast or settings.shared_memory == SHARED_MEMORY_OFF:
        return None
    try:
        return ClientBroadcast(
            relay_epoch,
            folder=settings.shared_memory,
            length=settings.client_broadcast_bytes,
            body_bytes_max=settings.published_bytes_max,
        )
    except LookupError as error:
        _LOG.info("no_client_broadcast", reason=str(error))
        return None
