"""What engines return: changes to store first, then messages to send."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from spark_jobs.manager.engine.model import Job, Outcome, RealtimeJob, Request, Route, StoredTrigger

__all__ = [
    "AddJob",
    "AddRequest",
    "Answer",
    "Change",
    "Command",
    "DropRealtime",
    "DropTrigger",
    "EndJob",
    "MarkPublished",
    "Publish",
    "PublishMarket",
    "RealtimeChange",
    "RememberExchange",
    "SaveJob",
    "SaveRealtime",
    "SaveTrigger",
    "SendWork",
    "TellTrigger",
    "TriggerChange",
]


@dataclass(frozen=True, slots=True)
class AddJob:
    """A new job."""

    job: Job


@dataclass(frozen=True, slots=True)
class AddRequest:
    """A new request, attached to an unfinished job."""

    request: Request


@dataclass(frozen=True, slots=True)
class SaveJob:
    """A job's new state."""

    job: Job


@dataclass(frozen=True, slots=True)
class EndJob:
    """A job's end, with the outcome of each of its requests."""

    job: Job
    outcomes: tuple[Outcome, ...]
    ended_ns: int


@dataclass(frozen=True, slots=True)
class MarkPublished:
    """Outcomes went out to a listener."""

    request_ids: tuple[str, ...]
    published_ns: int


@dataclass(frozen=True, slots=True)
class RememberExchange:
    """An exchange was offered for the first time."""

    exchange: str


@dataclass(frozen=True, slots=True)
class SaveRealtime:
    """A live job, new or changed."""

    job: RealtimeJob


@dataclass(frozen=True, slots=True)
class DropRealtime:
    """A live job that nobody has wanted for long."""

    job_id: str


@dataclass(frozen=True, slots=True)
class SaveTrigger:
    """A trigger, new or ended."""

    trigger: StoredTrigger


@dataclass(frozen=True, slots=True)
class DropTrigger:
    """A trigger that ended long ago."""

    trigger_id: str


RealtimeChange = SaveRealtime | DropRealtime
TriggerChange = SaveTrigger | DropTrigger
Change = AddJob | AddRequest | SaveJob | EndJob | MarkPublished | RememberExchange | RealtimeChange | TriggerChange


@dataclass(frozen=True, slots=True)
class Answer:
    """Reply on the request socket, behind the frames that came with the request."""

    routing: Route
    message: Message


@dataclass(frozen=True, slots=True)
class SendWork:
    """Message to an ingestor; ``attempt`` is set for a DataRequest, whose failure frees the job."""

    route: Route
    message: Message
    job_id: str = ""
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Publish:
    """An outcome to publish on its topic."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class PublishMarket:
    """Market data to publish on its topic, with the next stamp of it; the log has it already."""

    topic: str
    message: Message


@dataclass(frozen=True, slots=True)
class TellTrigger:
    """What the triggers job learns of a trigger, through the log; a serialised REGISTER, or None for CANCEL."""

    trigger_id: str
    definition: bytes | None


Command = Change | Answer | SendWork | Publish | PublishMarket | TellTrigger
"""Changes are committed together before anything is sent: what was said can always be read back."""
