"""Ingestor and manager in one: ``python -m benchmarks.tick_source FAST_PATH MANAGER_REQUEST MANAGER_PUBLISH RATE``.

It knows every ticker, beats, and publishes evenly spaced ticks of one ticker by the ingestor's own sink (a ring in
shared memory where the relay takes it). ``received_at`` of a tick is the time right before it is made.
"""

from __future__ import annotations

import sys
import threading
import time

import zmq
from google.protobuf.message import Message

from ingestors.live.sinks import PublisherSink
from relay.observability import Counters
from relay.protocol.envelope import decode, encode
from relay.protocol.registry import Channel, MessageType
from relay.protocol.stamps import Stamper
from relay.protocol.v1 import market_pb2, request_pb2
from relay.transport import new_context

__all__ = ["TICKER", "main"]

TICKER = "BTC/USDT.BINANCE"
_TOPIC = f"{TICKER}|tick".encode()
_BEAT_S = 0.5
_LOOK_NS = 5_000_000


def main(fast_path: str, manager_request: str, manager_publish: str, rate: str) -> None:
    """Publish until the process that started it is gone."""
    threading.Thread(target=_serve, args=(manager_request, manager_publish), daemon=True).start()
    threading.Thread(target=_publish, args=(fast_path, int(rate)), daemon=True).start()
    sys.stdin.buffer.read()


def _publish(fast_path: str, rate: int) -> None:
    sink = PublisherSink(
        new_context(), [fast_path], queue_max=100_000, counters=Counters(), epoch=time.time_ns(), shared_memory=""
    )
    stamper, number, interval_ns = Stamper(time.time_ns()), 0, 1_000_000_000 // rate
    due_ns = look_ns = time.monotonic_ns()
    while True:
        now_ns = time.monotonic_ns()
        if now_ns >= look_ns:
            look_ns = now_ns + _LOOK_NS
            sink.turn(now_ns)
        if now_ns < due_ns:
            time.sleep((due_ns - now_ns) / 1e9)
            continue
        due_ns += interval_ns
        number += 1
        received_ns = time.time_ns()
        tick = market_pb2.Tick(
            trade_id=str(number), ticker=TICKER, timestamp=received_ns, received_at=received_ns, price=4_213_000,
            amount=150_000, taker_buy=True, price_decimals=2, amount_decimals=5,
        )  # fmt: skip
        body = bytes((MessageType.TICK,)) + tick.SerializeToString()
        sink.publish(_TOPIC, stamper.stamp(_TOPIC, body, now_ns=received_ns))


def _serve(request: str, publish: str) -> None:
    """The least of a manager that a subscription needs."""
    context = zmq.Context()
    router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.XPUB)
    router.bind(request)
    publisher.bind(publish)
    while True:
        publisher.send_multipart([b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat())])
        while router.poll(int(_BEAT_S * 1000)):
            frames = router.recv_multipart()
            asked = decode(frames, Channel.CLIENT_REQUEST).message
            answer: Message = request_pb2.ReplayResponse(status=request_pb2.ReplayResponse.OK)
            if isinstance(asked, request_pb2.SymbolQuery):
                market = market_pb2.Market(market_id=TICKER, exchange_id="BINANCE")
                answer = request_pb2.SymbolReply(status=request_pb2.SymbolReply.OK, markets=[market])
            router.send_multipart([*frames[:-2], *encode(answer)])


if __name__ == "__main__":
    main(*sys.argv[1:])
