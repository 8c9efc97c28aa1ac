"""When each exchange is to be asked again, and which exchanges can be asked at all."""

from __future__ import annotations

from collections.abc import Iterable

from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.slots import Slot, SlotState

__all__ = ["ExchangeSchedule", "is_due", "served_exchanges"]

_SETTLE_NS = 30 * NANOSECONDS
"""After a start the requests of clients go first."""
_RETRY_NS = 300 * NANOSECONDS
_HEARD_NS = 60 * NANOSECONDS
_HELD = (SlotState.FREE, SlotState.BUSY)


class ExchangeSchedule:
    """Due times of one kind of job, one for each exchange.

    Args:
        every_ns: from one start to the next; 0 to start none.
        now_ns: when the manager started.
    """

    def __init__(self, every_ns: int, *, now_ns: int) -> None:
        self._every_ns = every_ns
        self._first_ns = now_ns + _SETTLE_NS
        self._due_ns: dict[str, int] = {}

    @property
    def is_off(self) -> bool:
        """Whether nothing is ever due."""
        return self._every_ns == 0

    @property
    def every_ns(self) -> int:
        """From one start to the next; 0 when nothing is ever due."""
        return self._every_ns

    def due(self, exchanges: Iterable[str], *, now_ns: int) -> list[str]:
        """Return the exchanges that are due, ascending; one that was never asked is due half a minute after a start."""
        if self.is_off:
            return []
        if self._first_ns - now_ns > _SETTLE_NS:
            self._first_ns = now_ns
        most_ns = max(self._every_ns, _SETTLE_NS)
        return sorted(
            name for name in exchanges if is_due(self._due_ns.get(name, self._first_ns), now_ns=now_ns, most_ns=most_ns)
        )

    def asked(self, exchange: str, *, at_ns: int) -> None:
        """An exchange was asked then, by whatever cause."""
        self._due_ns[exchange] = max(at_ns + self._every_ns, self._first_ns)

    def failed(self, exchange: str, *, now_ns: int) -> None:
        """It did not answer: ask again in five minutes, or earlier where the schedule says so."""
        self._due_ns[exchange] = now_ns + min(_RETRY_NS, self._every_ns)


def is_due(due_ns: int, *, now_ns: int, most_ns: int) -> bool:
    """Return whether a time has come, or lies further ahead than it ever was put: then the clock was set back."""
    return not 0 < due_ns - now_ns <= most_ns


def served_exchanges(slots: Iterable[Slot], *, now_ns: int) -> frozenset[str]:
    """Return the exchanges that an ingestor serves now: it holds a slot for them, or offered one within a minute."""
    return frozenset(
        slot.assignment.exchange
        for slot in slots
        if slot.assignment.slot_type != work_pb2.WorkerReady.REALTIME
        and (slot.state in _HELD or now_ns - slot.heard_ns < _HEARD_NS)
    )
