"""Slot accounting without sockets: what an offer means, and when an attempt is lost."""

from __future__ import annotations

from dataclasses import replace

from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.broker import Broker, BrokerLimits, Lease
from spark_jobs.manager.engine.model import Assignment
from spark_jobs.manager.engine.slots import SlotState

SECOND = 1_000_000_000
HISTORICAL = work_pb2.WorkerReady.HISTORICAL
REALTIME = work_pb2.WorkerReady.REALTIME
ANY = work_pb2.WorkerReady.ANY
ROUTE = (b"peer",)


def offer(slot_id: int = 0, sequence: int = 1, *, epoch: int = 7, **fields: object) -> Assignment:
    values: dict[str, object] = {"ingestor_id": "one", "exchange": "BINANCE", "slot_type": HISTORICAL, **fields}
    return Assignment(ingestor_epoch=epoch, slot_id=slot_id, offer_sequence=sequence, **values)  # type: ignore[arg-type]


def enqueue(broker: Broker, job_id: str, *, attempt: int = 1, created_ns: int = 0, **fields: object) -> None:
    values: dict[str, object] = {"exchange": "BINANCE", "slot_type": HISTORICAL, "client_id": "", **fields}
    broker.enqueue(job_id, attempt=attempt, created_ns=created_ns, **values)  # type: ignore[arg-type]


def assigned(broker: Broker, now_ns: int) -> list[str]:
    return [lease.job_id for lease, _ in broker.assign(now_ns)]


def dispatched(*, now_ns: int = 0) -> tuple[Broker, Lease]:
    """A broker whose only slot runs attempt 1 of job a."""
    broker = Broker(BrokerLimits())
    broker.offered(offer(), ROUTE, now_ns=now_ns)
    enqueue(broker, "a")
    [(lease, _)] = broker.assign(now_ns)
    return broker, lease


def test_an_offer_is_consumed_by_one_dispatch() -> None:
    broker, lease = dispatched()
    enqueue(broker, "b")
    assert (lease.job_id, lease.attempt, lease.route) == ("a", 1, ROUTE)
    assert assigned(broker, 1) == []


def test_a_repeated_offer_makes_no_phantom_slot() -> None:
    broker = Broker(BrokerLimits())
    for second in range(4):
        broker.offered(offer(), ROUTE, now_ns=second * SECOND)
    enqueue(broker, "a")
    enqueue(broker, "b")
    assert assigned(broker, 4 * SECOND) == ["a"]


def test_a_consumed_offer_repeated_within_five_seconds_is_an_echo() -> None:
    broker, _ = dispatched()
    result = broker.offered(offer(), ROUTE, now_ns=5 * SECOND - 1)
    assert (result.lost, result.resend) == ((), None)


def test_a_consumed_offer_repeated_after_five_seconds_sends_the_same_attempt_again_to_where_it_speaks_from() -> None:
    broker, _ = dispatched()
    result = broker.offered(offer(), (b"new peer",), now_ns=5 * SECOND)
    assert result.resend is not None
    assert (result.resend.job_id, result.resend.attempt, result.resend.route) == ("a", 1, (b"new peer",))
    assert broker.offered(offer(), ROUTE, now_ns=6 * SECOND).resend is None


def test_a_higher_sequence_without_work_complete_means_that_the_job_was_lost() -> None:
    broker, _ = dispatched()
    result = broker.offered(offer(sequence=2), ROUTE, now_ns=SECOND)
    assert result.lost == (("a", 1),)
    enqueue(broker, "a", attempt=2)
    [(lease, slot)] = broker.assign(SECOND)
    assert (lease.attempt, slot.offer_sequence) == (2, 2)


def test_a_completed_slot_takes_the_next_sequence_and_no_echo_of_the_old_one() -> None:
    broker, _ = dispatched()
    assert broker.complete("a", 1, now_ns=SECOND) is not None
    enqueue(broker, "b")
    assert not broker.offered(offer(), ROUTE, now_ns=20 * SECOND).accepted
    assert assigned(broker, 20 * SECOND) == []
    broker.offered(offer(sequence=2), ROUTE, now_ns=20 * SECOND)
    assert assigned(broker, 20 * SECOND) == ["b"]


def test_three_missed_heartbeats_end_the_lease_and_the_slot_takes_its_next_offer_of_whatever_sequence() -> None:
    broker, _ = dispatched()
    assert broker.heard("a", 1, ROUTE, now_ns=10 * SECOND)
    assert broker.expire(25 * SECOND - 1) == []
    assert [(lease.job_id, lease.attempt) for lease in broker.expire(25 * SECOND)] == [("a", 1)]
    assert not broker.heard("a", 1, ROUTE, now_ns=26 * SECOND)
    broker.offered(offer(), ROUTE, now_ns=26 * SECOND)
    enqueue(broker, "b")
    assert assigned(broker, 26 * SECOND) == ["b"]


