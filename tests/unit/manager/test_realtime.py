"""Live jobs: one for each wanted ticker, as long as it is wanted; no sockets, no clock."""

from __future__ import annotations

import pytest

from relay.protocol.codes import ErrorCode
from relay.protocol.periods import NANOSECONDS
from relay.protocol.v1 import work_pb2
from spark_jobs.manager.engine.demand import DemandBook
from spark_jobs.manager.engine.model import RealtimeState
from tests.unit.manager.world import World

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
REALTIME = work_pb2.WorkerReady.REALTIME


class LiveWorld(World):
    """The manager's engines with live slots."""

    def want(self, *tickers: str) -> None:
        self.run(self.realtime.demand(frozenset(tickers), now_ns=self.now_ns))

    def pass_seconds(self, seconds: int) -> None:
        self.now_ns += seconds * NANOSECONDS
        self.run([*self.work.expire(self.now_ns), *self.realtime.on_tick(self.now_ns)])

    def slot(self, slot_id: int = 0, ingestor_id: str = "one") -> None:
        self.offer(slot_type=REALTIME, slot_id=slot_id, ingestor_id=ingestor_id)

    def started(self) -> list[work_pb2.DataRequest]:
        before = len(self.sent)
        self.run(self.work.assign(self.now_ns))
        return [c.message for c in self.sent[before:] if isinstance(c.message, work_pb2.DataRequest)]

    def beat(self, data: work_pb2.DataRequest, logged: str = "", time_ns: int = 0) -> None:
        message = work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=data.attempt)
        message.last_logged_trade_id, message.last_logged_time = logged, time_ns
        self.tell(message)

    def stops(self) -> list[str]:
        return [c.message.job_id for c in self.sent if isinstance(c.message, work_pb2.WorkStop)]

    def states(self) -> dict[str, RealtimeState]:
        return {job.ticker: job.state for job in self.realtime.jobs.values()}


@pytest.fixture
def world() -> LiveWorld:
    return LiveWorld()


def test_one_job_a_ticker_goes_to_a_live_slot_only(world: LiveWorld) -> None:
    world.want(BTC)
    world.offer()
    assert world.started() == []
    assert world.realtime.unserved() == [BTC]
    world.slot(1)
    (data,) = world.started()
    assert (data.type, data.ticker, data.attempt) == (work_pb2.DataRequest.REALTIME_TICKS, BTC, 1)
    assert data.realtime.include_ticks
    assert not data.realtime.resume_after_trade_id
    assert world.realtime.unserved() == []
    world.want(BTC, ETH)
    world.slot(2)
    assert [d.ticker for d in world.started()] == [ETH]


def test_it_stops_a_minute_after_the_last_holder_left_and_not_before(world: LiveWorld) -> None:
    world.want(BTC)
    world.slot()
    (data,) = world.started()
    world.want()
    for _ in range(5):
        world.pass_seconds(10)
        world.beat(data)
    assert world.stops() == []
    world.want(BTC)
    world.want()
    world.pass_seconds(10)
    world.beat(data)
    assert world.stops() == []
    for _ in range(6):
        world.pass_seconds(10)
        world.beat(data)
    assert data.job_id in world.stops()
    world.complete(data, ErrorCode.CANCELLED)
    assert world.states() == {BTC: RealtimeState.IDLE}


def test_a_lost_worker_hands_over_behind_what_the_log_has(world: LiveWorld) -> None:
    world.want(BTC)
    world.slot()
    (first,) = world.started()
    world.beat(first, "1000", 10_000)
    world.beat(first, "990", 9_900)
    world.slot(7, ingestor_id="two")
    world.pass_seconds(16)
    world.slot(7, ingestor_id="two")
    (second,) = world.started()
    assert (second.job_id, second.attempt) == (first.job_id, 2)
    assert (second.realtime.resume_after_trade_id, second.realtime.resume_after_time) == ("1000", 10_000)
    world.beat(first, "5000")
    assert world.stops() == [first.job_id]
    assert next(iter(world.realtime.jobs.values())).resume_after == "1000"


