"""The client's engine, driven by scripted messages and time: no socket, no thread, no clock."""

from __future__ import annotations

import itertools
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay.errors import AccessError, PeerError, RetryableError, StorageError
from relay.protocol.envelope import encode
from relay.protocol.v1 import market_pb2, request_pb2
from relay_client.engine.commands import Fail, Reconnect, Resolve, Send, SessionTimes, Subscribe, Unsubscribe
from relay_client.engine.session import SessionEngine

SECOND = 10**9
FAR = 10_000 * SECOND
CLIENT = str(uuid.uuid4())
_Submit, _Response = request_pb2.SubmitHistoricalRequest, request_pb2.SubmitResponse
_Ready, _Query = request_pb2.HistoryReadyNotification, request_pb2.RequestStatusQuery


class Script:
    """Plays the driver, the relay and time."""

    def __init__(self, *, epoch: int = 1) -> None:
        nonces = (f"00000000-0000-4000-8000-{i:012d}" for i in itertools.count(1))
        self.counted: list[str] = []
        self.engine = SessionEngine(
            CLIENT, times=SessionTimes(), new_nonce=lambda: next(nonces), count=self.counted.append
        )
        self.now, self.epoch = 0, epoch
        self.commands = self.engine.start(self.now)

    def take(self, kind: type) -> list:
        """All commands of a kind so far, the rest is kept."""
        taken = [c for c in self.commands if isinstance(c, kind)]
        self.commands = [c for c in self.commands if not isinstance(c, kind)]
        return taken

    def tick(self, seconds: float = 0) -> None:
        self.now += int(seconds * 1000) * 10**6
        self.commands += self.engine.on_tick(self.now)

    def published(self, topic: str, message: object) -> None:
        self.commands += self.engine.on_published([topic.encode(), *encode(message)], self.now)

    def beat(self) -> None:
        self.published("HEARTBEAT", market_pb2.Heartbeat(epoch=self.epoch))

    def reply(self, send: Send, message: object) -> None:
        frames = [send.correlation.to_bytes(4, "big"), b"", *encode(message)]
        self.commands += self.engine.on_reply(frames, self.now)

    def wait(self, seconds: int) -> None:
        """Time passes while the relay beats."""
        for _ in range(seconds):
            self.tick(1)
            self.beat()

    def pass_barrier(self) -> None:
        """Answer the probe and send its echo."""
        self.tick()
        (probe,) = self.take(Send)[-1:]
        self.reply(probe, request_pb2.ProbeReply(nonce=probe.message.nonce, relay_epoch=self.epoch, server_time=FAR))
        self.published(f"PROBE:{probe.message.nonce}", request_pb2.Probe(nonce=probe.message.nonce))

    def submit(self, key: int = 1) -> request_pb2.SubmitHistoricalRequest:
        """As the driver does it: the watch (key + 100) before the submission (key)."""
        message = _Submit(request_id=str(uuid.UUID(int=key)), client_id=CLIENT)
        self.commands += self.engine.watch(
            key + 100, message.request_id, submitted=message, deadline_ns=FAR, now_ns=self.now
        )
        self.commands += self.engine.ask(key, message, deadline_ns=FAR, now_ns=self.now)
        return message

    def end(self, message: object, status: int = _Ready.OK) -> request_pb2.HistoryReadyNotification:
        return _Ready(request_id=message.request_id, status=status, completed_at=1)


@pytest.fixture
def ready() -> Script:
    script = Script()
    script.pass_barrier()
    script.commands.clear()
    return script


def test_it_subscribes_its_topics_before_the_probe():
    topics = [command.topic for command in Script().take(Subscribe)]
    assert topics[:3] == [b"HEARTBEAT", b"METADATA_UPDATE", f"RESPONSE:{CLIENT}".encode()]
    assert topics[3].startswith(b"PROBE:")


def test_nothing_is_submitted_before_the_probes_echo_case_83():
    script = Script()
    script.submit()
    script.tick()
    (probe,) = script.take(Send)
    assert isinstance(probe.message, request_pb2.Probe)
    script.reply(probe, request_pb2.ProbeReply(nonce=probe.message.nonce, relay_epoch=1))
    assert script.take(Send) == []
    script.published(f"PROBE:{probe.message.nonce}", request_pb2.Probe(nonce=probe.message.nonce))
    assert [type(send.message) for send in script.take(Send)] == [_Submit]
    assert [c.topic for c in script.take(Unsubscribe)] == [f"PROBE:{probe.message.nonce}".encode()]


