"""A job's life without sockets: attempts, evidence, deadlines, joined requests, limits."""

from __future__ import annotations

import pytest

from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range, from_wire
from relay.protocol.v1 import common_pb2, work_pb2
from spark_jobs.manager.engine.model import JobKind
from spark_jobs.manager.lookups import look_at_jobs
from tests.support.manager import asked_range
from tests.support.tables import coverage_row
from tests.unit.manager.world import BTC, MINUTE, NOW, ROUTE, START, Notification, World, minutes, request


@pytest.fixture
def world() -> World:
    return World()


def missing(notification: Notification) -> list[Range]:
    return from_wire(notification.missing)


def wire(*ranges: Range) -> list[common_pb2.TimeRange]:
    return [common_pb2.TimeRange(start=r.start_ns, end=r.end_ns) for r in ranges]


def test_a_request_is_fetched_and_ends_ok_when_its_whole_range_is_covered(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    assert (data.type, data.ticker, data.attempt, data.lease_ms) == (
        work_pb2.DataRequest.HISTORICAL_OHLC,
        BTC,
        1,
        15_000,
    )
    assert (data.historical.start_time, data.historical.end_time) == (START, START + 10 * MINUTE)
    assert (data.slot_id, data.offer_sequence, data.request_id) == (0, 1, asked.request_id)
    world.complete(data)
    assert not world.published
    world.show(data, minutes(0, 10))
    told = world.published[asked.request_id]
    assert (told.status, told.row_count, told.namespace, told.table) == (Notification.OK, 10, "market", "ohlc")
    assert told.snapshot_id == world.tables.bars_snapshot_id()
    assert missing(told) == []
    assert told.completed_at == NOW


def test_a_range_that_is_covered_already_ends_at_once_without_a_dispatch(world: World) -> None:
    world.tables.commit(coverage_row("earlier", minutes(-5, 20)))
    asked = world.submit(request())
    assert world.published[asked.request_id].status == Notification.OK
    assert world.published[asked.request_id].row_count == 10
    assert world.broker.queued_count == 0


def test_a_partly_covered_range_fetches_only_the_rest(world: World) -> None:
    world.tables.commit(coverage_row("earlier", minutes(3, 6)))
    asked = world.submit(request())
    data = world.dispatch()
    assert from_wire(data.covered) == [minutes(3, 6)]
    world.complete(data)
    world.show(data, minutes(0, 3), minutes(6, 10))
    assert world.published[asked.request_id].status == Notification.OK


def test_identical_running_fetches_are_joined_and_each_request_ends(world: World) -> None:
    first, second = world.submit(request()), world.submit(request())
    data = world.dispatch()
    third = world.submit(request())
    assert len(world.book.jobs) == 1
    world.complete(data)
    world.show(data, minutes(0, 10))
    assert {r: n.status for r, n in world.published.items()} == dict.fromkeys(
        (first.request_id, second.request_id, third.request_id), Notification.OK
    )


def test_other_limits_and_ranges_are_not_joined(world: World) -> None:
    world.submit(request())
    world.submit(request(limit=5))
    world.submit(request(0, 11))
    assert len(world.book.jobs) == 3


def test_covered_minutes_without_any_bar_end_not_found(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    row = coverage_row(data.job_id, minutes(0, 10), rows=0, total_rows=0)
    world.tables.commit(row, with_bars=False)
    world.reconcile()
    told = world.published[asked.request_id]
    assert (told.status, missing(told), told.row_count) == (Notification.NOT_FOUND, [], 0)


def test_an_end_in_the_future_is_clipped_to_closed_bars_and_told_in_missing(world: World) -> None:
    world.now_ns = START + 5 * MINUTE + 30 * 10**9
    asked = world.submit(request(0, 10))
    data = world.dispatch()
    assert data.historical.end_time == START + 5 * MINUTE
    world.complete(data)
    world.show(data, minutes(0, 5))
    told = world.published[asked.request_id]
    assert (told.status, told.row_count, missing(told)) == (Notification.OK, 5, [minutes(5, 10)])


def test_joined_requests_with_different_futures_are_each_told_their_own_missing(world: World) -> None:
    world.now_ns = START + 5 * MINUTE
    near, far = world.submit(request(0, 6)), world.submit(request(0, 60))
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 5))
    assert missing(world.published[near.request_id]) == [minutes(5, 6)]
    assert missing(world.published[far.request_id]) == [minutes(5, 60)]


