"""How many ticks a second does the client SDK deliver on one core, against a bare receive and parse?"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import zmq

from benchmarks.report import Report
from relay.observability import Counters
from relay.protocol.stamps import Stamper
from relay.protocol.topics import parse_market_topic
from relay.protocol.v1 import market_pb2
from relay.transport import receive
from relay_client import Tick
from relay_client.buffer import BufferPolicy, ItemBuffer
from relay_client.engine.feed_group import FeedGroup
from relay_client.engine.live_values import FeedRules
from relay_client.live import LiveFeed, LiveFeeds

__all__ = ["run"]

_TICKER = "BTC/USDT.BINANCE"
_TOPIC = f"{_TICKER}|tick".encode()
_BURST = 256
Drain = Callable[[Any, int], None]


def run(*, quick: bool) -> Report:
    """Drain the same messages out of a socket's queue in several ways; one thread, nothing else runs."""
    report = Report(
        "sdk_ticks",
        "How many ticks a second does the client SDK deliver on one core, against a bare receive and parse?",
        layout="one thread: an in-process socket with all messages queued → decode → feed → buffer → reader",
        durability="nothing is written",
    )
    count = 10_000 if quick else 200_000
    frames = _messages(count)
    ways: dict[str, Drain] = {
        "bare: receive and parse": _bare,
        "SDK: iterate, numbers not looked at": lambda s, n: _sdk(s, n, id),
        "SDK: iterate, price and amount as integers": lambda s, n: _sdk(s, n, _numbers, is_scaled=True),
        "SDK: iterate, price and amount as Decimal": lambda s, n: _sdk(s, n, _numbers),
        "SDK: strict order": lambda s, n: _sdk(s, n, id, is_strict=True),
    }
    seconds = {name: min(_measure(drain, frames) for _ in range(2 if quick else 5)) for name, drain in ways.items()}
    bare_s = seconds["bare: receive and parse"]
    for name, taken_s in seconds.items():
        report.add(name, ticks_per_second=int(count / taken_s), us_per_tick=round(taken_s * 1e6 / count, 2))
        if taken_s != bare_s:
            report.ratio(f"time of {name} to bare", taken_s / bare_s)
    report.notes["reading"] = (
        "the parse is protobuf's in C; the SDK adds the route by topic, the stamp, the trade id, the buffer"
    )
    return report


def _numbers(tick: Tick) -> object:
    return tick.price, tick.amount


def _messages(count: int) -> list[tuple[bytes, bytes, bytes]]:
    stamper, found = Stamper(12345), []
    for number in range(1, count + 1):
        tick = market_pb2.Tick(
            trade_id=str(4_210_994_121 + number),
            ticker=_TICKER,
            timestamp=1_700_000_000 * 10**9 + number * 10_000,
            price=4_213_000 + number % 100,
            amount=150_000,
            taker_buy=bool(number % 2),
            received_at=1_700_000_000 * 10**9 + number * 10_000,
            price_decimals=2,
            amount_decimals=5,
        )
        body = stamper.stamp(_TOPIC, b"\x04" + tick.SerializeToString(), now_ns=time.time_ns())
        found.append((_TOPIC, b"\x01", body))
    return found


def _measure(drain: Drain, frames: list[tuple[bytes, bytes, bytes]]) -> float:
    context = zmq.Context()
    sender, receiver = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    for socket in (sender, receiver):
        socket.set_hwm(0)
    receiver.bind("inproc://ticks")
    sender.connect("inproc://ticks")
    for message in frames:
        sender.send_multipart(message)
    started = time.perf_counter()
    drain(receiver, len(frames))
    taken_s = time.perf_counter() - started
    context.destroy(0)
    return taken_s


def _bare(socket: Any, count: int) -> None:
    parse = market_pb2.Tick.FromString
    for _ in range(count):
        parse(socket.recv_multipart(zmq.NOBLOCK)[2][1:])


def _sdk(
    socket: Any, count: int, use: Callable[[Tick], object], *, is_scaled: bool = False, is_strict: bool = False
) -> None:
    buffer = ItemBuffer(100_000, BufferPolicy.DROP_OLDEST)
    feed = LiveFeed(FeedGroup(FeedRules(), is_scaled=is_scaled, is_strict=is_strict), buffer)
    feeds = LiveFeeds(lambda _: Future(), Counters().add)
    feeds.add(feed, parse_market_topic(_TOPIC.decode()), None, time.monotonic_ns())
    delivered = 0
    while delivered < count:
        now_ns = time.monotonic_ns()
        for _ in range(_BURST):
            frames = receive(socket)
            if frames is None:
                break
            feeds.take(frames, now_ns)
        feeds.flush()
        for tick in buffer.take(timeout_s=0) or ():
            use(tick)
            delivered += 1
