"""Which bars relays' subscriptions ask for, and how the bars job is told."""

from __future__ import annotations

from concurrent.futures import Future

from relay.errors import StorageError
from relay.eventlog import CONTROL_TOPIC, LogPosition, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.eventlog.port import RECORD_BYTES_MAX
from relay.protocol.envelope import decode_record
from relay.protocol.periods import PERIOD_SECONDS_MAX, WANTED_PERIODS_MAX
from relay.protocol.tickers import TICKER_BYTES_MAX
from relay.protocol.v1 import trigger_pb2, work_pb2
from spark_jobs.manager.control_teller import ControlTeller
from spark_jobs.manager.engine.demand import DemandBook
from tests.support.processes import wait_until

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"


def test_periods_are_those_of_exact_bar_topics_while_they_are_held() -> None:
    book = DemandBook()
    for topic in (f"{BTC}|ohlc:60", f"{BTC}|ohlc:5", f"{BTC}|tick", f"{ETH}|tick", f"{ETH}|ohlc:", f"{BTC}|ohlc:0"):
        book.changed(topic.encode(), on=True)
    assert book.periods == {BTC: frozenset({5, 60})}
    book.changed(f"{BTC}|ohlc:5".encode(), on=False)
    assert book.periods == {BTC: frozenset({60})}
    book.changed(f"{BTC}|ohlc:60".encode(), on=False)
    assert book.periods == {}
    assert book.tickers == {BTC, ETH}


def test_over_the_bound_the_earliest_periods_stay_and_the_next_comes_when_one_ends() -> None:
    book = DemandBook(periods_max=2)
    for period in (300, 60, 5, 1, 5, 300):
        assert book.changed(f"{BTC}|ohlc:{period}".encode(), on=True) is (period == 300 and not book.refused)
    book.changed(f"{ETH}|ohlc:1".encode(), on=True)
    assert book.periods == {BTC: frozenset({300, 60}), ETH: frozenset({1})}
    assert book.refused == {BTC: 2}
    book.changed(f"{BTC}|ohlc:300".encode(), on=False)
    assert (book.periods[BTC], book.refused) == (frozenset({60, 5}), {BTC: 1})
    book.changed(f"{BTC}|ohlc:1".encode(), on=False)
    assert (book.periods[BTC], book.refused) == (frozenset({60, 5}), {})


def test_all_that_one_ticker_can_want_is_one_small_record() -> None:
    book, ticker = DemandBook(), f"{'B' * 60}/{'Q' * 60}.BINANCE"[:TICKER_BYTES_MAX]
    for period in range(PERIOD_SECONDS_MAX - 20_000, PERIOD_SECONDS_MAX):
        book.changed(f"{ticker}|ohlc:{period}".encode(), on=True)
    periods = sorted(book.periods[ticker])
    assert (len(periods), book.refused) == (WANTED_PERIODS_MAX, {ticker: 20_000 - WANTED_PERIODS_MAX})
    request = work_pb2.DataRequest(ticker=ticker, realtime=work_pb2.RealtimeParams(ohlc_period_seconds=periods))
    assert request.ByteSize() < RECORD_BYTES_MAX // 1_000


def told(log: MemoryEventLog) -> list[tuple[str, list[int]]]:
    records = [decode_record(r.value)[1] for p in range(2) for r in log.read(CONTROL_TOPIC, partition=p)]
    return [(r.ticker, list(r.realtime.ohlc_period_seconds)) for r in records if isinstance(r, work_pb2.DataRequest)]


def test_a_change_is_told_at_once_and_an_end_is_told_once() -> None:
    log = MemoryEventLog()
    log.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))
    teller = ControlTeller(lambda: log, topic_prefix="")
    try:
        teller.tell({BTC: frozenset({60, 5})})
        wait_until(lambda: told(log) == [(BTC, [5, 60])], what="the periods to be told")
        teller.tell({})
        wait_until(lambda: told(log) == [(BTC, [5, 60]), (BTC, [])], what="the end to be told")
        teller.tell({})
    finally:
        teller.close()
    assert told(log) == [(BTC, [5, 60]), (BTC, [])]


class PickyLog(MemoryEventLog):
    """Refuses the records of some keys."""

    def __init__(self, refused: set[str]) -> None:
        super().__init__()
        self.refused = refused
        self.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))

    def append(self, topic: str, *, key: bytes, value: bytes) -> Future[LogPosition]:
        if key.decode() in self.refused:
            raise StorageError("the event log cannot take this record")
        return super().append(topic, key=key, value=value)

    def triggers(self) -> set[str]:
        found = [decode_record(r.value)[1] for p in range(2) for r in self.read(CONTROL_TOPIC, partition=p)]
        return {m.trigger_id for m in found if isinstance(m, trigger_pb2.CEPTriggerRequest)}


def test_a_ticker_and_a_trigger_that_cannot_be_told_keep_nobody_back() -> None:
    log = PickyLog({BTC, "a"})
    teller = ControlTeller(lambda: log, topic_prefix="")
    try:
        for trigger_id in ("a", "b"):
            teller.tell_trigger(trigger_id, b"")
        teller.tell_trigger("b", None)
        teller.tell({BTC: frozenset({60}), ETH: frozenset({60})})
        wait_until(lambda: told(log) == [(ETH, [60])], what="the other ticker to be told")
        wait_until(lambda: log.triggers() == {"b"}, what="the other trigger to be told")
        assert teller.refused_count == 1
        wait_until(lambda: teller.untold_count == 1, what="the refused trigger to be kept")
        log.refused.clear()
        teller.tell({ETH: frozenset({60})})
        wait_until(lambda: (BTC, []) in told(log), what="the end of what was refused")
        wait_until(lambda: teller.untold_count == 0, what="the refused trigger to be told")
        assert teller.refused_count == 0
    finally:
        teller.close()


def test_a_manager_without_a_log_tells_nobody() -> None:
    teller = ControlTeller(None, topic_prefix="")
    teller.tell({BTC: frozenset({60})})
    teller.close()
