"""First and last holders of market topics."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.engine.commands import Broadcast, Recheck, Upstream
from relay.engine.subscriptions import UpstreamTopics

T = b"BTC/USDT.BINANCE|tick"


def test_the_first_holder_subscribes_and_a_demand_only_holder_counts_as_one() -> None:
    topics = UpstreamTopics(is_socket_asked=True)
    assert topics.subscribed(b"@" + T) == [Broadcast(T, on=True), Upstream(T, on=True)]
    assert topics.subscribed(T) == []


@pytest.mark.parametrize("is_socket_asked", [True, False])
def test_a_topic_is_broadcast_as_long_as_somebody_holds_it_so_whoever_else_holds_it(is_socket_asked: bool) -> None:
    topics = UpstreamTopics(is_socket_asked=is_socket_asked)

    def leaves(name: bytes, **answer: bool) -> list[object]:
        found = topics.unsubscribed(name)
        return topics.answered(T, **answer) if found == [Recheck(T)] else found

    assert topics.subscribed(T) == [Upstream(T, on=True)]
    assert topics.subscribed(b"@" + T) == [Broadcast(T, on=True)]
    assert topics.subscribed(b"@" + T) == []
    assert leaves(b"@" + T, is_held=True, is_demanded=True) == []
    assert leaves(T, is_held=True, is_demanded=True) == []
    assert topics.subscribed(T) == []
    assert leaves(b"@" + T, is_held=True, is_demanded=False) == [Broadcast(T, on=False)]
    assert leaves(T, is_held=False, is_demanded=False) == [Upstream(T, on=False)]


@pytest.mark.parametrize("is_socket_asked", [True, False])
def test_a_demand_in_sbe_is_told_each_time_and_ends_with_the_last_one(is_socket_asked: bool) -> None:
    topics = UpstreamTopics(is_socket_asked=is_socket_asked)
    begin, end = Broadcast(T, on=True, is_sbe=True), Broadcast(T, on=False, is_sbe=True)

    def leaves(name: bytes, **answer: bool) -> list[object]:
        found = topics.unsubscribed(name)
        return topics.answered(T, **answer) if found == [Recheck(T)] else found

    assert topics.subscribed(b"@@" + T) == [begin, Upstream(T, on=True)]
    assert topics.subscribed(b"@@" + T) == [begin], "so that the second is told the ticker's number, too"
    assert topics.subscribed(b"@" + T) == [Broadcast(T, on=True)]
    assert leaves(b"@@" + T, is_held=True, is_demanded=True, is_sbe=True) == []
    assert leaves(b"@@" + T, is_held=True, is_demanded=True, is_sbe=False) == [end]
    assert leaves(b"@" + T, is_held=False) == [Broadcast(T, on=False), Upstream(T, on=False)]
    assert len(topics) == 0


def test_the_socket_is_asked_before_a_topic_is_given_up() -> None:
    topics = UpstreamTopics(is_socket_asked=True)
    topics.subscribed(T)
    assert topics.unsubscribed(T) == [Recheck(T)]
    assert topics.answered(T, is_held=True) == []
    assert topics.unsubscribed(b"@" + T) == [Recheck(T)]
    assert topics.answered(T, is_held=False) == [Upstream(T, on=False)]
    assert topics.answered(T, is_held=False) == []
    assert topics.unsubscribed(T) == []
    assert len(topics) == 0


@pytest.mark.parametrize("is_socket_asked", [True, False])
@given(moves=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.booleans()), max_size=60))
def test_upstream_follows_what_peers_hold(moves: list[tuple[int, int, bool]], is_socket_asked: bool) -> None:
    """Peers subscribe each topic at most once here, so that counting is right too."""
    topics = UpstreamTopics(is_socket_asked=is_socket_asked)
    held: Counter[bytes] = Counter()
    peers: set[tuple[int, bytes]] = set()
    upstream: set[bytes] = set()
    for topic_number, peer, on in moves:
        topic = b"T%d" % topic_number
        if ((peer, topic) in peers) == on:
            continue
        (peers.add if on else peers.discard)((peer, topic))
        held[topic] += 1 if on else -1
        commands = topics.subscribed(topic) if on else topics.unsubscribed(topic)
        while commands:
            command = commands.pop()
            if isinstance(command, Recheck):
                commands += topics.answered(command.topic, is_held=held[command.topic] > 0)
            elif isinstance(command, Upstream):
                (upstream.add if command.on else upstream.remove)(command.topic)
        assert upstream == {t for t, n in held.items() if n}
