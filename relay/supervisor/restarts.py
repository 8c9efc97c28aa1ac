"""When a part that died is started again: at once, then with growing pauses; pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RestartPolicy"]


@dataclass(slots=True)
class RestartPolicy:
    """Back-off of one part.

    ::

        started ──died──► pause 0.5 s, 1, 2 … 30 s ──► started
           └── alive for 60 s ──► the pauses begin anew
    """

    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0
    forgiven_after_s: float = 60.0
    deaths: int = 0
    _started_at_s: float = 0.0

    def started(self, now_s: float) -> None:
        """Note a start."""
        self._started_at_s = now_s

    def died(self, now_s: float) -> float:
        """Note a death; return when to start again."""
        if now_s - self._started_at_s >= self.forgiven_after_s:
            self.deaths = 0
        pause_s = min(self.longest_pause_s, self.first_pause_s * float(2**self.deaths))
        self.deaths += 1
        return now_s + pause_s