def test_a_range_wholly_in_the_future_ends_not_found_with_all_of_it_missing(world: World) -> None:
    world.now_ns = START - MINUTE
    asked = world.submit(request())
    told = world.published[asked.request_id]
    assert (told.status, missing(told)) == (Notification.NOT_FOUND, [minutes(0, 10)])


def test_an_unaligned_start_is_rounded_up(world: World) -> None:
    asked = world.submit(request(start_ns=START + 1, end_ns=START + 3 * MINUTE + 1))
    data = world.dispatch()
    assert (data.historical.start_time, data.historical.end_time) == (START + MINUTE, START + 4 * MINUTE)
    world.complete(data)
    world.show(data, minutes(1, 4))
    assert (missing(world.published[asked.request_id]), world.published[asked.request_id].row_count) == ([], 3)


def test_a_hole_without_a_cause_ends_partial_with_what_is_missing(world: World) -> None:
    """case 19 and case 38: a hole is told by its range, compared with the expected grid."""
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 4), minutes(7, 10), status="PARTIAL")
    told = world.published[asked.request_id]
    assert (told.status, missing(told), told.row_count) == (Notification.PARTIAL, [minutes(4, 7)], 7)


def test_a_range_from_before_the_listing_ends_partial_with_the_reason(world: World) -> None:
    """case 26."""
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(6, 10), status="PARTIAL", error_code="BEFORE_LISTING", error_message="listed later")
    told = world.published[asked.request_id]
    assert (told.status, told.error_code, missing(told)) == (Notification.PARTIAL, "BEFORE_LISTING", [minutes(0, 6)])


def test_a_short_delivery_with_a_passing_cause_is_tried_again_for_the_rest(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 4), status="PARTIAL", error_code="MAINTENANCE")
    assert not world.published
    world.advance(1)
    again = world.dispatch()
    assert (again.attempt, from_wire(again.covered)) == (2, [minutes(0, 4)])
    world.complete(again)
    world.show(again, minutes(4, 10))
    assert world.published[asked.request_id].status == Notification.OK


def test_a_failed_attempt_backs_off_and_three_of_them_end_in_error_once_the_last_marker_is_visible(
    world: World,
) -> None:
    asked = world.submit(request())
    for attempt in (1, 2, 3):
        world.advance(60)
        data = world.dispatch()
        assert data.attempt == attempt
        world.complete(data, "EXCHANGE_ERROR", "HTTP 500")
        world.offer()
        world.run(world.work.assign(world.now_ns))
    assert not world.published
    world.show(data, status="ERROR", error_code="EXCHANGE_ERROR")
    told = world.published[asked.request_id]
    assert (told.status, told.error_code) == (Notification.ERROR, "ATTEMPTS_EXHAUSTED")
    assert "HTTP 500" in told.error_message
    assert missing(told) == [minutes(0, 10)]


def test_exhausted_attempts_that_covered_something_end_partial(world: World) -> None:
    asked = world.submit(request())
    for _ in range(3):
        world.advance(60)
        data = world.dispatch()
        world.complete(data, "EXCHANGE_ERROR")
    world.show(data, minutes(0, 2), status="ERROR", error_code="EXCHANGE_ERROR")
    told = world.published[asked.request_id]
    assert (told.status, missing(told)) == (Notification.PARTIAL, [minutes(2, 10)])


@pytest.mark.parametrize(
    ("code", "status"),
    [("UNKNOWN_SYMBOL", Notification.NOT_FOUND), ("UNSUPPORTED_PERIOD", Notification.ERROR)],
)
def test_a_cause_that_cannot_pass_ends_after_one_attempt_by_its_marker(world: World, code: str, status: int) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data, code, "no")
    assert not world.published
    world.show(data, status="ERROR", error_code=code)
    told = world.published[asked.request_id]
    assert (told.status, told.error_code, missing(told)) == (status, code, [minutes(0, 10)])


def test_a_lost_lease_dispatches_the_next_attempt_after_what_the_log_has(world: World) -> None:
    world.submit(request())
    data = world.dispatch()
    world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1, progress_rows=4, covered=wire(minutes(0, 4))))
    world.advance(15)
    again = world.dispatch()
    assert (again.attempt, from_wire(again.covered)) == (2, [minutes(0, 4)])


