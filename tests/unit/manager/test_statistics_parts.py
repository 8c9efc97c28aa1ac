"""24 h statistics in parts: only what is whole counts, and the newest of it; when exchanges are due."""

from __future__ import annotations

from relay.protocol.v1 import market_pb2, work_pb2
from spark_jobs.manager.engine.exchange_schedule import ExchangeSchedule, served_exchanges
from spark_jobs.manager.engine.model import Assignment
from spark_jobs.manager.engine.slots import Slot, SlotState
from spark_jobs.manager.statistics_reader import newest_statistics

SECOND = 10**9
HOUR = 3_600 * SECOND


def part(at: int, index: int = 0, count: int = 1) -> market_pb2.Ticker24h:
    return market_pb2.Ticker24h(exchange_id="X", generated_at=at, part_index=index, part_count=count)


def test_the_newest_whole_statistics_count_whatever_the_order_of_the_records() -> None:
    assert newest_statistics([]) == ()
    assert newest_statistics([part(1, 0, 2)]) == ()
    whole = [part(2, 1, 2), part(1), part(3, 0, 3), part(2, 0, 2), part(3, 2, 3)]
    assert [(p.generated_at, p.part_index) for p in newest_statistics(whole)] == [(2, 0), (2, 1)]
    assert [(p.generated_at, p.part_index) for p in newest_statistics([part(5), part(4)])] == [(5, 0)]


def test_parts_of_a_died_attempt_are_never_joined_with_those_of_the_next() -> None:
    records = [part(1, 0, 2), part(2, 1, 2), part(2, 0, 2)]
    assert {p.generated_at for p in newest_statistics(records)} == {2}
    assert newest_statistics([part(1, 0, 2), part(2, 1, 2)]) == ()


def test_a_record_of_before_parts_were_known_is_whole() -> None:
    assert newest_statistics([market_pb2.Ticker24h(exchange_id="X", generated_at=1)])[0].generated_at == 1


def test_exchanges_are_due_half_a_minute_after_a_start_then_by_the_schedule() -> None:
    schedule = ExchangeSchedule(HOUR, now_ns=0)
    assert schedule.due(["B", "A"], now_ns=29 * SECOND) == []
    assert schedule.due(["B", "A"], now_ns=30 * SECOND) == ["A", "B"]
    schedule.asked("A", at_ns=30 * SECOND)
    assert schedule.due(["A"], now_ns=30 * SECOND + HOUR - 1) == []
    assert schedule.due(["A"], now_ns=30 * SECOND + HOUR) == ["A"]
    schedule.failed("A", now_ns=HOUR)
    assert schedule.due(["A"], now_ns=HOUR + 300 * SECOND) == ["A"]
    schedule.asked("A", at_ns=-2 * HOUR)
    assert schedule.due(["A"], now_ns=29 * SECOND) == []
    assert ExchangeSchedule(0, now_ns=0).due(["A"], now_ns=10 * HOUR) == []


def slot(exchange: str, state: SlotState, *, kind: int = work_pb2.WorkerReady.HISTORICAL, heard: int = 0) -> Slot:
    return Slot(Assignment("i", 1, 0, 1, exchange, kind), (), state, 0, heard)


def test_an_exchange_is_served_while_an_ingestor_holds_or_has_lately_offered_a_slot_that_fetches() -> None:
    slots = [
        slot("FREE", SlotState.FREE),
        slot("BUSY", SlotState.BUSY),
        slot("BETWEEN", SlotState.SPENT, heard=50 * SECOND),
        slot("GONE", SlotState.SPENT),
        slot("LIVE", SlotState.FREE, kind=work_pb2.WorkerReady.REALTIME),
    ]
    assert served_exchanges(slots, now_ns=100 * SECOND) == {"FREE", "BUSY", "BETWEEN"}


def test_a_count_that_no_statistics_have_costs_nothing() -> None:
    assert newest_statistics([part(1, 0, 2**32 - 1), part(2)])[0].generated_at == 2


def test_statistics_go_on_after_an_ingestors_clock_was_set_right() -> None:
    ahead = [part(n * 24 * HOUR, index, 2) for n in range(10, 16) for index in range(2)]
    right = [part(24 * HOUR, 0, 2), part(24 * HOUR, 1, 2)]
    assert {p.generated_at for p in newest_statistics([*ahead, *right])} == {24 * HOUR}


def test_a_clock_that_is_set_back_holds_no_schedule_up() -> None:
    schedule = ExchangeSchedule(HOUR, now_ns=1_000 * HOUR)
    assert schedule.due(["A"], now_ns=HOUR) == ["A"]
    schedule.asked("A", at_ns=2_000 * HOUR)
    assert schedule.due(["A"], now_ns=2_000 * HOUR + 1) == []
    assert schedule.due(["A"], now_ns=HOUR) == ["A"]
    schedule.asked("A", at_ns=HOUR)
    assert schedule.due(["A"], now_ns=HOUR + 1) == []
    assert schedule.due(["A"], now_ns=2 * HOUR) == ["A"]
