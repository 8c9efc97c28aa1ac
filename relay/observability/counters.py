"""Counters and gauges of a process, under the same names in ``relay stat`` and the metrics endpoint."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Counters"]


class Counters:
    """Named whole numbers. Counting costs one dictionary update; reading takes a copy.

    Names are dotted lower-case (``relay.requests.forwarded``). Increments come from one thread (the owner's loop),
    reads from any.
    """

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def add(self, name: str, amount: int = 1) -> None:
        """Add to a counter; it starts at zero."""
        self._values[name] = self._values.get(name, 0) + amount

    def set(self, name: str, value: int) -> None:
        """Set a gauge."""
        self._values[name] = value

    def get(self, name: str) -> int:
        """Return a value, zero when it was never counted."""
        return self._values.get(name, 0)

    def snapshot(self) -> Mapping[str, int]:
        """Return a sorted copy of all values."""
        return dict(sorted(self._values.copy().items()))
