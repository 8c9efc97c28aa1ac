"""Rate limits as exchanges keep them: weight per minute with a ban, and token buckets. Time is handed in."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "TokenBucket", "WeightWindow"]

_SECOND_NS = 10**9
_MINUTE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the simulated exchanges.

    Attributes:
        binance_weight_per_minute: REQUEST_WEIGHT of exchangeInfo.
        binance_refusals_max: refused calls in a minute before the address is banned.
        binance_ban_seconds: length of the ban.
        kraken_per_second, kraken_burst: public calls for each pair.
        coinbase_per_second, coinbase_burst: public calls, both Coinbase interfaces.
    """

    binance_weight_per_minute: int = 6_000
    binance_refusals_max: int = 20
    binance_ban_seconds: int = 120
    kraken_per_second: int = 1
    kraken_burst: int = 5
    coinbase_per_second: int = 10
    coinbase_burst: int = 15


class WeightWindow:
    """Weight used in the running minute; who goes on while refused is banned.

    Args:
        limits: the limits.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._minute = 0
        self._refusals = 0
        self._banned_until_ns = 0
        self.used = 0

    def spend(self, weight: int, *, wall_ns: int) -> None:
        """Count a call."""
        minute = wall_ns // (_MINUTE_SECONDS * _SECOND_NS)
        if minute != self._minute:
            self._minute, self.used, self._refusals = minute, 0, 0
        self.used += weight
        if self.used > self._limits.binance_weight_per_minute:
            self._refusals += 1
            if self._refusals > self._limits.binance_refusals_max and not self.banned_seconds(wall_ns=wall_ns):
                self._banned_until_ns = wall_ns + self._limits.binance_ban_seconds * _SECOND_NS

    def banned_seconds(self, *, wall_ns: int) -> int:
        """Return how long the ban still lasts, rounded up; 0 without one."""
        return max(-((wall_ns - self._banned_until_ns) // _SECOND_NS), 0)

    def refused_seconds(self, *, wall_ns: int) -> int:
        """Return seconds until the minute is over when the weight is exceeded, else 0."""
        if self.used <= self._limits.binance_weight_per_minute:
            return 0
        return _MINUTE_SECONDS - wall_ns // _SECOND_NS % _MINUTE_SECONDS


class TokenBucket:
    """Calls per second with a burst.

    Args:
        per_second: refill.
        burst: size.
    """

    def __init__(self, *, per_second: int, burst: int) -> None:
        self._per_second = per_second
        self._full_ns = burst * _SECOND_NS
        self._level_ns = self._full_ns
        self._seen_ns = 0

    def take(self, *, wall_ns: int) -> bool:
        """Take one token if there is one."""
        elapsed_ns = max(wall_ns - self._seen_ns, 0)
        self._seen_ns = wall_ns
        self._level_ns = min(self._level_ns + elapsed_ns * self._per_second, self._full_ns)
        if self._level_ns < _SECOND_NS:
            return False
        self._level_ns -= _SECOND_NS
        return True
