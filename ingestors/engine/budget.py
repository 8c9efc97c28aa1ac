"""Rate budget of one host, shared by all slots: whole numbers, weights learned from what the host tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relay.protocol.periods import NANOSECONDS

__all__ = ["BudgetLimits", "HostBudget"]

MINUTE_NS = 60 * NANOSECONDS
BACKOFF_FIRST_NS = 5 * NANOSECONDS
BACKOFF_MAX_NS = 60 * NANOSECONDS

Jitter = Callable[[int], int]
"""Returns a whole number of [0, n)."""


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """How much a host allows: a bucket of ``burst_weight`` that fills by ``weight_per_minute``."""

    weight_per_minute: int
    burst_weight: int

    def __post_init__(self) -> None:
        assert self.burst_weight > 0  # noqa: S101 - relations of bounds
        assert self.weight_per_minute > 0  # noqa: S101 - relations of bounds


class HostBudget:
    """Token bucket with one shared pause.

    A refused request (429) pauses every caller until the time that the host named, or a growing back-off with
    jitter; afterwards the bucket starts empty, so that waiting callers go one by one. A ban (418) is kept apart:
    callers ask :meth:`banned_ns` and give their jobs back instead of waiting.

    Args:
        limits: until the host tells its own.
        jitter: source of randomness.
    """

    def __init__(self, limits: BudgetLimits, *, jitter: Jitter) -> None:
        self._limits = limits
        self._jitter = jitter
        # In units of weight x MINUTE_NS, so that refilling is exact.
        self._tokens = limits.burst_weight * MINUTE_NS
        self._refilled_ns: int | None = None
        self._paused_until_ns = 0
        self._banned_until_ns = 0
        self._refusals = 0
        self._weights: dict[str, int] = {}
        self._in_flight = 0
        self._was_alone = False
        self._used: tuple[int, int] | None = None

    @property
    def limits(self) -> BudgetLimits:
        """The limits in force."""
        return self._limits

    def set_limits(self, limits: BudgetLimits) -> None:
        """Take limits that the host or the settings told."""
        self._limits = limits
        self._tokens = min(self._tokens, limits.burst_weight * MINUTE_NS)

    def weight_of(self, endpoint: str, default: int) -> int:
        """Return the weight of an endpoint as learned, else the default."""
        return self._weights.get(endpoint, default)

    def wait_ns(self, weight: int, now_ns: int) -> int:
        """Return how long a request of this weight must wait; 0 when it may go now."""
        self._refill(now_ns)
        pause_ns = max(0, self._paused_until_ns - now_ns)
        lacking = min(weight, self._limits.burst_weight) * MINUTE_NS - self._tokens
        if lacking <= 0:
            return pause_ns
        return max(pause_ns, -(-lacking // self._limits.weight_per_minute))

    def take(self, weight: int, now_ns: int) -> None:
        """Spend the weight of a request that goes now."""
        self._refill(now_ns)
        self._tokens -= weight * MINUTE_NS
        self._was_alone = self._in_flight == 0
        self._in_flight += 1

    def answered(self, endpoint: str, *, used_weight: int | None, now_ns: int) -> None:
        """Take note of an answer and of the weight that the host says was used in this minute."""
        self._in_flight = max(0, self._in_flight - 1)
        alone, self._was_alone = self._was_alone and self._in_flight == 0, False
        if used_weight is None:
            return
        minute = now_ns // MINUTE_NS
        if alone and self._used is not None and self._used[0] == minute and used_weight > self._used[1]:
            self._weights[endpoint] = used_weight - self._used[1]
        self._used = (minute, used_weight)
        left = max(0, self._limits.weight_per_minute - used_weight)
        self._tokens = min(self._tokens, left * MINUTE_NS)

    def succeeded(self) -> None:
        """Forget earlier refusals."""
        self._refusals = 0

    def refused(self, retry_after_ns: int | None, now_ns: int) -> int:
        """Pause all callers; return until when (same clock as ``now_ns``)."""
        if now_ns < self._paused_until_ns and retry_after_ns is None:
            # Requests that were under way when the pause began are one refusal, not many.
            return self._paused_until_ns
        backoff_ns = min(BACKOFF_FIRST_NS << min(self._refusals, 10), BACKOFF_MAX_NS)
        self._refusals += 1
        pause_ns = backoff_ns if retry_after_ns is None else retry_after_ns
        until_ns = now_ns + pause_ns + self._jitter(NANOSECONDS)
        self._paused_until_ns = max(self._paused_until_ns, until_ns)
        self._refill(self._paused_until_ns)
        self._tokens = min(self._tokens, 0)
        return self._paused_until_ns

    def ban(self, duration_ns: int, now_ns: int) -> None:
        """Note a ban of this length."""
        self._banned_until_ns = max(self._banned_until_ns, now_ns + duration_ns)

    def banned_ns(self, now_ns: int) -> int:
        """Return how long the host's ban still lasts, 0 when there is none."""
        return max(0, self._banned_until_ns - now_ns)

    def _refill(self, now_ns: int) -> None:
        if self._refilled_ns is None:
            self._refilled_ns = now_ns
        elapsed_ns = max(0, now_ns - self._refilled_ns)
        self._tokens = min(
            self._tokens + elapsed_ns * self._limits.weight_per_minute, self._limits.burst_weight * MINUTE_NS
        )
        self._refilled_ns = max(self._refilled_ns, now_ns)
