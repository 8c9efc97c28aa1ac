"""Executes commands: changes are committed together, then messages go out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from google.protobuf.message import Message

from relay.observability import Counters
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import encode
from relay.protocol.v1 import request_pb2, trigger_pb2
from relay.transport import SendOutcome, Socket, send
from spark_jobs.manager.engine.commands import (
    Answer,
    Command,
    MarkPublished,
    Publish,
    PublishMarket,
    SendWork,
    TellTrigger,
)
from spark_jobs.manager.ports import JobStore
from spark_jobs.manager.publisher import Publisher

__all__ = ["CommandExecutor"]

_UNSTORED = "the request could not be stored and is forgotten; free some disk space at the manager and submit it again"
_DURABLE_ACKS = (trigger_pb2.CEPTriggerAck.REGISTERED, trigger_pb2.CEPTriggerAck.CANCELLED)


class CommandExecutor:
    """The one place where commands become storage and messages.

    Args:
        store: job table.
        requests: ROUTER towards relays.
        work: ROUTER towards ingestors.
        publisher: of outcomes.
        tell_trigger: passes what the triggers job must know to the event log; never waits.
        counters: of the process.
    """

    def __init__(
        self,
        store: JobStore,
        *,
        requests: Socket,
        work: Socket,
        publisher: Publisher,
        tell_trigger: Callable[[str, bytes | None], None],
        counters: Counters,
    ) -> None:
        self._store = store
        self._requests = requests
        self._work = work
        self._publisher = publisher
        self._tell_trigger = tell_trigger
        self._counters = counters
        self._published: list[str] = []

    def execute(self, commands: Sequence[Command], *, now_ns: int) -> list[SendWork]:
        """Commit, then send; return the DataRequests that reached nobody.

        Raises:
            StorageError: nothing was committed and nothing was sent.
        """
        changes = [c for c in commands if not isinstance(c, Answer | SendWork | Publish | PublishMarket | TellTrigger)]
        if changes:
            self._store.commit(changes)
        failed: list[SendWork] = []
        for command in commands:
            if isinstance(command, Answer):
                self.answer(command)
            elif isinstance(command, Publish):
                self.publish(command, now_ns=now_ns)
            elif isinstance(command, PublishMarket):
                self._publisher.publish(command.topic.encode(), encode(command.message)[1], now_ns=now_ns)
            elif isinstance(command, TellTrigger):
                self._tell_trigger(command.trigger_id, command.definition)
            elif isinstance(command, SendWork) and not self._send_work(command) and command.attempt:
                failed.append(command)
        return failed

    def refuse(self, commands: Sequence[Command]) -> None:
        """Answer after a failed commit: what would have said that something is stored says that it is not."""
        for command in commands:
            if isinstance(command, Answer):
                self.answer(Answer(command.routing, _refusal(command.message)))

    def answer(self, answer: Answer) -> None:
        """Send a reply; a relay that is gone is counted, its client asks again."""
        outcome = send(self._requests, [*answer.routing, *encode(answer.message)])
        self._counters.add("manager.replies.sent" if outcome is SendOutcome.SENT else "manager.replies.dropped")

    def publish(self, command: Publish, *, now_ns: int) -> None:
        """Publish an outcome when somebody listens; else it waits in the outbox for a subscription."""
        outcome = command.outcome
        if not self._publisher.is_heard(outcome.topic):
            self._counters.add("manager.outcomes.unheard")
            return
        message = request_pb2.HistoryReadyNotification()
        self._publisher.publish_notification(outcome.topic, outcome.notification, message, now_ns=now_ns)
        self._counters.add("manager.outcomes.published")
        self._published.append(outcome.request_id)

    def take_published(self, *, now_ns: int) -> list[MarkPublished]:
        """Return the change that notes what was published since the last call."""
        if not self._published:
            return []
        mark = MarkPublished(tuple(self._published), now_ns)
        self._published.clear()
        return [mark]

    def _send_work(self, command: SendWork) -> bool:
        if not command.route:
            return True
        outcome = send(self._work, [*command.route, *encode(command.message)])
        self._counters.add(f"manager.work.{outcome.value}")
        return outcome is SendOutcome.SENT


def _refusal(message: Message) -> Message:
    if isinstance(message, request_pb2.SubmitResponse) and message.status == request_pb2.SubmitResponse.QUEUED:
        return request_pb2.SubmitResponse(
            request_id=message.request_id,
            status=request_pb2.SubmitResponse.ERROR,
            error_code=ErrorCode.STORAGE,
            error_message=_UNSTORED,
        )
    if isinstance(message, trigger_pb2.CEPTriggerAck) and message.status in _DURABLE_ACKS:
        return request_pb2.SubmitResponse(
            status=request_pb2.SubmitResponse.ERROR, error_code=ErrorCode.STORAGE, error_message=_UNSTORED
        )
    if isinstance(message, request_pb2.SymbolReply) and message.status == request_pb2.SymbolReply.PENDING:
        return request_pb2.SymbolReply(
            status=request_pb2.SymbolReply.ERROR, error_code=ErrorCode.STORAGE, error_message=_UNSTORED
        )
    return message
