"""What a topic has lost: which replays to ask for, when to try again, and when to call it lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relay_client.engine.live_values import FeedRules, Loss, Repaired, ReplayQuestion
from relay_client.engine.sequences import SequenceLedger
from relay_client.engine.spans import Span
from relay_client.engine.trade_ids import TradeIds

__all__ = ["FeedCounters", "LossBook"]

_PROBES_MAX = 3
_HULL_MAX = 5_000
_END = 2**62


@dataclass(slots=True)
class FeedCounters:
    """What became of the messages of a subscription's feeds.

    Attributes:
        received: new ones; ``repaired``, ``history`` and ``late`` are among them.
        repeated: dropped as known.
        repaired: came by a replay after a loss.
        history: came as history before the live ones.
        late: came when ``order="strict"`` had gone on without them, or from before its first tick; dropped.
        lost: reported lost and not come since.
    """

    received: int = 0
    repeated: int = 0
    repaired: int = 0
    history: int = 0
    late: int = 0
    lost: int = 0


@dataclass(slots=True)
class _Hole:
    """Something missing: sequences of an epoch, or trade ids (epoch 0). A probe only looks for a tail."""

    epoch: int
    first: int
    last: int
    renewed_ns: int
    due_ns: int
    ids: Span | None = None
    is_probe: bool = False
    is_quiet: bool = False
    size: int = 0
    unseen: int = 0
    way: int = 0
    failures: int = 0
    cursor: int = 0
    was_asked: bool = False
    reason: str = ""

    @property
    def ways(self) -> tuple[str, ...]:
        if not self.epoch:
            return ("trade_id",)
        return ("sequence", "trade_id") if self.ids is not None and not self.is_probe else ("sequence",)


@dataclass(slots=True)
class _Asked:
    holes: list[_Hole]
    left: int
    last: int


class LossBook:
    """Losses of one topic, oldest first; one replay in flight at a time.

    A replay by sequences repairs whole runs of losses; what it does not bring is asked for by trade ids. A message may
    not have reached the log yet, so both are repeated with back-off for a bounded time. What counts is what came,
    never the status of an answer.

    Args:
        topic: of everything.
        rules: bounds.
        ledger, ids: say what is still missing; ``ids`` of ticks only.
        counters: ``lost`` is kept here.
        out: events are appended.
    """

    def __init__(
        self,
        topic: str,
        *,
        rules: FeedRules,
        ledger: SequenceLedger,
        ids: TradeIds | None,
        counters: FeedCounters,
        out: list[object],
    ) -> None:
        self._topic, self._rules, self._ledger, self._ids = topic, rules, ledger, ids
        self._counters, self._out = counters, out
        self._holes: list[_Hole] = []
        self._asked: _Asked | None = None
        self.is_away = False
        self.lost_ids: list[Span] = []

    def __bool__(self) -> bool:
        return bool(self._holes)

    def open_sequences(
        self,
        epoch: int,
        span: Span,
        *,
        between: tuple[int | None, int | None],
        now_ns: int,
        is_quiet: bool = False,
    ) -> None:
        """Sequences of an epoch are missing, between the trades of two ids where known; a quiet one is not reported."""
        before, after = between
        ids = (before + 1, after - 1) if before is not None and after is not None and after - before > 1 else None
        self._add(_Hole(epoch, *span, now_ns, now_ns + self._rules.settle_ns, ids, is_quiet=is_quiet))

    def open_ids(self, first: int, last: int, *, now_ns: int) -> None:
        """Trade ids are missing."""
        self._add(_Hole(0, first, last, now_ns, now_ns + self._rules.settle_ns, (first, last)))

    def probe(self, epoch: int, next_sequence: int, *, now_ns: int) -> None:
        """Look whether an epoch went on behind the newest sequence: after a cut nothing else would show it."""
        if self._rules.is_repairing and not any(h.is_probe and h.epoch == epoch for h in self._holes):
            self._holes.append(_Hole(epoch, next_sequence, _END, now_ns, now_ns, is_probe=True))

    def is_waiting_for(self, first: int, last: int) -> bool:
        """Return whether trade ids of a span are still being looked for."""
        return any(h.ids is not None and h.ids[0] <= last and h.ids[1] >= first for h in self._holes)

    def next_question(self, now_ns: int) -> ReplayQuestion | None:
        """Return the replay to ask for now; its answer, or failure, is awaited before the next one."""
        if self._asked is not None or self.is_away:
            return None
        due = [hole for hole in self._holes if hole.due_ns <= now_ns]
        if not due:
            return None
        head = due[0]
        way = head.ways[head.way]
        first, last, holes = self._span_of(head, way)
        if way == "sequence" and not head.is_probe and not head.cursor:
            holes = self._run_of(head, due)
            last = max(hole.last for hole in holes)
        for hole in holes:
            hole.was_asked = True
        self._asked = _Asked(holes, sum(map(self._left, holes)), last)
        return ReplayQuestion(self._topic, way, max(first, head.cursor), last, epoch=head.epoch)

    def on_answer(self, next_from: int, now_ns: int) -> None:
        """Take note of an answer whose records have been taken already; ``next_from`` says where to go on."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        has_progressed = sum(map(self._left, asked.holes)) < asked.left
        for hole in asked.holes:
            if has_progressed:
                hole.renewed_ns, hole.failures = now_ns, 0
            if hole.cursor < next_from <= asked.last:
                hole.cursor = next_from
            else:
                self._end_way(hole, now_ns)
        self.sweep(now_ns)

    def on_failed(self, text: str, now_ns: int, *, is_final: bool) -> None:
        """Take note that a question was refused for good, or not answered in time."""
        asked, self._asked = self._asked, None
        for hole in asked.holes if asked is not None else ():
            hole.reason = text
            if is_final:
                self._drop(hole)
            else:
                hole.way, hole.cursor = len(hole.ways) - 1, 0
                self._end_way(hole, now_ns)

    def on_resync(self, now_ns: int) -> None:
        """The relay is back: time without it does not count."""
        self.is_away = False
        for hole in self._holes:
            hole.renewed_ns, hole.due_ns, hole.failures = now_ns, now_ns, 0

    def sweep(self, now_ns: int) -> None:
        """Close what has come, and report what has been looked for long enough."""
        repaired = 0
        for hole in list(self._holes):
            if hole.is_probe or (self._asked is not None and hole in self._asked.holes):
                continue
            if not self._left(hole):
                self._holes.remove(hole)
                repaired += hole.size if hole.was_asked else 0
            elif now_ns - hole.renewed_ns >= self._rules.repair_ns and not self.is_away:
                self._drop(hole)
        if repaired:
            self._out.append(Repaired(self._topic, repaired))

    def _add(self, hole: _Hole) -> None:
        if self._ids is not None and hole.ids is not None:
            hole.unseen = self._ids.outstanding(*hole.ids)
        hole.size = self._left(hole)
        self._holes.append(hole)
        if not self._rules.is_repairing:
            hole.reason = "repair is off"
            self._drop(hole)
        elif hole.size > self._rules.repair_max:
            hole.reason = f"more than {self._rules.repair_max} messages at once are not repaired"
            self._drop(hole)

    def _span_of(self, head: _Hole, way: str) -> tuple[int, int, list[_Hole]]:
        if way == "trade_id" and head.ids is not None:
            return (*head.ids, [head])
        stream = self._ledger.stream(head.epoch)
        first = stream.next if head.is_probe and stream is not None else head.first
        return first, head.last, [head]

    def _run_of(self, head: _Hole, due: Sequence[_Hole]) -> list[_Hole]:
        """Return the holes that one replay can fill together with the oldest."""
        return [
            hole
            for hole in due
            if hole.epoch == head.epoch
            and not hole.is_probe
            and not hole.cursor
            and hole.ways[hole.way] == "sequence"
            and head.first <= hole.first
            and (hole is head or hole.last - head.first < _HULL_MAX)
        ]

    def _left(self, hole: _Hole) -> int:
        if hole.is_probe:
            return 0
        if hole.epoch:
            missing = self._ledger.missing(hole.epoch, hole.first, hole.last)
            return missing - self._came_otherwise(hole, missing)
        return _size(self._ids.wanted(hole.first, hole.last)) if self._ids is not None else 0

    def _came_otherwise(self, hole: _Hole, missing: int) -> int:
        """Return how many of a hole's trades have come under other stamps, as after a hand-over."""
        if self._ids is None or hole.ids is None:
            return 0
        came = hole.unseen - self._ids.outstanding(*hole.ids)
        return min(missing, max(0, came - (hole.last - hole.first + 1 - missing)))

    def _end_way(self, hole: _Hole, now_ns: int) -> None:
        hole.cursor = 0
        hole.way = (hole.way + 1) % len(hole.ways)
        if hole.way:
            hole.due_ns = now_ns
            return
        hole.failures += 1
        if hole.is_probe and hole.failures >= _PROBES_MAX and hole in self._holes:
            self._holes.remove(hole)
        hole.due_ns = now_ns + min(self._rules.backoff_max_ns, self._rules.backoff_ns << min(hole.failures - 1, 16))

    def _drop(self, hole: _Hole) -> None:
        """Give up: report what is left of a hole."""
        self._holes.remove(hole)
        if hole.is_probe:
            return
        reason = hole.reason or "the log did not have it in time"
        if hole.epoch:
            left = self._left(hole)
            spans = self._ledger.give_up(hole.epoch, hole.first, hole.last, is_reported=not hole.is_quiet)
            known = self._ids.lost.count(*hole.ids) if self._ids is not None and hole.ids is not None else 0
            count = left - known
            self._mark_lost(hole, count)
            self._report(hole, count, spans, reason)
        elif self._ids is not None:
            spans = [s for w in self._ids.wanted(hole.first, hole.last) for s in self._ids.lost.absent(*w)]
            for span in spans:
                self._ids.lost.add_span(*span)
            self._report(hole, _size(spans), (), reason)
        if hole.ids is not None:
            self.lost_ids.append(hole.ids)

    def _mark_lost(self, hole: _Hole, count: int) -> None:
        """Where it is plain which trades the lost messages were, no other hole may report them again."""
        if self._ids is None or hole.ids is None or hole.is_quiet:
            return
        spans = [s for w in self._ids.wanted(*hole.ids) for s in self._ids.lost.absent(*w)]
        if _size(spans) <= count:
            for span in spans:
                self._ids.lost.add_span(*span)

    def _report(self, hole: _Hole, count: int, sequences: Sequence[Span], reason: str) -> None:
        if count <= 0 or hole.is_quiet:
            return
        self._counters.lost += count
        ids = ("", "") if hole.ids is None else (str(hole.ids[0]), str(hole.ids[1]))
        span = (sequences[0][0], sequences[-1][1]) if sequences else (0, 0)
        self._out.append(Loss(self._topic, count, hole.epoch, *span, *ids, reason))


def _size(spans: Sequence[Span]) -> int:
    return sum(last - first + 1 for first, last in spans)
