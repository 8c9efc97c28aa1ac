"""The streaming query of triggers: Kafka → micro-batches → the matcher → the log and the manager."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from relay.eventlog import TICK_TOPIC, EventLog
from relay.observability import Counters
from spark_jobs.jobs.hints import HintSender
from spark_jobs.jobs.record_reader import RecordReader
from spark_jobs.jobs.records import TIMED_EXPRESSIONS
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.source import clamped_starts, ensure_topics, followed_log, log_stream, start_query
from spark_jobs.jobs.triggers.service import JOB, TriggerService

__all__ = ["TriggersJob"]


class TriggersJob:
    """Runs the query; one instance in the driver, made anew after each failure."""

    def __init__(
        self, settings: JobSettings, *, session: SparkSession, log: EventLog, hints: HintSender, counters: Counters
    ) -> None:
        self._settings, self._session, self._log, self._counters = settings, session, log, counters
        ensure_topics(log, settings)
        self._reader = RecordReader(TIMED_EXPRESSIONS, log=followed_log(session, log), counters=counters, job=JOB)
        self._service = TriggerService(settings, log=log, hints=hints, counters=counters)

    def start(self) -> StreamingQuery:
        """Start the query where the state has come to."""
        settings, reached = self._settings, self._service.offsets
        starts = clamped_starts(self._log, reached, counters=self._counters, job=JOB)
        ticks = settings.topic_prefix + TICK_TOPIC
        self._service.doubt({p for p, offset in starts[ticks].items() if offset != reached[ticks].get(p, 0)})
        if starts[ticks].keys() != reached[ticks].keys():
            starts[ticks] = self._service.catch_up(starts[ticks])
        source = log_stream(self._session, settings, starts, records_max=settings.triggers_records_per_batch_max)
        self._reader.start_at(starts)
        trigger_ms = settings.triggers_trigger_ms
        return start_query(source, self._process, settings, job=JOB, trigger_ms=trigger_ms, reader=self._reader)

    def close(self) -> None:
        """Save the state, unless a batch was broken off."""
        self._reader.close()
        self._service.close()

    def _process(self, frame: DataFrame, batch_id: int) -> None:
        self._service.take(self._reader.read(frame, batch_id))
