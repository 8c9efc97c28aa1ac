"""One behaviour over every event log: in memory and on a real Kafka broker."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from relay.errors import RetryableError, SettingsError, StorageError
from relay.eventlog.kafka import KafkaEventLog
from relay.eventlog.memory import MemoryEventLog
from relay.eventlog.port import RECORD_BYTES_MAX, EventLog, TopicSpec
from tests.support.kafka import RunningKafka
from tests.support.processes import wait_until

HOUR_MS = 3_600_000


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def log(request: pytest.FixtureRequest) -> Iterator[EventLog]:
    if request.param == "memory":
        yield MemoryEventLog()
        return
    broker: RunningKafka = request.getfixturevalue("kafka")
    kafka_log = KafkaEventLog(broker.bootstrap_servers, client_id="conformance")
    yield kafka_log
    kafka_log.close()


@pytest.fixture
def topic(log: EventLog) -> str:
    name = f"t-{uuid.uuid4()}"
    log.ensure_topics([TopicSpec(name, 3, HOUR_MS)])
    return name


def test_records_of_one_key_lie_in_one_partition_in_the_order_they_were_appended(log, topic):
    futures = [log.append(topic, key=b"BTC", value=b"%d" % n) for n in range(50)]
    assert log.flush(30) == 0
    positions = [f.result(30) for f in futures]
    assert len({p.partition for p in positions}) == 1
    assert [p.offset for p in positions] == list(range(50))
    assert [r.value for r in log.read(topic, key=b"BTC")] == [b"%d" % n for n in range(50)]


def test_records_appended_in_bulk_are_acknowledged_one_by_one_in_their_order(log, topic):
    told = []
    for n in range(50):
        log.append_then(topic, key=b"BTC", value=b"%d" % n, done=lambda error, n=n: told.append((n, error)))
    assert log.flush(30) == 0
    wait_until(lambda: len(told) == 50, what="every acknowledgement")
    assert told == [(n, None) for n in range(50)]
    assert [r.value for r in log.read(topic, key=b"BTC")] == [b"%d" % n for n in range(50)]


def test_a_record_over_the_bound_is_refused_and_the_next_is_taken(log, topic):
    for append in (log.append, lambda *args, **kept: log.append_then(*args, **kept, done=lambda _: None)):
        with pytest.raises(StorageError, match="cannot take a record of 1000001 bytes"):
            append(topic, key=b"BTC", value=bytes(RECORD_BYTES_MAX + 1))
    log.append(topic, key=b"BTC", value=b"next")
    assert log.flush(30) == 0
    assert [r.value for r in log.read(topic, key=b"BTC")] == [b"next"]


def test_a_topic_is_known_once_it_is_prepared(log, topic):
    log.prepare(topic)
    with pytest.raises(RetryableError):
        log.prepare(f"missing-{uuid.uuid4()}")


def test_offsets_begin_at_zero_and_ends_are_the_next_offset(log, topic):
    assert list(log.end_offsets(topic)) == [0, 0, 0]
    position = log.append(topic, key=b"k", value=b"v").result(30)
    assert position.offset == 0
    assert sorted(log.end_offsets(topic)) == [0, 0, 1]
    assert list(log.start_offsets(topic)) == [0, 0, 0]


def test_a_read_begins_at_an_offset_stops_at_the_limit_and_leaves_other_keys_out(log, topic):
    keys = [b"a", b"b", b"c", b"d"]
    for n in range(40):
        log.append(topic, key=keys[n % 4], value=b"%d" % n)
    assert log.flush(30) == 0
    mine = log.read(topic, key=b"a")
    assert [r.value for r in mine] == [b"%d" % n for n in range(0, 40, 4)]
    later = log.read(topic, key=b"a", from_offset=mine[4].position.offset, limit=3)
    assert [r.value for r in later] == [r.value for r in mine[4:7]]


def test_a_read_by_time_begins_at_the_first_record_at_or_after_it(log, topic):
    log.append(topic, key=b"k", value=b"first").result(30)
    first = log.read(topic, key=b"k")[0]
    assert [r.value for r in log.read(topic, key=b"k", from_time_ns=first.timestamp_ns)] == [b"first"]
    assert log.read(topic, key=b"k", from_time_ns=first.timestamp_ns + HOUR_MS * 10**6) == []


def test_a_read_at_the_end_is_empty_and_returns(log, topic):
    assert log.read(topic, key=b"k") == []
    assert log.read(topic, partition=2, from_offset=0) == []


def test_an_empty_value_and_a_large_value_pass_unchanged(log, topic):
    large = bytes(range(256)) * 3_500
    log.append(topic, key=b"k", value=b"")
    log.append(topic, key=b"k", value=large)
    assert log.flush(30) == 0
    assert [r.value for r in log.read(topic, key=b"k")] == [b"", large]


def test_a_topic_with_fewer_partitions_is_refused_with_both_numbers(log, topic):
    log.ensure_topics([TopicSpec(topic, 3, HOUR_MS)])
    log.ensure_topics([TopicSpec(topic, 2, HOUR_MS)])
    with pytest.raises(SettingsError, match="3 partitions, settings say 4"):
        log.ensure_topics([TopicSpec(topic, 4, HOUR_MS)])


def test_stretches_that_are_followed_hold_each_record_once_and_end_where_they_are_said_to(log, topic):
    other = f"t-{uuid.uuid4()}"
    log.ensure_topics([TopicSpec(other, 2, HOUR_MS)])

    def ends() -> dict[str, dict[int, int]]:
        return {name: dict(enumerate(log.end_offsets(name))) for name in (topic, other)}

    said = [ends()]
    follower = log.follow(said[0])
    for turn in range(4):
        for n in range(300):
            log.append(topic, key=b"k%d" % (n % 7), value=b"%d/%d" % (turn, n))
            log.append(other, key=b"k%d" % (n % 5), value=b"")
        assert log.flush(30) == 0
        said.append(ends())
    # All is in the log when the first stretch is asked for: what lies behind its end comes with the next ones.
    for before, after in itertools.pairwise(said):
        found = follower.take(after)
        places = list(zip(found.topics, found.partitions, found.offsets, strict=True))
        assert len(places) == 600
        for name, partition in [(n, p) for n in after for p in after[n]]:
            first, end = before[name][partition], after[name][partition]
            assert [o for t, p, o in places if (t, p) == (name, partition)] == list(range(first, end))
            rows = zip(places, found.times_ms, found.keys, found.values, strict=True)
            same = [row for row in rows if row[0][:2] == (name, partition)]
            records = log.read(name, partition=partition, from_offset=first, limit=end - first)
            assert [r[1:] for r in same] == [(r.timestamp_ns // 10**6, r.key, r.value) for r in records]
    assert len(follower.take(said[-1])) == 0
    follower.close()


def test_following_beyond_the_end_of_the_log_is_an_error_and_no_endless_wait(log, topic):
    log.append(topic, key=b"k", value=b"v").result(30)
    follower = log.follow({topic: dict.fromkeys(range(3), 0)})
    with pytest.raises(RetryableError):
        follower.take({topic: dict.fromkeys(range(3), 5)})
    follower.close()


def test_a_partition_that_does_not_answer_is_no_endless_wait_while_others_are_written_to(log, topic):
    partition = log.append(topic, key=b"k", value=b"v").result(30).partition
    follower = log.follow({topic: dict.fromkeys(range(3), 0)})
    stopping = threading.Event()

    def write() -> None:
        while not stopping.wait(0.02):
            log.append(topic, key=b"k", value=b"v")

    writer = threading.Thread(target=write)
    writer.start()
    taken: Future[object] = Future()

    def take() -> None:
        try:
            taken.set_result(follower.take({topic: {p: 1 if p == partition else 5 for p in range(3)}}))
        except RetryableError as error:
            taken.set_exception(error)

    try:
        # A thread of its own: the wait would be as long as there are writers.
        threading.Thread(target=take, daemon=True).start()
        with pytest.raises(RetryableError):
            taken.result(30)
    finally:
        stopping.set()
        writer.join()
    follower.close()


def test_an_unknown_topic_is_an_error_and_no_new_topic(log):
    with pytest.raises((SettingsError, RetryableError), match="does not exist"):
        log.append(f"t-{uuid.uuid4()}", key=b"k", value=b"v")


def test_the_identity_tells_two_topics_apart(log, topic):
    other = f"t-{uuid.uuid4()}"
    log.ensure_topics([TopicSpec(other, 1, HOUR_MS)])
    assert log.identity(topic).cluster_id == log.identity(other).cluster_id
    assert log.identity(topic).topic_id != log.identity(other).topic_id
    assert log.identity(other).partitions == 1


def test_a_read_needs_a_key_or_a_partition(log, topic):
    with pytest.raises(SettingsError, match="key or a partition"):
        log.read(topic)
