"""Which bars relays' subscriptions ask for, and how the bars job is told."""

from __future__ import annotations

from relay.eventlog import CONTROL_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.protocol.envelope import decode_record
from relay.protocol.v1 import work_pb2
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


def test_a_manager_without_a_log_tells_nobody() -> None:
    teller = ControlTeller(None, topic_prefix="")
    teller.tell({BTC: frozenset({60})})
    teller.close()
