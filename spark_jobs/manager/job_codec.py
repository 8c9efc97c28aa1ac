"""Jobs and requests as JSON text for the store; whole numbers stay whole."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from relay.protocol.ranges import Range
from relay.protocol.v1 import trigger_pb2
from spark_jobs.manager.engine.model import (
    Assignment,
    Job,
    JobKind,
    JobState,
    RealtimeJob,
    RealtimeState,
    Request,
    StoredTrigger,
    TriggerState,
)

__all__ = [
    "decode_job",
    "decode_realtime",
    "decode_request",
    "decode_trigger",
    "encode_job",
    "encode_realtime",
    "encode_request",
]

T = TypeVar("T")


def encode_job(job: Job) -> str:
    """Return a job as text."""
    return json.dumps(asdict(job), separators=(",", ":"))


def decode_job(text: str) -> Job:
    """Return the job of a text."""
    values: dict[str, Any] = json.loads(text)
    assignment = values["assignment"]
    return _sound(
        Job(
            **values
            | {
                "kind": JobKind(values["kind"]),
                "state": JobState(values["state"]),
                "fetch": Range(**values["fetch"]),
                "stored": tuple(Range(**r) for r in values["stored"]),
                "logged": tuple(Range(**r) for r in values["logged"]),
                "assignment": Assignment(**assignment) if assignment else None,
            }
        )
    )


def encode_request(request: Request) -> str:
    """Return a request as text."""
    return json.dumps(asdict(request), separators=(",", ":"))


def decode_request(text: str) -> Request:
    """Return the request of a text."""
    return _sound(Request(**json.loads(text)))


def encode_realtime(job: RealtimeJob) -> str:
    """Return a live job as text."""
    return json.dumps(asdict(job), separators=(",", ":"))


def decode_realtime(text: str) -> RealtimeJob:
    """Return the live job of a text."""
    values: dict[str, Any] = json.loads(text)
    assignment = values["assignment"]
    return _sound(
        RealtimeJob(
            **values
            | {
                "state": RealtimeState(values["state"]),
                "assignment": Assignment(**assignment) if assignment else None,
            }
        )
    )


def decode_trigger(trigger_id: str, definition: bytes, registered_ns: int, state: str, ended_ns: int) -> StoredTrigger:
    """Return the trigger of a row.

    Raises:
        ValueError: the definition is no request, or that of another trigger.
    """
    try:
        named = trigger_pb2.CEPTriggerRequest.FromString(definition).trigger_id
    except DecodeError as error:
        raise ValueError(f"the definition does not decode: {error}") from error
    if named != trigger_id:
        raise ValueError(f"expected the definition of {trigger_id}, got that of {named[:80]!r}")
    return _sound(StoredTrigger(trigger_id, definition, registered_ns, TriggerState(state), ended_ns))


def _sound(value: T) -> T:
    """Return the value, or raise ValueError when a whole number or a text in it is something else."""
    for field in fields(value):  # type: ignore[arg-type]
        expected = {"int": int, "str": str, "bool": bool}.get(str(field.type))
        found = getattr(value, field.name)
        if expected is not None and type(found) is not expected:
            raise ValueError(f"expected {field.type} in {field.name}, got {found!r}")
    return value
