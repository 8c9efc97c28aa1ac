"""The tick archive as a real process on a real Kafka: every trade once, whatever dies."""

from __future__ import annotations

import os
import shutil
import signal
import sys

import pytest

from relay.eventlog import TICK_TOPIC
from relay.protocol.envelope import encode_record
from relay.protocol.ranges import Range
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import open_catalog
from tests.support.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]

BTC = "BTC/USDT.BINANCE"
T0 = 1_700_000_000 * 10**9
EVERYTHING = Range(0, 4 * 10**18)


def tick(number: int) -> bytes:
    return encode_record(
        market_pb2.Tick(trade_id=str(number), ticker=BTC, timestamp=T0 + number * 10**6, price=number + 1, amount=1)
    )


@pytest.mark.soak
def test_ticks_are_archived_once_over_a_kill_and_a_lost_checkpoint_case_129(history_job):
    job = history_job()
    topic = job.prefix + TICK_TOPIC
    command = [sys.executable, "-c", "from relay.cli import main; main()", "job", "ticks"]

    def put(*values: bytes) -> None:
        for value in values:
            job.log.append(topic, key=BTC.encode(), value=value)
        assert job.log.flush(30) == 0

    def stored() -> list[int]:
        return job.lake().read_ticks(BTC, within=EVERYTHING)["trade_number"].to_pylist()

    gap = market_pb2.Gap(ticker=BTC, from_trade_id="500", to_trade_id="509", state=market_pb2.Gap.OPEN)
    put(*map(tick, range(500)), b"\x02poison", encode_record(gap), *map(tick, range(510, 600)))
    job.start(command, RELAY_JOB_TICKS_TRIGGER_SECONDS="1")
    wait_until(lambda: len(stored()) == 590, what="the first ticks", deadline_s=180)
    os.killpg(job.process.pid, signal.SIGKILL)
    shutil.rmtree(job.folder / "checkpoints")
    put(*map(tick, range(580, 620)), *map(tick, range(500, 510)))
    job.start(command, RELAY_JOB_TICKS_TRIGGER_SECONDS="1")
    wait_until(lambda: len(stored()) >= 620, what="what came after", deadline_s=180)
    put(tick(3), tick(605), tick(620))
    wait_until(lambda: 620 in stored(), what="the last one", deadline_s=60)
    assert stored() == list(range(621))
    prices = job.lake().read_ticks(BTC, within=EVERYTHING)["price"].to_pylist()
    assert prices == [n + 1 for n in range(621)]
    gaps = job.lake().read_gaps(BTC).to_pylist()
    assert [(g["state"], g["first_number"], g["last_number"]) for g in gaps] == [("OPEN", 500, 509)]

    def quarantined() -> list[str]:
        table = open_catalog(job.settings.tables()).load_table(("market", "quarantine"))
        return list(table.scan().to_arrow()["reason"].to_pylist())

    # Quarantine is committed after the ticks.
    wait_until(quarantined, what="the quarantined record", deadline_s=60)
    assert quarantined() == ["wrong_version"]
