"""A real broker that dies: records wait, nothing acknowledged is lost, order stays."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from relay.errors import RetryableError
from relay.eventlog.kafka import KafkaEventLog
from relay.eventlog.port import TopicSpec
from tests.support.kafka import RunningKafka

pytestmark = pytest.mark.kafka


def test_records_appended_while_the_broker_is_dead_arrive_in_order_after_its_return(tmp_path: Path):
    broker = RunningKafka(tmp_path / "kafka")
    log = KafkaEventLog(broker.bootstrap_servers, client_id="outage")
    topic = f"t-{uuid.uuid4()}"
    try:
        log.ensure_topics([TopicSpec(topic, 2, 3_600_000)])
        before = [log.append(topic, key=b"k", value=b"%d" % n) for n in range(10)]
        assert log.flush(30) == 0
        broker.process.kill()
        during = [log.append(topic, key=b"k", value=b"%d" % n) for n in range(10, 20)]
        assert not any(f.done() for f in during)
        broker.restart()
        assert [f.result(60).offset for f in before + during] == list(range(20))
        assert [r.value for r in log.read(topic, key=b"k")] == [b"%d" % n for n in range(20)]
    finally:
        log.close()
        broker.close()


def fill(log: KafkaEventLog, topic: str) -> None:
    for _ in range(100):
        log.append(topic, key=b"k", value=bytes(100_000))


def test_a_full_buffer_is_an_answer_and_not_a_hang(tmp_path: Path):
    broker = RunningKafka(tmp_path / "kafka")
    log = KafkaEventLog(broker.bootstrap_servers, client_id="full", buffer_bytes_max=1024 * 1024)
    topic = f"t-{uuid.uuid4()}"
    try:
        log.ensure_topics([TopicSpec(topic, 1, 3_600_000)])
        log.append(topic, key=b"k", value=b"first").result(30)
        broker.process.kill()
        with pytest.raises(RetryableError, match="full") as refused:
            fill(log, topic)
        assert refused.value.code == "OVERLOADED"
        broker.restart()
        assert log.flush(60) == 0
    finally:
        log.close()
        broker.close()