def test_the_probe_is_repeated_until_its_echo_comes_and_an_old_echo_proves_nothing():
    script = Script()
    script.tick()
    script.published("PROBE:00000000-0000-4000-8000-000000000099", request_pb2.Probe())
    script.tick(0.06)
    script.tick(0.11)
    assert len({send.message.nonce for send in script.take(Send)}) == 1
    script.submit()
    assert script.take(Send) == []


def test_a_submission_is_acknowledged_and_its_end_is_heard(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    assert [c.key for c in ready.take(Resolve)] == [1]
    ready.published(f"RESPONSE:{CLIENT}", ready.end(message))
    assert [c.key for c in ready.take(Resolve)] == [101]
    ready.published(f"RESPONSE:{CLIENT}", ready.end(message))
    assert ready.commands == []


def test_an_end_that_comes_before_the_acknowledgement_is_taken_too(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.published(f"RESPONSE:{CLIENT}", ready.end(message))
    ready.reply(send, _Response(request_id=message.request_id, status=_Response.DUPLICATE))
    assert sorted(c.key for c in ready.take(Resolve)) == [1, 101]


def test_a_submission_without_an_answer_is_looked_for_by_its_id(ready):
    message = ready.submit()
    ready.take(Send)
    ready.wait(2)
    (query,) = ready.take(Send)
    assert query.message == _Query(request_id=message.request_id)
    ready.reply(query, _Ready(request_id=message.request_id, status=_Ready.PENDING))
    (accepted,) = ready.take(Resolve)
    assert (accepted.key, accepted.message.status) == (1, _Response.DUPLICATE)
    assert accepted.message.notification_topic == f"RESPONSE:{CLIENT}"


def test_a_submission_that_never_arrived_is_sent_again_with_its_id(ready):
    message = ready.submit()
    ready.take(Send)
    ready.wait(2)
    (query,) = ready.take(Send)
    unknown = _Ready(request_id=message.request_id, status=_Ready.ERROR, error_code="UNKNOWN_REQUEST")
    ready.reply(query, unknown)
    ready.tick()
    assert [send.message for send in ready.take(Send)] == [message]


def test_a_late_answer_after_the_status_query_is_taken_once(ready):
    message = ready.submit()
    (first,) = ready.take(Send)
    ready.wait(2)
    ready.take(Send)
    ready.reply(first, _Response(request_id=message.request_id))
    ready.reply(first, _Response(request_id=message.request_id))
    assert [c.key for c in ready.take(Resolve)] == [1]


def test_unavailable_is_retried_with_the_same_id_and_growing_waits(ready):
    message = ready.submit()
    waits = []
    for _ in range(6):
        (send,) = ready.take(Send)
        assert send.message == message
        ready.reply(send, _Response(request_id=message.request_id, status=_Response.UNAVAILABLE, error_message="later"))
        began = ready.now
        while not any(isinstance(c, Send) for c in ready.commands):
            ready.tick(0.05)
            ready.beat()
        waits.append((ready.now - began) // 10**6)
    assert waits == [250, 500, 1000, 2000, 4000, 5000]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (_Response.INVALID, "INVALID_PERIOD", PeerError),
        (_Response.INVALID, "REQUEST_CONFLICT", PeerError),
        (_Response.UNSUPPORTED, "NOT_IMPLEMENTED", PeerError),
        (_Response.DENIED, "DENIED", AccessError),
    ],
)
def test_a_refusal_is_an_error_with_its_code(ready, status, code, kind):
    ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(status=status, error_code=code, error_message="no"))
    (failed,) = ready.take(Fail)
    assert (failed.key, type(failed.error), failed.error.code) == (1, kind, code)


