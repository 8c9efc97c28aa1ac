from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ingestors.engine.job_state import CancelJob, ExchangeSlots, Exit, JobKey, JobResult, Send, SetRateLimit, StartJob
from ingestors.engine.logged_mark import Logged
from ingestors.engine.slots import SlotEngine
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.v1 import work_pb2

S = NANOSECONDS
COVERED = (Range(10, 20),)


def _engine(slots: int = 2) -> SlotEngine:
    return SlotEngine(ingestor_id="i", ingestor_epoch=7, slots=[ExchangeSlots("BINANCE", slots)])


def _sent(commands: list[Any], kind: type) -> list[Any]:
    return [c.message for c in commands if isinstance(c, Send) and isinstance(c.message, kind)]


def _offers(commands: list[Any]) -> list[Any]:
    return _sent(commands, work_pb2.WorkerReady)


def _request(offer: Any, job_id: str = "a", attempt: int = 1, **fields: Any) -> work_pb2.DataRequest:
    values = {
        "job_id": job_id,
        "attempt": attempt,
        "ticker": "BTC/USDT.BINANCE",
        "lease_ms": 15_000,
        "slot_id": offer.slot_id,
        "offer_sequence": offer.offer_sequence,
    }
    return work_pb2.DataRequest(**(values | fields))


def _ping(epoch: int = 1) -> work_pb2.BrokerPing:
    return work_pb2.BrokerPing(broker_epoch=epoch)


def _started(engine: SlotEngine, now_ns: int = 0) -> tuple[Any, JobKey]:
    offer = _offers(engine.on_tick(now_ns))[0]
    (start,) = [c for c in engine.on_message(_request(offer), now_ns) if isinstance(c, StartJob)]
    return offer, start.key


def test_each_free_slot_is_offered_and_repeated_every_five_seconds_under_one_number() -> None:
    engine = _engine()
    first = _offers(engine.on_tick(0))
    assert {(o.slot_id, o.offer_sequence, o.ingestor_epoch) for o in first} == {(0, 1, 7), (1, 1, 7)}
    assert _offers(engine.on_tick(5 * S - 1)) == []
    assert _offers(engine.on_tick(5 * S)) == first


def test_a_job_uses_its_slot_and_frees_it_under_the_next_number() -> None:
    engine = _engine()
    offer, key = _started(engine)
    assert offer.slot_id not in {o.slot_id for o in _offers(engine.on_tick(5 * S))}
    commands = engine.on_finished(key, JobResult(True, 12), 6 * S)
    (complete,) = _sent(commands, work_pb2.WorkComplete)
    assert (complete.success, complete.rows) == (True, 12)
    (again,) = _offers(commands)
    assert (again.slot_id, again.offer_sequence) == (offer.slot_id, 2)


def test_a_repeated_request_starts_nothing_twice() -> None:
    engine = _engine()
    offer, key = _started(engine)
    commands = engine.on_message(_request(offer), S)
    assert not any(isinstance(c, StartJob) for c in commands)
    assert len(_sent(commands, work_pb2.WorkHeartbeat)) == 1
    engine.on_finished(key, JobResult(True), 2 * S)
    (told_again,) = engine.on_message(_request(offer), 3 * S)
    assert isinstance(told_again, Send)
    assert isinstance(told_again.message, work_pb2.WorkComplete)


def test_a_consumed_or_unknown_offer_is_refused() -> None:
    engine = _engine(1)
    offer, _ = _started(engine)
    for request in (_request(offer, "b"), _request(offer, "c", slot_id=99), _request(offer, "d", offer_sequence=9)):
        (reject,) = _sent(engine.on_message(request, 0), work_pb2.WorkReject)
        assert reject.reason == work_pb2.WorkReject.NO_CAPACITY


def test_a_ticker_of_another_exchange_is_refused() -> None:
    engine = _engine(1)
    (offer,) = _offers(engine.on_tick(0))
    (reject,) = _sent(engine.on_message(_request(offer, ticker="BTC/USD.KRAKEN"), 0), work_pb2.WorkReject)
    assert reject.reason == work_pb2.WorkReject.UNSUPPORTED_EXCHANGE


