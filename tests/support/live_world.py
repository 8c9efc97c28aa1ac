"""A publisher on the gateway's fast path that logs what it publishes and can lose it on the way."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable

import zmq

from relay.protocol.envelope import encode_record
from relay.protocol.registry import type_id_of
from relay.protocol.stamps import Stamper
from relay.protocol.topics import parse_market_topic
from relay.protocol.v1 import market_pb2, request_pb2
from spark_jobs.manager.engine.replay import ReplayCollector, read_replay
from tests.support.client_world import BTC, GatewayWorld

__all__ = ["BTC_TICK", "FIRST_NS", "LiveWorld", "ReplayLog", "gap", "tick"]

BTC_TICK = f"{BTC}|tick"
FIRST_NS = 1_700_000_000_000_000_000


def tick(number: int, *, ticker: str = BTC, is_backfill: bool = False) -> market_pb2.Tick:
    """Trade ``number``; one a millisecond, price 42.13 plus its number in cents."""
    return market_pb2.Tick(
        trade_id=str(number),
        ticker=ticker,
        timestamp=FIRST_NS + number * 1_000_000,
        price=4213 + number,
        amount=10_000_000 + number,
        price_decimals=2,
        amount_decimals=7,
        taker_buy=bool(number % 2),
        received_at=FIRST_NS + number * 1_000_000 + 500,
        backfill=is_backfill,
    )


def gap(state: str, first: int | None, last: int | None, *, ticker: str = BTC) -> market_pb2.Gap:
    """What the ingestor says about a hole."""
    return market_pb2.Gap(
        ticker=ticker,
        state=state,
        from_trade_id="" if first is None else str(first),
        to_trade_id="" if last is None else str(last),
    )


class ReplayLog:
    """Records in log order, served as the manager serves them."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.asked: list[request_pb2.ReplayRequest] = []

    def append(self, message: object) -> None:
        self.records.append(encode_record(message))

    def answer(self, asked: request_pb2.ReplayRequest) -> request_pb2.ReplayResponse:
        self.asked.append(asked)
        wanted = read_replay(asked)
        collector = ReplayCollector(wanted)
        ticker = str(parse_market_topic(asked.topic).ticker).encode()
        start = wanted.cursor if wanted.by == "time" else 0
        collector.take((i, r) for i, r in enumerate(self.records) if i >= start and ticker in r)
        return collector.answer()


class LiveWorld:
    """Publishes stamped messages of one ingestor; ``log`` is what the manager replays from."""

    def __init__(self, world: GatewayWorld) -> None:
        self.world, self.log = world, ReplayLog()
        world.manager.symbols = self._symbols
        world.manager.replays = self.log.answer
        self.known = {BTC}
        self.attempt = 1
        self._context = zmq.Context()
        self.start_publisher()

    def start_publisher(self) -> None:
        """A new socket under a new epoch, as after a restart or a hand-over."""
        self.publisher = self._context.socket(zmq.XPUB)
        self.publisher.setsockopt(zmq.LINGER, 0)
        self.publisher.setsockopt(zmq.SNDHWM, 1_000_000)
        self.publisher.connect(f"tcp://127.0.0.1:{self.world.ports['fast_path']}")
        self.stamper = Stamper(random.getrandbits(63))
        self._subscribed: set[bytes] = set()

    def until_subscribed(self, *topics: str, deadline_s: float = 60.0) -> None:
        """Wait until the gateway holds topics upstream."""
        wanted, end = {topic.encode() for topic in topics}, time.monotonic() + deadline_s
        while not wanted <= self.subscribed():
            assert time.monotonic() < end, f"waited in vain for {wanted - self._subscribed}"

    def subscribed(self) -> set[bytes]:
        """Return what is subscribed now."""
        while self.publisher.poll(10):
            frame = self.publisher.recv()
            (self._subscribed.add if frame[:1] == b"\x01" else self._subscribed.discard)(frame[1:])
        return self._subscribed

    def restart_gateway_subscriptions(self, *topics: str) -> None:
        """Wait until a gateway that was started again holds topics."""
        self._subscribed.clear()
        self.until_subscribed(*topics)

    def publish(self, *messages: object, is_lost: bool = False, is_logged: bool = True) -> None:
        """Stamp, log and send; lost ones are not sent."""
        for message in messages:
            topic = f"{message.ticker}|{self._kind(message)}".encode()
            body = bytes([type_id_of(message)]) + message.SerializeToString()
            body = self.stamper.stamp(topic, body, now_ns=time.time_ns())
            if is_logged:
                self.log.records.append(b"\x01" + body)
            if not is_lost:
                self.publisher.send_multipart([topic, b"\x01", body])

    def trade(self, numbers: Iterable[int], **how: bool) -> None:
        """Publish trades."""
        self.publish(*map(tick, numbers), **how)

    def beat(self, last: int | None = None, state: str = "UP", *, attempt: int | None = None) -> None:
        """Publish the ticker's beat."""
        beat = market_pb2.Heartbeat(source="INGESTOR", ticker=BTC, state=state, attempt=attempt or self.attempt)
        if last is not None:
            beat.last_trade_id = str(last)
        self.publish(beat, is_logged=False)

    def close(self) -> None:
        self._context.destroy(0)

    @staticmethod
    def _kind(message: object) -> str:
        kinds = {market_pb2.Tick: "tick", market_pb2.Gap: "gap", market_pb2.Heartbeat: "heartbeat"}
        return kinds[type(message)]

    def _symbols(self, query: request_pb2.SymbolQuery) -> request_pb2.SymbolReply:
        if query.ticker not in self.known:
            return request_pb2.SymbolReply(status=request_pb2.SymbolReply.NOT_FOUND)
        market = market_pb2.Market(market_id=query.ticker, exchange_id="BINANCE")
        return request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])
