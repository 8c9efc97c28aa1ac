"""The loop that moves the sockets: a turn moves a live replay's clock and sends what has come to exist."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ingestors.simulation.http_side import Clock
from ingestors.simulation.replay_clock import ReplayClock
from ingestors.simulation.socket_hub import SocketHub
from ingestors.simulation.socket_values import Moment

__all__ = ["SocketPump"]

_TURN_SECONDS = 0.001
_IDLE_SECONDS = 0.01
_BACKED_UP_BYTES = 2**20


class SocketPump:
    """Turns every exchange's sockets.

    Args:
        hubs: the exchanges.
        clock: the exchanges' time.
        wall_clock: real time.
        replay: the clock of a live replay when there is one; then the same as ``clock``.
    """

    def __init__(
        self, hubs: Sequence[SocketHub], *, clock: Clock, wall_clock: Clock, replay: ReplayClock | None = None
    ) -> None:
        self.hubs = hubs
        self.replay = replay
        self._clock = clock
        self._wall_clock = wall_clock

    async def run(self) -> None:
        """Turn until cancelled: each millisecond while trades are asked for, without a pause while a replay races."""
        while True:
            is_moving = self._move()
            trades = self.turn()
            if is_moving and trades:
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(_TURN_SECONDS if any(hub.is_subscribed for hub in self.hubs) else _IDLE_SECONDS)

    def turn(self) -> int:
        """Send what is due and return how many trades there were."""
        moment = Moment(self._clock(), self._wall_clock())
        return sum(hub.turn(moment) for hub in self.hubs if hub.lines)

    def flush(self) -> None:
        """Send everything up to the clock's time."""
        while self.turn():
            pass

    def _move(self) -> bool:
        if self.replay is None or not self.replay.is_running:
            return False
        self.replay.turn(
            wall_ns=self._wall_clock(),
            is_subscribed=any(hub.is_subscribed for hub in self.hubs),
            is_backed_up=any(hub.unsent_bytes > _BACKED_UP_BYTES for hub in self.hubs),
        )
        return True
