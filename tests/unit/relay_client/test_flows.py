"""What a call submits, and when, without a relay."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from relay.errors import RetryableError
from relay.protocol.periods import NANOSECONDS
from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from relay_client.engine.plan import HistoryQuery
from relay_client.flow import run
from relay_client.flows import ClientFlows, _Clock, _Watched
from relay_client.settings import ClientSettings

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


def test_loading_the_table_libraries_is_not_paid_by_the_deadline_and_a_slow_table_is_told_as_such(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr("relay_client.flows.time.monotonic", lambda: now[0])

    def load() -> None:
        now[0] += 60

    monkeypatch.setattr("relay_client.flows.load_readers", load)
    waited: list[float] = []
    reply: Future[Any] = Future()
    reply.set_result(request_pb2.ProbeReply(server_time=START_NS))

    def locate(*, timeout_s: float) -> SimpleNamespace:
        waited.append(timeout_s)
        return SimpleNamespace(future=reply)

    def look(*_: object) -> tuple[list[Range], int]:
        now[0] += 7
        return [], 0

    flows = ClientFlows.__new__(ClientFlows)
    flows.settings = ClientSettings()
    flows.session = SimpleNamespace(locate=locate, forget=lambda *_: None)  # type: ignore[assignment]
    monkeypatch.setattr(ClientFlows, "_look", look)
    query = HistoryQuery("BTC/USDT.BINANCE", 60, START_NS - HOUR_NS, START_NS, None)
    with pytest.raises(RetryableError, match="tables were looked at only after 7 s, and the 5 s of this call are over"):
        run(flows.history(query, timeout_s=5, on_progress=None))
    assert waited == [5]
