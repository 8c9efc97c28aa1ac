"""Fixed items, records, broadcast, counters and agents from Python."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from tests.support.accelerator import accelerator

ra = accelerator()
TICK = np.dtype([("time_ns", "<u8"), ("price", "<i8"), ("size", "<u4"), ("side", "u1"), ("pad", "V3")])


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


def test_records_go_through_a_ring_and_come_out_as_an_array_over_the_batch(folder):
    ring = ra.FixedRing.create("ticks", TICK.itemsize, 64, directory=folder)
    publisher, subscriber = ra.RecordPublisher(ring, TICK), ra.RecordSubscriber(ring, TICK)
    records = np.zeros(100, TICK)
    records["price"] = np.arange(100)
    taken = publisher.publish(records)
    assert 0 < taken < 100
    assert publisher.publish(records[taken:]) == 0
    got = subscriber.poll()
    assert got.dtype == TICK
    assert not got.flags.writeable
    assert not got.flags.owndata
    assert np.array_equal(got, records[:taken])
    assert len(subscriber.poll()) == 0
    assert publisher.publish(records[::2]) == 50, "a strided array is copied into shape"
    assert subscriber.poll(10)["price"].tolist() == list(range(0, 20, 2))
    assert subscriber.wait(timeout=1)


def test_records_of_another_dtype_or_length_are_refused():
    ring = ra.FixedRing.heap(24, 8)
    publisher = ra.RecordPublisher(ring, TICK)
    with pytest.raises(ValueError, match="expected records of"):
        publisher.publish(np.zeros(3))
    with pytest.raises(ValueError, match="has 8"):
        ra.RecordSubscriber(ring, np.float64)


def test_items_are_pushed_whole_and_popped_one_by_one_or_many():
    ring = ra.FixedRing.heap(8, 4)
    producer, consumer = ring.producer(), ring.consumer()
    with pytest.raises(ValueError, match="whole items"):
        producer.push(b"1234567")
    pushed = producer.push(bytes(range(64)))
    assert pushed >= 3
    assert consumer.pop() == bytes(range(8))
    batch = consumer.pop_batch()
    assert [bytes(item) for item in batch] == [bytes(range(8 * n, 8 * n + 8)) for n in range(1, pushed)]
    assert consumer.pop() is None
    assert (producer.position, consumer.position) == (pushed, pushed)


def test_every_receiver_sees_what_is_transmitted_after_it_joined(folder):
    broadcast = ra.Broadcast.create("fan", 4096, directory=folder)
    transmitter, first = broadcast.transmitter(), broadcast.receiver()
    transmitter.offer(b"one", 1)
    second = ra.Broadcast.open("fan", directory=folder).receiver()
    third = first.another()
    transmitter.offer(b"two", 2)
    assert first.poll_batch().messages() == [(1, b"one"), (2, b"two")]
    assert second.poll_batch().messages() == third.poll_batch().messages() == [(2, b"two")]
    assert transmitter.offer(bytes(transmitter.payload_length_max + 1)) == ra.Outcome.TOO_LONG
    assert transmitter.offer_batch([b"a", b"b"]) == (2, ra.Outcome.ACCEPTED)
    with pytest.raises(ra.BusyError):
        broadcast.transmitter()


def test_a_receiver_that_was_overtaken_is_told_and_goes_on_with_the_newest():
    transmitter, receiver = ra.Broadcast.heap(512)
    for n in range(100):
        transmitter.offer(b"%03d" % n)
    batch = receiver.poll_batch()
    assert batch.lapped
    assert batch.payloads() == [b"099"]
    counts = dict(receiver.counts())
    assert (counts["lapped"], counts["records"]) == (1, 1)
    assert counts["lost_bytes"] > 0
    transmitter.offer(b"next")
    after = receiver.poll_batch()
    assert (after.lapped, after.payloads()) == (False, [b"next"])


def test_a_sleeping_receiver_is_woken():
    transmitter, receiver = ra.Broadcast.heap(512)
    woken = threading.Event()

    def wait() -> None:
        while not receiver.wait(timeout=30):
            pass
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    transmitter.offer(b"x")
    assert woken.wait(timeout=30)
    thread.join()


def test_counters_are_seen_by_whoever_opens_the_set(folder):
    counters = ra.Counters.create("part", 4, directory=folder)
    ticks = counters.allocate(1000, "relay.ticks")
    ticks.add(5)
    ticks.add(-7)
    other = ra.Counters.open("part", directory=folder)
    assert other.snapshot() == [(1000, "relay.ticks", -2)]
    other.find(1000, "relay.ticks").add(10)
    assert (ticks.take(), ticks.get()) == (8, 0)
    assert len(counters) == 4
    assert all(counters.allocate(1, f"c{n}") is not None for n in range(3))
    assert counters.allocate(1, "one too many") is None
    with pytest.raises(ValueError, match="64 bytes"):
        counters.allocate(1, "x" * 65)
    counters.reset()
    ticks.free()
    assert counters.allocate(2, "in its place") is not None


def test_the_standard_counters_have_ids_of_their_own():
    standard = ra.Counters.standard()
    assert len(standard) == len({type_id for type_id, _ in standard}) == len({label for _, label in standard}) == 31
    assert (201, "rel.naks.received") in standard


def test_threads_count_together_and_lose_nothing():
    counter = ra.Counters.heap(1).allocate(1, "shared")
    threads = [threading.Thread(target=lambda: [counter.add() for _ in range(10_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.get() == 40_000


class Worker:
    """Works a few turns, fails in the second, then has nothing to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.idle = threading.Event()

    def on_start(self) -> None:
        self.calls.append("start")

    def do_work(self) -> int:
        self.calls.append("work")
        if self.calls.count("work") == 2:
            raise ValueError("a bad turn")
        if self.calls.count("work") > 3:
            self.idle.set()
            return 0
        return 2

    def on_close(self) -> None:
        self.calls.append("close")