def test_heartbeats_go_out_every_five_seconds_with_what_the_log_acknowledged() -> None:
    engine = _engine(1)
    _, key = _started(engine)
    engine.on_progress(key, rows=3, covered=COVERED, last_event_ns=99)
    (beat,) = _sent(engine.on_tick(5 * S), work_pb2.WorkHeartbeat)
    assert (beat.progress_rows, beat.last_event_at) == (3, 99)
    assert [(r.start, r.end) for r in beat.covered] == [(10, 20)]
    assert _sent(engine.on_tick(9 * S), work_pb2.WorkHeartbeat) == []


def test_a_worker_that_cannot_renew_its_lease_stops_writing() -> None:
    engine = _engine(1)
    _, key = _started(engine)
    for second in (5, 10, 14):
        assert not any(isinstance(c, CancelJob) for c in engine.on_tick(second * S))
    commands = engine.on_tick(15 * S)
    assert CancelJob(key, "LEASE_LOST") in commands
    assert _sent(commands, work_pb2.WorkComplete) == []
    assert engine.on_finished(key, JobResult(False), 16 * S) == []
    assert engine.free_slots == 1


def test_the_brokers_answers_keep_a_lease_alive_for_ever() -> None:
    engine = _engine(1)
    _, key = _started(engine)
    for second in range(1, 600):
        engine.on_tick(second * S)
        engine.on_message(_ping(), second * S)
    assert key in engine.running


def test_a_new_broker_hears_of_every_free_slot_and_every_job_at_once_case_75() -> None:
    """Case 75: the epoch tells a restarted broker from a late answer."""
    engine = _engine()
    _, key = _started(engine)
    assert engine.on_message(_ping(1), S) == []
    commands = engine.on_message(_ping(2), 2 * S)
    assert len(_offers(commands)) == 1
    assert [b.job_id for b in _sent(commands, work_pb2.WorkHeartbeat)] == [key.job_id]
    assert engine.counts.broker_restarts == 1


def test_cancel_stops_the_job_and_reports_it() -> None:
    engine = _engine(1)
    _, key = _started(engine)
    cancel = work_pb2.IngestorControl(action=work_pb2.IngestorControl.CANCEL, request_id="a")
    assert engine.on_message(cancel, S) == [CancelJob(key, "CANCELLED")]
    (complete,) = _sent(engine.on_finished(key, JobResult(False, 0, "CANCELLED"), S), work_pb2.WorkComplete)
    assert (complete.success, complete.error_code) == (False, "CANCELLED")
    assert engine.on_message(cancel, S) == []


def test_a_ban_parks_every_slot_of_the_exchange_until_its_end_case_49_case_52() -> None:
    """Cases 49 and 52: 720 s are 720 s; the job goes back with what it covered."""
    engine = _engine(2)
    _, key = _started(engine)
    engine.on_progress(key, rows=1, covered=COVERED, last_event_ns=0)
    commands = engine.on_banned(key, exchange="BINANCE", duration_ns=720 * S, now_ns=0)
    (reject,) = _sent(commands, work_pb2.WorkReject)
    assert (reject.reason, reject.retry_after_ms) == (work_pb2.WorkReject.RATE_LIMITED, 720_000)
    assert len(reject.covered) == 1
    assert all(_offers(engine.on_tick(second * S)) == [] for second in (0, 5, 719))
    back = _offers(engine.on_tick(720 * S))
    assert {(o.slot_id, o.offer_sequence) for o in back} == {(0, 3), (1, 2)}


def test_a_request_that_crossed_with_a_ban_is_given_back() -> None:
    engine = _engine(2)
    first, second = _offers(engine.on_tick(0))
    engine.on_message(_request(first), 0)
    engine.on_banned(JobKey("a", 1), exchange="BINANCE", duration_ns=60 * S, now_ns=0)
    (reject,) = _sent(engine.on_message(_request(second, "b"), 10 * S), work_pb2.WorkReject)
    assert (reject.reason, reject.retry_after_ms) == (work_pb2.WorkReject.RATE_LIMITED, 50_000)