def test_evidence_of_an_earlier_attempt_counts_whoever_runs_now(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.advance(15)
    world.dispatch()
    world.show(data, minutes(0, 10))
    assert world.published[asked.request_id].status == Notification.OK
    assert world.cancelled() == [data.job_id]


def test_a_closing_row_of_an_earlier_attempt_decides_nothing_about_the_running_one(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.advance(15)
    again = world.dispatch()
    world.show(data, minutes(0, 4), status="ERROR", error_code="UNKNOWN_SYMBOL")
    assert not world.published
    world.complete(again)
    world.show(again, minutes(4, 10))
    assert world.published[asked.request_id].status == Notification.OK


def test_heartbeats_of_stale_attempts_are_answered_with_cancel(world: World) -> None:
    world.submit(request())
    data = world.dispatch()
    world.advance(15)
    world.offer(ingestor_id="two", ingestor_epoch=2)
    world.run(world.work.assign(world.now_ns))
    world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1), (b"half dead",))
    cancel = world.sent[-2]
    assert (cancel.route, cancel.message.request_id) == ((b"half dead",), data.job_id)


def test_a_stale_heartbeat_from_where_the_newer_attempt_runs_cancels_nothing(world: World) -> None:
    world.submit(request())
    data = world.dispatch()
    world.advance(15)
    world.dispatch()
    world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1))
    assert world.cancelled() == []


def test_every_offer_and_heartbeat_is_answered_with_a_ping(world: World) -> None:
    world.offer()
    world.tell(work_pb2.WorkHeartbeat(job_id="unknown", attempt=1))
    pings = [c.message for c in world.sent if isinstance(c.message, work_pb2.BrokerPing)]
    assert [(p.broker_epoch, p.sent_at) for p in pings] == [(5, NOW), (5, NOW)]


def test_a_ban_does_not_count_as_an_attempt_and_the_next_one_starts_after_what_is_covered(world: World) -> None:
    """case 49 and case 52: a ban of 720 s delays the job, which then goes on."""
    asked = world.submit(request())
    for attempt in range(1, 6):
        data = world.dispatch()
        assert data.attempt == attempt
        world.tell(
            work_pb2.WorkReject(
                job_id=data.job_id,
                attempt=attempt,
                reason=work_pb2.WorkReject.RATE_LIMITED,
                retry_after_ms=720_000,
                covered=wire(minutes(0, attempt)),
            )
        )
        world.offer()
        world.run(world.work.assign(world.now_ns))
        assert world.broker.running_count == 0
        world.advance(720)
    data = world.dispatch()
    assert from_wire(data.covered) == [minutes(0, 5)]
    world.complete(data)
    world.tables.commit(coverage_row(data.job_id, minutes(0, 5), attempt=5))
    world.show(data, minutes(5, 10))
    assert world.published[asked.request_id].status == Notification.OK


@pytest.mark.parametrize("reason", [work_pb2.WorkReject.SHUTTING_DOWN, work_pb2.WorkReject.NO_CAPACITY])
def test_a_refusal_does_not_count_as_an_attempt(world: World, reason: work_pb2.WorkReject.Reason) -> None:
    world.submit(request())
    for _ in range(5):
        data = world.dispatch()
        world.tell(work_pb2.WorkReject(job_id=data.job_id, attempt=data.attempt, reason=reason))
        world.advance(6)
    assert world.dispatch().attempt == 6


def test_an_unreachable_worker_does_not_count_as_an_attempt(world: World) -> None:
    """case 77: the job is free at once for another slot."""
    world.submit(request())
    for _ in range(5):
        data = world.dispatch()
        world.run(world.work.unreachable(data.job_id, data.attempt, now_ns=world.now_ns))
    assert world.dispatch().attempt == 6


def test_a_job_that_nobody_takes_ends_by_its_deadline_with_the_whole_range_missing(world: World) -> None:
    asked = world.submit(request())
    world.advance(899)
    assert not world.published
    world.advance(1)
    told = world.published[asked.request_id]
    assert (told.status, told.error_code, missing(told)) == (Notification.TIMEOUT, "DEADLINE", [minutes(0, 10)])
    assert world.broker.queued_count == 0


def test_progress_moves_the_deadline_and_standstill_does_not(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    for step in range(200):
        world.now_ns += 10 * 10**9
        rows = min(step, 50)
        world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1, progress_rows=rows))
        world.advance(0)
        if world.published:
            break
    assert step == 50 + 90
    assert world.published[asked.request_id].status == Notification.TIMEOUT
    assert world.cancelled() == [data.job_id]


