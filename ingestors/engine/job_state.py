"""Values of the slot engine: what it remembers of slots and jobs, and what it tells its driver to do."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from ingestors.engine.logged_mark import NOT_LOGGED, Logged
from relay.protocol.ranges import Range
from relay.protocol.v1 import work_pb2

__all__ = [
    "CancelJob",
    "ExchangeSlots",
    "Exit",
    "JobKey",
    "JobResult",
    "RunningJob",
    "Send",
    "SetRateLimit",
    "Slot",
    "SlotCommand",
    "StartJob",
]


@dataclass(frozen=True, slots=True)
class JobKey:
    """One attempt at one job."""

    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """How an attempt ended."""

    success: bool
    rows: int = 0
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class ExchangeSlots:
    """How many jobs of an exchange may run at once; one realtime job is one ticker."""

    exchange: str
    historical_slots: int
    realtime_slots: int = 0


@dataclass(slots=True)
class Slot:
    """One slot; ``offer_sequence`` counts its offers, a repeated offer keeps the number."""

    slot_id: int
    exchange: str
    is_realtime: bool = False
    offer_sequence: int = 1
    job: JobKey | None = None
    offered_ns: int | None = None
    is_parked: bool = False
    is_retired: bool = False

    def renew(self) -> None:
        """Become free under a new offer."""
        self.job = None
        self.offer_sequence += 1
        self.offered_ns = None


@dataclass(slots=True)
class RunningJob:
    """One attempt in work.

    Attributes:
        lease_until_ns: when writing stops unless the broker is heard.
        beat_ns, proven_beat_ns: the newest heartbeat, and the one before it.
        rows, covered: what the log has acknowledged.
        logged: of a realtime job, up to where everything is logged or given up.
    """

    slot_id: int
    exchange: str
    lease_ns: int
    lease_until_ns: int
    beat_ns: int
    proven_beat_ns: int
    rows: int = 0
    covered: tuple[Range, ...] = ()
    last_event_ns: int = 0
    is_realtime: bool = False
    logged: Logged = NOT_LOGGED


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to the broker."""

    message: Message


@dataclass(frozen=True, slots=True)
class StartJob:
    """Start an attempt."""

    key: JobKey
    request: work_pb2.DataRequest


@dataclass(frozen=True, slots=True)
class CancelJob:
    """Stop an attempt before its next record; CANCELLED ones are reported, others end silently."""

    key: JobKey
    code: str


@dataclass(frozen=True, slots=True)
class SetRateLimit:
    """Change a host's budget."""

    host: str
    weight_per_minute: int


@dataclass(frozen=True, slots=True)
class Exit:
    """Nothing is left to do."""


SlotCommand = Send | StartJob | CancelJob | SetRateLimit | Exit
