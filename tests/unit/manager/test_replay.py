"""Which log records answer a replay."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from relay.errors import PeerError
from relay.eventlog import HISTORY_TOPIC, TICK_TOPIC, LogRecord, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import VERSION_FRAME, decode_record, encode
from relay.protocol.stamps import Stamper
from relay.protocol.v1 import market_pb2, request_pb2
from relay.transport import Waker
from spark_jobs.manager.engine.commands import Answer
from spark_jobs.manager.engine.replay import read_replay
from spark_jobs.manager.replays import ReplayDesk, replay
from tests.support.processes import wait_until

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
TOPIC = f"{BTC}|tick"
Status = request_pb2.ReplayResponse
T0 = 1_700_000_000_000_000_000


class Log:
    """An event log of one partition with stamped ticks of two tickers."""

    def __init__(self, *numbers: int, epoch: int = 7) -> None:
        self.log = MemoryEventLog()
        self.log.ensure_topics(platform_topics(prefix="", partitions=1, retention_hours=1))
        self.stamper = Stamper(epoch)
        self.tick(*numbers)

    def tick(self, *numbers: int) -> None:
        for number in numbers:
            for ticker in (BTC, ETH):
                tick = market_pb2.Tick(trade_id=str(number), ticker=ticker, timestamp=T0 + number, price=number)
                self.append(ticker, "tick", tick)

    def append(self, ticker: str, kind: str, message: market_pb2.Tick | market_pb2.Gap) -> None:
        topic = f"{ticker}|{kind}".encode()
        body = self.stamper.stamp(topic, encode(message)[1], now_ns=T0)
        self.log.append(TICK_TOPIC, key=ticker.encode(), value=VERSION_FRAME + body)

    def ask(self, **fields: object) -> tuple[int, list[str], int]:
        request = request_pb2.ReplayRequest(**{"topic": TOPIC, **fields})  # type: ignore[arg-type]
        response = replay(self.log, TICK_TOPIC, read_replay(request))
        ticks = [decode_record(record)[1] for record in response.records]
        assert all(isinstance(t, market_pb2.Tick) and t.ticker == BTC for t in ticks)
        return response.status, [t.trade_id for t in ticks if isinstance(t, market_pb2.Tick)], response.next_from


def test_sequences_of_an_epoch_come_as_they_were_published() -> None:
    log = Log(*range(101, 111))
    assert log.ask(publisher_epoch=7, from_sequence=3, to_sequence=5) == (Status.OK, ["103", "104", "105"], 0)


def test_a_limit_leaves_the_rest_to_the_next_question() -> None:
    log = Log(*range(101, 111))
    status, ids, next_from = log.ask(publisher_epoch=7, from_sequence=1, to_sequence=10, limit=4)
    assert (status, ids, next_from) == (Status.PARTIAL, ["101", "102", "103", "104"], 5)
    status, ids, _ = log.ask(publisher_epoch=7, from_sequence=next_from, to_sequence=10, limit=100)
    assert (status, len(ids)) == (Status.OK, 6)


def test_what_the_log_does_not_hold_is_gone_and_what_it_holds_in_part_is_partial() -> None:
    log = Log(101, 102)
    assert log.ask(publisher_epoch=8, from_sequence=1, to_sequence=2) == (Status.GONE, [], 0)
    assert log.ask(publisher_epoch=7, from_sequence=2, to_sequence=9) == (Status.PARTIAL, ["102"], 0)


def test_trade_ids_come_ascending_and_once_although_the_log_has_them_late_and_twice() -> None:
    log = Log(101, 104, 102, 103, 104, 101)
    assert log.ask(from_trade_id="101", to_trade_id="104") == (Status.OK, ["101", "102", "103", "104"], 0)


def test_a_replay_by_time_goes_through_the_log_in_pages_and_misses_no_late_one() -> None:
    log = Log(*range(1, 21))
    log.tick(25, 22)
    cursor, seen, status = 0, [], Status.PARTIAL
    while status == Status.PARTIAL:
        status, ids, cursor = log.ask(start=T0 + 5, end=T0 + 24, limit=6, from_sequence=cursor)
        assert len(ids) <= 6
        seen += ids
    assert sorted(map(int, seen)) == [*range(5, 21), 22]


def test_gaps_that_touch_the_range_are_replayed() -> None:
    log = Log()
    for first, last in ((1, 4), (5, 9), (20, 0)):
        gap = market_pb2.Gap(ticker=BTC, from_trade_id=str(first), to_trade_id=str(last) if last else "")
        log.append(BTC, "gap", gap)
    request = request_pb2.ReplayRequest(topic=f"{BTC}|gap", from_trade_id="4", to_trade_id="30")
    response = replay(log.log, TICK_TOPIC, read_replay(request))
    assert len(response.records) == 3


def test_records_that_are_no_messages_are_passed_over() -> None:
    log = Log(101)
    for value in (b"", b"\x01", b"\x01\x04\xff\xff", b"\x02\x04", b"\x01\x0d"):
        log.log.append(TICK_TOPIC, key=BTC.encode(), value=value)
    log.tick(102)
    assert log.ask(publisher_epoch=7, from_sequence=1, to_sequence=2) == (Status.OK, ["101", "102"], 0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "RESPONSE:x", "start": 1}, ErrorCode.INVALID_TOPIC),
        ({"topic": f"{BTC}|market", "start": 1}, ErrorCode.INVALID_TOPIC),
        ({"topic": f"{BTC}|ohlc:60", "publisher_epoch": 7, "to_sequence": 3}, ErrorCode.INVALID_RANGE),
        ({"topic": TOPIC}, ErrorCode.INVALID_RANGE),
        ({"topic": TOPIC, "publisher_epoch": 1, "from_sequence": 5, "to_sequence": 4}, ErrorCode.INVALID_RANGE),
        ({"topic": TOPIC, "from_trade_id": "x", "to_trade_id": "4"}, ErrorCode.INVALID_RANGE),
        ({"topic": TOPIC, "start": 10, "end": 5}, ErrorCode.INVALID_RANGE),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_with_words(fields: dict[str, object], code: str) -> None:
    with pytest.raises(PeerError) as caught:
        read_replay(request_pb2.ReplayRequest(**fields))  # type: ignore[arg-type]
    assert caught.value.code == code
    assert "expected" in str(caught.value)


def test_bars_come_by_the_time_they_were_made_with_their_revisions_and_of_the_asked_period_only() -> None:
    log = MemoryEventLog()
    log.ensure_topics(platform_topics(prefix="", partitions=1, retention_hours=1))

    def put(
        start: int, *, made: int, revision: int = 0, period: int = 60, ticker: str = BTC, final: bool = True
    ) -> None:
        bar = market_pb2.OHLC(ticker=ticker, timestamp=start, period_seconds=period, revision=revision, is_final=final)
        bar.stamp.published_at = T0 + made
        log.append(HISTORY_TOPIC, key=ticker.encode(), value=b"".join(encode(bar)))

    put(60, made=1)
    put(120, made=2)
    put(120, made=2, period=1)
    put(120, made=2, ticker=ETH)
    put(120, made=2, final=False)
    log.append(HISTORY_TOPIC, key=BTC.encode(), value=b"".join(encode(market_pb2.OHLCBatch(ticker=BTC))))
    put(60, made=3, revision=1)
    put(180, made=4)

    def ask(start: int, end: int, *, cursor: int = 0, limit: int = 100) -> tuple[list[tuple[int, int]], int]:
        request = request_pb2.ReplayRequest(
            topic=f"{BTC}|ohlc:60", start=T0 + start, end=T0 + end, from_sequence=cursor, limit=limit
        )
        response = replay(log, HISTORY_TOPIC, read_replay(request))
        bars = [decode_record(record)[1] for record in response.records]
        return [(bar.timestamp, bar.revision) for bar in bars], response.next_from

    assert ask(2, 4) == ([(120, 0), (60, 1)], 0)
    first, cursor = ask(1, 9, limit=3)
    assert first == [(60, 0), (120, 0), (60, 1)]
    assert ask(1, 9, cursor=cursor) == ([(180, 0)], 0)


class SlowLog(MemoryEventLog):
    """A log that holds up every read until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.reads, self.go = 0, threading.Event()

    def read(self, topic: str, **how: Any) -> Sequence[LogRecord]:
        self.reads += 1
        assert self.go.wait(20)
        return super().read(topic, **how)


