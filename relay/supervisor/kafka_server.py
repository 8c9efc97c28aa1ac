"""Command and settings of the embedded single-node Kafka (KRaft) on loopback, with a small heap."""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from pathlib import Path

from relay.errors import StorageError
from relay.supervisor.java import Java

__all__ = ["JAVA_ENVIRONMENT", "KafkaServer", "property_text"]

JAVA_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}
"""Java names files in the locale's encoding: under plain C it can open none that is not ASCII."""

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
min.insync.replicas=1
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=8388608
log.segment.bytes=134217728
# After a kill the old registration must expire before the node may register again.
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
controlled.shutdown.enable=false
"""
_LOG4J = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


def property_text(value: str) -> str:
    """Return a value as a Java properties file spells it: Latin-1, so that everything else is escaped in UTF-16."""
    units = value.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2]) for i in range(0, len(units), 2)]
    return "".join(chr(c) if 0x20 < c < 0x7F and c != 0x5C else f"\\u{c:04x}" for c in codes)


@dataclass(frozen=True, slots=True)
class KafkaServer:
    """An embedded broker.

    Attributes:
        java: runs it.
        jars: folder with Kafka's jars.
        folder: data and settings; survives restarts.
        port, controller_port: on ``host``.
        host: loopback address.
    """

    java: Java
    jars: Path
    folder: Path
    port: int
    controller_port: int
    host: str = "127.0.0.1"

    @property
    def bootstrap_servers(self) -> str:
        """Address for clients."""
        return f"{self.host}:{self.port}"

    def prepare(self) -> None:
        """Write the settings and format the storage; a formatted one is left as it is.

        Raises:
            StorageError: the storage cannot be formatted; carries Kafka's words.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "server.properties").write_text(
            _PROPERTIES.format(
                host=self.host,
                port=self.port,
                controller_port=self.controller_port,
                data=property_text(str(self.folder / "data")),
            ),
            encoding="ascii",
        )
        (self.folder / "log4j2.properties").write_text(_LOG4J)
        if (self.folder / "data" / "meta.properties").exists():
            return
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        answer = subprocess.run(
            [
                *self._java("64m"),
                "kafka.tools.StorageTool",
                "format",
                # One id of 64 begins with a dash and would be read as an option of its own.
                f"--cluster-id={cluster_id}",
                *("-c", str(self.folder / "server.properties")),
                "--ignore-formatted",
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env={**os.environ, **JAVA_ENVIRONMENT},
        )
        if answer.returncode != 0:
            raise StorageError(f"Kafka's storage at {self.folder} cannot be formatted: {answer.stderr[-500:]}")

    def command(self) -> list[str]:
        """Return the command line of the broker; SIGTERM stops it cleanly."""
        return [*self._java("512m"), "kafka.Kafka", str(self.folder / "server.properties")]

    def _java(self, heap: str) -> list[str]:
        return [
            str(self.java.executable),
            f"-Xmx{heap}",
            "-Xms64m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            "-cp",
            f"{self.jars}/*",
        ]
