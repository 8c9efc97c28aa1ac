"""A real Kafka broker for tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from relay.supervisor.kafka_server import KafkaServer
from tests.support.processes import Process, free_port, wait_until

__all__ = ["RunningKafka"]


class RunningKafka:
    """A broker process that can be killed and started again on the same data and port."""

    def __init__(self, folder: Path) -> None:
        java = find_java()
        jars = ensure_jars("kafka", java, say=print)
        self.server = KafkaServer(java, jars, folder, free_port(), free_port())
        self.server.prepare()
        self.process = self._start()

    @property
    def bootstrap_servers(self) -> str:
        return self.server.bootstrap_servers

    def restart(self) -> None:
        """Start again after a kill."""
        self.server = replace(self.server, controller_port=free_port())
        self.server.prepare()
        self.process = self._start()

    def close(self) -> None:
        self.process.terminate()

    def _start(self) -> Process:
        process = Process(self.server.command(), log=self.server.folder / "kafka.log")

        def ready() -> bool:
            assert process.returncode is None, process.tail()
            try:
                admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})
                return bool(admin.list_topics(timeout=2).brokers)
            except KafkaException:
                return False

        wait_until(ready, what="Kafka to answer")
        return process
