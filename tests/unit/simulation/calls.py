"""Calls to shapes without a socket."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ingestors.simulation.answers import Answer, Call, RefusedCall, RestShape
from ingestors.simulation.faults import Fault
from relay.protocol.times import parse_iso_ns

NOW_NS = parse_iso_ns("2026-03-04T12:34:56.789Z")


def ask(
    shape: RestShape,
    path: str,
    *,
    parameters: Mapping[str, object] | None = None,
    parts: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    faults: tuple[Fault, ...] = (),
    now_ns: int = NOW_NS,
) -> Answer:
    """Return the answer of one handler, refusals included; the path is the route's template."""
    call = Call(
        path=path.format(**(parts or {})),
        now_ns=now_ns,
        wall_ns=now_ns,
        parameters={name: str(value) for name, value in (parameters or {}).items()},
        parts=parts or {},
        headers=headers or {},
        faults=faults,
    )
    try:
        return shape.routes()[path](call)
    except RefusedCall as refused:
        return refused.answer


def value_of(answer: Answer) -> Any:
    """Return the answer's JSON with exact numbers."""
    return json.loads(answer.body, parse_float=Decimal)
