"""What Spark tells of a micro-batch becomes rates, durations and a lag by topic."""

from __future__ import annotations

import json

from relay.observability import Counters
from spark_jobs.jobs.progress import progress_of

TOLD = {
    "id": "f4c1", "runId": "a3d2", "name": "bars", "timestamp": "2026-01-05T10:00:00.250Z", "batchId": 7,
    "numInputRows": 1250, "inputRowsPerSecond": 5000.2, "processedRowsPerSecond": 6250.4,
    "durationMs": {"addBatch": 150, "latestOffset": 4, "queryPlanning": 9, "triggerExecution": 200, "walCommit": 12},
    "stateOperators": [],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[market-tick,market-control]]",
            "startOffset": {"market-tick": {"0": 10, "1": 20}, "market-control": {"0": 3}},
            "endOffset": {"market-tick": {"0": 1000, "1": 280}, "market-control": {"0": 3}},
            "latestOffset": {"market-tick": {"0": 1100, "1": 281}, "market-control": {"0": 3}},
        }
    ],
}  # fmt: skip


def test_lag_is_what_the_log_had_and_the_micro_batch_did_not_take_by_topic():
    progress = progress_of(TOLD)
    assert dict(progress.lag) == {"market-tick": 101, "market-control": 0}
    assert (progress.batch_id, progress.rows, progress.rows_per_second) == (7, 1250, 6250)
    assert (progress.batch_ms, progress.process_ms) == (200, 150)


def test_offsets_written_as_text_read_the_same():
    source = TOLD["sources"][0]
    as_text = {key: json.dumps(value) if key.endswith("Offset") else value for key, value in source.items()}
    assert progress_of({**TOLD, "sources": [as_text]}) == progress_of(TOLD)


def test_a_report_of_an_idle_query_lacks_rates_and_offsets_and_is_zero():
    idle = progress_of({"batchId": 0, "processedRowsPerSecond": "NaN", "sources": [{"endOffset": None}]})
    assert (idle.rows, idle.rows_per_second, idle.batch_ms, dict(idle.lag)) == (0, 0, 0, {})
    assert progress_of({"processedRowsPerSecond": "Infinity"}).rows_per_second == 0


def test_gauges_carry_the_same_numbers_under_the_jobs_name():
    counters = Counters()
    progress_of(TOLD).count(counters, job="bars")
    assert counters.get("bars.lag.market-tick") == 101
    assert counters.get("bars.progress.rows_per_second") == 6250
    assert counters.get("bars.progress.batch_ms") == 200


def test_records_that_the_driver_read_by_itself_count_by_their_offsets():
    progress = progress_of({**TOLD, "numInputRows": 0, "processedRowsPerSecond": 0.0})
    assert (progress.rows, progress.rows_per_second) == (1250, 6250)
