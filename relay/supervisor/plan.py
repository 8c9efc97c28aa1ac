"""Which processes make up the platform, with their commands and settings."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relay.supervisor.java import Java, cache_folder
from relay.supervisor.kafka_server import JAVA_ENVIRONMENT, KafkaServer
from relay.supervisor.settings import UpSettings

__all__ = ["Part", "archive_part", "class_archive", "part_settings", "platform_parts"]

RELAY = (sys.executable, "-c", "from relay.cli import main; main()")


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the platform.

    Attributes:
        name: in ``relay status`` and in the log's file name.
        command: command line.
        ready_url: answers 200 when the part is ready; empty when readiness is a TCP port.
        ready_port: TCP port that is open when the part is ready.
        environment: added to the supervisor's own.
        stop_rank: parts of a lower rank are stopped first.
    """

    name: str
    command: Sequence[str]
    ready_url: str = ""
    ready_port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_rank: int = 0


def platform_parts(settings: UpSettings, *, java: Java, kafka: KafkaServer, config_file: Path) -> list[Part]:
    """Return the parts in the order in which they are started."""
    host, ports = settings.host, settings.ports
    parent = ("--parent-pid", str(os.getpid()))
    shared = {
        "RELAY_CONFIG": str(config_file),
        "PYTHONUNBUFFERED": "1",
        "JAVA_HOME": str(java.home),
        **JAVA_ENVIRONMENT,
    }

    def process(name: str, *arguments: str, status_port: int, health: str = "/health", stop_rank: int = 0) -> Part:
        url = f"http://{host}:{status_port}{health}"
        return Part(name, (*RELAY, *arguments, *parent), ready_url=url, environment=shared, stop_rank=stop_rank)

    jobs = (*settings.jobs, *(("maintenance",) if settings.maintenance else ()))
    parts = [
        Part(
            "kafka",
            (sys.executable, "-m", "relay.supervisor.guard", str(os.getpid()), *kafka.command()),
            ready_port=ports.kafka,
            environment=JAVA_ENVIRONMENT,
            stop_rank=2,
        ),
        process("history", "job", *jobs, status_port=ports.history_status),
        process("gateway", "gateway", status_port=ports.gateway_status, stop_rank=1),
        process("manager", "manager", status_port=ports.manager_status, stop_rank=1),
        process("ingestor", "ingestor", status_port=ports.ingestor_status),
    ]
    if not settings.live:
        simulation = ["simulation", "--host", host, "--port", str(ports.simulation), "--seed", str(settings.seed)]
        if settings.replay_file is not None:
            simulation += ["--replay", str(settings.replay_file), "--ticker", settings.replay_ticker]
        parts.append(
            process("simulation", *simulation, status_port=ports.simulation, health="/control/health", stop_rank=1)
        )
    return parts


def class_archive(jars: Path, java: Java) -> Path:
    """Return where the archive of these jars' classes for this Java is kept."""
    origin = hashlib.sha256(str(java.home.resolve()).encode()).hexdigest()[:8]
    return cache_folder() / f"{jars.name}-java{java.version}-{origin}.jsa"


def archive_part(config_file: Path) -> Part:
    """Return the process that writes the class archive; it yields to everything else."""
    environment = {"RELAY_CONFIG": str(config_file), **JAVA_ENVIRONMENT}
    return Part("archive", ("nice", "-n", "19", *RELAY, "job", "archive"), environment=environment)


def part_settings(settings: UpSettings, *, jars: Path, archive: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of every application, by TOML table."""
    host, ports = settings.host, settings.ports
    data = settings.data_folder.resolve()
    catalog_uri, warehouse = f"sqlite:///{data}/lake/catalog.db", f"file://{data}/lake/warehouse"
    bootstrap = f"{host}:{ports.kafka}"

    def at(port: int) -> str:
        return f"tcp://{host}:{port}"

    tables: dict[str, dict[str, Any]] = {
        "gateway": {
            "request_endpoint": at(ports.request),
            "subscribe_endpoint": at(ports.subscribe),
            "fast_path_endpoint": at(ports.fast_path),
            "manager_publish_endpoint": at(ports.manager_publish),
            "manager_request_endpoint": at(ports.manager_request),
            "catalog_uri": catalog_uri,
            "warehouse": warehouse,
            "status_address": host,
            "status_port": ports.gateway_status,
        },
        "manager": {
            "request_endpoint": at(ports.manager_request),
            "work_endpoint": at(ports.work),
            "notification_endpoint": at(ports.notification),
            "publish_endpoint": at(ports.manager_publish),
            "store_path": str(data / "manager" / "jobs.sqlite"),
            "log_bootstrap_servers": bootstrap,
            "catalog_uri": catalog_uri,
            "warehouse": warehouse,
            "status_address": host,
            "status_port": ports.manager_status,
        },
        "ingestor": {
            "ingestor_id": "embedded",
            "exchanges": list(settings.exchanges),
            "broker_endpoint": at(ports.work),
            "relay_endpoints": [at(ports.fast_path)],
            "spill_path": str(data / "ingestor" / "spill"),
            "log_bootstrap_servers": bootstrap,
            "status_address": host,
            "status_port": ports.ingestor_status,
        },
        "job": {
            "log_bootstrap_servers": bootstrap,
            "catalog_uri": catalog_uri,
            "warehouse": warehouse,
            "manager_notification_endpoint": at(ports.notification),
            "checkpoint_folder": str(data / "checkpoints"),
            "master": settings.spark_master,
            "jars_folder": str(jars),
            "class_archive": str(archive),
            "status_address": host,
            "status_port": ports.history_status,
        },
        "client": {
            "host": host,
            "request_port": ports.request,
            "subscribe_port": ports.subscribe,
        },
    }
    if not settings.live:
        base, sockets = (f"{scheme}://{host}:{ports.simulation}" for scheme in ("http", "ws"))
        tables["ingestor"] |= {
            "binance_base_url": f"{base}/binance",
            "kraken_base_url": f"{base}/kraken",
            "coinbase_base_url": f"{base}/coinbase",
            "coinbase_advanced_base_url": f"{base}/coinbase-advanced",
            "binance_socket_url": f"{sockets}/binance-ws",
            "binance_sbe_socket_url": f"{sockets}/binance-sbe-ws",
            "kraken_socket_url": f"{sockets}/kraken-ws/v2",
            "coinbase_socket_url": f"{sockets}/coinbase-ws",
            "coinbase_advanced_socket_url": f"{sockets}/coinbase-advanced-ws",
        }
    return tables
