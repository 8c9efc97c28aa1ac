"""One Kafka, one driver of the Spark jobs, and what is looked at from outside: counters, processor time, memory."""

from __future__ import annotations

import contextlib
import json
import statistics
import threading
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import zmq

from benchmarks.processes import RELAY, cpu_seconds, running, wait_for
from relay.eventlog import EventLog, platform_topics
from relay.eventlog.kafka import KafkaEventLog
from spark_jobs.jobs.settings import JobSettings
from tests.support.kafka import RunningKafka
from tests.support.processes import free_port
from tests.support.spark import job_settings

__all__ = ["JobWorld", "QuerySamples", "driver_cpu_s", "driver_pss_mib", "pulling"]

_SAMPLE_S = 0.5


class JobWorld:
    """Topics, tables and settings of one run.

    Args:
        kafka: the broker.
        folder: for tables, checkpoints and the driver's output.
        fields: further settings of the jobs.
    """

    def __init__(self, kafka: RunningKafka, folder: Path, **fields: object) -> None:
        self.folder, self.prefix = folder, f"{uuid.uuid4().hex[:8]}-"
        folder.mkdir(parents=True, exist_ok=True)
        self.status_port, self.pull_port = free_port(), free_port()
        self.settings: JobSettings = job_settings(
            folder,
            log_bootstrap_servers=kafka.bootstrap_servers,
            topic_prefix=self.prefix,
            topic_partitions=6,
            manager_notification_endpoint=f"tcp://127.0.0.1:{self.pull_port}",
            status_port=self.status_port,
            **fields,
        )
        self.log: EventLog = KafkaEventLog(kafka.bootstrap_servers, client_id="benchmark")
        self.log.ensure_topics(platform_topics(prefix=self.prefix, partitions=6, retention_hours=1))

    @contextlib.contextmanager
    def driver(self, *names: str) -> Iterator[psutil.Process]:
        """Run the jobs until the block ends."""
        given = self.settings.model_dump(mode="json", exclude_unset=True)
        environment = {f"RELAY_JOB_{n.upper()}": v if isinstance(v, str) else json.dumps(v) for n, v in given.items()}
        with running([*RELAY, "job", *names], log=self.folder / "job.log", environment=environment) as process:
            wait_for(lambda: (self.status() or {}).get("ready"), what="the driver", within_s=180)
            yield process

    def status(self) -> dict[str, Any] | None:
        """Return what the driver says of itself; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.status_port}/status", timeout=5) as answer:
                return dict(json.load(answer))
        except OSError:
            return None

    def counters(self) -> Mapping[str, int]:
        """Return the driver's counters; none while it does not answer."""
        return dict((self.status() or {}).get("counters", {}))


class QuerySamples:
    """Looks at the queries' micro-batches twice a second on a thread of its own, until closed."""

    def __init__(self, world: JobWorld) -> None:
        self._world, self._closing = world, threading.Event()
        self._seen: defaultdict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        self._thread.join()

    def described(self) -> dict[str, dict[str, float]]:
        """Return by query the medians of the micro-batches that were seen with records in them."""
        found: dict[str, dict[str, float]] = {}
        for name, by_id in sorted(self._seen.items()):
            batches = [one for one in by_id.values() if one["rows"]]
            if len(batches) < 2:
                continue
            ids = sorted(by_id)
            found[name] = {
                "seen": len(batches),
                "made": ids[-1] - ids[0],
                "records_p50": statistics.median(one["rows"] for one in batches),
                "batch_ms_p50": statistics.median(one["batch_ms"] for one in batches),
                "batch_ms_max": max(one["batch_ms"] for one in batches),
                "process_ms_p50": statistics.median(one["process_ms"] for one in batches),
                "lag_max": max(sum(one["lag"].values()) for one in batches),
            }
        return found

    def _run(self) -> None:
        while not self._closing.wait(_SAMPLE_S):
            for name, told in ((self._world.status() or {}).get("queries") or {}).items():
                if "batch_id" in told:
                    self._seen[name][told["batch_id"]] = told


def driver_cpu_s(process: psutil.Process) -> dict[str, float]:
    """Return the processor seconds that a driver has used so far: its Python (with workers), and its JVM."""
    used = {"python": 0.0, "jvm": 0.0}
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            used["jvm" if one.name() == "java" else "python"] += cpu_seconds(one)
    return used


def driver_pss_mib(process: psutil.Process) -> dict[str, int]:
    """Return a driver's memory, each shared page divided among those that share it: Python, JVM, both."""
    held = {"python": 0.0, "jvm": 0.0}
    for one in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            held["jvm" if one.name() == "java" else "python"] += one.memory_full_info().pss / 2**20
    return {**{name: round(mib) for name, mib in held.items()}, "total": round(sum(held.values()))}


@contextlib.contextmanager
def pulling(port: int) -> Iterator[zmq.Socket[bytes]]:
    """Take hints in the manager's place for the length of a block."""
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.setsockopt(zmq.RCVHWM, 1_000_000)
    socket.bind(f"tcp://127.0.0.1:{port}")
    try:
        yield socket
    finally:
        context.destroy(0)
