"""The slot broker: matches queued jobs with offered slots, one lease for each running attempt.

It knows names, numbers and times, not what a job fetches. An attempt that :meth:`Broker.assign` hands out
must be stored before its DataRequest is sent. Specification: ``proto/spec/0006-work.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_jobs.manager.engine.fair_queue import FairQueue
from spark_jobs.manager.engine.model import Assignment, Route
from spark_jobs.manager.engine.slots import Slot, SlotBoard, SlotKey, SlotState

__all__ = ["Attempt", "Broker", "BrokerLimits", "Lease", "OfferResult"]

_SUPERSEDED_MAX = 16
_INGESTORS_MAX = 4_096
"""Ingestor ids whose epochs are remembered; the longest unheard of is forgotten first."""

Attempt = tuple[str, int]
"""(job_id, attempt)."""


@dataclass(frozen=True, slots=True)
class BrokerLimits:
    """Times of the broker, nanoseconds.

    Attributes:
        lease_ns: an attempt that was silent for so long is lost (three heartbeats of 5 s).
        repeat_ns: a consumed offer that is repeated later than this means that the DataRequest was lost.
        offer_ttl_ns: a free slot that was not offered again for so long is forgotten.
        spent_ttl_ns: a spent slot likewise; long, so that a late offer of an old sequence is known as such.
        slots_max: slots that are known at once; offers of more are refused and counted.
        resends_max: a DataRequest is sent again so often; a slot that still repeats its offer then loses the attempt.
        mute_park_ns: such a slot is not used for so long.
        park_max_ns: longest time for which a worker's word parks a slot (the longest ban that exchanges impose).
    """

    lease_ns: int = 15_000_000_000
    repeat_ns: int = 5_000_000_000
    offer_ttl_ns: int = 16_000_000_000
    spent_ttl_ns: int = 3_600_000_000_000
    slots_max: int = 20_000
    resends_max: int = 2
    mute_park_ns: int = 60_000_000_000
    park_max_ns: int = 3 * 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class Lease:
    """A running attempt: where it runs and until when it is trusted without a heartbeat."""

    job_id: str
    attempt: int
    slot_key: SlotKey
    route: Route
    expires_ns: int


@dataclass(frozen=True, slots=True)
class OfferResult:
    """What an offer meant.

    Attributes:
        accepted: False for an offer of an older process or sequence.
        lost: attempts that cannot be running any more.
        resend: the attempt whose DataRequest never arrived.
    """

    accepted: bool = True
    lost: tuple[Attempt, ...] = ()
    resend: Lease | None = None


class Broker:
    """Slots, leases and the queue of one broker epoch.

    Args:
        limits: times.
    """

    def __init__(self, limits: BrokerLimits) -> None:
        self._limits = limits
        self._slots = SlotBoard()
        self._leases: dict[str, Lease] = {}
        self._queues: dict[tuple[str, int], FairQueue] = {}
        self._queue_of: dict[str, tuple[str, int]] = {}
        self._epochs: dict[str, int] = {}
        self._superseded: dict[str, tuple[int, ...]] = {}
        self.offers_superseded = 0
        self.offers_over_bound = 0

    @property
    def slots(self) -> SlotBoard:
        """The slots, to look at."""
        return self._slots

    @property
    def running_count(self) -> int:
        """How many attempts hold a lease."""
        return len(self._leases)

    @property
    def queued_count(self) -> int:
        """How many jobs wait for a slot."""
        return sum(map(len, self._queues.values()))

    def enqueue(
        self,
        job_id: str,
        *,
        attempt: int,
        exchange: str,
        slot_type: int,
        client_id: str,
        created_ns: int,
        not_before_ns: int = 0,
    ) -> None:
        """Let a job wait for a slot; ``attempt`` is the number that its next attempt gets."""
        self._queue_of[job_id] = key = (exchange, slot_type)
        self._queues.setdefault(key, FairQueue()).push(
            job_id, attempt=attempt, client_id=client_id, created_ns=created_ns, not_before_ns=not_before_ns
        )

    def withdraw(self, job_id: str, *, now_ns: int) -> Lease | None:
        """The job has ended: take it out of the queue, or end its lease and return it, so that it gets CANCEL."""
        key = self._queue_of.pop(job_id, None)
        if key is not None:
            self._queues[key].forget(job_id)
        lease = self._leases.get(job_id)
        return self._lapse(lease, now_ns=now_ns) if lease is not None else None

    def offered(self, offer: Assignment, route: Route, *, now_ns: int) -> OfferResult:
        """A WorkerReady arrived."""
        if self._is_refused(offer):
            return OfferResult(accepted=False)
        lost = self._supersede(offer) if offer.ingestor_epoch != self._epochs.get(offer.ingestor_id) else ()
        slot = self._slots.get((offer.ingestor_id, offer.slot_id))
        fresh = Slot(offer, route, SlotState.FREE, now_ns, now_ns)
        if slot is None:
            self._slots.put(fresh)
            return OfferResult(lost=lost)
        if offer.offer_sequence < slot.assignment.offer_sequence:
            return OfferResult(accepted=False)
        if slot.state is SlotState.BUSY:
            return self._offered_while_busy(slot, fresh)
        if offer.offer_sequence == slot.assignment.offer_sequence:
            if slot.state is SlotState.SPENT or (
                slot.state is SlotState.LAPSED and now_ns - slot.dispatched_ns < self._limits.repeat_ns
            ):
                return OfferResult(accepted=False)
            fresh = replace(fresh, since_ns=slot.since_ns)
        self._slots.put(replace(fresh, parked_until_ns=slot.parked_until_ns))
        return OfferResult()

    def _is_refused(self, offer: Assignment) -> bool:
        if offer.ingestor_epoch in self._superseded.get(offer.ingestor_id, ()):
            # A process of that id that is still alive: two ingestors share one ingestor_id.
            self.offers_superseded += 1
            return True
        is_known = self._slots.get((offer.ingestor_id, offer.slot_id)) is not None
        if not is_known and len(self._slots) >= self._limits.slots_max:
            self.offers_over_bound += 1
            return True
        return False

    def _offered_while_busy(self, slot: Slot, fresh: Slot) -> OfferResult:
        if fresh.assignment.offer_sequence > slot.assignment.offer_sequence:
            del self._leases[slot.job_id]
            self._slots.put(fresh)
            return OfferResult(lost=((slot.job_id, slot.attempt),))
        if fresh.heard_ns - slot.dispatched_ns < self._limits.repeat_ns:
            return OfferResult()
        if slot.resends >= self._limits.resends_max:
            # It hears none of them, or is mute: without a bound it would keep the job until its deadline.
            self._lapse(self._leases[slot.job_id], now_ns=fresh.heard_ns)
            self._slots.park_slot(slot.key, until_ns=fresh.heard_ns + self._limits.mute_park_ns)
            return OfferResult(lost=((slot.job_id, slot.attempt),))
        lease = replace(self._leases[slot.job_id], route=fresh.route, expires_ns=fresh.heard_ns + self._limits.lease_ns)
        self._leases[slot.job_id] = lease
        again = replace(slot, route=fresh.route, dispatched_ns=fresh.heard_ns, heard_ns=fresh.heard_ns)
        self._slots.put(replace(again, resends=slot.resends + 1))
        return OfferResult(resend=lease)

    def _supersede(self, offer: Assignment) -> tuple[Attempt, ...]:
        """A new process of that ingestor: the one before it, its slots and its attempts are gone.

        Epochs are random, so the newest is the one seen first last; whatever a superseded process still says,
        or said before it died, is dropped.
        """
        before = self._epochs.pop(offer.ingestor_id, None)
        self._epochs[offer.ingestor_id] = offer.ingestor_epoch
        if len(self._epochs) > _INGESTORS_MAX:
            oldest = next(iter(self._epochs))
            del self._epochs[oldest]
            self._superseded.pop(oldest, None)
        if before is not None:
            older = self._superseded.get(offer.ingestor_id, ())
            self._superseded[offer.ingestor_id] = (*older, before)[-_SUPERSEDED_MAX:]
        old = [s for s in self._slots if s.assignment.ingestor_id == offer.ingestor_id]
        lost = tuple((s.job_id, s.attempt) for s in old if s.state is SlotState.BUSY)
        for job_id, _ in lost:
            del self._leases[job_id]
        for slot in old:
            self._slots.drop(slot.key)
        return lost

    def heard(self, job_id: str, attempt: int, route: Route, *, now_ns: int) -> bool:
        """A heartbeat arrived; return False when that attempt holds no lease."""
        lease = self._leases.get(job_id)
        if lease is None or lease.attempt != attempt:
            return False
        self._leases[job_id] = replace(lease, route=route, expires_ns=now_ns + self._limits.lease_ns)
        slot = self._slots.get(lease.slot_key)
        if slot is not None:
            self._slots.put(replace(slot, route=route))
        return True

    def lease_of(self, job_id: str, attempt: int) -> Lease | None:
        """Return the lease of an attempt, None when it is stale."""
        lease = self._leases.get(job_id)
        return lease if lease is not None and lease.attempt == attempt else None

    def complete(self, job_id: str, attempt: int, *, now_ns: int) -> Lease | None:
        """The worker ended an attempt; its slot waits for the next offer. None when the attempt is stale."""
        lease = self.lease_of(job_id, attempt)
        return self._end(lease, SlotState.SPENT, now_ns=now_ns) if lease is not None else None

    def reject(self, job_id: str, attempt: int, *, now_ns: int) -> Lease | None:
        """The worker gave an attempt back, perhaps without having used the offer. None when it is stale."""
        lease = self.lease_of(job_id, attempt)
        return self._lapse(lease, now_ns=now_ns) if lease is not None else None

    def unreachable(self, job_id: str, attempt: int, *, now_ns: int) -> Lease | None:
        """A DataRequest found no peer: end the attempt and drop the slot until it is offered again."""
        lease = self.lease_of(job_id, attempt)
        if lease is not None:
            self._lapse(lease, now_ns=now_ns)
            self._slots.drop(lease.slot_key)
        return lease

    def park(self, slot_key: SlotKey, exchange: str, *, until_ns: int, now_ns: int, is_ban: bool) -> None:
        """Use one slot, or with a ban all slots of the exchange on its ingestor, no earlier than then."""
        until_ns = min(until_ns, now_ns + self._limits.park_max_ns)
        if is_ban:
            self._slots.park(slot_key[0], exchange, until_ns=until_ns)
        else:
            self._slots.park_slot(slot_key, until_ns=until_ns)

    def drop_free(self, ingestor_id: str) -> None:
        """Forget the free slots of an ingestor that shuts down."""
        for slot in [s for s in self._slots if s.assignment.ingestor_id == ingestor_id]:
            if slot.state is SlotState.FREE:
                self._slots.drop(slot.key)

    def expire(self, now_ns: int) -> list[Lease]:
        """End the leases that ran out and forget silent offers; return the ended leases."""
        ended = [lease for lease in self._leases.values() if lease.expires_ns <= now_ns]
        for lease in ended:
            self._lapse(lease, now_ns=now_ns)
        self._slots.prune(now_ns=now_ns, free_ttl_ns=self._limits.offer_ttl_ns, spent_ttl_ns=self._limits.spent_ttl_ns)
        return ended

    def assign(self, now_ns: int) -> list[tuple[Lease, Assignment]]:
        """Match waiting jobs with free slots; every pair is a new lease and a consumed offer."""
        made: list[tuple[Lease, Assignment]] = []
        for (exchange, slot_type), queue in self._queues.items():
            while queue.peek(now_ns) is not None:
                slot = self._slots.find_free(exchange, slot_type, now_ns=now_ns)
                entry = queue.pop(now_ns) if slot is not None else None
                if slot is None or entry is None:
                    break
                made.append((self._lease(entry.job_id, entry.attempt, slot, now_ns=now_ns), slot.assignment))
        return made

    def restore(self, job_id: str, attempt: int, assignment: Assignment, *, now_ns: int) -> None:
        """After a restart: trust a stored attempt for one lease, until its worker speaks."""
        self._epochs[assignment.ingestor_id] = assignment.ingestor_epoch
        self._lease(job_id, attempt, Slot(assignment, (), SlotState.FREE, now_ns, now_ns), now_ns=now_ns)

    def _lease(self, job_id: str, attempt: int, slot: Slot, *, now_ns: int) -> Lease:
        lease = Lease(job_id, attempt, slot.key, slot.route, now_ns + self._limits.lease_ns)
        self._leases[job_id] = lease
        self._slots.put(
            replace(
                slot,
                state=SlotState.BUSY,
                since_ns=now_ns,
                dispatched_ns=now_ns,
                job_id=job_id,
                attempt=attempt,
                resends=0,
            )
        )
        return lease

    def _lapse(self, lease: Lease, *, now_ns: int) -> Lease:
        return self._end(lease, SlotState.LAPSED, now_ns=now_ns)

    def _end(self, lease: Lease, state: SlotState, *, now_ns: int) -> Lease:
        del self._leases[lease.job_id]
        self._slots.spend(lease.slot_key, job_id=lease.job_id, attempt=lease.attempt, state=state, now_ns=now_ns)
        return lease
