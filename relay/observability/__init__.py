"""Logs, counters and the status endpoint that every process has."""

from relay.observability.counters import Counters
from relay.observability.logs import configure_logging
from relay.observability.orphan import end_group, is_orphaned, watch_parent
from relay.observability.shared_counters import SharedSet, new_counters
from relay.observability.status_server import StatusServer

__all__ = [
    "Counters",
    "SharedSet",
    "StatusServer",
    "configure_logging",
    "end_group",
    "is_orphaned",
    "new_counters",
    "watch_parent",
]
