"""When to connect again: waits that grow with jitter, pauses that the exchange imposes, connects in a window."""

from __future__ import annotations

from collections import deque

from ingestors.engine.budget import Jitter
from ingestors.engine.connection_commands import PlanRules
from ingestors.engine.feed_values import LiveLimits

__all__ = ["ConnectGate", "retry_wait_ns"]


def retry_wait_ns(failures: int, rules: PlanRules, jitter: Jitter) -> int:
    """Return the wait before the next attempt: almost none after the first failure, then doubling, half of it drawn."""
    if failures <= 1:
        return jitter(rules.retry_first_ns + 1)
    return _drawn(rules.retry_ns << min(failures - 2, 16), rules.retry_max_ns, jitter)


class ConnectGate:
    """Admits connection attempts from this address; after a refusal one at a time, until one succeeds.

    Args:
        limits: attempts in a window.
        rules: pauses.
        jitter: returns a whole number of [0, n).
    """

    def __init__(self, limits: LiveLimits, rules: PlanRules, *, jitter: Jitter) -> None:
        self._limits, self._rules, self._jitter = limits, rules, jitter
        self._taken: deque[int] = deque()
        self._paused_until_ns = 0
        self._refusals = 0
        self._is_trying = False

    def admits(self, now_ns: int) -> bool:
        """Return whether an attempt may go now, and count it when it may."""
        if now_ns < self._paused_until_ns or (self._refusals and self._is_trying):
            return False
        while self._taken and self._taken[0] <= now_ns - self._limits.connects_window_ns:
            self._taken.popleft()
        if len(self._taken) >= self._limits.connects_max:
            return False
        self._taken.append(now_ns)
        self._is_trying = True
        return True

    def refused(self, wait_ns: int | None, now_ns: int) -> int:
        """The exchange wants no connections from here; pause all, and return until when.

        Args:
            wait_ns: as the exchange said; None when it did not.
            now_ns: monotonic.
        """
        if wait_ns is None:
            wait_ns = _drawn(self._rules.refused_ns << min(self._refusals, 16), self._rules.retry_max_ns, self._jitter)
        self._refusals += 1
        self._is_trying = False
        self._paused_until_ns = max(self._paused_until_ns, now_ns + wait_ns)
        return self._paused_until_ns

    def succeeded(self) -> None:
        """Forget earlier refusals."""
        self._refusals = 0
        self._is_trying = False

    def failed(self) -> None:
        """An attempt came to nothing, without a refusal."""
        self._is_trying = False


def _drawn(wait_ns: int, wait_max_ns: int, jitter: Jitter) -> int:
    half = min(wait_ns, wait_max_ns) // 2
    return half + jitter(half + 1)
