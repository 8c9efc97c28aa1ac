"""The slots of one ingestor: which are free, on offer, parked or to go."""

from __future__ import annotations

from collections.abc import Iterable

from ingestors.engine.job_state import ExchangeSlots, JobKey, Slot

__all__ = ["OFFERS_MAX", "SlotTable"]

OFFERS_MAX = 50


class SlotTable:
    """Slots by number; a number is never used for another exchange.

    Args:
        slots: how many of which exchange.
    """

    def __init__(self, slots: Iterable[ExchangeSlots]) -> None:
        self._slots: dict[int, Slot] = {}
        self._next_slot_id = 0
        self._parked_until_ns: dict[str, int] = {}
        for wanted in slots:
            self.resize(wanted)

    @property
    def free(self) -> int:
        """How many carry no job."""
        return sum(slot.job is None for slot in self._slots.values())

    def takeable(self, slot_id: int, offer_sequence: int) -> Slot | None:
        """Return the free slot that made this very offer, or None."""
        slot = self._slots.get(slot_id)
        if slot is None or slot.job is not None or slot.offer_sequence != offer_sequence:
            return None
        return slot

    def take(self, slot: Slot, job: JobKey) -> None:
        """Give a job to a free slot."""
        slot.job = job

    def release(self, slot_id: int) -> None:
        """Free a slot under its next offer, or drop it when there are to be fewer."""
        slot = self._slots.get(slot_id)
        if slot is None:
            return
        if slot.is_retired:
            del self._slots[slot_id]
            return
        slot.renew()

    def park(self, exchange: str, until_ns: int) -> None:
        """Offer no slot of an exchange before this time."""
        self._parked_until_ns[exchange] = max(self._parked_until_ns.get(exchange, 0), until_ns)
        for slot in self._slots.values():
            if slot.exchange == exchange:
                slot.is_parked = True

    def parked_ns(self, exchange: str, now_ns: int) -> int:
        """Return how long an exchange stays parked, 0 when it is not."""
        return max(0, self._parked_until_ns.get(exchange, 0) - now_ns)

    def forget_offers(self) -> None:
        """Let every free slot be offered again: whoever knew the offers does not know them any more."""
        for slot in self._slots.values():
            slot.offered_ns = None

    def due_offers(self, now_ns: int, *, every_ns: int) -> list[Slot]:
        """Return free slots whose offer is to go out, and note that it goes.

        At most ``OFFERS_MAX`` at once, historical slots before live ones, so that hundreds of live slots delay nobody;
        the rest is due at the next call.
        """
        due: list[Slot] = []
        for slot in self._slots.values():
            if slot.is_parked and not self.parked_ns(slot.exchange, now_ns):
                slot.is_parked = False
                if slot.job is None:
                    slot.renew()
            is_due = slot.offered_ns is None or now_ns - slot.offered_ns >= every_ns
            if slot.job is None and not slot.is_parked and is_due:
                due.append(slot)
        due.sort(key=lambda slot: (slot.is_realtime, slot.offered_ns or 0))
        for slot in due[:OFFERS_MAX]:
            slot.offered_ns = now_ns
        return due[:OFFERS_MAX]

    def resize(self, wanted: ExchangeSlots) -> None:
        """Make as many slots of an exchange as wanted; a running job is never taken away."""
        self._resize(wanted.exchange, wanted.historical_slots, is_realtime=False)
        self._resize(wanted.exchange, wanted.realtime_slots, is_realtime=True)

    def _resize(self, exchange: str, count: int, *, is_realtime: bool) -> None:
        alike = [
            s
            for s in self._slots.values()
            if s.exchange == exchange and s.is_realtime == is_realtime and not s.is_retired
        ]
        for _ in range(count - len(alike)):
            slot = Slot(self._next_slot_id, exchange, is_realtime)
            slot.is_parked = exchange in self._parked_until_ns
            self._slots[slot.slot_id] = slot
            self._next_slot_id += 1
        surplus = sorted(alike, key=lambda slot: slot.job is not None)
        for slot in surplus[: max(0, len(alike) - count)]:
            if slot.job is None:
                del self._slots[slot.slot_id]
            else:
                slot.is_retired = True
