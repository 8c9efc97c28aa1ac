"""``offer`` and ``take``, which judge their arguments themselves: whatever comes, they do what every method does."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Callable

import pytest

from tests.support.accelerator import accelerator

ra = accelerator()


class Named(bytes):
    """Still bytes."""


@pytest.fixture(params=["Ring", "Channel", "MpscRing"])
def ring(request: pytest.FixtureRequest) -> object:
    return getattr(ra, request.param).heap(4096)


@pytest.mark.parametrize(
    ("offer", "type_id"),
    [
        (lambda p: p.offer(b"x"), 1),
        (lambda p: p.offer(b"x", 5), 5),
        (lambda p: p.offer(b"x", type_id=6), 6),
        (lambda p: p.offer(payload=b"x"), 1),
        (lambda p: p.offer(type_id=7, payload=b"x"), 7),
        (lambda p: p.offer(Named(b"x")), 1),
        (lambda p: p.offer(memoryview(b"x")), 1),
        (lambda p: type(p).offer(p, b"x", 8), 8),
        (lambda p: p.offer(*(b"x",), type_id=9), 9),
    ],
)
def test_every_way_to_give_the_arguments_is_the_same_offer(ring, offer: Callable[[object], int], type_id):
    producer, consumer = ring.producer(), ring.consumer()
    assert offer(producer) == ra.Outcome.ACCEPTED
    assert consumer.take_message() == (type_id, b"x")
    assert consumer.take() is None


@pytest.mark.parametrize(
    "offer",
    [
        lambda p: p.offer(),
        lambda p: p.offer(b"x", 1, 2),
        lambda p: p.offer(b"x", unknown=1),
        lambda p: p.offer(b"x", payload=b"y"),
        lambda p: p.offer(b"x", "1"),
        lambda p: p.offer("text"),
        lambda p: type(p).offer(object(), b"x"),
        lambda p: type(p).offer(),
    ],
)
def test_wrong_arguments_raise_a_type_error_and_write_nothing(ring, offer):
    producer, consumer = ring.producer(), ring.consumer()
    with pytest.raises(TypeError):
        offer(producer)
    with pytest.raises(TypeError):
        consumer.take(1)
    assert consumer.take() is None


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 127, 128, 129, 500])
def test_payloads_of_every_length_come_back_whole(ring, length):
    payload = bytes(range(256)) * 2
    producer, consumer = ring.producer(), ring.consumer()
    assert producer.offer(payload[:length]) == ra.Outcome.ACCEPTED
    assert producer.offer_batch([payload[:length], payload[1:length]]) == (2, ra.Outcome.ACCEPTED)
    assert consumer.take() == payload[:length]
    assert consumer.poll_batch().payloads() == [payload[:length], payload[1:length]]


@pytest.mark.parametrize("payloads", [(b"a", b"b"), [b"a", Named(b"b")]])
def test_a_batch_may_be_any_sequence_of_bytes(ring, payloads):
    assert ring.producer().offer_batch(payloads, 4) == (2, ra.Outcome.ACCEPTED)
    assert ring.consumer().poll_batch().messages() == [(4, b"a"), (4, b"b")]


@pytest.mark.parametrize("payloads", [[b"a", "text"], [b"a", None], 7, [bytearray(b"a")]])
def test_a_batch_with_anything_else_in_it_is_refused_as_a_whole(ring, payloads):
    producer, consumer = ring.producer(), ring.consumer()
    with pytest.raises(TypeError):
        producer.offer_batch(payloads)
    assert consumer.take() is None


def test_a_closed_end_raises(ring):
    producer, consumer = ring.producer(), ring.consumer()
    producer.close()
    consumer.close()
    for call in (lambda: producer.offer(b"x"), consumer.take):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_an_end_that_another_thread_waits_in_raises(ring):
    producer, consumer = ring.producer(), ring.consumer()
    waiting = threading.Thread(target=consumer.wait, args=(60,))
    waiting.start()
    raised = None
    while raised is None and waiting.is_alive():
        try:
            consumer.take()
        except RuntimeError as error:
            raised = error
    assert "borrowed" in str(raised)
    producer.offer(b"x")
    waiting.join(60)
    assert consumer.take() == b"x"


def test_a_forked_child_is_told_that_the_ends_are_its_parents(ring):
    producer, consumer = ring.producer(), ring.consumer()
    child = os.fork()
    if child == 0:
        told = 0
        for call in (lambda: producer.offer(b"x"), consumer.take):
            try:
                call()
            except RuntimeError:
                told += 1
        os._exit(told)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert producer.offer(b"x") == ra.Outcome.ACCEPTED
    assert consumer.take() == b"x"


def test_their_signatures_can_be_asked_for():
    assert str(inspect.signature(ra.Producer.offer)) == "(self, /, payload, type_id=1)"
    assert str(inspect.signature(ra.Consumer.take)) == "(self, /)"