def test_turns_follow_errors_and_the_end_is_told_once():
    worker = Worker()
    with ra.AgentRunner(worker, ra.Backoff()) as runner:
        assert worker.idle.wait(timeout=30)
        assert runner.is_running
    runner.stop()
    assert not runner.is_running
    assert (worker.calls[0], worker.calls[-1], worker.calls.count("close")) == ("start", "close", 1)
    assert (runner.error_count, runner.work_count) == (1, 4)
    assert runner.duty.turns > 0


def test_one_agent_of_several_that_fails_holds_up_nobody():
    class Fixed:
        def __init__(self, work: int | None) -> None:
            self.work = work

        def do_work(self) -> int:
            if self.work is None:
                raise ValueError("no")
            return self.work

    assert ra.CompositeAgent([Fixed(2), Fixed(0), Fixed(3)]).do_work() == 5
    with pytest.raises(ValueError, match="no"):
        ra.CompositeAgent([Fixed(2), Fixed(None), Fixed(3)]).do_work()


def test_backoff_spins_yields_then_parks_longer_and_work_starts_it_over():
    backoff = ra.Backoff(park_min_ns=1, park_max_ns=8)
    for _ in range(15):
        assert not backoff.is_parking
        backoff.idle(0)
    parks = []
    for _ in range(5):
        parks.append(backoff.park_ns)
        backoff.idle(0)
    assert parks == [1, 2, 4, 8, 8]
    backoff.idle(1)
    assert not backoff.is_parking


def test_time_of_turns_with_work_is_busy():
    duty = ra.DutyCycle()
    for now_ns, work in ((100, 1), (130, 2), (140, 0), (200, 1)):
        duty.turn(now_ns, work)
    assert (duty.turns, duty.cycle_ns, duty.cycle_ns_max, duty.busy_ratio) == (3, 60, 60, 0.9)
