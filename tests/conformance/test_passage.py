"""Published messages pass the same natively and in Python: the same ones, in the same order, untouched."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from relay.transport.passage import Passage
from tests.support.accelerator import accelerator

VERSION = b"\x01"
FRAMES = st.lists(st.one_of(st.sampled_from([b"", VERSION, b"\x02", b"t", b"u"]), st.binary(max_size=40)), min_size=1)
MESSAGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([b"t", b"u", b"never"]), st.just(VERSION), st.binary(min_size=1, max_size=3)),
        FRAMES.map(tuple),
    ),
    max_size=30,
)


class Way:
    """A publisher, a passage and a subscriber, with a judge that notes what it was asked."""

    def __init__(self, *, is_native: bool) -> None:
        self.context = zmq.Context()
        entry, exit_ = (f"inproc://{uuid.uuid4()}" for _ in range(2))
        self.publisher = self.context.socket(zmq.XPUB)
        self.publisher.bind(entry)
        self.source, self.target = self.context.socket(zmq.XSUB), self.context.socket(zmq.XPUB)
        self.source.connect(entry)
        self.target.bind(exit_)
        self.subscriber = self.context.socket(zmq.XSUB)
        self.subscriber.connect(exit_)
        for one in (self.publisher, self.source, self.target, self.subscriber):
            one.sndhwm = one.rcvhwm = 0
        self.source.send(b"\x01")
        self.subscriber.send(b"\x01")
        assert self.publisher.recv() == self.target.recv() == b"\x01"
        self.asked: list[tuple[bytes, bytes, int]] = []
        self.misshaped: list[list[bytes]] = []
        self.passage = Passage(
            self.source,
            self.target,
            is_wanted=self._is_wanted,
            on_misshaped=self.misshaped.append,
            types_of=lambda topic: b"\x04\x05\xff" if topic == b"t" else b"",
            is_native=is_native,
        )

    def _is_wanted(self, topic: bytes, version: bytes, type_id: int) -> bool:
        self.asked.append((topic, version, type_id))
        return version == VERSION and topic != b"never" and type_id in (4, 5, 255)

    def pass_on(self, messages: list[tuple[bytes, ...]], *, burst: int = 1_000) -> list[list[bytes]]:
        for message in messages:
            self.publisher.send_multipart(message)
        received = sent = 0
        while (turn := self.passage.turn(burst))[0]:
            assert turn[0] <= burst
            received, sent = received + turn[0], sent + turn[1]
        assert received == len(messages)
        got = []
        while self.subscriber.poll(0):
            got.append(self.subscriber.recv_multipart())
        assert len(got) == sent
        return got


@pytest.fixture(params=["python", "native"])
def way(request: pytest.FixtureRequest) -> Iterator[Way]:
    if request.param == "native":
        accelerator()
    made = Way(is_native=request.param == "native")
    assert made.passage.is_native == (request.param == "native")
    yield made
    made.context.destroy(0)


def test_a_known_topic_is_not_asked_about_again_natively_and_passes_in_order(way: Way) -> None:
    messages = [(b"t", VERSION, bytes([4 + n % 2]) + str(n).encode()) for n in range(50)]
    assert way.pass_on(messages, burst=7) == [list(message) for message in messages]
    assert len(way.asked) == (1 if way.passage.is_native else 50)


@pytest.mark.parametrize("message", [
    (b"t", b"\x02", b"\x04"), (b"t", VERSION, b"\x06"), (b"t2", VERSION, b"\x06"), (b"never", VERSION, b"\x04"),
    (b"t", b"", b"\x04"),
])  # fmt: skip
def test_another_version_type_or_topic_is_judged_each_time_and_stays_out(way: Way, message: tuple[bytes, ...]) -> None:
    good = (b"t", VERSION, b"\x04good")
    assert way.pass_on([good, message, good, message]) == [list(good)] * 2
    asked = (message[0], message[1], message[2][0])
    assert way.asked.count(asked) == 2


@pytest.mark.parametrize("message", [(b"t",), (b"t", VERSION), (b"t", VERSION, b""), (b"t", VERSION, b"\x04", b"x")])
def test_a_message_of_another_shape_goes_no_further_and_takes_nothing_with_it(way: Way, message: tuple) -> None:
    good = (b"t", VERSION, b"\x04good")
    assert way.pass_on([good, message, good]) == [list(good)] * 2
    assert way.misshaped == [list(message)]


def test_a_message_of_very_many_frames_is_read_to_its_end(way: Way) -> None:
    good, many = (b"t", VERSION, b"\x04good"), (b"t", VERSION, *[b"x"] * 500)
    assert way.pass_on([good, many, good]) == [list(good)] * 2
    assert len(way.misshaped) == 1


def test_a_large_body_passes_whole(way: Way) -> None:
    large = (b"t", VERSION, b"\x04" + bytes(range(256)) * 4_000)
    assert way.pass_on([large, large]) == [list(large)] * 2


@given(messages=MESSAGES, burst=st.integers(1, 5))
def test_whatever_comes_both_ways_let_the_same_through(messages: list[tuple[bytes, ...]], burst: int) -> None:
    accelerator()
    ways = [Way(is_native=False), Way(is_native=True)]
    try:
        passed = [way.pass_on(messages, burst=burst) for way in ways]
        assert passed[0] == passed[1]
        # Natively, of a message of many frames only the first eight are kept.
        assert [shape[:8] for shape in ways[0].misshaped] == ways[1].misshaped
    finally:
        for way in ways:
            way.context.destroy(0)
