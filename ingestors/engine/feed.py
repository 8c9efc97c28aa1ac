"""The feed of one ticker: order by trade id, repeats dropped, holes declared and filled.

::

    trade n of next   what happens
    n = next          emitted, and whatever was held behind it
    n < next          missing in a declared hole: emitted as backfill; else a repeat, dropped
    n > next          held; after hold_ns the hole [next, n) is declared (Gap OPEN), fetched, and the rest emitted

An interruption (start after another attempt, lost connection, silence) is a gap without an end until the first trade
after it, or a look by REST, shows what was missed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ingestors.engine.feed_commands import Emit, EmitGap, FeedCommand, FeedRules, FeedState, Fill, GapState
from ingestors.engine.feed_holes import Hole, HoleBook
from ingestors.engine.feed_values import LiveTrade, LostCause, Proof

__all__ = ["FeedEngine"]

_DAY_NS = 86_400_000_000_000
_CLOCK_STEP_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Interruption:
    """A gap without an end, as it was opened."""

    cause: LostCause
    first: int
    from_ns: int


class FeedEngine:
    """State of one feed; one call for each event or tick, with the monotonic time.

    Args:
        resume_after: highest id that earlier attempts settled; None for a ticker's first attempt.
        resumed_ns: exchange time of that trade, or of one before it; 0 where it is not known.
        rules: bounds.
        count: called with a counter's name and an amount.
    """

    def __init__(
        self, *, resume_after: int | None, resumed_ns: int = 0, rules: FeedRules, count: Callable[[str, int], None]
    ) -> None:
        self._rules, self._count = rules, count
        self._is_begun = resume_after is not None
        self._next = 0 if resume_after is None else resume_after + 1
        self._held: dict[int, tuple[LiveTrade, int]] = {}
        self._holes = HoleBook()
        self._proof: tuple[Proof, int] | None = None
        self._interrupted: _Interruption | None = None
        self._look_due_ns: int | None = None
        self._is_looking = False
        self._newest_ns = resumed_ns
        self._reached_ns = 0
        self._believed: tuple[int, int] | None = None
        self.state = FeedState.CONNECTING

    @property
    def last_number(self) -> int | None:
        """Highest id of which everything below is emitted or declared missing; None before the first trade."""
        return self._next - 1 if self._is_begun else None

    @property
    def exchange_time_reached_ns(self) -> int:
        """Exchange time up to which everything is emitted or declared missing."""
        return max(self._newest_ns, self._reached_ns)

    @property
    def open_holes(self) -> int:
        """How many declared holes are neither filled nor given up."""
        return len(self._holes)

    def start(self) -> list[FeedCommand]:
        """Begin; after another attempt the time between is a gap until shown otherwise."""
        return self._interrupt(LostCause.DISCONNECT) if self._is_begun else []

    def on_trades(self, trades: Sequence[LiveTrade], now_ns: int, *, is_snapshot: bool = False) -> list[FeedCommand]:
        """Take trades of the socket, in any order, repeats included; a snapshot ends with the newest trade."""
        is_calm = self._is_begun and not self._held and self._interrupted is None
        if is_calm and len(trades) == 1 and trades[0].number == self._next:
            # What happens nearly always.
            self._next += 1
            self._newest_ns = max(self._newest_ns, trades[0].time_ns)
            return [Emit(trades)]
        if not trades:
            return []
        commands: list[FeedCommand] = []
        if not self._is_begun:
            commands += self._begin(min(trades, key=lambda trade: trade.number))
        ready: list[LiveTrade] = []
        for trade in trades:
            number = trade.number
            if number == self._next:
                ready.append(trade)
                self._next = number + 1
                if self._held:
                    self._release(ready)
            elif number > self._next:
                if number in self._held:
                    self._count("feed.repeats", 1)
                else:
                    self._held[number] = (trade, now_ns)
            else:
                commands += self._late(trade)
        commands += self._emit(ready)
        if is_snapshot and not self._held:
            commands += self._reunite(self._next - 1, self._newest_ns)
        if len(self._held) > self._rules.held_max:
            commands += self._declare(now_ns, everything=True)
        return commands

    def on_proof(self, proof: Proof, now_ns: int) -> list[FeedCommand]:
        """The exchange said which trade is its newest."""
        if not self._is_begun:
            return []
        if proof.last_number < self._next:
            self._reached_ns = max(self._reached_ns, proof.time_ns)
            return self._reunite(self._next - 1, proof.time_ns) if self.state is FeedState.UP else []
        if self._proof is None:
            self._proof = proof, now_ns
        return []

    def on_alive(self, wall_ns: int, now_ns: int) -> None:
        """A frame came on the ticker's connection: whatever was traded well before it has come too.

        The wall clock may be set; it is believed to go twice as fast as time passes, and no faster: what is said once
        to have been reached ends bars for ever.
        """
        if wall_ns <= 0 or self.state is not FeedState.UP or self._interrupted is not None or self._held:
            return
        if self._believed is not None:
            believed_ns, at_ns = self._believed
            wall_ns = min(wall_ns, believed_ns + 2 * (now_ns - at_ns) + _CLOCK_STEP_NS)
        self._believed = wall_ns, now_ns
        self._reached_ns = max(self._reached_ns, wall_ns - self._rules.quiet_ns)

    def on_connected(self, now_ns: int) -> list[FeedCommand]:
        """The ticker is subscribed; if it stays silent, the exchange is asked what was missed."""
        self.state = FeedState.UP
        if self._interrupted is not None:
            self._look_due_ns = now_ns + self._rules.look_ns
        return []

    def on_interrupted(self, cause: LostCause, now_ns: int) -> list[FeedCommand]:
        """The connection is gone (or silent although there are trades): from here on trades may be missing."""
        self.state = FeedState.MUTE if cause is LostCause.SILENCE else FeedState.CONNECTING
        self._look_due_ns = now_ns if cause is LostCause.SILENCE else None
        return self._interrupt(cause) if self._is_begun and self._interrupted is None else []

    def on_dropped(self, first: LiveTrade, last: LiveTrade, now_ns: int) -> list[FeedCommand]:
        """Emitted trades could not be kept for the log: they are missing there, and fetched again."""
        hole = Hole(first.number, last.number, first.time_ns, last.time_ns, LostCause.DROPPED, now_ns)
        return self._open(hole)

    def on_filled(self, trades: Sequence[LiveTrade]) -> list[FeedCommand]:
        """Take trades of a REST page, ascending."""
        commands: list[FeedCommand] = []
        ready: list[LiveTrade] = []
        for trade in trades:
            if trade.number < self._next:
                commands += self._late(trade)
            elif trade.number == self._next and self._is_looking:
                ready.append(trade)
                self._next += 1
                if self._held:
                    self._release(ready)
        self._count("feed.backfilled", len(ready))
        if ready:
            self._newest_ns = max(self._newest_ns, ready[-1].time_ns)
            commands.append(Emit(ready, is_backfill=True))
        return commands

    def on_fill_done(self, fill: Fill) -> list[FeedCommand]:
        """The exchange has sent all it has of a range; what did not come does not exist any more."""
        if fill.hole is None:
            self._is_looking = False
            is_connected = self.state is not FeedState.CONNECTING
            return self._reunite(self._next - 1, self.exchange_time_reached_ns) if is_connected else []
        return [] if fill.hole not in self._holes else self._give_up(fill.hole)

    def on_fill_failed(self, fill: Fill, now_ns: int, *, is_final: bool) -> list[FeedCommand]:
        """A fetch failed; it is tried again until the deadline."""
        if fill.hole is None:
            self._is_looking = False
            self._look_due_ns = now_ns + self._rules.retry_ns
            return []
        hole = fill.hole
        if hole not in self._holes:
            return []
        hole.is_filling = False
        hole.failures += 1
        wait_ns = min(self._rules.retry_ns << min(hole.failures - 1, 16), self._rules.retry_max_ns)
        hole.retry_ns = now_ns + wait_ns
        if is_final or hole.retry_ns - hole.opened_ns > self._rules.fill_deadline_ns:
            return self._give_up(hole)
        return []

    def on_tick(self, now_ns: int) -> list[FeedCommand]:
        """Do what is due: declare holes, fetch again, look after a silent reconnect."""
        commands: list[FeedCommand] = []
        if self._held or self._proof is not None:
            commands += self._declare(now_ns)
        for hole in self._holes:
            if not hole.is_filling and hole.retry_ns <= now_ns:
                hole.is_filling = True
                first, last = hole.missing[0][0], hole.missing[-1][1]
                commands.append(Fill(first, last, hole.from_ns, hole))
        if self._look_due_ns is not None and self._look_due_ns <= now_ns and not self._is_looking:
            self._look_due_ns = None
            if self._interrupted is not None:
                self._is_looking = True
                commands.append(Fill(self._next, None, self._newest_ns))
        return commands

    def stop(self, now_ns: int) -> list[FeedCommand]:
        """End: what is held goes out behind its hole, holes stay open for the next attempt, and a gap begins."""
        commands = self._declare(now_ns, everything=True)
        self.state = FeedState.DOWN
        commands = [c for c in commands if not isinstance(c, Fill)]
        if self._is_begun and self._interrupted is None:
            commands += self._interrupt(LostCause.DISCONNECT)
        return commands

    def _begin(self, first: LiveTrade) -> list[FeedCommand]:
        """The ticker's first trade ever: what the day traded before it is missing, and said so."""
        self._is_begun, self._next = True, first.number
        day_ns = first.time_ns // _DAY_NS * _DAY_NS
        before = (LostCause.DISCONNECT, None, first.number - 1, day_ns, first.time_ns)
        return [EmitGap(GapState.OPEN, *before), EmitGap(GapState.UNFILLABLE, *before)]

    def _interrupt(self, cause: LostCause) -> list[FeedCommand]:
        self._interrupted = _Interruption(cause, self._next, self._newest_ns)
        return [EmitGap(GapState.OPEN, cause, self._next, None, self._newest_ns, 0)]

    def _reunite(self, last: int, to_ns: int) -> list[FeedCommand]:
        """Close the gap without an end: everything up to ``last`` has come, or is declared missing by itself."""
        broken, self._interrupted, self._look_due_ns = self._interrupted, None, None
        if broken is None:
            return []
        self.state = FeedState.UP
        return [EmitGap(GapState.FILLED, broken.cause, broken.first, last, broken.from_ns, to_ns)]

    def _emit(self, ready: list[LiveTrade]) -> list[FeedCommand]:
        if not ready:
            return []
        commands = self._reunite(ready[0].number - 1, ready[0].time_ns)
        self._newest_ns = max(self._newest_ns, ready[-1].time_ns)
        commands.append(Emit(ready))
        return commands

    def _release(self, ready: list[LiveTrade]) -> None:
        """Append what was held directly behind the newest trade."""
        while (held := self._held.pop(self._next, None)) is not None:
            ready.append(held[0])
            self._next += 1

    def _late(self, trade: LiveTrade) -> list[FeedCommand]:
        waiting = [hole for hole in self._holes if hole.take(trade.number)]
        if not waiting:
            self._count("feed.repeats", 1)
            return []
        self._count("feed.backfilled", 1)
        commands: list[FeedCommand] = [Emit([trade], is_backfill=True)]
        for hole in waiting:
            if not hole.missing:
                self._holes.drop(hole)
                commands.append(_gap(hole, GapState.FILLED, hole.first, hole.last))
        return commands

    def _declare(self, now_ns: int, *, everything: bool = False) -> list[FeedCommand]:
        """Declare the holes that have been waited for, and emit what is held behind them."""
        commands: list[FeedCommand] = []
        while self._held:
            lowest = min(self._held)
            since_ns = min(arrived_ns for _, arrived_ns in self._held.values())
            if not everything and now_ns - since_ns < self._rules.hold_ns:
                return commands
            commands += self._declare_until(lowest, self._held[lowest][0].time_ns, now_ns)
            ready: list[LiveTrade] = []
            self._release(ready)
            commands += self._emit(ready)
        if self._proof is not None:
            proof, since_ns = self._proof
            if proof.last_number < self._next:
                self._proof = None
            elif everything or now_ns - since_ns >= self._rules.hold_ns:
                self._proof = None
                commands += self._declare_until(proof.last_number + 1, proof.time_ns, now_ns)
        return commands

    def _declare_until(self, number: int, to_ns: int, now_ns: int) -> list[FeedCommand]:
        cause = LostCause.SEQUENCE if self._interrupted is None else self._interrupted.cause
        hole = Hole(self._next, number - 1, self._newest_ns, to_ns, cause, now_ns)
        commands = [*self._open(hole), *self._reunite(self._next - 1, to_ns)]
        self._next = number
        return commands

    def _open(self, hole: Hole) -> list[FeedCommand]:
        self._count("feed.holes", 1)
        opened = _gap(hole, GapState.OPEN, hole.first, hole.last)
        if hole.last - hole.first + 1 > self._rules.fill_trades_max:
            return [opened, _gap(hole, GapState.UNFILLABLE, hole.first, hole.last)]
        self._holes.add(hole)
        hole.is_filling = True
        return [opened, Fill(hole.first, hole.last, hole.from_ns, hole)]

    def _give_up(self, hole: Hole) -> list[FeedCommand]:
        """Close a hole: parts that did not come are UNFILLABLE, and FILLED closes the whole when some did."""
        self._holes.drop(hole)
        self._count("feed.unfillable", hole.count)
        lost: list[FeedCommand] = [_gap(hole, GapState.UNFILLABLE, first, last) for first, last in hole.missing]
        if hole.missing == [(hole.first, hole.last)]:
            return lost
        return [*lost, _gap(hole, GapState.FILLED, hole.first, hole.last)]


def _gap(hole: Hole, state: GapState, first: int, last: int) -> EmitGap:
    return EmitGap(state, hole.cause, first, last, hole.from_ns, hole.to_ns)
