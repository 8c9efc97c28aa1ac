"""How shared memory takes over from the socket, and the socket from it: what is subscribed when, and without a hole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.errors import SettingsError
from relay.protocol.v1 import common_pb2, request_pb2
from relay_client.engine.commands import (
    CloseBroadcast,
    EndFeeds,
    OpenBroadcast,
    ReadBroadcast,
    Subscribe,
    Unsubscribe,
)
from relay_client.engine.route import LAP_WINDOW_NS, LAPS_MAX, Route
from relay_client.probe import RelayInfo

T, U, PRIVATE = b"X.Y|tick", b"X.Y|gap", b"CEP:0b0e9c5e-3c52-4d44-9a0a-6a0f3d0d6a11"
TCP = common_pb2.Transport(kind=common_pb2.Transport.TCP)
SHM = common_pb2.Transport(kind=common_pb2.Transport.SHM, host_id="here", address="fanout.7")
SHM_SBE = common_pb2.Transport(
    kind=common_pb2.Transport.SHM, host_id="here", address="fanout.7", record_versions=[1, 2]
)
OPEN = OpenBroadcast("fanout.7", "here", 7)


def joined(choice: str = "auto") -> Route:
    """A route by shared memory, with one topic."""
    route = Route(choice)
    route.hold([T])
    route.told(7, [TCP, SHM])
    assert route.join() == [OPEN]
    assert route.on_opened() == [Subscribe(b"@" + T)]
    assert (route.transport, route.is_muted(T)) == ("tcp", False)
    assert route.on_in_force() == [ReadBroadcast(), Unsubscribe(T)]
    assert (route.transport, route.reason, route.is_muted(T)) == ("shm", "", True)
    return route


def test_further_topics_of_market_data_are_demanded_and_private_ones_stay_plain() -> None:
    route = joined()
    assert route.hold([U, PRIVATE]) == [Subscribe(b"@" + U), Subscribe(PRIVATE)]
    assert not route.is_muted(PRIVATE)
    assert route.release([U]) == [Unsubscribe(b"@" + U)]


def test_a_client_of_sbe_demands_it_where_a_topic_has_that_form() -> None:
    route, market = Route("auto", is_sbe=True), b"X.Y|market"
    route.hold([T, market])
    route.told(7, [SHM_SBE])
    assert route.join() == [replace(OPEN, is_sbe=True)]
    assert route.on_opened() == [Subscribe(b"@@" + T), Subscribe(b"@" + market)]
    assert route.on_in_force() == [ReadBroadcast(), Unsubscribe(T), Unsubscribe(market)]
    assert route.names == [b"@@" + T, b"@" + market]
    assert (route.transport, route.encoding) == ("shm", "sbe")
    assert route.is_muted(T)
    assert route.on_lost("gone") == [
        *map(Subscribe, (T, market)),
        Unsubscribe(b"@@" + T),
        Unsubscribe(b"@" + market),
        CloseBroadcast(),
    ]


@pytest.mark.parametrize("versions", [(), (1,), (1, 3)])
def test_a_client_of_sbe_takes_protobuf_of_a_relay_that_does_not_announce_it(versions: tuple[int, ...]) -> None:
    route = Route("auto", is_sbe=True)
    route.hold([T])
    route.told(7, [common_pb2.Transport(kind=SHM.kind, host_id="here", address="fanout.7", record_versions=versions)])
    assert route.join() == [OPEN]
    assert route.on_opened() == [Subscribe(b"@" + T)]
    assert route.on_in_force() == [ReadBroadcast(), Unsubscribe(T)]
    assert (route.transport, route.encoding) == ("shm", "protobuf")


def test_a_relay_that_says_no_record_versions_writes_protobuf_alone() -> None:
    told = [RelayInfo.of(request_pb2.ProbeReply(transports=[TCP, way])).encodings for way in (SHM, SHM_SBE)]
    assert told == [("protobuf",), ("protobuf", "sbe")]


def test_what_the_next_relay_announces_is_demanded_and_what_was_demanded_before_is_taken_back() -> None:
    route = Route("auto", is_sbe=True)
    route.hold([T])
    for told, name, encoding in ((SHM_SBE, b"@@" + T, "sbe"), (SHM, b"@" + T, "protobuf"), (SHM_SBE, b"@@" + T, "sbe")):
        route.told(7, [told])
        assert len(route.join()) == 1
        assert route.on_opened() == [Subscribe(name)]
        route.told(7, [SHM])
        assert route.on_in_force() == [ReadBroadcast(), Unsubscribe(T)]
        assert route.encoding == encoding
        assert route.on_cut() == [Subscribe(T), Unsubscribe(name), CloseBroadcast()]
        assert route.encoding == "protobuf"


def test_the_last_topic_takes_the_broadcast_with_it_and_the_next_one_opens_it_again() -> None:
    route = joined()
    route.hold([PRIVATE])
    assert route.release([T]) == [Unsubscribe(b"@" + T), CloseBroadcast()]
    assert route.join() == []
    assert route.hold([T]) == [Subscribe(T)]
    assert route.join() == [OPEN]


def test_nothing_is_opened_for_private_topics_or_before_the_relay_has_told() -> None:
    route = Route("auto")
    route.hold([T])
    assert (route.join(), route.reason) == ([], "the relay has not answered yet")
    route.told(7, [TCP])
    assert (route.join(), route.reason) == ([], "the relay offers no shared memory")
    alone = Route("auto")
    alone.hold([PRIVATE])
    alone.told(7, [TCP, SHM])
    assert alone.join() == []


def test_a_refusal_holds_until_the_relay_starts_anew() -> None:
    route = Route("auto")
    route.hold([T])
    route.told(7, [TCP, SHM])
    assert route.on_refused("no room") == []
    assert (route.join(), route.reason) == ([], "no room")
    route.on_cut()
    route.told(8, [TCP, SHM])
    assert route.join() == [OpenBroadcast("fanout.7", "here", 8)]


def test_who_asks_for_tcp_never_gets_anything_else() -> None:
    route = Route("tcp")
    route.hold([T])
    route.told(7, [TCP, SHM])
    assert (route.join(), route.on_cut(), route.on_fresh_sockets(), route.reason) == ([], [], [], "asked for")


@pytest.mark.parametrize("offer", [[TCP], [TCP, SHM]])
def test_who_asks_for_shared_memory_alone_gets_an_error_where_it_cannot_be_had(offer: list) -> None:
    route = Route("shm")
    route.hold([T])
    route.told(7, offer)
    commands = route.join()
    (end,) = route.on_refused("no room") if commands == [OPEN] else commands
    assert isinstance(end, EndFeeds)
    assert isinstance(end.error, SettingsError)
    route.hold([U])
    assert [type(command) for command in route.join()] == [EndFeeds], "a later subscription learns of it, too"
    route.on_cut()
    route.told(8, [TCP, SHM])
    assert route.join() == [OpenBroadcast("fanout.7", "here", 8)]


def test_who_asks_for_shared_memory_alone_waits_for_a_relay_that_has_ended_but_not_with_broken_memory() -> None:
    waiting, broken = joined("shm"), joined("shm")
    assert waiting.on_lost("gone", is_gone=True) == [Subscribe(T), Unsubscribe(b"@" + T), CloseBroadcast()]
    assert waiting.join() == []
    assert isinstance(broken.on_lost("broken")[-1], EndFeeds)


def test_a_client_that_is_overtaken_too_often_goes_back_without_a_hole() -> None:
    route = joined()
    for lap in range(LAPS_MAX - 1):
        assert route.on_lapped(lap) == []
    assert route.on_lapped(LAPS_MAX) == [Subscribe(T)]
    assert (route.transport, route.is_muted(T)) == ("shm", True)
    assert route.on_in_force() == [Unsubscribe(b"@" + T), CloseBroadcast()]
    assert (route.transport, route.is_muted(T), route.join()) == ("tcp", False, [])
    assert route.reason == f"it was overtaken {LAPS_MAX} times within 10 s"


def test_laps_far_apart_and_those_of_who_asked_for_shared_memory_alone_change_nothing() -> None:
    route, strict = joined(), joined("shm")
    assert not any(route.on_lapped(lap * LAP_WINDOW_NS) for lap in range(2 * LAPS_MAX))
    assert not any(strict.on_lapped(lap) for lap in range(2 * LAPS_MAX))
    assert (route.transport, strict.transport) == ("shm", "shm")


def test_a_broadcast_that_is_of_no_use_any_more_is_left_at_once() -> None:
    route = joined()
    assert route.on_lost("gone") == [Subscribe(T), Unsubscribe(b"@" + T), CloseBroadcast()]
    assert (route.transport, route.reason) == ("tcp", "gone")


class Ways:
    """A socket and a broadcast as a route's commands leave them."""

    def __init__(self) -> None:
        self.route, self.subscribed, self.held = Route("auto"), set[bytes](), set[bytes]()
        self.is_open = self.is_read = False

    def carry_out(self, commands: list) -> None:
        for command in commands:
            match command:
                case Subscribe(topic):
                    assert topic not in self.subscribed
                    self.subscribed.add(topic)
                case Unsubscribe(topic):
                    self.subscribed.remove(topic)
                case OpenBroadcast():
                    assert not self.is_open
                    self.is_open = True
                    self.carry_out(self.route.on_opened())
                case ReadBroadcast():
                    assert self.is_open
                    self.is_read = True
                case CloseBroadcast():
                    assert self.is_open
                    self.is_open = self.is_read = False

    def hold(self, topic: bytes, *, on: bool) -> None:
        if (topic in self.held) != on:
            (self.held.add if on else self.held.remove)(topic)
            self.carry_out((self.route.hold if on else self.route.release)([topic]))

    def move(self, what: str) -> None:
        route = self.route
        match what:
            case "told":
                route.told(7, [TCP, SHM])
            case "join":
                self.carry_out(route.join())
            case "in force":
                self.carry_out(route.on_in_force())
            case "lapped" if self.is_read:
                self.carry_out(route.on_lapped(0))
            case "lost" if self.is_open:
                self.carry_out(route.on_lost("gone"))
            case "cut":
                self.carry_out(route.on_cut())
            case "fresh":
                self.subscribed.clear()
                self.carry_out([*route.on_fresh_sockets(), *map(Subscribe, route.names)])

    def check(self) -> None:
        assert self.subscribed == set(self.route.names)
        for topic in self.held:
            is_muted = self.route.is_muted(topic)
            by_socket = topic in self.subscribed and not is_muted
            # A topic that is held while the broadcast is being joined waits there until that is read.
            by_broadcast = b"@" + topic in self.subscribed and self.is_open
            assert by_socket or by_broadcast
            assert self.is_read or not is_muted


SINGLE = ("told", "join", "in force", "lapped", "lost", "cut", "fresh")


@given(
    moves=st.lists(st.one_of(st.sampled_from(SINGLE), st.tuples(st.sampled_from([T, U]), st.booleans())), max_size=60)
)
def test_whatever_happens_each_topic_is_subscribed_by_a_way_that_is_heard(moves: list) -> None:
    ways = Ways()
    for move in moves:
        if isinstance(move, str):
            ways.move(move)
        else:
            ways.hold(move[0], on=move[1])
        ways.check()