def test_stale_attempts_are_ignored() -> None:
    broker, _ = dispatched()
    assert broker.complete("a", 2, now_ns=1) is None
    assert broker.reject("b", 1, now_ns=1) is None
    assert not broker.heard("a", 0, ROUTE, now_ns=1)
    assert broker.running_count == 1


def test_an_unreachable_slot_is_dropped_and_its_job_is_free_for_another_slot() -> None:
    """case 77: a killed peer makes the send fail, which frees the job at once."""
    broker, _ = dispatched()
    assert broker.unreachable("a", 1, now_ns=1) is not None
    assert len(broker.slots) == 0
    broker.offered(offer(ingestor_id="two"), (b"two",), now_ns=2)
    enqueue(broker, "a", attempt=2)
    assert assigned(broker, 2) == ["a"]


def test_a_new_process_of_an_ingestor_ends_what_the_one_before_it_had() -> None:
    """case 73: a second hello for the same logical worker decides by epoch, not by socket identity."""
    broker, _ = dispatched()
    result = broker.offered(offer(epoch=3), (b"new",), now_ns=1)
    assert result.lost == (("a", 1),)
    assert [slot.assignment.ingestor_epoch for slot in broker.slots] == [3]


def test_messages_of_a_superseded_process_are_dropped() -> None:
    """case 75: ten thousand queued offers of a crashed worker carry the old epoch."""
    broker = Broker(BrokerLimits())
    broker.offered(offer(epoch=9), (b"old",), now_ns=0)
    broker.offered(offer(epoch=3), (b"new",), now_ns=1)
    assert not any(broker.offered(offer(n, epoch=9), (b"old",), now_ns=2).accepted for n in range(10_000))
    assert [(slot.assignment.ingestor_epoch, slot.route) for slot in broker.slots] == [(3, (b"new",))]


def test_exchange_and_type_match_and_any_serves_both_but_last() -> None:
    broker = Broker(BrokerLimits())
    broker.offered(offer(0, slot_type=ANY), ROUTE, now_ns=0)
    broker.offered(offer(1, slot_type=REALTIME), ROUTE, now_ns=0)
    broker.offered(offer(2, exchange="KRAKEN"), ROUTE, now_ns=0)
    broker.offered(offer(3), ROUTE, now_ns=1)
    for name in "abc":
        enqueue(broker, name)
    assert [(lease.job_id, slot.slot_id) for lease, slot in broker.assign(2)] == [("a", 3), ("b", 0)]


def test_a_ban_parks_all_slots_of_the_exchange_on_that_ingestor_only() -> None:
    """case 52: the slots are used again after 720 s; case 49: a ban parks them all until its end."""
    broker = Broker(BrokerLimits())
    broker.offered(offer(0), ROUTE, now_ns=0)
    broker.offered(offer(1), ROUTE, now_ns=0)
    broker.offered(offer(0, ingestor_id="two"), (b"two",), now_ns=0)
    broker.slots.park("one", "BINANCE", until_ns=720 * SECOND)
    for name in "ab":
        enqueue(broker, name)
    assert [slot.ingestor_id for _, slot in broker.assign(0)] == ["two"]
    broker.offered(offer(0, sequence=2), ROUTE, now_ns=720 * SECOND - 1)
    assert assigned(broker, 720 * SECOND - 1) == []
    assert assigned(broker, 720 * SECOND) == ["b"]


def test_offers_that_are_no_longer_repeated_are_forgotten() -> None:
    broker = Broker(BrokerLimits())
    broker.offered(offer(), ROUTE, now_ns=0)
    broker.expire(17 * SECOND)
    assert len(broker.slots) == 0


def test_a_stored_attempt_is_trusted_for_one_lease_after_a_restart() -> None:
    broker = Broker(BrokerLimits())
    broker.restore("a", 2, offer(sequence=5), now_ns=0)
    assert broker.heard("a", 2, ROUTE, now_ns=14 * SECOND)
    assert broker.expire(15 * SECOND) == []
    assert broker.complete("a", 2, now_ns=16 * SECOND) == Lease("a", 2, ("one", 0), ROUTE, 29 * SECOND)


def test_a_stored_attempt_that_was_never_sent_is_sent_when_its_offer_is_repeated_after_a_restart() -> None:
    broker = Broker(BrokerLimits())
    broker.restore("a", 1, offer(), now_ns=0)
    result = broker.offered(offer(), ROUTE, now_ns=6 * SECOND)
    assert result.resend is not None
    assert result.resend.route == ROUTE


def test_a_withdrawn_job_leaves_queue_and_slot() -> None:
    broker, lease = dispatched()
    enqueue(broker, "b")
    assert broker.withdraw("b", now_ns=1) is None
    assert broker.withdraw("a", now_ns=1) == lease
    assert broker.queued_count == broker.running_count == 0
    assert [slot.state for slot in broker.slots] == [SlotState.LAPSED]