def test_a_question_that_is_asked_again_while_the_log_is_slow_costs_one_scan_and_each_asker_has_one_answer() -> None:
    log, waker = SlowLog(), Waker()
    log.ensure_topics(platform_topics(prefix="", partitions=1, retention_hours=1))
    stamped = Stamper(7).stamp(TOPIC.encode(), encode(market_pb2.Tick(trade_id="1", ticker=BTC))[1], now_ns=T0)
    log.append(TICK_TOPIC, key=BTC.encode(), value=VERSION_FRAME + stamped)
    desk = ReplayDesk(lambda: log, topic_prefix="", waker=waker)
    try:
        asked = request_pb2.ReplayRequest(topic=TOPIC, publisher_epoch=7, from_sequence=1, to_sequence=1)
        for routing in ((b"one",), (b"one",), (b"two",), (b"one",)):
            assert desk.ask(read_replay(asked), routing) is None
        log.go.set()
        answers: list[Answer] = []
        wait_until(lambda: answers.extend(desk.answers()) or len(answers) >= 2, what="the answers")
        assert [answer.routing for answer in answers] == [(b"one",), (b"two",)]
        assert all(answer.message.status == Status.OK for answer in answers)
        assert log.reads == 1
        assert desk.ask(read_replay(asked), (b"one",)) is None
        wait_until(lambda: log.reads == 2, what="a new scan, for what is asked after an answer")
    finally:
        desk.close()
        waker.close()


