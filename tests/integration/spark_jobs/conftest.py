"""A history job as a real process, beside a real Kafka broker."""

from __future__ import annotations

import sys
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relay.eventlog import HISTORY_TOPIC, SYMBOL_TOPIC, platform_topics
from relay.eventlog.kafka import KafkaEventLog
from relay.tables.reader import LakeTables, open_tables
from relay.tables.writer import open_writable_tables
from tests.support.kafka import RunningKafka
from tests.support.processes import Process, free_port
from tests.support.spark import job_settings


class HistoryProcess:
    """The job on a folder of its own; topics with a prefix of their own, so that one broker serves all tests."""

    def __init__(self, broker: RunningKafka, folder: Path) -> None:
        self.folder, self.prefix = folder, f"{uuid.uuid4().hex[:8]}-"
        self.status_port, self.pull_port = free_port(), free_port()
        self.settings = job_settings(
            folder,
            log_bootstrap_servers=broker.bootstrap_servers,
            topic_prefix=self.prefix,
            topic_partitions=2,
            manager_notification_endpoint=f"tcp://127.0.0.1:{self.pull_port}",
            status_port=self.status_port,
        )
        self.topic, self.symbol_topic = self.prefix + HISTORY_TOPIC, self.prefix + SYMBOL_TOPIC
        self.log = KafkaEventLog(broker.bootstrap_servers, client_id="test")
        self.log.ensure_topics(platform_topics(prefix=self.prefix, partitions=2, retention_hours=1))
        open_writable_tables(self.settings.tables())
        self.process: Process | None = None

    def environment(self) -> dict[str, str]:
        given = self.settings.model_dump(mode="json", exclude_unset=True)
        return {f"RELAY_JOB_{name.upper()}": str(value) for name, value in given.items()}

    def start(self, command: list[str] | None = None, **environment: str) -> Process:
        command = command or [sys.executable, "-c", "from relay.cli import main; main()", "job", "history"]
        self.process = Process(command, log=self.folder / "job.log", environment=self.environment() | environment)
        return self.process

    def counters(self) -> dict[str, int]:
        import json

        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.status_port}/status", timeout=5) as answer:
                return dict(json.load(answer)["counters"])
        except OSError:
            assert self.process is not None
            assert self.process.returncode is None, self.process.tail()
            return {}

    def lake(self) -> LakeTables:
        return open_tables(self.settings.tables())

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
        self.log.close()


@pytest.fixture
def history_job(kafka: RunningKafka, tmp_path: Path) -> Iterator[Callable[[], HistoryProcess]]:
    jobs: list[HistoryProcess] = []

    def make() -> HistoryProcess:
        jobs.append(HistoryProcess(kafka, tmp_path))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()
