"""What a call submits, and when, without a relay."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from relay_client.engine.plan import HistoryQuery
from relay_client.flow import run
from relay_client.flows import _Clock, _Watched

HOUR_NS = 3_600 * NANOSECONDS
START_NS = 1_700_000_400 * NANOSECONDS // HOUR_NS * HOUR_NS


class _Session:
    """Ends the oldest running request whenever a further one is submitted."""

    client_id = "c"

    def __init__(self) -> None:
        self.running: list[tuple[str, Future[Any]]] = []
        self.most = 0

    def watch(self, request_id: str, *, submitted: object, timeout_s: float) -> SimpleNamespace:
        future: Future[Any] = Future()
        self.running.append((request_id, future))
        self.most = max(self.most, len(self.running))
        return SimpleNamespace(future=future)

    def ask(self, message: object, *, timeout_s: float) -> SimpleNamespace:
        if len(self.running) == 2 or message.start_time == START_NS + 6 * HOUR_NS:  # type: ignore[attr-defined]
            for request_id, future in self.running:
                future.set_result(request_pb2.HistoryReadyNotification(request_id=request_id))
            self.running.clear()
        answer: Future[Any] = Future()
        answer.set_result(None)
        return SimpleNamespace(future=answer)

    def forget(self, *_: object) -> None:
        pass


def test_a_long_call_runs_two_requests_at_a_time() -> None:
    session = _Session()
    ranges = [Range(START_NS + n * HOUR_NS, START_NS + (n + 1) * HOUR_NS) for n in range(7)]
    query = HistoryQuery("BTC/USDT.BINANCE", 60, ranges[0].start_ns, ranges[-1].end_ns, None)
    reply = request_pb2.ProbeReply(server_time=ranges[-1].end_ns)
    watched = _Watched(SimpleNamespace(session=session), reply, query, _Clock(60), None)  # type: ignore[arg-type]
    assert len(run(watched.fetch(ranges, limit=None))) == 7
    assert session.most == 2
