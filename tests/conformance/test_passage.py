"""Published messages pass the same natively and in Python: the same ones, in the same order, untouched."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from relay.transport.broadcast import BroadcastReader, ClientBroadcast, split_record
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

    def __init__(self, *, is_native: bool, broadcast: ClientBroadcast | None = None) -> None:
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
            broadcast=broadcast,
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


class Beside:
    """A broadcast that wants one topic, and a reader of it."""

    def __init__(self, folder: Path, topic: bytes, *, body_bytes_max: int = 1_000) -> None:
        folder.chmod(0o700)
        self.broadcast = ClientBroadcast(7, folder=str(folder), length=4_096, body_bytes_max=body_bytes_max)
        self.broadcast.want(topic, on=True)
        self.reader = BroadcastReader(
            self.broadcast.name, relay_epoch=7, host_id=self.broadcast.host_id, folder=str(folder), is_spinning=True
        )

    def records(self) -> list[list[bytes]]:
        found = [list(split_record(record)) for record in self.reader.take()]
        assert not self.reader.is_lapped
        return found


def test_what_is_wanted_by_broadcast_is_there_in_order_beside_the_socket_and_nothing_else(
    way: Way, tmp_path: Path
) -> None:
    is_native = way.passage.is_native
    accelerator()
    beside = Beside(tmp_path, b"t")
    ringing = Way(is_native=is_native, broadcast=beside.broadcast)
    wanted = [(b"t", VERSION, bytes([4 + n % 2]) + str(n).encode()) for n in range(20)]
    other = [(b"u", VERSION, b"\x04x"), (b"t", b"\x02", b"\x04"), (b"never", VERSION, b"\x04"), (b"t", VERSION, b"")]
    assert ringing.pass_on([*wanted[:10], *other, *wanted[10:]], burst=6)
    assert beside.records() == [list(message) for message in wanted]
    beside.broadcast.want(b"t", on=False)
    ringing.passage.forget(b"t")
    assert ringing.pass_on(wanted[:3]) == [list(message) for message in wanted[:3]]
    assert beside.records() == []
    beside.broadcast.want(b"t", on=True)
    ringing.passage.forget(b"t")
    ringing.pass_on(wanted[:3])
    assert beside.records() == [list(message) for message in wanted[:3]]
    ringing.context.destroy(0)


def test_the_longest_message_that_a_relay_takes_fits_into_its_broadcast(way: Way, tmp_path: Path) -> None:
    is_native = way.passage.is_native
    accelerator()
    topic, body = b"t" * 200, b"\x04" + bytes(100_000)
    beside = Beside(tmp_path, topic, body_bytes_max=len(body))
    ringing = Way(is_native=is_native, broadcast=beside.broadcast)
    ringing.pass_on([(topic, VERSION, body)])
    assert beside.records() == [[topic, VERSION, body]]
    ringing.context.destroy(0)


@given(messages=MESSAGES, burst=st.integers(1, 5))
def test_whatever_comes_both_ways_broadcast_the_same(
    tmp_path_factory: pytest.TempPathFactory, messages: list[tuple[bytes, ...]], burst: int
) -> None:
    accelerator()
    heard = []
    for is_native in (False, True):
        beside = Beside(tmp_path_factory.mktemp("shared"), b"t")
        way = Way(is_native=is_native, broadcast=beside.broadcast)
        try:
            passed = way.pass_on(messages, burst=burst)
            heard.append(beside.records())
            assert heard[-1] == [message for message in passed if message[0] == b"t"]
        finally:
            way.context.destroy(0)
            beside.reader.close()
            beside.broadcast.close()
    assert heard[0] == heard[1]
