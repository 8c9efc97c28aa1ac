"""Slot accounting: who offered what, which offer was consumed by which attempt, what is parked.

========  =====================================  ==============================
state     event                                  next
========  =====================================  ==============================
(none)    offer                                  FREE
FREE      dispatch                               BUSY
BUSY      complete                               SPENT
BUSY      reject, or the broker ended the lease  LAPSED
BUSY      offer with a higher sequence           FREE (its job was lost)
BUSY      the same sequence after the last resend LAPSED and parked (its job was lost)
SPENT     offer with a higher sequence           FREE
LAPSED    the same sequence (after ``repeat``)   FREE
LAPSED    offer with a higher sequence           FREE
FREE      no repeat for ``offer_ttl``            (none)
========  =====================================  ==============================

LAPSED takes the same sequence too: an ingestor whose DataRequest was lost keeps repeating that offer. SPENT does
not: the worker itself has said that this offer is used up, so a late repeat of it is an echo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.model import Assignment, Route

__all__ = ["Slot", "SlotBoard", "SlotKey", "SlotState", "offer_of"]

SlotKey = tuple[str, int]
"""(ingestor_id, slot_id)."""


class SlotState(Enum):
    """See the table above."""

    FREE = "free"
    BUSY = "busy"
    SPENT = "spent"
    LAPSED = "lapsed"


def offer_of(message: work_pb2.WorkerReady) -> Assignment:
    """Read the slot and the sequence of an offer from its wire message."""
    return Assignment(
        message.ingestor_id,
        message.ingestor_epoch,
        message.slot_id,
        message.offer_sequence,
        message.exchange,
        message.slot_type,
    )


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot as last offered.

    Attributes:
        route: frames through which it was last heard; empty after a restart until it speaks.
        since_ns: when the present state began.
        heard_ns: last offer.
        dispatched_ns: when the offer was consumed, or its DataRequest sent again.
        job_id, attempt: who consumed the offer, while BUSY.
        resends: how often its DataRequest was sent again.
    """

    assignment: Assignment
    route: Route
    state: SlotState
    since_ns: int
    heard_ns: int
    dispatched_ns: int = 0
    job_id: str = ""
    attempt: int = 0
    parked_until_ns: int = 0
    resends: int = 0

    @property
    def key(self) -> SlotKey:
        """Name of the slot."""
        return self.assignment.ingestor_id, self.assignment.slot_id


class SlotBoard:
    """All slots, and which ingestors' exchanges are parked."""

    def __init__(self) -> None:
        self._slots: dict[SlotKey, Slot] = {}
        self._parked: dict[tuple[str, str], int] = {}

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._slots.values())

    def __len__(self) -> int:
        return len(self._slots)

    def get(self, key: SlotKey) -> Slot | None:
        """Return a slot by name."""
        return self._slots.get(key)

    def put(self, slot: Slot) -> None:
        """Set a slot."""
        self._slots[slot.key] = slot

    def drop(self, key: SlotKey) -> None:
        """Forget a slot until it is offered again."""
        self._slots.pop(key, None)

    def spend(self, key: SlotKey, *, job_id: str, attempt: int, state: SlotState, now_ns: int) -> None:
        """The attempt is over, by its worker's word (SPENT) or ours (LAPSED): the slot waits for its next offer."""
        slot = self._slots.get(key)
        if slot is not None and slot.state is SlotState.BUSY and (slot.job_id, slot.attempt) == (job_id, attempt):
            self.put(replace(slot, state=state, since_ns=now_ns, job_id="", attempt=0))

    def park(self, ingestor_id: str, exchange: str, *, until_ns: int) -> None:
        """Use no slot of that exchange on that ingestor until then (a ban counts for its whole address)."""
        key = (ingestor_id, exchange)
        self._parked[key] = max(until_ns, self._parked.get(key, 0))

    def park_slot(self, key: SlotKey, *, until_ns: int) -> None:
        """Use this one slot no earlier than then."""
        slot = self._slots.get(key)
        if slot is not None:
            self.put(replace(slot, parked_until_ns=until_ns))

    def find_free(self, exchange: str, slot_type: int, *, now_ns: int) -> Slot | None:
        """Return the slot to use: its exact type before ANY, then the longest free."""
        found = [
            slot
            for slot in self._slots.values()
            if slot.state is SlotState.FREE
            and slot.assignment.exchange == exchange
            and slot.assignment.slot_type in (slot_type, work_pb2.WorkerReady.ANY)
            and not self.is_parked(slot, now_ns=now_ns)
        ]
        if not found:
            return None
        return min(found, key=lambda s: (s.assignment.slot_type == work_pb2.WorkerReady.ANY, s.since_ns, s.key))

    def is_parked(self, slot: Slot, *, now_ns: int) -> bool:
        """Return whether the slot may not be used yet."""
        key = (slot.assignment.ingestor_id, slot.assignment.exchange)
        return max(slot.parked_until_ns, self._parked.get(key, 0)) > now_ns

    def prune(self, *, now_ns: int, free_ttl_ns: int, spent_ttl_ns: int) -> list[Slot]:
        """Drop slots that were not offered for long and parkings that are over; return the dropped slots."""
        self._parked = {key: until for key, until in self._parked.items() if until > now_ns}
        ttl = {SlotState.FREE: free_ttl_ns, SlotState.SPENT: spent_ttl_ns, SlotState.LAPSED: spent_ttl_ns}
        silent = [s for s in self if s.state in ttl and now_ns - max(s.heard_ns, s.since_ns) > ttl[s.state]]
        for slot in silent:
            self.drop(slot.key)
        return silent