def test_a_drain_takes_no_job_and_gives_back_what_does_not_end_in_time() -> None:
    engine = _engine(2)
    offers = _offers(engine.on_tick(0))
    engine.on_message(_request(offers[0]), 0)
    assert engine.drain(S, within_ns=3 * S) == []
    (refused,) = _sent(engine.on_message(_request(offers[1], "b"), S), work_pb2.WorkReject)
    assert refused.reason == work_pb2.WorkReject.SHUTTING_DOWN
    assert _offers(engine.on_tick(2 * S)) == []
    commands = engine.on_tick(4 * S)
    (reject,) = _sent(commands, work_pb2.WorkReject)
    assert (reject.job_id, reject.reason) == ("a", work_pb2.WorkReject.SHUTTING_DOWN)
    assert commands[-1] == Exit()


def test_a_shutdown_lets_running_jobs_end() -> None:
    engine = _engine(1)
    _, key = _started(engine)
    assert engine.on_message(work_pb2.IngestorControl(action=work_pb2.IngestorControl.SHUTDOWN), S) == []
    assert Exit() in engine.on_finished(key, JobResult(True), 2 * S)


def test_new_slot_numbers_never_take_a_running_job_away() -> None:
    engine = _engine(2)
    _, key = _started(engine)
    config = work_pb2.IngestorConfig(
        slots=[work_pb2.ExchangeSlots(exchange="BINANCE", historical_slots=0)],
        rate_limits=[work_pb2.HostRateLimit(host="h", weight_per_minute=5)],
    )
    update = work_pb2.IngestorControl(action=work_pb2.IngestorControl.CONFIG_UPDATE, config=config)
    assert SetRateLimit("h", 5) in engine.on_message(update, S)
    assert (key in engine.running, engine.free_slots) == (True, 0)
    commands = engine.on_finished(key, JobResult(True), 2 * S)
    assert _offers(commands) == []
    config.slots[0].historical_slots = 3
    update.config.CopyFrom(config)
    assert len(_offers(engine.on_message(update, 3 * S))) == 3


def test_a_heartbeat_request_is_answered_with_everything() -> None:
    engine = _engine(2)
    _started(engine)
    ask = work_pb2.IngestorControl(action=work_pb2.IngestorControl.HEARTBEAT)
    commands = engine.on_message(ask, S)
    assert len(_offers(commands)) == len(_sent(commands, work_pb2.WorkHeartbeat)) == 1


