"""Registered triggers: what is kept, listed, wanted live and told to the triggers job; pure.

::

    (unknown) ──REGISTER──► ACTIVE ──CANCEL────────────► CANCELLED ──REGISTER──► ACTIVE
                              ├──one-shot has fired────► FIRED ──CANCEL──► CANCELLED
                              └──expired, and a grace──► EXPIRED

Ended ones are remembered for a while: a REGISTER whose answer was lost is not a second trigger, and a CANCEL that the
job may have missed is told again. What fires and expires the job ends by itself; here it is no longer told and wanted.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice

from google.protobuf.message import DecodeError

from relay.engine.patterns import PatternError, check_registration
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.tickers import parse_ticker
from relay.protocol.topics import is_uuid_text, trigger_topic
from relay.protocol.v1 import trigger_pb2
from spark_jobs.manager.engine.commands import Answer, Command, DropTrigger, SaveTrigger, TellTrigger
from spark_jobs.manager.engine.exchange_schedule import is_due
from spark_jobs.manager.engine.model import Route, StoredTrigger, TriggerState

__all__ = ["LIST_MAX", "TRIGGERS_MAX", "TriggerBook", "TriggerRules"]

TRIGGERS_MAX = 20_000
LIST_MAX = 1_000
_LIST_BYTES_MAX = 800_000
"""Of the definitions in one answer: a frame of the request path holds a megabyte."""
_EXPIRIES_SPARE = 1_000
_Request, _Ack = trigger_pb2.CEPTriggerRequest, trigger_pb2.CEPTriggerAck
_State = TriggerState
_COMPARED = ("client_id", "pattern", "cooldown_ms", "one_shot", "expires_at")


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """Bounds of triggers; times in nanoseconds.

    Attributes:
        triggers_max: active at once; as many ended ones are remembered.
        tell_ns: how often everything is told again; the log forgets.
        grace_ns: so long after its expiry a trigger is still wanted and told: what happened before may come late.
        keep_ns: how long an ended one is remembered.
    """

    triggers_max: int = TRIGGERS_MAX
    tell_ns: int = 3_600 * NANOSECONDS
    grace_ns: int = 600 * NANOSECONDS
    keep_ns: int = 7 * 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class _Active:
    """An active trigger, with what is asked of it often."""

    stored: StoredTrigger
    client_id: str
    one_shot: bool
    expires_ns: int
    tickers: tuple[str, ...]


class TriggerBook:
    """All triggers of one manager.

    Args:
        rules: bounds.
        exchanges: known ones; a trigger on any other is refused.
    """

    def __init__(self, rules: TriggerRules, *, exchanges: set[str]) -> None:
        self._rules, self._exchanges = rules, exchanges
        self._active: dict[str, _Active] = {}
        self._ids: list[str] = []
        self._ended: dict[str, StoredTrigger] = {}
        self._holders: dict[str, int] = {}
        self._tickers: frozenset[str] | None = frozenset()
        self._expiries: list[tuple[int, str]] = []
        self._fired: set[str] = set()
        self._tell_due_ns = 0
        self._has_demand_changed = False

    def __len__(self) -> int:
        return len(self._active)

    @property
    def tickers(self) -> frozenset[str]:
        """Tickers that active triggers need live, sorted out of all their patterns."""
        if self._tickers is None:
            self._tickers = frozenset(self._holders)
        return self._tickers

    def take_demand_change(self) -> bool:
        """Return whether the tickers may have changed since the last call."""
        changed, self._has_demand_changed = self._has_demand_changed, False
        return changed

    def restore(self, triggers: Iterable[StoredTrigger]) -> None:
        """Take over what was stored; everything is told at the next tick."""
        for trigger in sorted(triggers, key=lambda t: (t.ended_ns, t.trigger_id)):
            if trigger.state is _State.ACTIVE:
                self._activate(trigger, _Request.FromString(trigger.definition))
            else:
                self._ended[trigger.trigger_id] = trigger

    def handle(self, message: trigger_pb2.CEPTriggerRequest, routing: Route, *, now_ns: int) -> list[Command]:
        """Return the commands for one request; whatever it was, there is one CEPTriggerAck."""
        try:
            match message.action:
                case _Request.REGISTER:
                    return self._register(message, routing, now_ns=now_ns)
                case _Request.CANCEL:
                    return self._cancel(message, routing, now_ns=now_ns)
                case _Request.LIST:
                    return [Answer(routing, self._list(message))]
            raise PeerError(f"expected action 0 REGISTER, 1 CANCEL or 2 LIST, got {message.action}")
        except PeerError as error:
            text = f"{error.code}: {error}"
            refused = _Ack(trigger_id=message.trigger_id[:80], status=_Ack.INVALID, error_message=text)
            return [Answer(routing, refused)]

    @property
    def one_shot_since_ns(self) -> int | None:
        """When the oldest active one-shot was registered; None without any."""
        return min((a.stored.registered_ns for a in self._active.values() if a.one_shot), default=None)

    def mark_fired(self, trigger_id: str, at_ns: int | None = None) -> None:
        """Note that a trigger has fired: a one-shot ends at the next tick.

        Args:
            trigger_id: of the trigger.
            at_ns: when the firing was made or logged; one from before the registration was of an earlier trigger of
                this id. None when that is not known: it counts as now.
        """
        active = self._active.get(trigger_id)
        if active is not None and active.one_shot and (at_ns is None or at_ns >= active.stored.registered_ns):
            self._fired.add(trigger_id)

    def on_tick(self, now_ns: int) -> list[Command]:
        """End what has fired or expired; tell everything again when it is time."""
        commands: list[Command] = []
        fired, self._fired = self._fired, set()
        for trigger_id in sorted(fired & self._active.keys()):
            commands += self._end(trigger_id, _State.FIRED, now_ns=now_ns)
        while self._expiries and self._expiries[0][0] <= now_ns:
            due_ns, trigger_id = heapq.heappop(self._expiries)
            active = self._active.get(trigger_id)
            if active is not None and active.expires_ns + self._rules.grace_ns == due_ns:
                commands += self._end(trigger_id, _State.EXPIRED, now_ns=now_ns)
        if is_due(self._tell_due_ns, now_ns=now_ns, most_ns=self._rules.tell_ns):
            self._tell_due_ns = now_ns + self._rules.tell_ns
            commands += self._forget(now_ns)
            commands += [TellTrigger(t, None) for t, ended in self._ended.items() if ended.state is _State.CANCELLED]
            commands += [TellTrigger(t, active.stored.definition) for t, active in self._active.items()]
        return commands

    def _register(self, message: trigger_pb2.CEPTriggerRequest, routing: Route, *, now_ns: int) -> list[Command]:
        trigger_id = _checked_id("trigger_id", message.trigger_id, ErrorCode.INVALID_REQUEST_ID)
        if message.client_id:
            _checked_id("client_id", message.client_id, ErrorCode.INVALID_CLIENT_ID)
        definition = _definition(message)
        registered = Answer(
            routing, _Ack(trigger_id=trigger_id, status=_Ack.REGISTERED, topic=trigger_topic(trigger_id))
        )
        active, ended = self._active.get(trigger_id), self._ended.get(trigger_id)
        known = active.stored if active is not None else ended
        if known is not None and known.state in (_State.ACTIVE, _State.FIRED):
            _check_same(message, definition, known)
            return [registered]
        trigger = StoredTrigger(trigger_id, definition, now_ns)
        self._check_admission(message, now_ns=now_ns)
        self._ended.pop(trigger_id, None)
        self._activate(trigger, message)
        return [SaveTrigger(trigger), TellTrigger(trigger_id, definition), registered]

    def _check_admission(self, message: trigger_pb2.CEPTriggerRequest, *, now_ns: int) -> None:
        for ticker in check_registration(message).tickers:
            if parse_ticker(ticker).exchange not in self._exchanges:
                known = ", ".join(sorted(self._exchanges))
                raise PeerError(f"{ticker}: expected an exchange of {known}", code=ErrorCode.UNKNOWN_EXCHANGE)
        if message.expires_at and message.expires_at <= now_ns:
            raise PatternError("expires_at", f"expected a time after now ({now_ns}), got {message.expires_at}")
        if len(self._active) >= self._rules.triggers_max:
            raise PeerError(
                f"{self._rules.triggers_max} triggers are registered already; cancel some, or raise the manager's "
                "triggers_max",
                code=ErrorCode.OVERLOADED,
            )

    def _cancel(self, message: trigger_pb2.CEPTriggerRequest, routing: Route, *, now_ns: int) -> list[Command]:
        trigger_id = _checked_id("trigger_id", message.trigger_id, ErrorCode.INVALID_REQUEST_ID)
        ended = self._ended.get(trigger_id)
        cancelled = Answer(routing, _Ack(trigger_id=trigger_id, status=_Ack.CANCELLED))
        if trigger_id in self._active or (ended is not None and ended.state is not _State.CANCELLED):
            return [*self._end(trigger_id, _State.CANCELLED, now_ns=now_ns), cancelled]
        if ended is not None:
            return [cancelled]
        text = f"no trigger {trigger_id} is registered; LIST names those that are"
        return [Answer(routing, _Ack(trigger_id=trigger_id, status=_Ack.NOT_FOUND, error_message=text))]

    def _list(self, message: trigger_pb2.CEPTriggerRequest) -> trigger_pb2.CEPTriggerAck:
        """Answer what comes after ``trigger_id``, ascending by id; the asker goes on until an answer is empty."""
        if message.client_id:
            _checked_id("client_id", message.client_id, ErrorCode.INVALID_CLIENT_ID)
        if message.trigger_id:
            _checked_id("trigger_id", message.trigger_id, ErrorCode.INVALID_REQUEST_ID)
        found, size = _Ack(trigger_id=message.trigger_id, status=_Ack.LISTED), 0
        for trigger_id in islice(self._ids, bisect_right(self._ids, message.trigger_id), None):
            active = self._active[trigger_id]
            if message.client_id and active.client_id != message.client_id:
                continue
            size += len(active.stored.definition) + 2 * len(trigger_id)
            if found.active and (len(found.active) >= LIST_MAX or size > _LIST_BYTES_MAX):
                break
            found.active.append(trigger_id)
            found.definitions.add().ParseFromString(active.stored.definition)
        return found

    def _activate(self, trigger: StoredTrigger, message: trigger_pb2.CEPTriggerRequest) -> None:
        trigger_id = trigger.trigger_id
        try:
            tickers = check_registration(message).tickers
        except PatternError:
            # Stored by a version with other bounds: it is still listed and told, but needs no ticks that we know of.
            tickers = ()
        self._active[trigger_id] = _Active(trigger, message.client_id, message.one_shot, message.expires_at, tickers)
        insort(self._ids, trigger_id)
        if message.expires_at:
            heapq.heappush(self._expiries, (message.expires_at + self._rules.grace_ns, trigger_id))
            self._drop_expiries()
        self._hold(tickers, +1)

    def _drop_expiries(self) -> None:
        """Forget those of triggers that were cancelled, before they are more than the others."""
        if len(self._expiries) > 2 * len(self._active) + _EXPIRIES_SPARE:
            grace_ns = self._rules.grace_ns
            self._expiries = [(a.expires_ns + grace_ns, t) for t, a in self._active.items() if a.expires_ns]
            heapq.heapify(self._expiries)

    def _end(self, trigger_id: str, state: TriggerState, *, now_ns: int) -> list[Command]:
        active = self._active.pop(trigger_id, None)
        if active is not None:
            del self._ids[bisect_right(self._ids, trigger_id) - 1]
            self._hold(active.tickers, -1)
        stored = active.stored if active is not None else self._ended.pop(trigger_id)
        # Only a one-shot that fired is compared with later registrations; of the others the id is enough.
        kept = stored.definition if state is _State.FIRED else _Request(trigger_id=trigger_id).SerializeToString()
        ended = replace(stored, definition=kept, state=state, ended_ns=now_ns)
        self._ended[trigger_id] = ended
        # The job ends the others by itself, by event time: a CANCEL would cut off what is still on its way.
        commands: list[Command] = [SaveTrigger(ended)]
        if state is _State.CANCELLED:
            commands.append(TellTrigger(trigger_id, None))
        if len(self._ended) > self._rules.triggers_max:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            commands.append(DropTrigger(oldest))
        return commands

    def _forget(self, now_ns: int) -> list[Command]:
        old = [t for t, trigger in self._ended.items() if now_ns - trigger.ended_ns > self._rules.keep_ns]
        for trigger_id in old:
            del self._ended[trigger_id]
        return [DropTrigger(trigger_id) for trigger_id in old]

    def _hold(self, tickers: Iterable[str], count: int) -> None:
        for ticker in tickers:
            held = self._holders.get(ticker, 0) + count
            if held > 0:
                self._holders[ticker] = held
            else:
                self._holders.pop(ticker, None)
            if held == 0 or (held == 1 and count == 1):
                self._tickers, self._has_demand_changed = None, True


def _checked_id(name: str, text: str, code: ErrorCode) -> str:
    if not is_uuid_text(text):
        raise PeerError(
            f"expected a lower-case UUID of 36 characters as {name}, got {text[:80]!r}; make one with uuid4", code=code
        )
    return text


def _definition(message: trigger_pb2.CEPTriggerRequest) -> bytes:
    """Return the bytes that are kept and told; what this version does not understand is left out."""
    kept = _Request()
    kept.CopyFrom(message)
    kept.DiscardUnknownFields()
    return kept.SerializeToString(deterministic=True)


def _check_same(message: trigger_pb2.CEPTriggerRequest, definition: bytes, known: StoredTrigger) -> None:
    if definition == known.definition:
        return
    try:
        before = _Request.FromString(known.definition)
        others = [name for name in _COMPARED if getattr(before, name) != getattr(message, name)]
    except DecodeError:
        others = []
    raise PeerError(
        f"trigger {known.trigger_id} is registered with another {' and '.join(others) or 'definition'}; "
        "cancel it first, or use a new trigger_id",
        code=ErrorCode.REQUEST_CONFLICT,
    )
