"""How a job goes on after a failed call: again, later, not at all, or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ingestors.engine.outcomes import Outcome, OutcomeKind
from relay.protocol.periods import NANOSECONDS

__all__ = ["GiveUp", "Park", "RetryPolicy", "TryAgain"]

_TRIES_MAX = {OutcomeKind.TRANSIENT: 5, OutcomeKind.MAINTENANCE: 10, OutcomeKind.UNKNOWN: 2}
_FIRST_WAIT_NS = {OutcomeKind.MAINTENANCE: 10 * NANOSECONDS}
_WAIT_NS = NANOSECONDS // 2
_WAIT_NS_MAX = 60 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Make the same call again after this time."""

    wait_ns: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    """End the job with this error."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Park:
    """Give the job back: the exchange lets nobody in for this time."""

    duration_ns: int


class RetryPolicy:
    """Judges the failures of one call; a refusal for being too fast never ends a job, its wait is the host's.

    Args:
        jitter: returns a whole number of [0, n).
    """

    def __init__(self, *, jitter: Callable[[int], int]) -> None:
        self._jitter = jitter
        self._failures = 0

    def judge(self, outcome: Outcome) -> TryAgain | GiveUp | Park:
        """Return how to go on."""
        if outcome.kind is OutcomeKind.THROTTLED:
            return TryAgain(0)
        if outcome.kind is OutcomeKind.BANNED:
            return Park(outcome.wait_ns or NANOSECONDS)
        self._failures += 1
        if self._failures >= _TRIES_MAX.get(outcome.kind, 1):
            return GiveUp(outcome.code, outcome.message)
        if outcome.wait_ns is not None:
            return TryAgain(outcome.wait_ns)
        step_ns = min(_FIRST_WAIT_NS.get(outcome.kind, _WAIT_NS) << (self._failures - 1), _WAIT_NS_MAX)
        return TryAgain(step_ns + self._jitter(step_ns))
