"""Symbols and statistics are fetched by schedule, of the exchanges that an ingestor serves, after a start's rush."""

from __future__ import annotations

import itertools

import pytest

from relay.protocol.v1 import market_pb2, request_pb2
from spark_jobs.manager.engine.commands import AddJob, Answer, Command, PublishMarket
from spark_jobs.manager.engine.exchange_schedule import ExchangeSchedule, served_exchanges
from spark_jobs.manager.engine.model import JobKind
from spark_jobs.manager.lookups import SymbolsFound
from spark_jobs.manager.statistics import StatisticsDesk, StatisticsRules
from spark_jobs.manager.statistics_reader import StatisticsFound
from spark_jobs.manager.symbols import SymbolDesk
from tests.unit.manager.world import SECOND, World

HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND


class Desk:
    """The statistics desk over a world's engines; what it wants to read is noted."""

    def __init__(self, world: World, **rules: int) -> None:
        self.world, ids = world, itertools.count()
        self.reads: list[tuple[str, bool]] = []
        self.desk = StatisticsDesk(
            StatisticsRules(**rules),
            exchanges=world.exchanges,
            new_id=lambda: f"job-{next(ids)}",
            read=lambda exchange, is_after: self.reads.append((exchange, is_after)),
            now_ns=world.now_ns,
        )
        self.desk.begin(world.book, world.broker)

    def tick(self, seconds: int = 0) -> list[Command]:
        self.world.now_ns += seconds * SECOND
        commands = self.desk.tick(self.world.now_ns)
        self.world.run([c for c in commands if not isinstance(c, Answer | PublishMarket)])
        return commands

    def fetch(self, at: int) -> list[Command]:
        """The running job ends well, and the log holds its statistics."""
        self.world.complete(self.world.dispatch())
        assert self.desk.ended(self.world.ended[-1], now_ns=self.world.now_ns) == []
        assert self.reads.pop() == ("BINANCE", True)
        part = market_pb2.Ticker24h(exchange_id="BINANCE", generated_at=at, part_count=1)
        return self.desk.found(StatisticsFound("BINANCE", True, (part,)), now_ns=self.world.now_ns)


@pytest.fixture
def world() -> World:
    return World()


def started(commands: list[Command]) -> list[tuple[JobKind, str]]:
    return [(c.job.kind, c.job.exchange) for c in commands if isinstance(c, AddJob)]


def test_statistics_are_fetched_every_hour_of_served_exchanges_only(world: World) -> None:
    desk = Desk(world)
    assert started(desk.tick(60)) == []
    world.offer()
    assert started(desk.tick(1)) == [(JobKind.STATISTICS, "BINANCE")]
    assert desk.reads.pop() == ("BINANCE", False)
    [published] = desk.fetch(world.now_ns)
    assert isinstance(published, PublishMarket)
    assert published.topic == "BINANCE|ticker24h"
    world.offer()
    assert started(desk.tick(3_500)) == []
    world.offer()
    assert started(desk.tick(100)) == [(JobKind.STATISTICS, "BINANCE")]


def test_after_a_restart_the_hour_goes_on_from_what_the_log_holds(world: World) -> None:
    desk = Desk(world)
    world.offer()
    desk.tick()
    part = market_pb2.Ticker24h(exchange_id="BINANCE", generated_at=world.now_ns - 1_800 * SECOND, part_count=1)
    found = desk.desk.found(StatisticsFound("BINANCE", False, (part,)), now_ns=world.now_ns)
    assert [type(c) for c in found] == [PublishMarket]
    world.offer()
    assert started(desk.tick(1_700)) == []
    world.offer()
    assert started(desk.tick(200)) == [(JobKind.STATISTICS, "BINANCE")]


def test_a_schedule_that_is_off_fetches_on_demand_only(world: World) -> None:
    desk = Desk(world, every_ns=0)
    world.offer()
    assert started(desk.tick(7_200)) == []
    world.offer()
    asked = desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"c",), now_ns=world.now_ns)
    assert started(asked) == [(JobKind.STATISTICS, "BINANCE")]
    world.run(asked)
    answers = desk.fetch(world.now_ns - HOUR)
    assert [type(c) for c in answers] == [PublishMarket, Answer]
    again = desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"d",), now_ns=world.now_ns + 59 * SECOND)
    assert [type(c) for c in again] == [Answer]
    world.now_ns += 60 * SECOND
    world.offer()
    later = desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"d",), now_ns=world.now_ns)
    assert started(later) == [(JobKind.STATISTICS, "BINANCE")]


def test_an_old_read_that_comes_after_a_fetch_answers_nobody(world: World) -> None:
    desk = Desk(world, every_ns=0)
    world.offer()
    world.run(desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"c",), now_ns=world.now_ns))
    assert desk.desk.found(StatisticsFound("BINANCE", False), now_ns=world.now_ns) == []
    assert [type(c) for c in desk.fetch(world.now_ns)] == [PublishMarket, Answer]


def test_a_failed_fetch_is_tried_again_in_five_minutes(world: World) -> None:
    desk = Desk(world)
    world.offer()
    desk.tick(31)
    world.complete(world.dispatch(), code="UNKNOWN_SYMBOL")
    assert world.ended[-1].error_code == "UNKNOWN_SYMBOL"
    desk.desk.ended(world.ended[-1], now_ns=world.now_ns)
    world.offer()
    assert started(desk.tick(299)) == []
    assert started(desk.tick(2)) == [(JobKind.STATISTICS, "BINANCE")]


