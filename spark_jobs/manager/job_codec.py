"""Jobs and requests as JSON text for the store; whole numbers stay whole."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from relay.protocol.ranges import Range
from spark_jobs.manager.engine.model import (
    Assignment,
    Job,
    JobKind,
    JobState,
    RealtimeJob,
    RealtimeState,
    Request,
)

__all__ = ["decode_job", "decode_realtime", "decode_request", "encode_job", "encode_realtime", "encode_request"]


def encode_job(job: Job) -> str:
    """Return a job as text."""
    return json.dumps(asdict(job), separators=(",", ":"))


def decode_job(text: str) -> Job:
    """Return the job of a text."""
    values: dict[str, Any] = json.loads(text)
    assignment = values["assignment"]
    return Job(
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


def encode_request(request: Request) -> str:
    """Return a request as text."""
    return json.dumps(asdict(request), separators=(",", ":"))


def decode_request(text: str) -> Request:
    """Return the request of a text."""
    return Request(**json.loads(text))


def encode_realtime(job: RealtimeJob) -> str:
    """Return a live job as text."""
    return json.dumps(asdict(job), separators=(",", ":"))


def decode_realtime(text: str) -> RealtimeJob:
    """Return the live job of a text."""
    values: dict[str, Any] = json.loads(text)
    assignment = values["assignment"]
    return RealtimeJob(
        **values
        | {
            "state": RealtimeState(values["state"]),
            "assignment": Assignment(**assignment) if assignment else None,
        }
    )
