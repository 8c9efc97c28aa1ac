"""The exchange's time while recordings are replayed live.

Without a live replay the clock stands at the recordings' end, and REST serves them whole. With one it begins where
the recordings go live and moves only at a turn of the sockets (or by a control call), together with what they send:
so REST never serves what the sockets have not had the chance to send, and a test moves time by itself.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ingestors.simulation.replay import Recording
from relay.errors import SettingsError

__all__ = ["LiveReplay", "Pace", "ReplayClock", "parse_speed"]

_TURN_TRADES = 500
_FASTEST, _SLOWEST = Fraction(1_000_000), Fraction(1, 1_000)


class Pace(StrEnum):
    """Paces other than a factor."""

    STEP = "step"
    """Only control calls move time."""
    MAX = "max"
    """As fast as the clients take it; it stands while nobody is subscribed."""


@dataclass(frozen=True, slots=True)
class LiveReplay:
    """How recordings go over the sockets.

    Attributes:
        speed: a factor of real time, or a pace.
        from_ns: where the clock begins; by default where the recordings go live.
        waits: time stands until somebody subscribes to trades (not with ``step``).
    """

    speed: Fraction | Pace = Pace.MAX
    from_ns: int | None = None
    waits: bool = True


def parse_speed(text: str) -> Fraction | Pace:
    """Return the speed that a text names: ``step``, ``max`` or a factor such as ``1``, ``0.5``, ``60``.

    Raises:
        SettingsError: it is none of them.
    """
    if text in (Pace.STEP.value, Pace.MAX.value):
        return Pace(text)
    try:
        factor = Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise SettingsError(f"expected a speed of step, max or a factor such as 10, got {text!r}") from error
    if not _SLOWEST <= factor <= _FASTEST:
        raise SettingsError(f"expected a factor from 0.001 to 1000000, got {text}")
    return factor


class ReplayClock:
    """The clock; call it for the exchange's time in nanoseconds.

    Args:
        recordings: whose trades set the pace.
        replay: how they are replayed.
    """

    def __init__(self, recordings: Iterable[Recording], replay: LiveReplay) -> None:
        recordings = tuple(recordings)
        self._times_ns = sorted(time_ns for recording in recordings for time_ns in recording.times_ns)
        self._end_ns = max(recording.end_ns for recording in recordings)
        live_ns = min(recording.live_ns for recording in recordings)
        self._now_ns = min(live_ns if replay.from_ns is None else replay.from_ns, self._end_ns)
        self._speed = replay.speed
        self._waits = replay.waits
        self._began: tuple[int, int] | None = None

    def __call__(self) -> int:
        """Return the exchange's time, nanoseconds."""
        return self._now_ns

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been replayed."""
        return self._now_ns >= self._end_ns

    @property
    def is_running(self) -> bool:
        """Whether turns move it."""
        return not self.is_at_end and self._speed != Pace.STEP

    @property
    def trades_left(self) -> int:
        """Trades that are still to come."""
        return len(self._times_ns) - bisect_right(self._times_ns, self._now_ns)

    def set_speed(self, speed: Fraction | Pace) -> None:
        """Go on at another speed, at once."""
        self._speed = speed
        self._waits = False
        self._began = None

    def turn(self, *, wall_ns: int, is_subscribed: bool, is_backed_up: bool) -> None:
        """Move on: by the factor, or at ``max`` past the next trades unless clients are away or behind."""
        if not self.is_running or (self._waits and not is_subscribed):
            return
        self._waits = False
        if isinstance(self._speed, Pace):
            if is_subscribed and not is_backed_up:
                self.advance_trades(_TURN_TRADES)
            return
        if self._began is None:
            self._began = (wall_ns, self._now_ns)
        began_wall_ns, began_ns = self._began
        self.advance_to(began_ns + int((wall_ns - began_wall_ns) * self._speed))

    def advance_to(self, time_ns: int) -> None:
        """Move to a time, never back and never past the end."""
        self._now_ns = max(self._now_ns, min(time_ns, self._end_ns))

    def advance_trades(self, count: int) -> None:
        """Move to the ``count``-th next trade (those of the same nanosecond come with it), or to the end."""
        place = bisect_right(self._times_ns, self._now_ns) + count - 1
        self.advance_to(self._times_ns[place] if place < len(self._times_ns) else self._end_ns)
