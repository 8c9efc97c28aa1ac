"""Writes the class archive (AppCDS): a JVM that maps it need not parse and verify them again."""

from __future__ import annotations

import os
import time

import structlog

from relay.eventlog import SYMBOL_TOPIC
from spark_jobs.jobs.records import RECORD_COLUMNS
from spark_jobs.jobs.session import open_session
from spark_jobs.jobs.settings import JobSettings

__all__ = ["write_archive"]

_LOG = structlog.get_logger()


def write_archive(settings: JobSettings) -> int:
    """Load what the history job loads, end the JVM, and put the archive in its place; returns the exit code."""
    if settings.class_archive is None or settings.class_archive.exists():
        return 0
    started = time.monotonic()
    settings.class_archive.parent.mkdir(parents=True, exist_ok=True)
    draft = settings.class_archive.with_suffix(f".{os.getpid()}")
    session = open_session(
        settings.model_copy(update={"class_archive": draft}), name="market-relay-archive", archiving=True
    )
    # The catalog, the Kafka source and an Arrow round trip: the classes of a start and of a first micro-batch.
    session.sql(f"SHOW TABLES IN {settings.catalog_name}.market").collect()
    (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", settings.log_bootstrap_servers)
        .option("subscribe", settings.topic_prefix + SYMBOL_TOPIC)
        .load()
        .select(*RECORD_COLUMNS)
        .limit(1)
        .toArrow()
    )
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    if not draft.exists():
        _LOG.warning("class_archive_missing", path=str(draft))
        return 1
    draft.replace(settings.class_archive)
    _LOG.info("class_archive_written", seconds=round(time.monotonic() - started, 1))
    return 0
