"""Ingestors over real sockets: dead, half-dead, restarted, lying."""

from __future__ import annotations

from collections.abc import Callable

from relay.protocol.envelope import VERSION_FRAME
from relay.protocol.v1 import request_pb2, work_pb2
from tests.support.manager import Ingestor, ManagerThread, Relay, asked_range, history
from tests.support.processes import wait_until
from tests.support.tables import MemoryTables, coverage_row

Notification = request_pb2.HistoryReadyNotification


def finish(ingestor: Ingestor, tables: MemoryTables, data: work_pb2.DataRequest) -> None:
    tables.commit(coverage_row(data.job_id, asked_range(data), attempt=data.attempt))
    ingestor.complete(data)


def quick(start_manager: Callable[..., ManagerThread]) -> ManagerThread:
    """A manager whose leases end after a second."""
    return start_manager(lease_seconds=1, offer_repeat_seconds=1, reconcile_seconds=1)


def test_a_vanished_ingestor_frees_its_job_for_another(
    start_manager: Callable[..., ManagerThread], open_peer: Callable[..., object], tables: MemoryTables
) -> None:
    """case 77: the peer is killed while it holds a job; the next one gets attempt 2."""
    manager = quick(start_manager)
    relay = Relay(manager.endpoints)
    open_peer(relay)
    relay.listen()
    asked = history()
    relay.submit(asked)
    doomed = Ingestor(manager.endpoints)
    assert doomed.work().attempt == 1
    doomed.close()
    other = Ingestor(manager.endpoints, "two")
    open_peer(other)
    data = other.work()
    assert data.attempt == 2
    finish(other, tables, data)
    assert relay.notification(asked).status == Notification.OK


def test_an_offer_whose_peer_is_gone_burns_no_attempt(
    manager: ManagerThread, relay: Relay, open_peer: Callable[..., object], tables: MemoryTables
) -> None:
    """case 77: mandatory routing says at once that nobody is there."""
    gone = Ingestor(manager.endpoints)
    gone.offer()
    gone.receive(work_pb2.BrokerPing)
    gone.close()
    asked = history()
    relay.submit(asked)
    other = Ingestor(manager.endpoints, "two")
    open_peer(other)
    data = other.work()
    finish(other, tables, data)
    assert relay.notification(asked).status == Notification.OK
    wait_until(lambda: manager.counters.get("manager.jobs.ended") == 1, what="every end, once")


def test_a_half_dead_ingestor_loses_its_lease_and_its_late_words_change_nothing(
    start_manager: Callable[..., ManagerThread], open_peer: Callable[..., object], tables: MemoryTables
) -> None:
    manager = quick(start_manager)
    relay, half_dead, healthy = (
        Relay(manager.endpoints),
        Ingestor(manager.endpoints, "half dead"),
        Ingestor(manager.endpoints, "healthy"),
    )
    for peer in (relay, half_dead, healthy):
        open_peer(peer)
    relay.listen()
    asked = history()
    relay.submit(asked)
    stale = half_dead.work()
    data = healthy.work()
    assert (data.job_id, data.attempt) == (stale.job_id, 2)
    half_dead.complete(stale)
    half_dead.beat(stale, progress_rows=99)
    cancel = half_dead.receive(work_pb2.IngestorControl)
    assert (cancel.action, cancel.request_id) == (work_pb2.IngestorControl.CANCEL, stale.job_id)
    healthy.beat(data)
    assert relay.status(asked.request_id).status == Notification.PENDING
    finish(healthy, tables, data)
    assert relay.notification(asked).status == Notification.OK


def test_two_processes_under_one_name_are_told_apart_by_epoch(
    manager: ManagerThread, relay: Relay, open_peer: Callable[..., object]
) -> None:
    """case 73: the second hello supersedes the first, whatever the sockets are called."""
    first, second = Ingestor(manager.endpoints, epoch=9), Ingestor(manager.endpoints, epoch=4)
    for peer in (first, second):
        open_peer(peer)
    first.offer()
    first.receive(work_pb2.BrokerPing)
    second.offer()
    second.receive(work_pb2.BrokerPing)
    first.offer()
    first.receive(work_pb2.BrokerPing)
    relay.submit(history())
    relay.submit(history(20, 30))
    data = second.receive(work_pb2.DataRequest)
    second.complete(data)
    other = second.work()
    assert (data.attempt, other.attempt) == (1, 1)
    assert data.job_id != other.job_id


def test_a_worker_that_restarts_while_the_broker_is_busy_is_heard(
    manager: ManagerThread, relay: Relay, ingestor: Ingestor
) -> None:
    """case 74: a new process under the same name needs no hand-over of an identity."""
    ingestor.offer()
    for _ in range(2_000):
        ingestor.offer(is_new=False)
    ingestor.close()
    ingestor.connect()
    ingestor.epoch, ingestor.sequence = 2, 0
    relay.submit(history())
    data = ingestor.work()
    assert (data.slot_id, data.offer_sequence, data.attempt) == (0, 1, data.attempt)
    ingestor.beat(data)
    ingestor.receive(work_pb2.BrokerPing)


