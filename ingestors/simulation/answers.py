"""A request as a shape sees it, and its answer: plain values, so that every rule is tried without a socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import msgspec

from ingestors.simulation.faults import Fault, FaultKind
from ingestors.simulation.records import Candle, Trade, Visible

__all__ = ["JSON", "Answer", "Call", "Handler", "RefusedCall", "RestShape", "bent", "json_answer"]

JSON = "application/json"
OFF_GRID_NS = 28_115_000_000
RowT = TypeVar("RowT", Candle, Trade)


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        path: below the exchange's base.
        parameters: of the query.
        parts: named parts of the path.
        headers: by lower-case name.
        now_ns: the exchange's time.
        wall_ns: real time, by which rate limits run.
        faults: what happens to it.
    """

    path: str
    now_ns: int
    wall_ns: int
    parameters: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    faults: Sequence[Fault] = ()

    @property
    def visible(self) -> Visible:
        """What exists at the exchange's time, that nanosecond included."""
        return Visible(self.now_ns + 1)

    def fault(self, kind: FaultKind) -> Fault | None:
        """Return the fault of a kind that happens to this call."""
        return next((fault for fault in self.faults if fault.kind == kind), None)

    @property
    def ignores_start(self) -> bool:
        """Whether the endpoint behaves as if no start had been given."""
        return self.fault(FaultKind.IGNORE_START) is not None


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON


class RefusedCall(Exception):  # noqa: N818 - a way out of a handler, not a failure of the program
    """Leaves a handler with an answer that refuses the call."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


Handler = Callable[[Call], Answer]


class RestShape(Protocol):
    """The REST side of one exchange; a WebSocket side stands beside it over the same markets."""

    @property
    def name(self) -> str:
        """The exchange's name, also the first part of its base path."""

    def routes(self) -> Mapping[str, Handler]:
        """Return the handlers by path below the base; ``{product}`` names a part."""

    def admit(self, call: Call) -> Answer | None:
        """Count the call against the rate limits; return the refusal when they are exceeded."""

    def headers(self) -> Mapping[str, str]:
        """Return headers that every answer carries."""

    def failure(self, status: int, *, code: int | str | None = None, message: str | None = None) -> Answer:
        """Return an error in the exchange's shape; status 0 takes its usual one."""


def json_answer(value: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a value as JSON."""
    return Answer(status, msgspec.json.encode(value), headers or {})


def bent(rows: list[RowT], call: Call) -> list[RowT]:
    """Return rows with the call's row faults done to them: emptied, with a hole, off the grid, repeated."""
    for fault in call.faults:
        if fault.kind == FaultKind.EMPTY:
            return []
        if fault.kind == FaultKind.HOLE:
            rows = _without(rows, fault)
        elif fault.kind == FaultKind.OFF_GRID:
            rows = [_shifted(row) for row in rows]
        elif fault.kind == FaultKind.DUPLICATES:
            rows = [copy for n, row in enumerate(rows) for copy in ([row, row] if n % 10 == 0 else [row])]
    return rows


def _without(rows: list[RowT], fault: Fault) -> list[RowT]:
    if fault.start_ns is None or fault.end_ns is None:
        third = max(len(rows) // 3, 1)
        return rows[:third] + rows[2 * third :]
    return [row for row in rows if not fault.start_ns <= _time_ns(row) < fault.end_ns]


def _time_ns(row: Candle | Trade) -> int:
    return row.start_ns if isinstance(row, Candle) else row.time_ns


def _shifted(row: RowT) -> RowT:
    return replace(row, start_ns=row.start_ns + OFF_GRID_NS) if isinstance(row, Candle) else row
