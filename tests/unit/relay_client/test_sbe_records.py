"""What a client makes of the broadcast's records where it takes SBE, and where it does not."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from typing import Any

import pytest

from relay.protocol.tickers import parse_ticker
from relay.protocol.topics import MarketTopic
from relay.protocol.v1 import market_pb2
from relay.transport.broadcast import record_of
from relay_client.buffer import BufferPolicy, ItemBuffer
from relay_client.live import LiveFeed, LiveFeeds
from tests.support.accelerator import accelerator
from tests.support.market_messages import body_of

accelerator()
from relay.engine.market_symbols import SbeMarketEncoder  # noqa: E402
from relay_client.sbe_reading import SbeReader  # noqa: E402

TICKER = "BTC/USDT.BINANCE"
T, M = f"{TICKER}|tick".encode(), f"{TICKER}|market".encode()


class Group:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.out: list[Any] = []
        self.handlers = {topic: lambda message, _: self.heard.append(message) for topic in (T, M)}

    def add(self, topic: MarketTopic, *, start_ns: int | None, now_ns: int) -> list[bytes]:
        return [str(topic).encode()]


class World:
    """Feeds of one client, and what a relay writes."""

    def __init__(self, *, is_sbe: bool) -> None:
        self.counts: Counter[str] = Counter()
        self.group = Group()
        self.feeds = LiveFeeds(lambda _: Future(), self.count)
        feed = LiveFeed(self.group, ItemBuffer(10, BufferPolicy.RAISE))
        for kind in ("tick", "market"):
            self.feeds.add(feed, MarketTopic(parse_ticker(TICKER), kind), None, 0)
        self.encoder = SbeMarketEncoder(7)
        if is_sbe:
            self.feeds.use_sbe(SbeReader(self.count))

    def count(self, name: str) -> None:
        self.counts[name] += 1

    def take(self, *records: bytes) -> list[Any]:
        self.feeds.take_records(records, 0)
        heard = list(self.group.heard)
        self.group.heard.clear()
        return heard

    def sbe(self, *messages: Any, topic: bytes = T) -> list[bytes]:
        return [
            record_of(topic, one, version=b"") for message in messages for one in self.encoder.encode(body_of(message))
        ]


def tick(number: int) -> market_pb2.Tick:
    return market_pb2.Tick(ticker=TICKER, trade_id=str(number), timestamp=number, price=number)


def plain(message: Any, *, topic: bytes = T, type_id: bytes = b"\x04") -> bytes:
    return record_of(topic, type_id + message.SerializeToString())


def test_each_client_takes_the_form_it_asked_for_and_leaves_the_other_to_others() -> None:
    for is_sbe in (True, False):
        world = World(is_sbe=is_sbe)
        both = [record for n in range(3) for record in (plain(tick(n)), *world.sbe(tick(n)))]
        assert world.take(*both) == [tick(n) for n in range(3)]
        assert not world.counts


def test_a_client_goes_back_to_protobuf_where_its_next_relay_does_not_announce_sbe() -> None:
    world = World(is_sbe=True)
    assert world.take(plain(tick(1)), *world.sbe(tick(2))) == [tick(2)]
    world.feeds.use_sbe(None)
    assert world.take(plain(tick(3)), *world.sbe(tick(4))) == [tick(3)]


def test_a_topic_without_a_form_in_sbe_comes_in_protobuf() -> None:
    market = market_pb2.Market(market_id=TICKER)
    assert World(is_sbe=True).take(plain(market, topic=M, type_id=b"\x06")) == [market]


def test_what_is_no_message_is_counted_by_name() -> None:
    world = World(is_sbe=True)
    (_, undefined), cut = world.sbe(tick(1)), record_of(T, b"\2\1", version=b"")
    assert world.take(undefined, cut, record_of(T, b"\4", version=b"\3"), record_of(T, b"", version=b"")) == []
    assert world.counts == {"sbe.undefined_symbol": 1, "rejected.undecodable": 1, "rejected.wrong_type": 2}
    gap = market_pb2.Gap(ticker=TICKER)
    definition = record_of(T, world.encoder.known(TICKER), version=b"")
    assert world.take(definition, *world.sbe(gap)) == []
    assert world.counts["rejected.wrong_type"] == 3
    assert world.take(undefined) == [tick(1)]


@pytest.mark.parametrize("is_sbe", [True, False])
def test_what_came_by_the_socket_already_is_not_taken_again(is_sbe: bool) -> None:
    world = World(is_sbe=is_sbe)
    world.feeds.expect_doubles(on=True)
    unknown_field = b"\xf8\x3f\x01"
    for number in range(3):
        assert world.feeds.take((T, b"\1", b"\4" + tick(number).SerializeToString() + unknown_field), 0)
    assert len(world.group.heard) == 3
    world.group.heard.clear()
    both = []
    for number in range(5):
        message = tick(number).SerializeToString() + unknown_field
        both += [record_of(T, b"\4" + message), *world.sbe(tick(number))]
    heard = world.take(*both)
    assert [one.trade_id for one in heard] == ["3", "4"]
    assert not world.counts
