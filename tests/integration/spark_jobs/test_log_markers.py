"""A stretch of the log whose last offsets no record has: read to its end, without waiting and without a false loss."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Producer

from relay.errors import RetryableError
from relay.eventlog import HISTORY_TOPIC, TopicSpec, kafka_follower, platform_topics
from relay.eventlog.access import read_range
from relay.eventlog.kafka import KafkaEventLog
from relay.observability import Counters
from spark_jobs.jobs.source import clamped_starts
from tests.support.kafka import RunningKafka

pytestmark = pytest.mark.kafka


def test_markers_of_transactions_at_the_end_are_gone_over_case_112(kafka: RunningKafka):
    """On a real broker: what an aborted transaction leaves behind an in-memory twin does not have (case 117)."""
    prefix = f"{uuid.uuid4().hex[:8]}-"
    topic = prefix + HISTORY_TOPIC
    log = KafkaEventLog(kafka.bootstrap_servers, client_id="test")
    try:
        log.ensure_topics(platform_topics(prefix=prefix, partitions=1, retention_hours=1))
        log.append(topic, key=b"k", value=b"plain").result(30)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": prefix})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, key=b"k", value=b"kept")
        producer.commit_transaction(30)
        producer.begin_transaction()
        producer.produce(topic, key=b"k", value=b"aborted")
        producer.flush(30)
        producer.abort_transaction(30)
        # plain 0, kept 1, marker 2, aborted 3, marker 4
        assert log.end_offsets(topic)[0] == 5
        values = [record.value for record in read_range(log, topic, starts={0: 0}, ends={0: 5})]
        assert values == [b"plain", b"kept"]
        assert list(read_range(log, topic, starts={0: 2}, ends={0: 5})) == []
        counters = Counters()
        assert clamped_starts(log, {topic: {0: 5}}, counters=counters, job="history") == {topic: {0: 5}}
        assert counters.get("history.records.lost_to_retention") == 0
    finally:
        log.close()


def test_a_stretch_that_ends_with_a_marker_is_followed_while_records_keep_coming_behind_it(kafka: RunningKafka):
    log = KafkaEventLog(kafka.bootstrap_servers, client_id="test")
    topic = f"t-{uuid.uuid4()}"
    try:
        log.ensure_topics([TopicSpec(topic, 1, 3_600_000)])
        _transact(kafka, topic, b"kept")
        end = log.end_offsets(topic)[0]
        follower = log.follow({topic: {0: 0}})
        for _ in range(1_000):
            log.append(topic, key=b"k", value=b"behind")
        assert log.flush(30) == 0
        found = follower.take({topic: {0: end}})
        assert (end, found.values) == (2, [b"kept"])
        assert follower.take({topic: {0: end + 1_000}}).offsets == list(range(end, end + 1_000))
        follower.close()
    finally:
        log.close()


def test_no_more_than_a_bound_is_kept_while_one_partition_does_not_answer(kafka: RunningKafka, monkeypatch):
    monkeypatch.setattr(kafka_follower, "_AHEAD_MAX", 10)
    log = KafkaEventLog(kafka.bootstrap_servers, client_id="test")
    topic = f"t-{uuid.uuid4()}"
    try:
        log.ensure_topics([TopicSpec(topic, 2, 3_600_000)])
        for _ in range(100):
            log.append(topic, key=b"k", value=b"ahead")
        assert log.flush(30) == 0
        full = list(log.end_offsets(topic)).index(100)
        follower = log.follow({topic: {0: 0, 1: 0}})
        with pytest.raises(RetryableError, match="records lie ahead and 1 are missing"):
            follower.take({topic: {full: 0, 1 - full: 1}})
        follower.close()
    finally:
        log.close()


def _transact(kafka: RunningKafka, topic: str, value: bytes, *, is_aborted: bool = False) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": str(uuid.uuid4())})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, key=b"k", value=value)
    producer.flush(30)
    if is_aborted:
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)