class SlotAccounting(RuleBasedStateMachine):
    """Whatever the broker does, a slot never carries two jobs and none is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = _engine(3)
        self.now_ns = 0
        self.offers: dict[int, Any] = {}
        self.started: set[JobKey] = set()
        self.live: set[JobKey] = set()
        self.number = 0

    def _apply(self, commands: list[Any]) -> None:
        for offer in _offers(commands):
            known = self.offers.get(offer.slot_id)
            assert known is None or offer.offer_sequence >= known.offer_sequence
            self.offers[offer.slot_id] = offer
        for command in commands:
            if isinstance(command, StartJob):
                assert command.key not in self.live
                self.started.add(command.key)
                self.live.add(command.key)
            if isinstance(command, CancelJob):
                self.live.discard(command.key)

    @rule(seconds=st.integers(0, 9))
    def time_passes(self, seconds: int) -> None:
        self.now_ns += seconds * S
        self._apply(self.engine.on_tick(self.now_ns))

    @rule(epoch=st.integers(1, 2))
    def broker_answers(self, epoch: int) -> None:
        self._apply(self.engine.on_message(_ping(epoch), self.now_ns))

    @rule(slot=st.integers(0, 2), repeats=st.booleans())
    def broker_dispatches(self, slot: int, repeats: bool) -> None:
        if slot in self.offers:
            self.number += not repeats
            request = _request(self.offers[slot], f"job-{self.number}")
            self._apply(self.engine.on_message(request, self.now_ns))

    @rule(data=st.data())
    def a_job_ends(self, data: st.DataObject) -> None:
        if self.live:
            key = data.draw(st.sampled_from(sorted(self.live, key=lambda k: k.job_id)))
            self.live.discard(key)
            self._apply(self.engine.on_finished(key, JobResult(True), self.now_ns))

    @rule(data=st.data(), seconds=st.integers(1, 20))
    def a_job_meets_a_ban(self, data: st.DataObject, seconds: int) -> None:
        if self.live:
            key = data.draw(st.sampled_from(sorted(self.live, key=lambda k: k.job_id)))
            self.live.discard(key)
            ban = self.engine.on_banned(key, exchange="BINANCE", duration_ns=seconds * S, now_ns=self.now_ns)
            self._apply(ban)

    @invariant()
    def every_slot_is_free_or_carries_one_job(self) -> None:
        assert set(self.engine.running) == self.live
        assert len(self.engine.running) + self.engine.free_slots == 3
        assert len({job.slot_id for job in self.engine.running.values()}) == len(self.live)


SlotAccounting.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSlotAccounting = SlotAccounting.TestCase


def _live_engine(live: int = 3) -> SlotEngine:
    return SlotEngine(ingestor_id="i", ingestor_epoch=7, slots=[ExchangeSlots("BINANCE", 1, live)])


def _live_started(engine: SlotEngine, **fields: Any) -> JobKey:
    offers = _offers(engine.on_tick(0))
    live = next(o for o in offers if o.slot_type == work_pb2.WorkerReady.REALTIME)
    asked = _request(live, type=work_pb2.DataRequest.REALTIME_TICKS, **fields)
    (start,) = [c for c in engine.on_message(asked, 0) if isinstance(c, StartJob)]
    return start.key


def test_hundreds_of_live_slots_are_offered_in_turns_and_delay_no_historical_one() -> None:
    engine = _live_engine(500)
    first = _offers(engine.on_tick(0))
    assert first[0].slot_type == work_pb2.WorkerReady.HISTORICAL
    assert len(first) == 50
    told = {o.slot_id for o in first}
    for turn in range(1, 11):
        told |= {o.slot_id for o in _offers(engine.on_tick(turn * S // 4))}
    assert len(told) == 501
    again = {o.slot_id for turn in range(20, 31) for o in _offers(engine.on_tick(turn * S // 4))}
    assert again == told


def test_a_live_job_takes_a_live_slot_only() -> None:
    engine = _live_engine()
    historical = next(o for o in _offers(engine.on_tick(0)) if o.slot_type == work_pb2.WorkerReady.HISTORICAL)
    refused = engine.on_message(_request(historical, type=work_pb2.DataRequest.REALTIME_TICKS), 0)
    (reject,) = _sent(refused, work_pb2.WorkReject)
    assert reject.reason == work_pb2.WorkReject.NO_CAPACITY
    assert _live_started(_live_engine()) == JobKey("a", 1)


def test_a_live_heartbeat_says_up_to_which_trade_everything_is_logged() -> None:
    engine = _live_engine()
    key = _live_started(engine, realtime=work_pb2.RealtimeParams(resume_after_trade_id="41", resume_after_time=40))
    (beat,) = _sent(engine.on_tick(5 * S), work_pb2.WorkHeartbeat)
    assert (beat.last_logged_trade_id, beat.last_logged_time) == ("41", 40)
    engine.on_progress(key, rows=9, last_event_ns=77, logged=Logged("50", 70))
    (beat,) = _sent(engine.on_tick(10 * S), work_pb2.WorkHeartbeat)
    assert (beat.last_logged_trade_id, beat.last_logged_time) == ("50", 70)
    assert (beat.progress_rows, beat.last_event_at) == (9, 77)


def test_a_drain_stops_live_jobs_at_once_and_hands_them_over_behind_their_mark() -> None:
    engine = _live_engine()
    key = _live_started(engine)
    assert CancelJob(key, "CANCELLED") in engine.drain(S, within_ns=3 * S)
    engine.on_progress(key, rows=9, last_event_ns=77, logged=Logged("50", 70))
    commands = engine.on_finished(key, JobResult(False, 9, "CANCELLED"), 2 * S)
    (beat,), (reject,) = _sent(commands, work_pb2.WorkHeartbeat), _sent(commands, work_pb2.WorkReject)
    assert beat.last_logged_trade_id == "50"
    assert reject.reason == work_pb2.WorkReject.SHUTTING_DOWN
    assert any(isinstance(c, Exit) for c in commands)


def test_a_stop_for_want_of_demand_cancels_the_job() -> None:
    engine = _live_engine()
    key = _live_started(engine)
    assert engine.on_message(work_pb2.WorkStop(job_id="a"), S) == [CancelJob(key, "CANCELLED")]