def test_a_deadline_after_something_was_covered_ends_partial(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.tables.commit(coverage_row(data.job_id, minutes(0, 4), is_last=False))
    for _ in range(100):
        world.now_ns += 10 * 10**9
        world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1))
        world.advance(0)
    told = world.published[asked.request_id]
    assert (told.status, missing(told), told.row_count) == (Notification.PARTIAL, [minutes(4, 10)], 4)


def test_after_work_complete_the_deadline_stands_still_while_the_history_job_is_away(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    world.advance(7 * 86_400)
    assert not world.published
    world.show(data, minutes(0, 10))
    assert world.published[asked.request_id].status == Notification.OK


def test_a_delivered_job_that_later_ones_overtake_ends_in_timeout(world: World) -> None:
    older = world.submit(request())
    world.complete(world.dispatch())
    world.now_ns += 1
    world.submit(request(20, 30))
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(20, 30))
    world.advance(899)
    assert older.request_id not in world.published
    world.advance(1)
    told = world.published[older.request_id]
    assert (told.status, missing(told)) == (Notification.TIMEOUT, [minutes(0, 10)])


def test_a_limit_is_reached_by_the_nth_bar_and_what_follows_is_not_missing(world: World) -> None:
    asked = world.submit(request(0, 100, limit=5))
    data = world.dispatch()
    assert data.historical.limit == 5
    world.complete(data)
    world.show(data, minutes(0, 5))
    told = world.published[asked.request_id]
    assert (told.status, told.row_count, missing(told)) == (Notification.OK, 5, [])


def test_a_limit_whose_beginning_is_stored_fetches_from_there_with_what_is_left(world: World) -> None:
    world.tables.commit(coverage_row("earlier", minutes(0, 3), minutes(50, 60)))
    asked = world.submit(request(0, 100, limit=5))
    data = world.dispatch()
    assert (data.historical.start_time, data.historical.limit) == (START + 3 * MINUTE, 2)
    assert not data.covered
    world.complete(data)
    world.show(data, minutes(3, 5))
    assert world.published[asked.request_id].row_count == 5


def test_a_limit_that_is_stored_already_ends_at_once(world: World) -> None:
    world.tables.commit(coverage_row("earlier", minutes(0, 30)))
    asked = world.submit(request(0, 100, limit=5))
    assert (world.published[asked.request_id].status, world.published[asked.request_id].row_count) == (
        Notification.OK,
        5,
    )


def test_a_limit_beyond_the_whole_range_ends_ok_with_fewer_bars(world: World) -> None:
    asked = world.submit(request(0, 10, limit=50))
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 10))
    told = world.published[asked.request_id]
    assert (told.status, told.row_count, missing(told)) == (Notification.OK, 10, [])


def test_a_request_that_comes_while_a_job_closes_gets_a_job_of_its_own(world: World) -> None:
    world.submit(request())
    world.tables.is_away = True
    world.now_ns += 900 * 10**9
    world.run(world.book.check_deadlines(world.now_ns))
    late = request()
    world.run(world.book.submit(late, now_ns=world.now_ns))
    world.tables.is_away = False
    world.look()
    assert late.request_id not in world.published
    assert len(world.book.jobs) == 1
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 10))
    assert world.published[late.request_id].status == Notification.OK


def test_a_running_attempt_goes_on_after_a_restart_and_ends_its_request(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.restart()
    world.tell(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=1))
    world.complete(data)
    world.show(data, minutes(0, 10))
    assert world.published[asked.request_id].status == Notification.OK
    assert world.cancelled() == []


def test_an_attempt_that_a_restarted_broker_does_not_know_gets_cancel(world: World) -> None:
    world.tell(work_pb2.WorkHeartbeat(job_id="gone", attempt=1))
    assert world.cancelled() == ["gone"]