def test_a_waited_request_is_asked_for_every_ten_seconds_case_84(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.wait(9)
    assert ready.take(Send) == []
    ready.wait(2)
    (query,) = ready.take(Send)
    ready.reply(query, _Ready(request_id=message.request_id, status=_Ready.PENDING))
    ready.wait(10)
    (query,) = ready.take(Send)
    ready.reply(query, ready.end(message, _Ready.PARTIAL))
    assert [c.key for c in ready.take(Resolve)][-1] == 101


def test_an_unanswered_status_query_is_not_repeated_once_the_end_was_heard(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.wait(10)
    assert len(ready.take(Send)) == 1
    ready.published(f"RESPONSE:{CLIENT}", ready.end(message))
    ready.wait(20)
    assert ready.take(Send) == []


def test_a_relay_that_says_the_manager_is_away_does_not_end_a_request(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.take(Resolve)
    ready.wait(10)
    (query,) = ready.take(Send)
    ready.reply(query, _Ready(request_id=message.request_id, status=_Ready.ERROR, error_code="UNAVAILABLE"))
    assert ready.take(Resolve) + ready.take(Fail) == []
    ready.wait(1)
    (query,) = ready.take(Send)
    ended = ready.end(message, _Ready.ERROR)
    ended.error_code = "UNAVAILABLE"
    ready.reply(query, ended)
    assert [c.message for c in ready.take(Resolve)] == [ended]


def test_a_manager_that_lost_its_table_gets_the_submission_again(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.wait(10)
    (query,) = ready.take(Send)
    ready.reply(query, _Ready(request_id=message.request_id, status=_Ready.ERROR, error_code="UNKNOWN_REQUEST"))
    ready.tick()
    assert [s.message for s in ready.take(Send)] == [message]


def test_waiting_for_an_unknown_request_is_an_error(ready):
    ready.commands += ready.engine.watch(7, "r", deadline_ns=FAR, now_ns=ready.now)
    (query,) = ready.take(Send)
    ready.reply(query, _Ready(request_id="r", status=_Ready.ERROR, error_code="UNKNOWN_REQUEST", error_message="no"))
    (failed,) = ready.take(Fail)
    assert (failed.key, failed.error.code) == (7, "UNKNOWN_REQUEST")
    ready.wait(30)
    assert ready.take(Send) == []


def test_silence_for_three_seconds_makes_new_sockets_and_a_new_barrier_case_99(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.commands.clear()
    ready.tick(2.9)
    assert ready.take(Reconnect) == []
    ready.tick(0.1)
    assert ready.take(Reconnect) == [Reconnect()]
    assert len(ready.take(Subscribe)) == 4
    ready.pass_barrier()
    assert [s.message for s in ready.take(Send)] == [_Query(request_id=message.request_id)]
    assert "reconnected" in ready.counted


def test_beats_alone_keep_a_silent_connection_case_98(ready):
    ready.wait(1800)
    assert ready.take(Reconnect) == []


def test_a_new_relay_epoch_passes_the_barrier_and_asks_for_everything_awaited(ready):
    messages = [ready.submit(key) for key in (1, 2)]
    for send in ready.take(Send):
        ready.reply(send, _Response(request_id=send.message.request_id))
    ready.commands.clear()
    ready.epoch = 2
    ready.beat()
    assert len(ready.take(Subscribe)) == 1
    ready.pass_barrier()
    assert [s.message.request_id for s in ready.take(Send)] == [m.request_id for m in messages]
    ready.beat()
    assert ready.take(Subscribe) == []


def test_what_was_unanswered_before_a_new_connection_is_asked_again_at_once(ready):
    message = ready.submit()
    ready.take(Send)
    ready.epoch = 2
    ready.beat()
    ready.pass_barrier()
    assert [s.message for s in ready.take(Send)] == [_Query(request_id=message.request_id)]


def test_a_message_that_could_not_go_out_counts_as_not_sent(ready):
    message = ready.submit()
    for _ in range(5):
        (send,) = ready.take(Send)
        assert send.message == message
        ready.engine.on_unsent(send.correlation, ready.now)
        ready.tick(0.02)


def test_deadlines_end_everything_that_waits(ready):
    end = ready.now + SECOND
    engine = ready.engine
    ready.commands += engine.ask(1, request_pb2.Probe(nonce="n"), deadline_ns=end, now_ns=ready.now)
    ready.commands += engine.watch(2, "r", deadline_ns=end, now_ns=ready.now)
    ready.commands += engine.next_update(3, deadline_ns=end, now_ns=ready.now)
    fresh = Script()
    fresh.commands += fresh.engine.locate(4, deadline_ns=SECOND, now_ns=0)
    ready.tick(1)
    fresh.tick(1)
    failed = ready.take(Fail) + fresh.take(Fail)
    assert sorted(c.key for c in failed) == [1, 2, 3, 4]
    assert all(isinstance(c.error, RetryableError) and c.error.code == "TIMEOUT" for c in failed)


def test_what_the_relay_told_is_given_again_with_its_clock_moved_on(ready):
    ready.commands += ready.engine.locate(9, deadline_ns=FAR, now_ns=ready.now + 5 * SECOND)
    (told,) = ready.take(Resolve)
    assert told.message.server_time == FAR + 5 * SECOND


def test_what_is_forgotten_is_neither_sent_nor_resolved(ready):
    message = ready.submit()
    (send,) = ready.take(Send)
    for key in (1, 101):
        ready.engine.forget(key, ready.now)
    ready.reply(send, _Response(request_id=message.request_id))
    ready.published(f"RESPONSE:{CLIENT}", ready.end(message))
    ready.wait(30)
    assert ready.commands == []


def test_an_update_of_the_symbols_wakes_whoever_waits(ready):
    ready.engine.next_update(5, deadline_ns=FAR, now_ns=ready.now)
    ready.published("METADATA_UPDATE", market_pb2.SymbolMetadataUpdated(exchanges=["BINANCE"]))
    assert [c.key for c in ready.take(Resolve)] == [5]


def test_a_store_that_fails_for_a_moment_is_asked_again(ready):
    ready.submit()
    (send,) = ready.take(Send)
    ready.reply(send, _Response(status=_Response.ERROR, error_code="STORAGE", error_message="disk"))
    assert ready.take(Fail) == []
    ready.wait(1)
    assert len(ready.take(Send)) == 1
    from relay_client.engine.answers import error_for

    assert isinstance(error_for("STORAGE", ""), StorageError)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_on_either_socket_are_dropped_and_counted(frames):
    script = Script()
    script.commands.clear()
    assert script.engine.on_reply(frames, 0) == []
    assert script.engine.on_published(frames, 0) == []
    assert len(script.counted) == 2


class LossyWorld:
    """A relay and a manager that lose, repeat and refuse as they are told; the engine must end every request once."""

    def __init__(self, fates: list[str]) -> None:
        self.script, self.fates = Script(), fates
        self.running: dict[str, int] = {}
        self.ended: dict[str, object] = {}
        self.fetches: list[str] = []

    def fate(self) -> str:
        return self.fates.pop() if self.fates else "fine"

    def step(self) -> None:
        script = self.script
        script.tick(0.5)
        for request_id in list(self.running):
            self.running[request_id] -= 1
            if self.running[request_id] <= 0:
                del self.running[request_id]
                end = _Ready(request_id=request_id, status=_Ready.OK, completed_at=1)
                self.ended[request_id] = end
                if self.fate() != "lost":
                    script.published(f"RESPONSE:{CLIENT}", end)
        for send in script.take(Send):
            self.serve(send)
        if self.fate() == "restart":
            script.epoch += 1
        script.beat()

    def serve(self, send: Send) -> None:
        fate, script, message = self.fate(), self.script, send.message
        if fate in ("lost", "restart"):
            return
        answer = self.answer(message, is_away=fate == "away")
        if isinstance(message, request_pb2.Probe) and fate != "reply_lost":
            script.published(f"PROBE:{message.nonce}", message)
        for _ in range({"reply_lost": 0, "repeated": 2}.get(fate, 1)):
            script.reply(send, answer)

    def answer(self, message: object, *, is_away: bool) -> object:
        match message:
            case request_pb2.Probe():
                return request_pb2.ProbeReply(nonce=message.nonce, relay_epoch=self.script.epoch)
            case request_pb2.SubmitHistoricalRequest():
                if is_away:
                    return _Response(request_id=message.request_id, status=_Response.UNAVAILABLE)
                known = message.request_id in self.running or message.request_id in self.ended
                if not known:
                    self.fetches.append(message.request_id)
                    self.running[message.request_id] = 4
                return _Response(request_id=message.request_id, status=int(known))
            case request_pb2.RequestStatusQuery():
                if is_away:
                    return _Ready(request_id=message.request_id, status=_Ready.ERROR, error_code="UNAVAILABLE")
                if message.request_id in self.ended:
                    return self.ended[message.request_id]
                if message.request_id in self.running:
                    return _Ready(request_id=message.request_id, status=_Ready.PENDING)
                return _Ready(request_id=message.request_id, status=_Ready.ERROR, error_code="UNKNOWN_REQUEST")
        raise AssertionError(message)


FATES = st.lists(st.sampled_from(["fine", "lost", "reply_lost", "repeated", "away", "restart"]), max_size=60)


@settings(max_examples=200, deadline=None)
@given(FATES, st.integers(1, 3))
def test_whatever_is_lost_each_request_ends_once_and_is_fetched_once(fates, count):
    world = LossyWorld(fates)
    for key in range(1, count + 1):
        world.script.submit(key)
    for _ in range(2_000):
        world.step()
        if len(_keys(world.script)) == 2 * count:
            break
    keys = [c.key for c in world.script.take(Resolve)]
    assert sorted(keys) == [*range(1, count + 1), *range(101, 101 + count)]
    assert world.script.take(Fail) == []
    assert len(world.fetches) == len(set(world.fetches)) == count


def _keys(script: Script) -> set[int]:
    return {c.key for c in script.commands if isinstance(c, Resolve)}
