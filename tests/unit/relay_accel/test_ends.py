"""Rings, channels and broadcast from Python: outcomes are values, misuse raises, and no view shows foreign bytes."""

from __future__ import annotations

import array
import gc
import os
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator

ra = accelerator()

MAKERS: dict[str, Callable[[], object]] = {
    "ring": lambda: ra.Ring.heap(1024),
    "channel": lambda: ra.Channel.heap(4096),
    "mpsc": lambda: ra.MpscRing.heap(1024),
    "shared-ring": lambda: ra.Ring.create(f"test-{uuid.uuid4().hex}", 1024, directory=FOLDER),
    "shared-channel": lambda: ra.Channel.create(f"test-{uuid.uuid4().hex}", 4096, directory=FOLDER),
    "shared-mpsc": lambda: ra.MpscRing.create(f"test-{uuid.uuid4().hex}", 1024, directory=FOLDER),
}
FOLDER = ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> str:
    global FOLDER  # noqa: PLW0603 - the makers above are parameters, which are made before any fixture
    tmp_path.chmod(0o700)
    FOLDER = str(tmp_path)
    return FOLDER


@pytest.fixture(params=MAKERS)
def ring(request: pytest.FixtureRequest) -> object:
    return MAKERS[request.param]()


def test_messages_come_in_their_order_with_their_types_and_empty_ones_among_them(ring):
    producer, consumer = ring.producer(), ring.consumer()
    sent = [(1, b"one"), (2, b""), (7, b"exactly8"), (2**31 - 1, bytes(range(100)))]
    for type_id, payload in sent:
        assert producer.offer(payload, type_id) == ra.Outcome.ACCEPTED
    batch = consumer.poll_batch()
    assert batch.messages() == sent
    assert (len(batch), batch.stop, batch.type_id(-1), batch[0]) == (4, "empty", 2**31 - 1, b"one")
    assert list(batch) == batch.payloads() == [payload for _, payload in sent]
    assert consumer.take() is None


@pytest.mark.parametrize(
    "payload",
    [b"bytes", bytearray(b"bytes"), memoryview(b"a bytes b")[2:7], array.array("I", [1, 2, 3]), memoryview(b"")],
)
def test_any_contiguous_buffer_is_a_payload(ring, payload):
    ring.producer().offer(payload)
    assert ring.consumer().take() == bytes(payload)


@pytest.mark.parametrize("payload", ["text", 7, None, memoryview(b"abcdef")[::2]])
def test_what_is_no_contiguous_buffer_is_refused(ring, payload):
    with pytest.raises((TypeError, BufferError)):
        ring.producer().offer(payload)


def test_a_full_ring_says_so_and_takes_again_when_it_was_read(ring):
    producer, consumer = ring.producer(), ring.consumer()
    count = 0
    while producer.offer(b"x" * 56) == ra.Outcome.ACCEPTED:
        count += 1
    assert producer.offer(b"x" * 56) == ra.Outcome.BACK_PRESSURED
    assert not producer.wait_for_room(56, timeout=0)
    assert len(consumer.poll_batch(10_000)) == count
    assert producer.wait_for_room(56, timeout=5)
    assert producer.offer(b"x" * 56) == ra.Outcome.ACCEPTED
    assert dict(producer.counts())["back_pressured"] >= 2


def test_what_can_never_fit_and_what_has_no_type_is_told(ring):
    producer = ring.producer()
    assert producer.offer(bytes(producer.payload_length_max + 1)) == ra.Outcome.TOO_LONG
    with pytest.raises(ValueError, match="greater than 0"):
        producer.offer(b"x", 0)
    with pytest.raises(ValueError, match="at most"):
        producer.claim(producer.payload_length_max + 1)


def test_batches_and_records_are_messages_too(ring):
    producer, consumer = ring.producer(), ring.consumer()
    assert producer.offer_batch([b"a", b"", b"ccc"], 5) == (3, ra.Outcome.ACCEPTED)
    assert producer.offer_records(array.array("Q", [1, 2, 3]), 8) == (3, ra.Outcome.ACCEPTED)
    assert [len(p) for p in consumer.poll_batch()] == [1, 0, 3, 8, 8, 8]
    with pytest.raises(ValueError, match="whole records"):
        producer.offer_records(b"12345", 2)
    written, outcome = producer.offer_batch([b"x" * 56] * 1000)
    assert outcome == ra.Outcome.BACK_PRESSURED
    assert len(consumer.poll_batch(10_000)) == written < 1000


def test_a_claim_is_shown_when_its_block_ends_and_not_after_an_exception(ring):
    producer, consumer = ring.producer(), ring.consumer()
    with producer.claim(8, 3) as claim:
        claim.put(b"5678", 4)
        claim.put(b"1234")
        assert consumer.take() is None
    assert consumer.take_message() == (3, b"12345678")
    with pytest.raises(KeyError), producer.claim(8) as claim:
        raise KeyError
    producer.offer(b"after")
    assert consumer.take() == b"after"


