"""The history job as a real process on a real Kafka: poison, replay, lost checkpoints, hints, a cluster."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import zmq

from relay.eventlog import partition_of
from relay.protocol.envelope import decode
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2
from relay.tables.catalog import open_catalog
from tests.support.batches import BASE_NS, BTC, MINUTE_NS, batch, record, tick_bar
from tests.support.processes import wait_until
from tests.support.spark_cluster import HOME, SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(600)]

EVERYTHING = Range(0, 2 * 10**18)
KEY = BTC.encode()


def rows(job, name: str) -> list[dict]:
    return open_catalog(job.settings.tables()).load_table(("market", name)).scan().to_arrow().to_pylist()


def test_poison_goes_to_quarantine_kills_lose_and_double_nothing_and_hints_are_sent_case_115_129_130(history_job):
    job = history_job()
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    pull.linger, pull.rcvtimeo = 0, 120_000
    pull.bind(f"tcp://127.0.0.1:{job.pull_port}")
    try:
        good = batch(range(10))
        for value in (record(good), b"\x02poison", b"", record(batch(range(10, 20)))):
            job.log.append(job.topic, key=KEY, value=value)
        market = market_pb2.Market(market_id=BTC, exchange_id="BINANCE", native_symbol="BTCUSDT")
        job.log.append(job.symbol_topic, key=KEY, value=record(market))
        assert job.log.flush(30) == 0
        # More records than that are still decoded and committed in the driver: they are small.
        job.start(RELAY_JOB_DRIVER_RECORDS_MAX="1")
        wait_until(lambda: len(job.lake().read_bars(BTC, 60, within=EVERYTHING)) == 20, what="bars", deadline_s=120)
        wait_until(lambda: len(rows(job, "quarantine")) == 2, what="quarantine", deadline_s=60)
        assert "history.batches.in_executors" not in job.counters()
        assert {(r["reason"], r["offset"]) for r in rows(job, "quarantine")} == {
            ("wrong_version", 1),
            ("empty_frame", 2),
        }
        topics = {pull.recv_multipart()[0] for _ in range(3)}
        assert f"OUTCOME:{good.job_id}".encode() in topics
        assert b"METADATA_UPDATE" in topics

        os.killpg(job.process.pid, signal.SIGKILL)
        shutil.rmtree(job.folder / "checkpoints")
        late = batch(range(20, 30))
        # A bar made from ticks, its revision, and one that a fetched bar with another price stands before.
        for made in (tick_bar(40), tick_bar(40, revision=1, price=999), tick_bar(5, price=998)):
            job.log.append(job.topic, key=KEY, value=record(made))
        job.log.append(job.topic, key=KEY, value=record(late)).result(30)
        job.start()
        wait_until(lambda: len(job.lake().read_bars(BTC, 60, within=EVERYTHING)) == 31, what="bars", deadline_s=120)
        prices = [int(row["close"] * 100) for row in rows(job, "ohlc")]
        assert (prices.count(999), prices.count(998)) == (1, 0)
        assert len(rows(job, "tick_bars")) == 3
        wait_until(lambda: job.counters().get("history.tick_bars.refused") == 1, what="the refusal to be counted")
        wait_until(lambda: len(rows(job, "coverage")) == 3, what="coverage", deadline_s=60)
        assert len(rows(job, "quarantine")) == 2
        covered = job.lake().coverage(BTC, 60, within=EVERYTHING)
        assert covered == [Range(BASE_NS, BASE_NS + 30 * MINUTE_NS)]
        frames = pull.recv_multipart()
        while frames[0] != f"OUTCOME:{late.job_id}".encode():
            frames = pull.recv_multipart()
        assert decode(frames[1:], Channel.NOTIFICATION).message.job_id == late.job_id
        assert job.process.terminate() == 0
    finally:
        context.destroy(0)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
def test_the_same_job_runs_by_spark_submit_on_a_cluster_with_big_batches_merged_by_executors(history_job):
    job = history_job()
    cluster = SparkCluster(job.folder)
    try:
        for first in range(0, 400, 10):
            job.log.append(job.topic, key=KEY, value=record(batch(range(first, first + 10))))
        job.log.append(job.topic, key=KEY, value=record(tick_bar(3, price=998)))
        job.log.append(job.topic, key=KEY, value=record(tick_bar(400)))
        # Records of both partitions, so that there is work for two.
        other = next(key for key in (b"%d" % n for n in range(100)) if partition_of(key, 2) != partition_of(KEY, 2))
        job.log.append(job.topic, key=other, value=b"\x02poison")
        assert job.log.flush(30) == 0
        submit = [
            str(HOME / "bin" / "spark-submit"),
            *("--master", cluster.url, "--conf", "spark.executor.memory=700m"),
            *("--jars", ",".join(str(path) for path in sorted(job.settings.jars_folder.glob("*.jar")))),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
            str(Path(__file__).resolve().parents[3] / "spark_jobs" / "jobs" / "submit.py"),
            "history",
        ]
        job.start(submit, RELAY_JOB_MASTER="", RELAY_JOB_DRIVER_RECORDS_MAX="0", **cluster.environment)
        wait_until(
            lambda: job.counters() is not None and len(job.lake().read_bars(BTC, 60, within=EVERYTHING)) == 401,
            what="401 bars",
            deadline_s=600,
        )
        wait_until(lambda: len(rows(job, "coverage")) == 40, what="40 coverage rows", deadline_s=60)
        assert len(rows(job, "tick_bars")) == 2
        wait_until(lambda: job.counters().get("history.batches.in_executors"), what="the count of it", deadline_s=60)
        assert job.counters().get("history.batches.in_driver", 0) == 0
        assert min(cluster.tasks(0), cluster.tasks(1)) > 0
    finally:
        cluster.close()
