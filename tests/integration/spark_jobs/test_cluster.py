"""All jobs in one driver on a standalone cluster of two workers: one dies, then an executor of the other."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.eventlog import CONTROL_TOPIC, TRIGGER_TOPIC
from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.v1 import trigger_pb2
from relay_client.pattern_builder import when
from tests.integration.spark_jobs import test_jobs_kill_matrix as matrix
from tests.integration.spark_jobs.conftest import HistoryProcess
from tests.support.kafka import RunningKafka
from tests.support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.soak, pytest.mark.timeout(2_000)]

COMMAND = [*matrix.COMMAND, "triggers"]
TRIGGER = "11111111-1111-4111-8111-111111111111"
LEVEL = 1_050
SECONDS = (7, 14, matrix.ALL)
"""Up to which second the feed has come when a worker is killed, when an executor is, and at the end."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path)
    yield cluster
    cluster.close()


def fired(job: HistoryProcess) -> list[int]:
    """When the trigger has fired, in trades of the feed."""
    records = job.log.read(job.prefix + TRIGGER_TOPIC, key=TRIGGER.encode(), limit=10_000)
    return [(decode_record(r.value)[1].fired_at - matrix.T0_NS) * 5 // matrix.SECOND_NS for r in records]


def test_a_worker_and_an_executor_that_die_cost_no_bar_no_tick_and_no_firing_and_double_none_case_145(
    kafka: RunningKafka, tmp_path: Path, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch
):
    # A trigger sees nothing from before its registration.
    monkeypatch.setattr(matrix, "T0_NS", (time.time_ns() // matrix.SECOND_NS + 60) * matrix.SECOND_NS)
    jobs = matrix.Jobs(kafka, tmp_path)
    job, jobs.deadline_s = jobs.job, 500.0
    properties = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "640m",
        "spark.executor.cores": "1",
    }
    settings = {"MASTER": cluster.url, "SPARK_PROPERTIES": json.dumps(properties)}
    # Every micro-batch of bars is decoded and merged by the executors.
    settings |= {"DRIVER_RECORDS_MAX": "0", "TICK_BARS_WAIT_SECONDS": "0", "TRIGGERS_STATE_SECONDS": "1"}
    pattern = when(matrix.TICKER).crosses_above(f"{LEVEL}.5").build()
    registration = trigger_pb2.CEPTriggerRequest(trigger_id=TRIGGER, pattern=pattern)
    job.log.append(job.prefix + CONTROL_TOPIC, key=TRIGGER.encode(), value=encode_record(registration)).result(30)
    try:
        jobs.start(command=COMMAND, environment=cluster.environment, **settings)
        jobs.put(*matrix.said(range(SECONDS[0])))
        jobs.wait(lambda: len(matrix.stored(job)) == SECONDS[0], what="bars of two workers")
        jobs.wait(lambda: cluster.tasks(0) and cluster.tasks(1), what="tasks on both workers")

        jobs.put(*matrix.said(range(SECONDS[0], SECONDS[0] + 1)))
        cluster.workers[0].kill()
        before = cluster.tasks(1)
        jobs.put(*matrix.said(range(SECONDS[0] + 1, SECONDS[1])))
        jobs.wait(lambda: len(matrix.stored(job)) == SECONDS[1], what="bars of one worker")
        assert cluster.tasks(1) > before

        jobs.put(*matrix.said(range(SECONDS[1], SECONDS[1] + 1)))
        killed = cluster.executors(1)
        for executor in killed:
            executor.kill()
        assert killed
        jobs.put(*matrix.said(range(SECONDS[1] + 1, SECONDS[2])))
        jobs.wait(lambda: {e.pid for e in cluster.executors(1)} - {e.pid for e in killed}, what="another executor")
        jobs.is_whole()
        prices = [matrix.trade(number).price for number in range(5 * matrix.ALL)]
        crossed = [n for n in range(1, len(prices)) if prices[n - 1] <= LEVEL < prices[n]]
        assert fired(job) == crossed
        assert len(crossed) > 3
    finally:
        jobs.job.close()