def test_a_claim_that_is_over_cannot_be_written_and_a_part_outside_of_it_is_refused(ring):
    producer, consumer = ring.producer(), ring.consumer()
    claim = producer.claim(8)
    for payload, offset in ((b"123456789", 0), (b"12", 7), (b"", 9)):
        with pytest.raises(IndexError):
            claim.put(payload, offset)
    claim.commit()
    for late in (lambda: claim.put(b"x"), claim.commit):
        with pytest.raises(RuntimeError):
            late()
    claim.abort()
    assert len(consumer.take()) == 8
    forgotten = producer.claim(8)
    del forgotten
    gc.collect()
    assert producer.offer(b"next") == ra.Outcome.ACCEPTED
    assert consumer.take() == b"next"
    open_at_close = producer.claim(8)
    producer.close()
    with pytest.raises(RuntimeError):
        open_at_close.put(b"x")


def test_a_view_of_a_batch_stays_right_when_the_ring_is_overwritten_and_gone(ring):
    producer, consumer = ring.producer(), ring.consumer()
    producer.offer(b"A" * 32)
    view = memoryview(consumer.poll_batch())
    for _ in range(100):
        producer.offer(b"B" * 32)
        consumer.poll_batch()
    producer.close()
    consumer.close()
    del ring, producer, consumer
    gc.collect()
    assert view.readonly
    assert bytes(view) == b"A" * 32


def test_a_closed_end_raises_and_the_reader_is_told_that_the_writer_left(ring):
    producer, consumer = ring.producer(), ring.consumer()
    producer.offer(b"last")
    producer.close()
    with pytest.raises(RuntimeError, match="closed"):
        producer.offer(b"x")
    assert consumer.poll_batch().payloads() == [b"last"]
    if "Mpsc" not in type(ring).__name__:
        assert consumer.poll_batch().stop == "closed"
    consumer.close()
    with pytest.raises(RuntimeError, match="closed"):
        consumer.take()


def test_a_reader_that_asks_for_it_is_not_left_asleep_by_a_writer_that_has_left(ring):
    producer, consumer = ring.producer(), ring.consumer()
    producer.offer(b"last")
    if isinstance(ring, ra.MpscRing):
        with pytest.raises(ValueError, match="of many there is always another"):
            consumer.wait(0, or_left=True)
        return
    producer.close()
    assert consumer.wait(or_left=True)
    assert consumer.take() == b"last"
    assert not consumer.wait(or_left=True)
    assert consumer.poll_batch().stop == "closed"


def test_a_sleeping_reader_is_woken_and_other_threads_run_meanwhile(ring):
    producer, consumer = ring.producer(), ring.consumer()
    got: list[bytes | None] = []

    def read() -> None:
        while not consumer.wait(timeout=30):
            pass
        got.append(consumer.take())

    reader = threading.Thread(target=read)
    reader.start()
    producer.offer(b"wake up")
    reader.join(timeout=30)
    assert got == [b"wake up"]


def take_for_ever(consumer) -> None:
    while True:
        consumer.take()


def test_two_threads_in_one_end_are_told_apart(ring):
    consumer = ring.consumer()
    entered, done = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        while not done.is_set():
            consumer.wait(timeout=0.05)

    other = threading.Thread(target=wait)
    other.start()
    entered.wait()
    try:
        with pytest.raises(RuntimeError, match="borrowed"):
            take_for_ever(consumer)
    finally:
        done.set()
        other.join()


@pytest.mark.parametrize("timeout", [-1.0, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(ring, timeout):
    with pytest.raises(ValueError, match="timeout"):
        ring.consumer().wait(timeout=timeout)


def test_an_end_is_the_parents_after_a_fork(ring):
    producer, consumer = ring.producer(), ring.consumer()
    producer.offer(b"before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                producer.offer(b"from the child")
            except RuntimeError:
                try:
                    consumer.poll_batch()
                    consumer.poll_batch()
                except RuntimeError:
                    code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert producer.offer(b"after") == ra.Outcome.ACCEPTED
    assert consumer.poll_batch().payloads() == [b"before", b"after"]


def test_an_end_on_the_heap_is_taken_once_and_a_named_one_by_one_at_a_time():
    ring = ra.Ring.heap(1024)
    first = ring.producer()
    with pytest.raises(ValueError, match="taken already"):
        ring.producer()
    del first
    named = ra.Ring.create("once", 1024, directory=FOLDER)
    first = named.producer()
    with pytest.raises(ra.BusyError) as busy:
        ra.Ring.open("once", directory=FOLDER).producer()
    assert busy.value.code == "END_TAKEN"
    assert str(os.getpid()) in str(busy.value)
    first.close()
    named.producer()


def test_many_producers_get_slots_and_the_last_is_refused():
    ring = ra.MpscRing.heap(4096, slots=32)
    producers = [ring.producer() for _ in range(32)]
    with pytest.raises(ra.BusyError) as busy:
        ring.producer()
    assert busy.value.code == "NO_FREE_SLOT"
    producers.pop().close()
    ring.producer()
