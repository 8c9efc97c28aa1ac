"""What ``relay watch`` says of bars that do not come: no bars job, no trade, and a dead feed look alike otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from relay_client.history import Bar

__all__ = ["Silence"]

_PATIENCE_S = 30.0


class Silence:
    """Says once of each bar topic that nothing came, and what may be missing.

    Args:
        topics: as they are subscribed; of those, the ones of bars are watched.
    """

    def __init__(self, topics: Iterable[str]) -> None:
        self._awaited = {topic for topic in topics if "|ohlc:" in topic}

    def take(self, item: Any) -> None:
        """Take what came; anything but a bar says nothing."""
        if isinstance(item, Bar):
            self._awaited.discard(f"{item.ticker}|ohlc:{item.period_seconds}")

    def words(self, elapsed_s: float) -> list[str]:
        """Return lines, none before some patience is over.

        Args:
            elapsed_s: seconds since the subscription; infinity at its end.
        """
        if not self._awaited or elapsed_s < _PATIENCE_S:
            return []
        silent, self._awaited = sorted(self._awaited), set[str]()
        return [
            f"{topic}: no bar has come. The bars job makes them of trades as they come: is it running (`relay status` "
            "shows the jobs of `relay up`, `relay job bars` starts one), and does the ticker trade (watch the ticker)?"
            for topic in silent
        ]