def test_an_outcome_that_became_visible_while_the_manager_was_dead_is_found_by_reconciling(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.complete(data)
    world.tables.commit(coverage_row(data.job_id, minutes(0, 10)))
    world.restart()
    world.look()
    assert world.published[asked.request_id].status == Notification.OK


def test_requests_joined_before_a_restart_all_end(world: World) -> None:
    both = [world.submit(request()), world.submit(request())]
    world.restart()
    world.look()
    data = world.dispatch()
    world.complete(data)
    world.show(data, minutes(0, 10))
    assert set(world.published) == {r.request_id for r in both}


def test_a_lost_work_complete_with_a_permanent_marker_visible_ends_without_another_attempt(world: World) -> None:
    asked = world.submit(request())
    data = world.dispatch()
    world.tables.commit(coverage_row(data.job_id, status="ERROR", error_code="UNKNOWN_SYMBOL"))
    world.advance(15)
    assert world.published[asked.request_id].status == Notification.NOT_FOUND


def test_a_symbols_job_ends_at_work_complete_and_is_joined_while_it_runs(world: World) -> None:
    world.run(world.book.start_of_exchange(JobKind.SYMBOLS, "BINANCE", job_id="s", now_ns=world.now_ns))
    world.run(world.book.start_of_exchange(JobKind.SYMBOLS, "BINANCE", job_id="t", now_ns=world.now_ns))
    data = world.dispatch()
    assert (data.type, data.ticker, data.job_id) == (work_pb2.DataRequest.SYMBOLS, "BINANCE", "s")
    world.complete(data)
    assert [job.job_id for job in world.ended] == ["s"]
    assert not world.book.jobs


def test_a_new_exchange_is_remembered_from_its_first_offer(world: World) -> None:
    world.offer("BYBIT")
    assert "BYBIT" in world.exchanges
    assert "BYBIT" in world.store.load().exchanges


def test_many_jobs_are_looked_at_by_one_scan(world: World) -> None:
    for n in range(20):
        world.run(world.book.submit(request(20 * n, 20 * n + 10), now_ns=world.now_ns))
    world.look()
    for slot_id in range(20):
        world.offer(slot_id=slot_id)
    before_sent = len(world.sent)
    world.run(world.work.assign(world.now_ns))
    data = [c.message for c in world.sent[before_sent:]]
    world.reconcile()
    before = world.tables.scans
    for each in data:
        world.tables.commit(coverage_row(each.job_id, asked_range(each), attempt=each.attempt))
    world.reconcile()
    assert world.tables.scans == before + 1
    assert {told.status for told in world.published.values()} == {Notification.OK}


def test_an_attempt_whose_visible_rows_are_not_as_many_as_it_says_is_reported(world: World) -> None:
    """case 65: the closing mark alone is not trusted."""
    world.submit(request())
    data = world.dispatch()
    job = world.book.jobs[data.job_id]
    world.tables.commit(coverage_row(data.job_id, minutes(0, 10), rows=9, total_rows=10))
    [evidence] = look_at_jobs(world.tables, [job])
    assert evidence.is_miscounted


def test_a_lost_data_request_is_sent_again_as_the_same_attempt(world: World) -> None:
    world.submit(request())
    data = world.dispatch()
    world.now_ns += 5 * 10**9
    world.sequence -= 1
    world.offer()
    again = [c for c in world.sent if isinstance(c.message, work_pb2.DataRequest)]
    assert [c.message for c in again] == [data, data]
    assert again[1].route == ROUTE


def test_an_ingestor_that_refuses_for_ever_uses_up_the_attempts(world: World) -> None:
    asked = world.submit(request())
    for _ in range(20):
        if asked.request_id in world.published:
            break
        data = world.dispatch()
        world.tell(
            work_pb2.WorkReject(job_id=data.job_id, attempt=data.attempt, reason=work_pb2.WorkReject.NO_CAPACITY)
        )
        world.advance(6)
    assert world.published[asked.request_id].error_code == "ATTEMPTS_EXHAUSTED"
    assert data.attempt == 8


def test_a_failure_without_a_closing_batch_ends_after_a_short_grace(world: World) -> None:
    asked = world.submit(request())
    world.complete(world.dispatch(), "UNKNOWN_SYMBOL", "no such symbol")
    world.advance(59)
    assert asked.request_id not in world.published
    world.advance(2)
    ended = world.published[asked.request_id]
    assert (ended.status, ended.error_code) == (Notification.NOT_FOUND, "UNKNOWN_SYMBOL")


def test_a_long_job_is_looked_at_now_and_then_and_never_delays_a_short_one(world: World) -> None:
    long = world.submit(request(-2_000_000, 0))
    data = world.dispatch()
    short = world.submit(request())
    looked = []
    for _ in range(100):
        world.now_ns += NANOSECONDS
        world.book.mark(long.job_id)
        world.book.mark(short.job_id)
        taken = world.book.take_marked(now_ns=world.now_ns)
        assert [job.job_id for job in taken] == [short.job_id]
        looked += [job.job_id for job in world.book.take_marked(now_ns=world.now_ns)]
    assert looked == [long.job_id] * 3
    world.complete(data)
    assert [job.job_id for job in world.book.take_marked(now_ns=world.now_ns)] == [long.job_id]