def test_jobs_are_served_oldest_first_and_clients_in_turn() -> None:
    broker = Broker(BrokerLimits())
    for n in range(4):
        enqueue(broker, f"many{n}", client_id="many", created_ns=n)
    enqueue(broker, "single", client_id="few", created_ns=10)
    for n in range(5):
        broker.offered(offer(n), ROUTE, now_ns=0)
    assert assigned(broker, 0) == ["many0", "single", "many1", "many2", "many3"]


def test_newcomers_do_not_starve_an_old_client() -> None:
    broker = Broker(BrokerLimits())
    enqueue(broker, "old0", client_id="old")
    enqueue(broker, "old1", client_id="old")
    served: list[str] = []
    for n in range(4):
        enqueue(broker, f"new{n}", client_id=f"newcomer {n}", created_ns=n + 1)
        broker.offered(offer(sequence=n + 1), ROUTE, now_ns=n)
        served += assigned(broker, n)
        broker.complete(served[-1], 1, now_ns=n)
    assert "old1" in served


def test_a_job_waits_for_its_back_off() -> None:
    broker = Broker(BrokerLimits())
    broker.offered(offer(), ROUTE, now_ns=0)
    enqueue(broker, "a", not_before_ns=SECOND)
    enqueue(broker, "b", created_ns=1)
    assert assigned(broker, 0) == ["b"]
    broker.offered(offer(sequence=2), ROUTE, now_ns=SECOND)
    assert broker.complete("b", 1, now_ns=SECOND) is None
    assert assigned(broker, SECOND) == ["a"]


def test_route_follows_the_worker_to_a_new_connection() -> None:
    """case 74 and case 108: nothing relies on a socket identity or its hand-over; the last one heard is used."""
    broker, lease = dispatched()
    assert broker.heard("a", 1, (b"reconnected",), now_ns=SECOND)
    moved = broker.lease_of("a", 1)
    assert moved is not None
    assert moved == replace(lease, route=(b"reconnected",), expires_ns=16 * SECOND)


def test_offers_of_an_older_process_of_one_id_are_refused_and_counted() -> None:
    broker = Broker(BrokerLimits())
    broker.offered(offer(epoch=1), ROUTE, now_ns=0)
    assert broker.offered(offer(epoch=2), ROUTE, now_ns=1).accepted
    assert not broker.offered(offer(epoch=1, sequence=2), ROUTE, now_ns=2).accepted
    assert broker.offers_superseded == 1


def test_forged_offers_grow_neither_slots_nor_epochs_without_bound() -> None:
    broker = Broker(BrokerLimits(slots_max=100))
    for number in range(5_000):
        broker.offered(offer(ingestor_id=f"forged-{number}", epoch=number), ROUTE, now_ns=0)
        broker.offered(offer(slot_id=number, epoch=3), ROUTE, now_ns=0)
    assert len(broker.slots) <= 100
    assert broker.offers_over_bound >= 9_900
    assert len(broker._epochs) <= 4_096
    assert len(broker._superseded) <= 4_096


def test_a_slot_that_is_known_is_taken_again_when_the_bound_is_reached() -> None:
    broker = Broker(BrokerLimits(slots_max=1))
    broker.offered(offer(), ROUTE, now_ns=0)
    assert not broker.offered(offer(slot_id=1), ROUTE, now_ns=1).accepted
    enqueue(broker, "job")
    assert assigned(broker, 2) == ["job"]


def test_a_slot_that_only_repeats_its_offer_loses_the_attempt_after_two_resends_and_is_parked() -> None:
    broker, _ = dispatched()
    results = [broker.offered(offer(), ROUTE, now_ns=second * SECOND) for second in (6, 12, 18, 24)]
    assert [result.resend is not None for result in results] == [True, True, False, False]
    assert results[2].lost == (("a", 1),)
    enqueue(broker, "a", attempt=2)
    assert assigned(broker, 30 * SECOND) == []
    broker.offered(offer(slot_id=1), ROUTE, now_ns=30 * SECOND)
    assert assigned(broker, 30 * SECOND) == ["a"]


def test_no_worker_parks_a_slot_or_an_exchange_for_longer_than_the_longest_ban() -> None:
    for is_ban in (True, False):
        broker, lease = dispatched()
        broker.reject("a", 1, now_ns=SECOND)
        broker.park(lease.slot_key, "BINANCE", until_ns=2**62, now_ns=SECOND, is_ban=is_ban)
        enqueue(broker, "a", attempt=2)
        for second in (6, 3 * 86_400, 3 * 86_400 + 2):
            broker.offered(offer(), ROUTE, now_ns=second * SECOND)
            assert assigned(broker, second * SECOND) == (["a"] if second > 3 * 86_400 + 1 else [])
