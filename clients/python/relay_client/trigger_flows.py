"""What the calls about triggers do, as flows; the sync and the async client run the same ones."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import Message

from relay.engine.patterns import PatternError, check_registration
from relay.errors import PeerError, RelayError, RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.times import TimeUnit
from relay.protocol.topics import TriggerTopic, is_uuid_text
from relay.protocol.v1 import trigger_pb2
from relay_client.arguments import flag, items, seconds, text, whole
from relay_client.buffer import BufferPolicy, ItemBuffer
from relay_client.engine.answers import error_for
from relay_client.engine.trigger_feed import TriggerGroup
from relay_client.flow import Flow, result_of
from relay_client.live import LiveFeed
from relay_client.pattern_builder import Duration, PatternBuilder, milliseconds
from relay_client.session import Session
from relay_client.times import TimeLike, from_ns, parse_time_ns

if TYPE_CHECKING:
    from relay_client.flows import ClientFlows

__all__ = [
    "PatternLike",
    "Trigger",
    "TriggerStream",
    "TriggersLike",
    "cancel",
    "definitions",
    "id_of",
    "new_registration",
    "open_stream",
    "register",
]

PatternLike: TypeAlias = PatternBuilder | trigger_pb2.Pattern
BUFFER_MAX = 10_000
_BUFFER_BOUND = 10_000_000
_TRIGGERS_BOUND = 100_000
_Request, _Ack = trigger_pb2.CEPTriggerRequest, trigger_pb2.CEPTriggerAck


@dataclass(frozen=True, slots=True)
class Trigger:
    """A registered trigger.

    Attributes:
        client_id: owner that another client named at registration, else empty.
        tickers: those that its pattern names, sorted; none when this version refuses a pattern that was registered.
        expires_at_ns: None for never.
        definition: the serialised registration.
    """

    trigger_id: str
    client_id: str
    tickers: tuple[str, ...]
    cooldown_ms: int
    one_shot: bool
    expires_at_ns: int | None
    definition: bytes = field(repr=False)

    @property
    def topic(self) -> str:
        """Topic of its firings."""
        return str(TriggerTopic(self.trigger_id))

    @property
    def expires_at(self) -> datetime | None:
        """When it ends, at microsecond resolution; None for never."""
        return None if self.expires_at_ns is None else from_ns(self.expires_at_ns)

    def pattern(self) -> trigger_pb2.Pattern:
        """Return its pattern."""
        return _Request.FromString(self.definition).pattern

    @classmethod
    def of(cls, message: trigger_pb2.CEPTriggerRequest) -> Trigger:
        """Return the value of a definition."""
        try:
            tickers = check_registration(message).tickers
        except PatternError:
            # Of a manager with other bounds; all the others could not be listed, and this one not be cancelled.
            tickers = ()
        return cls(
            trigger_id=message.trigger_id,
            client_id=message.client_id,
            tickers=tickers,
            cooldown_ms=message.cooldown_ms,
            one_shot=message.one_shot,
            expires_at_ns=message.expires_at or None,
            definition=message.SerializeToString(deterministic=True),
        )


class TriggerStream:
    """Firings of some triggers on their way from the client's thread to a reader; begun when it is made.

    Args:
        flows: of the client.
        trigger_ids: which.
        start_ns: firings from this exchange time on first, out of the log.
        buffer_max: firings that wait for a slow reader.
    """

    def __init__(
        self,
        flows: ClientFlows,
        trigger_ids: Sequence[str],
        *,
        start_ns: int | None = None,
        buffer_max: int = BUFFER_MAX,
    ) -> None:
        self._session: Session = flows.session
        self._topics = [TriggerTopic(trigger_id) for trigger_id in trigger_ids]
        self.buffer = ItemBuffer(buffer_max, BufferPolicy.DROP_OLDEST)
        before = {t: stream for t in trigger_ids if (stream := flows.trigger_streams.pop(t, None)) is not None}
        group = TriggerGroup(began_ns=time.time_ns(), heirs={t: stream.rest for t, stream in before.items()})
        self._feed = LiveFeed(group, self.buffer)
        self._session.follow(self._feed, self._topics, start_ns=start_ns)
        for stream in before.values():
            stream.close()

    def rest(self) -> Iterator[Any]:
        """Yield what nobody has read; called in the client's thread."""
        self._feed.flush()
        while taken := self.buffer.take(timeout_s=0):
            yield from taken

    def close(self) -> None:
        """End it; what is buffered may still be taken."""
        self._session.unfollow(self._feed, self._topics)
        self._session.leave(self._feed)
        self.buffer.close()


TriggersLike: TypeAlias = str | Trigger | Iterable[str | Trigger]


def open_stream(
    flows: ClientFlows, triggers: TriggersLike, start: TimeLike | None, unit: TimeUnit | None, buffer_max: int
) -> TriggerStream:
    """Begin to receive the firings of triggers.

    Raises:
        SettingsError: an argument is wrong.
    """
    one = isinstance(triggers, str | Trigger)
    ids = list(dict.fromkeys(id_of(trigger) for trigger in ([triggers] if one else items("triggers", triggers))))
    if not 1 <= len(ids) <= _TRIGGERS_BOUND:
        raise SettingsError(f"expected 1 to {_TRIGGERS_BOUND} triggers, got {len(ids)}")
    start_ns = None if start is None else parse_time_ns(start, unit=unit, what="start")
    size = whole("buffer_max", buffer_max, low=1, high=_BUFFER_BOUND)
    return TriggerStream(flows, ids, start_ns=start_ns, buffer_max=size)