def test_ten_thousand_queued_messages_of_a_crashed_worker_are_dropped_by_their_epoch(
    manager: ManagerThread, relay: Relay, open_peer: Callable[..., object]
) -> None:
    """case 75."""
    crashed, restarted = Ingestor(manager.endpoints, epoch=1), Ingestor(manager.endpoints, epoch=2)
    for peer in (crashed, restarted):
        open_peer(peer)
    crashed.offer()
    crashed.receive(work_pb2.BrokerPing)
    restarted.offer()
    restarted.receive(work_pb2.BrokerPing)
    for _ in range(10_000):
        crashed.offer()
    received = "manager.work.received.WorkerReady"
    wait_until(lambda: manager.counters.get(received) == 10_002, what="all offers")
    relay.submit(history())
    assert restarted.receive(work_pb2.DataRequest).offer_sequence == 1


def test_a_request_that_a_reconnect_swallowed_is_sent_again_to_the_new_connection(
    start_manager: Callable[..., ManagerThread], open_peer: Callable[..., object]
) -> None:
    """case 108: an unread DataRequest of the old connection is sent again, as the same attempt."""
    manager = start_manager(offer_repeat_seconds=1, reconcile_seconds=1)
    relay, ingestor = Relay(manager.endpoints), Ingestor(manager.endpoints)
    for peer in (relay, ingestor):
        open_peer(peer)
    ingestor.offer()
    ingestor.receive(work_pb2.BrokerPing)
    relay.submit(history())
    wait_until(lambda: manager.counters.get("manager.jobs.running") == 1, what="the dispatch")
    ingestor.close()
    ingestor.connect()

    def ask_again() -> bool:
        ingestor.offer(is_new=False)
        return bool(ingestor._peer.socket.poll(200)) and b"\x01" in [f[:1] for f in ingestor._peer.frames()[1:]]

    wait_until(ask_again, what="the DataRequest on the new connection")


def test_a_reconnected_worker_is_answered_where_it_speaks_from(
    manager: ManagerThread, relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history()
    relay.submit(asked)
    data = ingestor.work()
    ingestor.close()
    ingestor.connect()
    ingestor.beat(data)
    ingestor.receive(work_pb2.BrokerPing)
    finish(ingestor, tables, data)
    assert relay.notification(asked).status == Notification.OK


def test_malformed_work_messages_are_counted_by_reason(manager: ManagerThread, ingestor: Ingestor) -> None:
    for frames in ([b"\x09", b"\x20"], [VERSION_FRAME, b""], [VERSION_FRAME, b"\x01"], [VERSION_FRAME, b"\x20\xff"]):
        ingestor.send_frames(*frames)
    ingestor.send(work_pb2.WorkerReady(exchange="not upper", ingestor_id="x"))
    ingestor.send(work_pb2.WorkComplete())
    ingestor.offer()
    ingestor.receive(work_pb2.BrokerPing)
    counted = {
        reason: manager.counters.get(f"manager.work.rejected.{reason}")
        for reason in ("wrong_version", "empty_frame", "wrong_channel", "undecodable", "invalid_field")
    }
    assert counted == {"wrong_version": 1, "empty_frame": 1, "wrong_channel": 1, "undecodable": 1, "invalid_field": 2}


def test_a_restarted_manager_has_a_new_epoch_and_running_jobs_go_on(
    manager: ManagerThread, relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history()
    relay.submit(asked)
    data = ingestor.work()
    manager.stop()
    manager.start()
    ingestor.beat(data)
    ingestor.beat(data)
    wait_until(lambda: (ingestor.receive(work_pb2.BrokerPing), len(ingestor.broker_epochs) == 2)[1], what="new epoch")
    finish(ingestor, tables, data)
    assert relay.notification(asked).status == Notification.OK
    wait_until(lambda: manager.counters.get("manager.jobs.ended") == 1, what="every end, once")


def test_a_queued_job_survives_a_restart_and_is_dispatched(
    manager: ManagerThread, relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history()
    relay.submit(asked)
    manager.stop()
    manager.start()
    data = ingestor.work()
    assert data.attempt == 1
    finish(ingestor, tables, data)
    assert relay.notification(asked).status == Notification.OK


def test_what_became_visible_while_the_manager_was_down_is_found_at_start(
    manager: ManagerThread, relay: Relay, ingestor: Ingestor, tables: MemoryTables
) -> None:
    asked = history()
    relay.submit(asked)
    data = ingestor.work()
    manager.stop()
    tables.commit(coverage_row(data.job_id, asked_range(data)))
    manager.start()
    assert relay.notification(asked).status == Notification.OK