def test_gaps_by_trade_ids_are_all_found_although_there_are_more_of_them_than_ids() -> None:
    log = Log(1, 2, 3)
    for state in ("OPEN", "FILLED", "OPEN", "FILLED"):
        log.append(BTC, "gap", market_pb2.Gap(ticker=BTC, from_trade_id="2", to_trade_id="3", state=state))
    asked = request_pb2.ReplayRequest(topic=f"{BTC}|gap", from_trade_id="2", to_trade_id="3", limit=10)
    assert len(replay(log.log, TICK_TOPIC, read_replay(asked)).records) == 4


def test_a_replay_by_time_of_more_records_than_one_scan_reads_goes_on_where_the_scan_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("spark_jobs.manager.replays._SCAN_RECORDS_MAX", 40)
    monkeypatch.setattr("spark_jobs.manager.replays._STEP_RECORDS", 10)
    log = Log(*range(1, 95))
    log.append(BTC, "gap", market_pb2.Gap(ticker=BTC, from_time=T0, to_time=T0 + 1))
    pages, cursor, records = 0, 0, []
    while pages == 0 or cursor:
        request = request_pb2.ReplayRequest(topic=f"{BTC}|gap", start=T0, from_sequence=cursor)
        response = replay(log.log, TICK_TOPIC, read_replay(request))
        assert response.next_from > cursor or response.status == Status.OK
        pages, cursor, records = pages + 1, response.next_from, records + list(response.records)
    assert (pages, len(records)) == (3, 1)


def test_what_a_short_look_back_has_found_is_kept_when_a_longer_one_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(*range(101, 140))
    whole = log.log.read

    def read(topic: str, *, from_time_ns: int | None, from_offset: int | None, **how: Any) -> Sequence[LogRecord]:
        """As if only the newest were of the last seconds, and all others of the last minute."""
        if from_time_ns is not None:
            from_offset = 70 if time.time_ns() - from_time_ns < 10 * 10**9 else 0
        return whole(topic, from_offset=from_offset, **how)

    monkeypatch.setattr(log.log, "read", read)
    monkeypatch.setattr("spark_jobs.manager.replays._SCAN_RECORDS_MAX", 10)
    monkeypatch.setattr("spark_jobs.manager.replays._STEP_RECORDS", 10)
    status, ids, _ = log.ask(publisher_epoch=7, from_sequence=20, to_sequence=39)
    assert status == Status.PARTIAL
    assert set(ids) >= {"136", "137", "138", "139"}


def test_a_record_that_is_longer_than_a_page_is_a_page_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.manager.engine.replay.REPLAY_BYTES_MAX", 10)
    log = Log(101, 102)
    status, ids, cursor = log.ask(start=T0)
    assert (status, ids) == (Status.PARTIAL, ["101"])
    assert log.ask(start=T0, from_sequence=cursor) == (Status.OK, ["102"], 0)
    assert log.ask(publisher_epoch=7, from_sequence=1, to_sequence=2) == (Status.PARTIAL, ["101"], 2)
    assert log.ask(publisher_epoch=7, from_sequence=2, to_sequence=2) == (Status.OK, ["102"], 0)


def test_ticks_whose_ids_are_no_numbers_are_all_replayed_by_time() -> None:
    log = Log()
    for trade_id in ("a", "b", "9" * 5_000, ""):
        log.append(BTC, "tick", market_pb2.Tick(trade_id=trade_id, ticker=BTC, timestamp=T0))
    assert log.ask(start=T0)[:2] == (Status.OK, ["a", "b", "9" * 5_000, ""])
    assert log.ask(from_trade_id="1", to_trade_id="2")[0] == Status.GONE
