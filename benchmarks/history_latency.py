"""How long from submitting a history request to its notification on a warm platform, and where does the time go?"""

from __future__ import annotations

import statistics
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table

from benchmarks.report import Latency, Report
from relay.eventlog import HISTORY_TOPIC
from relay.protocol.envelope import decode, decode_record, encode
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, request_pb2
from relay.tables.schema import COVERAGE_TABLE, NAMESPACE, OHLC_TABLE
from tests.support.platform import MINUTE_NS, Platform

__all__ = ["run"]

_DEADLINE_S = 240
_BARS = 60
Notice = request_pb2.HistoryReadyNotification
Submit = request_pb2.SubmitResponse


@dataclass(slots=True)
class _Life:
    """Wall-clock times of one request's life, ns; every process is on this machine."""

    submitted_ns: int = 0
    acknowledged_ns: int = 0
    notified_ns: int = 0
    completed_ns: int = 0
    fetched_ns: int = 0
    logged_ns: int = 0
    bars_ns: int = 0
    covered_ns: int = 0
    status: int = field(default=-1)

    def stages(self) -> dict[str, float]:
        """Return what each stage took, ms."""
        times = (
            ("ack", self.submitted_ns, self.acknowledged_ns),
            ("dispatch and fetch", self.acknowledged_ns, self.fetched_ns),
            ("log", self.fetched_ns, self.logged_ns),
            ("micro-batch and bars commit", self.logged_ns, self.bars_ns),
            ("coverage commit", self.bars_ns, self.covered_ns),
            ("hint and decide", self.covered_ns, self.completed_ns),
            ("store and notify", self.completed_ns, self.notified_ns),
        )
        return {name: (end - begin) / 1e6 for name, begin, end in times}


def run(*, quick: bool) -> Report:
    """Measure 1, 10 and 100 requests at once; each asks for an hour of minute bars that is not stored yet."""
    report = Report(
        "history_latency",
        "How long from submitting a history request to its notification on a warm platform, and where does it go?",
        layout="the whole platform by relay up: Kafka, Spark on local[2], relay, manager, ingestor, simulated exchange",
        durability="job table on disk, log record acknowledged, Iceberg commit visible, outcome on disk",
    )
    with tempfile.TemporaryDirectory() as folder:
        platform = Platform(Path(folder) / "platform")
        try:
            client = _Client(platform)
            for _ in range(2 if quick else 5):
                client.together(4)
            for together, rounds in ((1, 3),) if quick else ((1, 30), (10, 5), (100, 3)):
                _measure(report, platform, client, together, rounds)
            report.notes["counters of the history job"] = _picked(platform.counters("history"), "history.b")
            report.notes["requests served by the simulated exchange"] = _served(platform)
        finally:
            platform.close()
    return report


def _measure(report: Report, platform: Platform, client: _Client, together: int, rounds: int) -> None:
    lives: dict[str, _Life] = {}
    for _ in range(rounds):
        lives |= client.together(together)
    latency = Latency()
    for life in lives.values():
        latency.record_ns(life.notified_ns - life.submitted_ns)
    name = f"{together} at once, {_BARS} bars each"
    report.add(name, **latency.row())
    _fill_in(platform, lives)
    stages = [life.stages() for life in lives.values() if life.fetched_ns and life.bars_ns and life.covered_ns]
    medians = {stage: round(statistics.median(s[stage] for s in stages)) for stage in stages[0]} if stages else {}
    report.notes[f"median ms by stage, {together} at once"] = medians
    if together == 1:
        report.ratio("p50_of_one_request_to_one_second", latency.p_us(50) / 1e6, goal_max=1.0)