def test_it_has_no_bound_of_attempts_while_the_demand_lasts(world: LiveWorld) -> None:
    world.want(BTC)
    attempts = []
    for _ in range(12):
        world.slot()
        (data,) = world.started()
        attempts.append(data.attempt)
        world.complete(data, ErrorCode.UNAVAILABLE, "the exchange was away")
        assert world.started() == []
        world.pass_seconds(61)
    assert attempts == list(range(1, 13))


def test_demand_that_returns_while_it_stops_starts_it_again(world: LiveWorld) -> None:
    world.want(BTC)
    world.slot()
    (data,) = world.started()
    world.want()
    for _ in range(6):
        world.pass_seconds(10)
        world.beat(data)
    assert world.states() == {BTC: RealtimeState.STOPPING}
    world.want(BTC)
    world.complete(data, ErrorCode.CANCELLED)
    world.slot()
    (again,) = world.started()
    assert again.attempt == 2


def test_a_worker_that_shuts_down_hands_over_at_once(world: LiveWorld) -> None:
    world.want(BTC)
    world.slot()
    (data,) = world.started()
    world.beat(data, "77")
    world.slot(3, ingestor_id="two")
    world.tell(work_pb2.WorkReject(job_id=data.job_id, attempt=data.attempt, reason=work_pb2.WorkReject.SHUTTING_DOWN))
    (again,) = world.started()
    assert again.realtime.resume_after_trade_id == "77"


def test_a_restarted_manager_trusts_a_running_job_and_keeps_its_mark(world: LiveWorld) -> None:
    world.want(BTC)
    world.slot()
    (data,) = world.started()
    world.beat(data, "500")
    world.restart()
    world.beat(data, "600", 6_000)
    world.want(BTC)
    assert world.started() == []
    assert world.realtime.unserved() == []
    world.pass_seconds(16)
    world.slot(5, ingestor_id="two")
    (again,) = world.started()
    assert (again.attempt, again.realtime.resume_after_trade_id) == (2, "600")
    assert again.realtime.resume_after_time == 6_000


def test_a_ticker_of_an_exchange_that_nobody_serves_waits_until_it_is_offered(world: LiveWorld) -> None:
    world.want("BTC/USD.KRAKEN")
    assert world.states() == {}
    assert world.realtime.unserved() == ["BTC/USD.KRAKEN"]
    world.offer(exchange="KRAKEN", slot_type=REALTIME, ingestor_id="k")
    world.pass_seconds(1)
    assert [d.ticker for d in world.started()] == ["BTC/USD.KRAKEN"]


def test_idle_jobs_are_forgotten_after_the_retention(world: LiveWorld) -> None:
    world.want(BTC)
    world.want()
    world.pass_seconds(61)
    world.run(world.realtime.prune(world.now_ns))
    assert world.states() == {BTC: RealtimeState.IDLE}
    world.now_ns += 8 * 86_400 * NANOSECONDS
    world.run(world.realtime.prune(world.now_ns))
    assert world.states() == {}
    assert world.store.load().realtime == ()


@pytest.mark.parametrize(
    ("topic", "ticker"),
    [
        (b"BTC/USDT.BINANCE|tick", BTC),
        (b"BTC/USDT.BINANCE|ohlc:60", BTC),
        (b"BTC/USDT.BINANCE|gap", BTC),
        (b"BTC/USDT.BINANCE|heartbeat", None),
        (b"BTC/USDT.BINANCE|", None),
        (b"BTC/USDT.BIN", None),
        (b"BINANCE:BTC/USDT|tick", None),
        (b"BTC/USDT.BINANCE|tickx", None),
        (b"RESPONSE:", None),
        (b"\xff|tick", None),
    ],
)
def test_only_exact_market_topics_make_demand(topic: bytes, ticker: str | None) -> None:
    book = DemandBook()
    assert book.changed(topic, on=True) == (ticker is not None)
    assert book.tickers == (frozenset({ticker}) if ticker else frozenset())


def test_a_ticker_is_wanted_until_its_last_topic_is_gone() -> None:
    book = DemandBook()
    assert book.changed(b"BTC/USDT.BINANCE|tick", on=True)
    assert not book.changed(b"BTC/USDT.BINANCE|gap", on=True)
    assert not book.changed(b"BTC/USDT.BINANCE|tick", on=False)
    assert book.changed(b"BTC/USDT.BINANCE|gap", on=False)
    assert not book.changed(b"BTC/USDT.BINANCE|gap", on=False)
