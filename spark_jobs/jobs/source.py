"""What a query reads: the log's topics, from the tables' offsets, inside what the log still holds."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from relay.eventlog import EventLog, platform_topics
from relay.observability import Counters
from spark_jobs.jobs.checkpoints import new_checkpoint
from spark_jobs.jobs.record_reader import RecordReader
from spark_jobs.jobs.session import projections
from spark_jobs.jobs.settings import JobSettings

__all__ = ["clamped_starts", "ensure_topics", "followed_log", "log_stream", "start_query"]

_LOG = logging.getLogger(__name__)
_FETCH_BYTES_MAX = 16 * 1024 * 1024
_FETCH_WAIT_MS_MAX = 20
"""A consumer asks for more as soon as it has something, and the broker keeps that question for so long where there is
nothing: a task that has to seek waits for the answer. With Kafka's own half a second such tasks held the places that
all queries share."""


def clamped_starts(
    log: EventLog, starts: Mapping[str, Mapping[int, int]], *, counters: Counters, job: str
) -> dict[str, dict[int, int]]:
    """Return starts of all partitions, inside what the log holds; what lies before the oldest record is lost, and said.

    A partition of which the starts say nothing has been added since: it is read from its beginning.

    Args:
        log: the event log.
        starts: offsets by topic and partition.
        counters: lost records are counted under the job's name.
        job: prefix of the counter.
    """
    clamped: dict[str, dict[int, int]] = {}
    for topic, offsets in starts.items():
        oldest, ends = log.start_offsets(topic), log.end_offsets(topic)
        clamped[topic] = {}
        for partition in range(len(ends)):
            offset = offsets.get(partition, 0)
            if offset < oldest[partition]:
                counters.add(f"{job}.records.lost_to_retention", oldest[partition] - offset)
                _LOG.error(
                    "log_records_lost_to_retention topic=%s partition=%d from=%d to=%d",
                    *(topic, partition, offset, oldest[partition]),
                )
            if offset > ends[partition]:
                _LOG.error(
                    "stored_offset_is_past_the_log topic=%s partition=%d stored=%d end=%d",
                    *(topic, partition, offset, ends[partition]),
                )
            clamped[topic][partition] = min(max(offset, oldest[partition]), ends[partition])
    return clamped


def ensure_topics(log: EventLog, settings: JobSettings) -> None:
    """Create the platform's topics where they are missing."""
    log.ensure_topics(
        platform_topics(
            prefix=settings.topic_prefix,
            partitions=settings.topic_partitions,
            retention_hours=settings.topic_retention_hours,
        )
    )


def log_stream(
    session: SparkSession, settings: JobSettings, starts: Mapping[str, Mapping[int, int]], *, records_max: int
) -> DataFrame:
    """Return the stream of the topics' records.

    Args:
        session: of the driver.
        settings: where the log is.
        starts: first offset by topic and partition.
        records_max: of one micro-batch.
    """
    stream = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings.log_bootstrap_servers)
        .option("subscribe", ",".join(starts))
        .option("startingOffsets", json.dumps({t: {str(p): o for p, o in s.items()} for t, s in starts.items()}))
        .option("maxOffsetsPerTrigger", records_max)
        # The jobs notice a hole by their own offsets and say so; stopping for ever would help nobody.
        .option("failOnDataLoss", "false")
        # As everything else reads the log: its ends, replays, and the driver's own consumer.
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.partition.fetch.bytes", _FETCH_BYTES_MAX)
        .option("kafka.fetch.max.wait.ms", _FETCH_WAIT_MS_MAX)
        .load()
    )
    # A task of its own for each partition of the log costs more than a hundred records do: no more than run at a time.
    return stream.coalesce(session.sparkContext.defaultParallelism) if _is_local(session) else stream


def followed_log(session: SparkSession, log: EventLog) -> EventLog | None:
    """Return the log where the driver reads it by itself: without a cluster there is nobody who could read for it."""
    return log if _is_local(session) else None


def start_query(
    source: DataFrame,
    process: Callable[[DataFrame, int], None],
    settings: JobSettings,
    *,
    job: str,
    trigger_ms: int,
    reader: RecordReader | None = None,
) -> StreamingQuery:
    """Start a query that hands micro-batches to the driver.

    Args:
        source: of records.
        process: called with each micro-batch and its number.
        settings: where checkpoints lie.
        job: name of the query.
        trigger_ms: how often a micro-batch is made; 0 for as soon as there are records.
        reader: reads the micro-batches; told where their offsets are noted.
    """
    checkpoint = new_checkpoint(settings.checkpoint_folder, job=job)
    if reader is not None:
        reader.begin(checkpoint)
    writer = (
        source.writeStream.foreachBatch(process)
        .queryName(job)
        .trigger(processingTime=f"{trigger_ms} milliseconds")
        .option("checkpointLocation", checkpoint)
    )
    # A query runs in a copy of the session as it is now.
    with projections(source.sparkSession, are_compiled=False):
        return writer.start()


def _is_local(session: SparkSession) -> bool:
    return str(session.sparkContext.master).startswith("local")
