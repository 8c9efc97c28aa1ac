"""The event log lost what it had acknowledged: the job is fetched again instead of waiting for what never comes."""

from __future__ import annotations

import pytest

from relay.eventlog import HISTORY_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.codes import ErrorCode
from relay.protocol.ranges import from_wire, to_wire
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.evidence import LogEnds
from spark_jobs.manager.engine.model import Job, JobKind
from spark_jobs.manager.log_watch import LogWatch
from spark_jobs.manager.lookups import JobsQuestion, TableLookups
from tests.support.processes import wait_until
from tests.support.tables import MemoryTables
from tests.unit.manager.world import NOW, SECOND, Notification, World, minutes, request

OLD, NEW = ("cluster", "old"), ("cluster", "new")


@pytest.fixture
def world() -> World:
    return World()


def ends(log: tuple[str, str], *offsets: int, asked_ns: int = NOW + SECOND, oldest: int = 0) -> LogEnds:
    return LogEnds(*log, (oldest,) * len(offsets), offsets, asked_ns)


def test_a_delivered_attempt_is_fetched_again_when_a_new_and_empty_log_has_taken_the_old_ones_place(world):
    asked = world.submit(request())
    world.complete(world.dispatch())
    world.tables.reached[OLD] = {0: 40}
    world.log_ends = ends(NEW, 0, 0)
    world.reconcile()
    again = world.dispatch()
    assert (again.attempt, from_wire(again.covered)) == (2, [])
    world.complete(again)
    world.show(again, minutes(0, 10))
    assert world.published[asked.request_id].status == Notification.OK


def test_an_identical_request_that_comes_meanwhile_ends_with_the_new_attempt(world):
    first = world.submit(request())
    world.complete(world.dispatch())
    second = world.submit(request())
    world.log_ends = ends(NEW, 0)
    world.reconcile()
    again = world.dispatch()
    world.complete(again)
    world.show(again, minutes(0, 10))
    assert set(world.published) == {first.request_id, second.request_id}


@pytest.mark.parametrize(
    ("reached", "seen"),
    [
        ({OLD: {0: 40}}, ends(OLD, 41)),
        ({OLD: {0: 40}}, ends(OLD, 40, 1)),
        ({OLD: {0: 40}}, ends(NEW, 1)),
        ({OLD: {0: 40}}, ends(OLD, 40, asked_ns=NOW)),
        ({}, None),
    ],
    ids=["behind", "behind in another partition", "new log unread", "asked before the delivery", "log unknown"],
)
def test_a_delivered_attempt_is_waited_for_while_its_records_may_still_come(world, reached, seen):
    world.submit(request())
    world.complete(world.dispatch())
    world.tables.reached |= reached
    world.log_ends = seen
    world.reconcile()
    assert world.broker.queued_count == 0


def test_records_that_retention_has_deleted_do_not_come_any_more(world):
    world.submit(request())
    world.complete(world.dispatch())
    world.tables.reached[OLD] = {0: 40}
    world.log_ends = ends(OLD, 50, oldest=50)
    world.reconcile()
    assert world.dispatch().attempt == 2


def test_records_that_are_lost_again_and_again_end_the_request_with_the_reason(world):
    asked = world.submit(request())
    world.log_ends = ends(NEW, 0)
    for _ in range(3):
        world.complete(world.dispatch())
        world.reconcile()
    told = world.published[asked.request_id]
    assert (told.status, told.error_code) == (Notification.ERROR, ErrorCode.ATTEMPTS_EXHAUSTED)
    assert "does not hold any more" in told.error_message


def test_what_an_earlier_part_of_the_attempt_had_logged_is_fetched_again_when_only_the_rest_arrives(world):
    asked = world.submit(request())
    data = world.dispatch()
    world.tell(
        work_pb2.WorkHeartbeat(
            job_id=data.job_id, attempt=data.attempt, progress_rows=4, covered=to_wire([minutes(0, 4)])
        )
    )
    world.complete(data)
    world.show(data, minutes(4, 10))
    again = world.dispatch()
    assert from_wire(again.covered) == [minutes(4, 10)]
    world.complete(again)
    world.show(again, minutes(0, 4))
    assert world.published[asked.request_id].status == Notification.OK


def test_the_watch_tells_which_log_it_is_and_where_it_ends():
    log = MemoryEventLog()
    log.ensure_topics(platform_topics(prefix="p.", partitions=2, retention_hours=1))
    log.append("p." + HISTORY_TOPIC, key=b"k", value=b"v")
    watch = LogWatch(lambda: log, topic_prefix="p.")
    assert watch.latest is None
    watch.ask()
    seen = wait_until(lambda: watch.latest, what="the watch to look")
    watch.close()
    assert isinstance(seen, LogEnds)
    assert (sum(seen.ends), seen.topic_id) == (1, log.identity("p." + HISTORY_TOPIC).topic_id)


class Wake:
    """Counts the results that the worker thread has announced."""

    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        self.count += 1


def test_where_records_never_cease_ends_that_were_seen_earlier_count_once_the_tables_reach_them():
    """Bars made from ticks are committed together every few seconds: the newest ends are never reached."""
    tables, wake = MemoryTables(), Wake()
    lookups = TableLookups(lambda: tables, wake)
    job = Job("a", JobKind.HISTORICAL, "BTC/USDT.BINANCE", "BINANCE", 1, period_seconds=60, fetch=minutes(0, 10))
    try:
        read: list[int] = []
        for turn, reached in enumerate((0, 9, 12, 19)):
            tables.reached[NEW] = {0: reached}
            lookups.ask(JobsQuestion((job,), ends(NEW, 10 * (turn + 1), asked_ns=NOW + turn)))
            wait_until(lambda: wake.count > turn, what="the look")  # noqa: B023 - waited for in this turn
            read += [one.log_read_ns for found in lookups.results() for one in found.evidence]
        # The ends of turn 0 (10) are reached in turn 2; those of turn 2 (30) are remembered then.
        assert read == [0, 0, NOW, 0]
        tables.reached[NEW] = {0: 30}
        lookups.ask(JobsQuestion((job,), ends(NEW, 99, asked_ns=NOW + 9)))
        wait_until(lambda: wake.count > 4, what="the look")
        assert [one.log_read_ns for found in lookups.results() for one in found.evidence] == [NOW + 2]
        # Ends of a log that is no more are reached never, and are forgotten.
        lookups.ask(JobsQuestion((job,), ends(OLD, 5, asked_ns=NOW + 10)))
        wait_until(lambda: wake.count > 5, what="the look")
        tables.reached[OLD] = {0: 5}
        lookups.ask(JobsQuestion((job,), ends(OLD, 6, asked_ns=NOW + 11)))
        wait_until(lambda: wake.count > 6, what="the looks")
        assert [one.log_read_ns for found in lookups.results() for one in found.evidence][-1] == NOW + 10
    finally:
        lookups.close()
