"""Questions in flight and requests whose end is awaited.

Whatever is lost or answered "try again" goes out again with the same request_id; a submission whose answer did not
come is looked for by a status query, so that nothing is ever fetched twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import Message

from relay.errors import RelayError, RetryableError
from relay.protocol.codes import ErrorCode
from relay.protocol.topics import request_topic, response_topic
from relay.protocol.v1 import request_pb2
from relay_client.engine.answers import (
    StatusVerdict,
    SubmitVerdict,
    error_for,
    is_away,
    judge_status,
    judge_submit,
)
from relay_client.engine.commands import Command, Fail, Resolve, Send, SessionTimes

__all__ = ["NOBODY", "RequestBook"]

NOBODY = 0
"""Key of questions that the engine asks for itself."""
_CORRELATIONS = 2**32
_Submit = request_pb2.SubmitHistoricalRequest
_Query = request_pb2.RequestStatusQuery


@dataclass(slots=True)
class _Ask:
    """A question; ``sent`` counts transmissions without an answer."""

    key: int
    message: Message
    deadline_ns: int
    due_ns: int
    sent: int = 0
    failures: int = 0
    last_text: str = ""

    @property
    def request_id(self) -> str:
        return str(getattr(self.message, "request_id", ""))

    def next_message(self) -> Message:
        if isinstance(self.message, _Submit) and self.sent:
            return _Query(request_id=self.message.request_id)
        return self.message


@dataclass(slots=True)
class _Watch:
    key: int
    request_id: str
    deadline_ns: int
    query_due_ns: int
    submitted: request_pb2.SubmitHistoricalRequest | None


class RequestBook:
    """All questions and watches of one client."""

    def __init__(self, times: SessionTimes) -> None:
        self._times = times
        self._asks: dict[int, _Ask] = {}
        self._watches: dict[int, _Watch] = {}
        self._correlation = 0

    def due_ns(self) -> int | None:
        """Return when the next tick matters; None when nothing is in flight."""
        times = [t for a in self._asks.values() for t in (a.due_ns, a.deadline_ns)]
        times += [t for w in self._watches.values() for t in (w.query_due_ns, w.deadline_ns)]
        return min(times, default=None)

    def ask(self, key: int, message: Message, *, deadline_ns: int, now_ns: int) -> None:
        """Put a question; its first transmission is at the next tick."""
        self._correlation = self._correlation % (_CORRELATIONS - 1) + 1
        self._asks[self._correlation] = _Ask(key, message, deadline_ns, now_ns)

    def watch(
        self,
        key: int,
        request_id: str,
        *,
        submitted: request_pb2.SubmitHistoricalRequest | None,
        deadline_ns: int,
        now_ns: int,
    ) -> None:
        """Await the end of a request; with ``submitted``, one that is being submitted right now."""
        query_due_ns = now_ns if submitted is None else now_ns + self._times.status_ns
        self._watches[key] = _Watch(key, request_id, deadline_ns, query_due_ns, submitted)

    def forget(self, key: int) -> None:
        """Nobody waits under this key any more."""
        self._watches.pop(key, None)
        self._asks = {c: a for c, a in self._asks.items() if a.key != key}

    def on_connected_anew(self, now_ns: int) -> None:
        """Answers and notifications may have been lost: ask again at the next tick."""
        for watch in self._watches.values():
            watch.query_due_ns = now_ns
        for ask in self._asks.values():
            ask.due_ns = now_ns if ask.sent else ask.due_ns

    def on_unsent(self, correlation: int, now_ns: int) -> None:
        """A message could not go out; it counts as not sent."""
        ask = self._asks.get(correlation)
        if ask is not None:
            ask.sent -= 1
            ask.due_ns = now_ns + self._times.unsent_ns

    def on_tick(self, now_ns: int, *, in_force: bool) -> list[Command]:
        """Send what is due, end what is late. What must not miss its notification waits for the barrier."""
        commands: list[Command] = []
        for watch in list(self._watches.values()):
            commands += self._tick_watch(watch, now_ns)
        awaited = {watch.request_id for watch in self._watches.values()}
        self._asks = {c: a for c, a in self._asks.items() if a.key != NOBODY or a.request_id in awaited}
        for correlation, ask in list(self._asks.items()):
            if now_ns >= ask.deadline_ns:
                del self._asks[correlation]
                commands += _failed(ask.key, _unanswered(ask))
            elif now_ns >= ask.due_ns and (in_force or isinstance(ask.message, request_pb2.Probe)):
                commands.append(Send(correlation, ask.next_message()))
                ask.sent += 1
                ask.due_ns = now_ns + self._times.reply_ns
        return commands

    def on_reply(self, correlation: int, answer: Message, now_ns: int) -> list[Command]:
        """Handle an answer; one that came too late or twice is dropped."""
        ask = self._asks.get(correlation)
        if ask is None:
            return []
        if is_away(answer):
            return self._again(ask, answer, now_ns)
        if isinstance(ask.message, _Submit):
            return self._on_submitted(correlation, ask, ask.message, answer, now_ns)
        del self._asks[correlation]
        if isinstance(answer, request_pb2.SubmitResponse):
            return self._refused(ask, error_for(answer.error_code, answer.error_message))
        if ask.key == NOBODY and isinstance(answer, request_pb2.HistoryReadyNotification):
            return self._on_status(ask.request_id, answer, now_ns)
        return [Resolve(ask.key, answer)]

    def on_ended(self, notification: request_pb2.HistoryReadyNotification) -> list[Command]:
        """Handle the end of a request; a repeated notification finds nobody waiting."""
        if notification.status == request_pb2.HistoryReadyNotification.PENDING:
            return []
        keys = [w.key for w in self._watches.values() if w.request_id == notification.request_id]
        for key in keys:
            del self._watches[key]
        return [Resolve(key, notification) for key in keys]

    def _tick_watch(self, watch: _Watch, now_ns: int) -> list[Command]:
        if now_ns >= watch.deadline_ns:
            del self._watches[watch.key]
            return [Fail(watch.key, _still_running(watch.request_id))]
        if now_ns >= watch.query_due_ns:
            watch.query_due_ns = now_ns + self._times.status_ns
            if not any(ask.request_id == watch.request_id for ask in self._asks.values()):
                query = _Query(request_id=watch.request_id)
                self.ask(NOBODY, query, deadline_ns=watch.deadline_ns, now_ns=now_ns)
        return []

    def _again(self, ask: _Ask, answer: Message, now_ns: int) -> list[Command]:
        ask.failures += 1
        ask.last_text = str(getattr(answer, "error_message", ""))
        # A submission that was said not to be accepted is submitted again, not looked for.
        ask.sent = 0
        ask.due_ns = now_ns + self._times.backoff(ask.failures)
        return []

    def _on_submitted(
        self, correlation: int, ask: _Ask, message: request_pb2.SubmitHistoricalRequest, answer: Message, now_ns: int
    ) -> list[Command]:
        if isinstance(answer, request_pb2.SubmitResponse):
            del self._asks[correlation]
            if judge_submit(answer) is SubmitVerdict.REFUSED:
                return self._refused(ask, error_for(answer.error_code, answer.error_message))
            return _resolved(ask.key, answer)
        if not isinstance(answer, request_pb2.HistoryReadyNotification):
            return []
        if judge_status(answer) is StatusVerdict.UNKNOWN:
            ask.sent, ask.due_ns = 0, now_ns
            return []
        del self._asks[correlation]
        return [*_resolved(ask.key, _as_accepted(message)), *self.on_ended(answer)]

    def _on_status(self, request_id: str, answer: request_pb2.HistoryReadyNotification, now_ns: int) -> list[Command]:
        verdict = judge_status(answer)
        if verdict is StatusVerdict.ENDED:
            return self.on_ended(answer)
        if verdict is not StatusVerdict.UNKNOWN:
            return []
        commands: list[Command] = []
        for watch in [w for w in self._watches.values() if w.request_id == request_id]:
            if watch.submitted is None:
                del self._watches[watch.key]
                commands.append(Fail(watch.key, error_for(answer.error_code, answer.error_message)))
            elif not any(ask.request_id == request_id for ask in self._asks.values()):
                # The manager lost its job table: the same request_id makes it the same request.
                self.ask(NOBODY, watch.submitted, deadline_ns=watch.deadline_ns, now_ns=now_ns)
        return commands

    def _refused(self, ask: _Ask, error: RelayError) -> list[Command]:
        if ask.key != NOBODY:
            return [Fail(ask.key, error)]
        keys = [w.key for w in self._watches.values() if w.request_id == ask.request_id]
        for key in keys:
            del self._watches[key]
        return [Fail(key, error) for key in keys]


def _resolved(key: int, message: Message) -> list[Command]:
    return [] if key == NOBODY else [Resolve(key, message)]


def _failed(key: int, error: RelayError) -> list[Command]:
    return [] if key == NOBODY else [Fail(key, error)]


def _as_accepted(message: request_pb2.SubmitHistoricalRequest) -> request_pb2.SubmitResponse:
    """The answer that got lost, as a repeated submission would be answered."""
    topic = response_topic(message.client_id) if message.client_id else request_topic(message.request_id)
    return request_pb2.SubmitResponse(
        request_id=message.request_id, status=request_pb2.SubmitResponse.DUPLICATE, notification_topic=topic
    )


def _unanswered(ask: _Ask) -> RetryableError:
    if ask.failures:
        return RetryableError(
            f"no answer but {ask.last_text!r} until the deadline; is the manager running (relay status)? "
            "Ask again, nothing is fetched twice",
            code=ErrorCode.UNAVAILABLE,
        )
    fate = "did not answer until the deadline" if ask.sent else "could not be asked before the deadline"
    return RetryableError(
        f"the relay {fate}; check its address and that it runs (relay status), or allow more time",
        code=ErrorCode.TIMEOUT,
    )


def _still_running(request_id: str) -> RetryableError:
    return RetryableError(
        f"request {request_id} has not ended by the deadline; it goes on: ask again with a longer timeout, "
        "what has been fetched is not fetched twice",
        code=ErrorCode.TIMEOUT,
    )