def test_symbols_are_fetched_once_a_day_and_a_fetch_on_demand_counts(world: World) -> None:
    schedule = ExchangeSchedule(DAY, now_ns=world.now_ns)
    desk = SymbolDesk(world.book, world.exchanges, lambda: f"s{world.now_ns}", schedule)

    def tick(seconds: int) -> list[tuple[JobKind, str]]:
        world.now_ns += seconds * SECOND
        world.offer()
        served = served_exchanges(world.broker.slots, now_ns=world.now_ns)
        commands = desk.tick(served, now_ns=world.now_ns)
        world.run(commands)
        return started(commands)

    assert tick(29) == []
    assert tick(1) == [(JobKind.SYMBOLS, "BINANCE")]
    world.complete(world.dispatch())
    desk.ended(world.ended[-1], now_ns=world.now_ns)
    assert tick(86_399) == []
    assert tick(1) == [(JobKind.SYMBOLS, "BINANCE")]
    world.complete(world.dispatch(), code="UNKNOWN_SYMBOL")
    desk.ended(world.ended[-1], now_ns=world.now_ns)
    assert tick(299) == []
    assert tick(1) == [(JobKind.SYMBOLS, "BINANCE")]


def test_a_ticker_is_not_called_unknown_while_its_exchanges_markets_are_still_on_their_slow_way_into_the_table(
    world: World,
) -> None:
    desk = SymbolDesk(world.book, world.exchanges, lambda: "s", ExchangeSchedule(DAY, now_ns=world.now_ns))
    question = desk.ask(request_pb2.SymbolQuery(ticker="PEPE/USDT.BINANCE"), (b"c",))

    def status(stored: int) -> int:
        commands = desk.answer(SymbolsFound(question, (), 1, {"BINANCE": stored}), now_ns=world.now_ns)
        world.run([c for c in commands if not isinstance(c, Answer)])
        return commands[-1].message.status

    world.offer()
    assert status(stored=0) == request_pb2.SymbolReply.PENDING
    world.complete(world.dispatch())
    desk.fetched("BINANCE", 1000)
    world.now_ns += 29 * SECOND
    assert status(stored=400) == request_pb2.SymbolReply.PENDING
    world.now_ns += 90 * SECOND
    assert status(stored=400) == request_pb2.SymbolReply.PENDING
    world.now_ns += 600 * SECOND
    assert status(stored=400) == request_pb2.SymbolReply.NOT_FOUND, "some may never come"


def test_where_a_fetch_is_stored_whole_its_successor_by_schedule_lets_nobody_wait_and_a_clients_own_does(
    world: World,
) -> None:
    desk = SymbolDesk(
        world.book, world.exchanges, lambda: f"s{world.now_ns}", ExchangeSchedule(DAY, now_ns=world.now_ns)
    )

    def status(stored: int, *, refresh: bool = False) -> int:
        question = desk.ask(request_pb2.SymbolQuery(text="zzz", refresh=refresh), (b"c",))
        commands = desk.answer(SymbolsFound(question, (), 1, {"BINANCE": stored}), now_ns=world.now_ns)
        world.run([c for c in commands if not isinstance(c, Answer)])
        return commands[-1].message.status

    def end_fetch(count: int) -> None:
        world.complete(world.dispatch())
        desk.ended(world.ended[-1], now_ns=world.now_ns)
        desk.fetched("BINANCE", count)

    def scheduled_fetch(seconds: int) -> None:
        world.now_ns += seconds * SECOND
        world.offer()
        commands = desk.tick(served_exchanges(world.broker.slots, now_ns=world.now_ns), now_ns=world.now_ns)
        assert started(commands) == [(JobKind.SYMBOLS, "BINANCE")]
        world.run(commands)

    world.offer()
    scheduled_fetch(30)
    assert status(stored=5) == request_pb2.SymbolReply.PENDING, "nothing was ever seen whole"
    end_fetch(10)
    assert status(stored=9) == request_pb2.SymbolReply.PENDING
    assert status(stored=10) == request_pb2.SymbolReply.NOT_FOUND
    scheduled_fetch(86_400)
    assert status(stored=10) == request_pb2.SymbolReply.NOT_FOUND
    end_fetch(11)
    assert status(stored=10) == request_pb2.SymbolReply.NOT_FOUND
    world.now_ns += 60 * SECOND
    world.offer()
    assert status(stored=11, refresh=True) == request_pb2.SymbolReply.PENDING
    assert status(stored=11) == request_pb2.SymbolReply.PENDING, "its own fetch may bring it"
    end_fetch(12)
    assert status(stored=11) == request_pb2.SymbolReply.PENDING
    assert status(stored=12) == request_pb2.SymbolReply.NOT_FOUND


def test_a_clock_that_is_set_back_neither_stops_fetches_nor_lets_anybody_wait(world: World) -> None:
    desk = Desk(world)
    world.offer()
    world.run(desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"c",), now_ns=world.now_ns))
    desk.fetch(world.now_ns)
    desk.tick(60)
    world.offer()
    world.run(desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"d",), now_ns=world.now_ns))
    answers = [c for c in desk.desk.tick(world.now_ns - DAY) if isinstance(c, Answer)]
    assert [c.routing for c in answers] == [(b"d",)]
    world.complete(world.dispatch())
    desk.desk.ended(world.ended[-1], now_ns=world.now_ns)
    part = market_pb2.Ticker24h(exchange_id="BINANCE", generated_at=world.now_ns - DAY, part_count=1)
    found = desk.desk.found(StatisticsFound("BINANCE", True, (part,)), now_ns=world.now_ns)
    assert [type(c) for c in found] == [PublishMarket]
    world.now_ns -= DAY
    world.offer()
    asked = desk.desk.ask(request_pb2.StatsQuery(exchange="BINANCE"), (b"e",), now_ns=world.now_ns)
    assert started(asked) == [(JobKind.STATISTICS, "BINANCE")], "what comes from the future is not fresh"