class _Client:
    """A client without a library in the way; each request has an hour of its own in the past."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._client_id = str(uuid.uuid4())
        context = platform.context
        self._dealer, self._sub = context.socket(zmq.DEALER), context.socket(zmq.SUB)
        self._dealer.connect(f"tcp://127.0.0.1:{platform.ports['request']}")
        self._sub.connect(f"tcp://127.0.0.1:{platform.ports['subscribe']}")
        nonce = str(uuid.uuid4())
        for topic in (f"RESPONSE:{self._client_id}", f"PROBE:{nonce}"):
            self._sub.subscribe(topic.encode())
        while not self._sub.poll(100):
            self._dealer.send_multipart([b"", *encode(request_pb2.Probe(nonce=nonce))])
        while self._sub.poll(300):
            self._sub.recv_multipart()
        while self._dealer.poll(300):
            self._dealer.recv_multipart()
        # Far enough back to be whole, every hour asked for once.
        self._next_ns = (time.time_ns() // (86_400 * 10**9) - 300) * 86_400 * 10**9

    def together(self, count: int) -> dict[str, _Life]:
        """Submit requests one behind the other, wait for all notifications."""
        lives: dict[str, _Life] = {}
        waiting: set[str] = set()
        poller = zmq.Poller()
        poller.register(self._dealer, zmq.POLLIN)
        poller.register(self._sub, zmq.POLLIN)
        for _ in range(count):
            request = self._request()
            lives[request.request_id] = _Life(submitted_ns=time.time_ns())
            waiting.add(request.request_id)
            self._dealer.send_multipart([b"", *encode(request)])
        end = time.monotonic() + _DEADLINE_S
        while waiting or any(not life.acknowledged_ns for life in lives.values()):
            if time.monotonic() > end:
                raise TimeoutError(f"{len(waiting)} of {count} requests were not notified within {_DEADLINE_S} s")
            ready = dict(poller.poll(1_000))
            if self._dealer in ready:
                self._acknowledged(lives)
            if self._sub in ready:
                notice = decode(self._sub.recv_multipart()[1:], Channel.MARKET_DATA).message
                if isinstance(notice, Notice) and notice.request_id in waiting:
                    waiting.remove(notice.request_id)
                    life = lives[notice.request_id]
                    life.notified_ns, life.completed_ns = time.time_ns(), notice.completed_at
                    if notice.status != Notice.OK:
                        raise RuntimeError(f"expected OK, got {notice}")
        return lives

    def _acknowledged(self, lives: Mapping[str, _Life]) -> None:
        reply = decode(self._dealer.recv_multipart(), Channel.CLIENT_REPLY).message
        if not isinstance(reply, Submit) or reply.status != Submit.QUEUED:
            raise RuntimeError(f"expected QUEUED, got {reply}")
        lives[reply.request_id].acknowledged_ns = time.time_ns()

    def _request(self) -> request_pb2.SubmitHistoricalRequest:
        start_ns = self._next_ns
        self._next_ns += _BARS * MINUTE_NS
        return request_pb2.SubmitHistoricalRequest(
            request_id=str(uuid.uuid4()),
            client_id=self._client_id,
            ticker="BTC/USDT.BINANCE",
            start_time=start_ns,
            end_time=start_ns + _BARS * MINUTE_NS,
            period_seconds=60,
        )


def _fill_in(platform: Platform, lives: Mapping[str, _Life]) -> None:
    """What happened within: from the log's own times, and from the tables' commits that reached each record."""
    catalog = load_catalog(
        "lake", uri=f"sqlite:///{platform.folder}/lake/catalog.db", warehouse=f"file://{platform.folder}/lake/warehouse"
    )
    commits = {name: _commits(catalog.load_table((NAMESPACE, name))) for name in (OHLC_TABLE, COVERAGE_TABLE)}
    for partition, offset, logged_ns, batch in _log(platform):
        life = lives.get(batch.request_id)
        if life is None:
            continue
        life.fetched_ns, life.logged_ns = batch.fetched_at, logged_ns
        life.bars_ns = _first_after(commits[OHLC_TABLE], partition, offset)
        life.covered_ns = _first_after(commits[COVERAGE_TABLE], partition, offset)


def _log(platform: Platform) -> Iterable[tuple[int, int, int, market_pb2.OHLCBatch]]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": f"127.0.0.1:{platform.ports['kafka']}", "group.id": "bench", "enable.auto.commit": False}
    )
    try:
        parts = consumer.list_topics(HISTORY_TOPIC, timeout=10).topics[HISTORY_TOPIC].partitions
        left = {}
        for partition in parts:
            low, high = consumer.get_watermark_offsets(TopicPartition(HISTORY_TOPIC, partition), timeout=10)
            if high > low:
                left[partition] = high
        consumer.assign([TopicPartition(HISTORY_TOPIC, p, 0) for p in left])
        while left:
            for record in consumer.consume(1_000, timeout=5):
                if record.error() is None:
                    message = decode_record(record.value())[1]
                    if isinstance(message, market_pb2.OHLCBatch):
                        yield record.partition(), record.offset(), record.timestamp()[1] * 10**6, message
                    if record.offset() + 1 >= left.get(record.partition(), 0):
                        left.pop(record.partition(), None)
    finally:
        consumer.close()


def _commits(table: Table) -> list[tuple[int, dict[int, int]]]:
    """Return (time in ns, end offsets by partition) of each commit, oldest first."""
    import json

    found = []
    for snapshot in table.metadata.snapshots:
        kept = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        if "market-relay.offsets" in kept:
            offsets = {int(p): int(o) for p, o in json.loads(kept["market-relay.offsets"]).items()}
            found.append((snapshot.timestamp_ms * 10**6, offsets))
    return sorted(found, key=lambda commit: commit[0])


def _first_after(commits: list[tuple[int, dict[int, int]]], partition: int, offset: int) -> int:
    return next((at_ns for at_ns, ends in commits if ends.get(partition, 0) > offset), 0)


def _picked(counters: Mapping[str, int], prefix: str) -> dict[str, Any]:
    return {name: value for name, value in counters.items() if name.startswith(prefix)}


def _served(platform: Platform) -> Any:
    found = platform.simulation("/control/requests")
    requests = found.get("requests", found)
    return len(requests)