def new_registration(
    pattern: PatternLike,
    *,
    cooldown: Duration | None,
    one_shot: bool,
    expires: TimeLike | timedelta | None,
    unit: TimeUnit | None,
    trigger_id: str | None,
) -> trigger_pb2.CEPTriggerRequest:
    """Return the checked message.

    Raises:
        SettingsError: an argument is wrong.
        PatternError: the pattern, the cooldown or the expiry is.
    """
    if isinstance(pattern, PatternBuilder):
        built = pattern.build()
    elif isinstance(pattern, trigger_pb2.Pattern):
        built = pattern
    else:
        raise PatternError("pattern", f"expected when(TICKER)…, n_of(…) or a Pattern, got {type(pattern).__name__}")
    request = _Request(
        trigger_id=str(uuid.uuid4()) if trigger_id is None else id_of(trigger_id),
        pattern=built,
        cooldown_ms=0 if cooldown is None else milliseconds("cooldown", cooldown),
        one_shot=flag("one_shot", one_shot),
        expires_at=0 if expires is None else _expiry_ns(expires, unit),
    )
    check_registration(request)
    return request


def register(
    flows: ClientFlows, request: trigger_pb2.CEPTriggerRequest, *, listen: bool, timeout_s: float | None
) -> Flow[Trigger]:
    """Subscribe a trigger's firings, then register it; asked again until it is answered, for it is the same trigger."""
    trigger = Trigger.of(request)
    deadline_s = _deadline_s(flows, timeout_s)
    yield from flows.check_tickers(trigger.tickers, timeout_s=_left_s(deadline_s))
    before = flows.trigger_streams.get(trigger.trigger_id)
    stream = TriggerStream(flows, [trigger.trigger_id]) if listen and before is None else None
    try:
        answer = yield from _ask(flows, request, deadline_s)
        if answer.status != _Ack.REGISTERED:
            raise _refusal(answer)
    except BaseException as error:
        if stream is not None:
            stream.close()
        if isinstance(error, RetryableError):
            again = f"it may be registered all the same: register again with trigger_id={trigger.trigger_id!r}"
            raise RetryableError(f"{error}; {again}", code=error.code) from error
        raise
    if stream is not None:
        flows.trigger_streams[trigger.trigger_id] = stream
    return trigger


def cancel(flows: ClientFlows, trigger_id: str, *, timeout_s: float | None) -> Flow[bool]:
    """Cancel a trigger; whether there was one."""
    request = _Request(action=_Request.CANCEL, trigger_id=trigger_id)
    answer = yield from _ask(flows, request, _deadline_s(flows, timeout_s))
    if answer.status not in (_Ack.CANCELLED, _Ack.NOT_FOUND):
        raise _refusal(answer)
    stream = flows.trigger_streams.pop(trigger_id, None)
    if stream is not None:
        stream.close()
    return answer.status == _Ack.CANCELLED


def definitions(flows: ClientFlows, client_id: str, *, timeout_s: float | None) -> Flow[list[Trigger]]:
    """Ask for all definitions, answer by answer."""
    deadline_s = _deadline_s(flows, timeout_s)
    found: list[Trigger] = []
    request = _Request(action=_Request.LIST, client_id=text("client_id", client_id))
    while True:
        answer = yield from _ask(flows, request, deadline_s)
        if answer.status != _Ack.LISTED:
            raise _refusal(answer)
        if not answer.definitions:
            return found
        found += map(Trigger.of, answer.definitions)
        if answer.definitions[-1].trigger_id <= request.trigger_id:
            raise PeerError("expected definitions ascending by trigger_id; is the manager of another version?")
        request.trigger_id = answer.definitions[-1].trigger_id


def id_of(trigger: object) -> str:
    """Return a trigger's id.

    Raises:
        SettingsError: INVALID_REQUEST_ID.
    """
    trigger_id = trigger.trigger_id if isinstance(trigger, Trigger) else trigger
    if not isinstance(trigger_id, str) or not is_uuid_text(trigger_id):
        raise SettingsError(
            f"expected a Trigger or its id, a lower-case UUID of 36 characters, got {trigger_id!a:.80}",
            code=ErrorCode.INVALID_REQUEST_ID,
        )
    return trigger_id


def _expiry_ns(expires: TimeLike | timedelta, unit: TimeUnit | None) -> int:
    if isinstance(expires, timedelta):
        microseconds = expires // timedelta(microseconds=1)
        if microseconds <= 0:
            raise SettingsError(f"expected expires as a time to come, got {expires}", code=ErrorCode.INVALID_TIME)
        return time.time_ns() + microseconds * 1_000
    return parse_time_ns(expires, unit=unit, what="expires")


def _deadline_s(flows: ClientFlows, timeout_s: float | None) -> float:
    flows.session.check_usable()
    return time.monotonic() + seconds("timeout", timeout_s, flows.settings.request_timeout_seconds)


def _left_s(deadline_s: float) -> float:
    return max(0.0, deadline_s - time.monotonic())


def _ask(flows: ClientFlows, request: Message, deadline_s: float) -> Flow[trigger_pb2.CEPTriggerAck]:
    pending = flows.session.ask(request, timeout_s=_left_s(deadline_s))
    try:
        answer = yield from result_of(pending.future)
    finally:
        flows.session.forget(pending)
    if not isinstance(answer, _Ack):
        raise PeerError(f"expected a CEPTriggerAck, got a {type(answer).__name__}; is the relay of another version?")
    return answer


def _refusal(answer: trigger_pb2.CEPTriggerAck) -> RelayError:
    """Return the error of a refusal, whose text begins with its code."""
    code, colon, reason = answer.error_message.partition(": ")
    if not colon or code not in set(ErrorCode):
        return PeerError(answer.error_message or f"refused with {_Ack.Status.Name(answer.status)}")
    if code == ErrorCode.INVALID_PATTERN:
        place, _, why = reason.partition(": ")
        return PatternError(place, why)
    return error_for(code, reason)
