"""How many bars a second do the history job's decoder and its two writers take, and where does the time go?"""

from __future__ import annotations

import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.bars import TICKER, log_records
from benchmarks.report import Report
from relay.tables.offsets import SourceOffsets
from spark_jobs.jobs.history.decode import decode_records

__all__ = ["run"]

_TOPIC = "market-ohlc"
_C1 = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_FULL = "-XX:+UseSerialGC"
_OFFSETS = SourceOffsets("history", "bench", "bench")
_SEEN_AT_US = 4 * 10**15


def run(*, quick: bool) -> Report:
    """Measure the decoder, then both writers; quick measures the decoder only."""
    report = Report(
        "decode_merge",
        "How many bars a second do the history job's decoder and its two writers take, and where does the time go?",
        layout="decoder and PyIceberg writer in one thread of one process; Spark on local[2] with its Python workers",
        durability="Parquet (zstd) and Iceberg commits on the local file system, SQLite catalog",
    )
    records = list(log_records(20 if quick else 200))
    decoded_s = _decoder(report, records)
    baseline_s = _baseline(report, records)
    report.ratio("decode_to_parquet_write", decoded_s / baseline_s)
    if not quick:
        _driver_writer(report, records, baseline_s)
        for name, options in (("C1 only", _C1), ("C1 and C2", _FULL)):
            _spark_writer(report, name, options, records)
    return report


def _table(records: list[bytes], *, first_offset: int = 0) -> pa.Table:
    count = len(records)
    return pa.table(
        {
            "topic": [_TOPIC] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(first_offset, first_offset + count), pa.int64()),
            "key": pa.array([TICKER.encode()] * count, pa.binary()),
            "value": pa.array(records, pa.binary()),
        }
    )


def _decoder(report: Report, records: list[bytes]) -> float:
    table = _table(records)
    rows = 1_000 * len(records)
    decode_records(table.slice(0, 5), seen_at_us=_SEEN_AT_US)
    taken_s = _best(lambda: decode_records(table, seen_at_us=_SEEN_AT_US))
    us_per_row = round(taken_s / rows * 1e6, 2)
    report.add("decode, batches of 1,000 bars", rows_per_second=int(rows / taken_s), us_per_row=us_per_row)
    report.notes["decode: time by function"] = _profile(lambda: decode_records(table, seen_at_us=_SEEN_AT_US))
    return taken_s


def _baseline(report: Report, records: list[bytes]) -> float:
    bars = decode_records(_table(records), seen_at_us=_SEEN_AT_US).bars
    with tempfile.TemporaryDirectory() as name:
        taken_s = _best(lambda: pq.write_table(bars, Path(name) / "bars.parquet", compression="zstd"))
    report.add("baseline: pyarrow writes the rows to Parquet", rows_per_second=int(len(bars) / taken_s))
    return taken_s


def _driver_writer(report: Report, records: list[bytes], baseline_s: float) -> None:
    from relay.tables import TableSettings
    from relay.tables.writer import open_writable_tables

    for batches in (1, 10, len(records)):
        with tempfile.TemporaryDirectory() as folder:
            tables = open_writable_tables(TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/wh"))
            taken: list[float] = []
            for number, begin in enumerate(range(0, len(records), batches)):
                if number == 10:
                    break
                bars = decode_records(
                    _table(records[begin : begin + batches], first_offset=begin), seen_at_us=_SEEN_AT_US
                ).bars
                started = time.perf_counter()
                tables.merge_bars(bars, reached=_OFFSETS.advanced({0: begin + batches}), batch_id=number)
                taken.append(time.perf_counter() - started)
            taken_s, rows = sorted(taken)[len(taken) // 2], 1_000 * batches
            report.add(
                f"PyIceberg merge, {rows:,} new bars a commit",
                rows_per_second=int(rows / taken_s),
                commit_ms=round(taken_s * 1e3, 1),
            )
            if batches == len(records):
                report.ratio("pyiceberg_merge_to_parquet_write", taken_s / baseline_s)
            again = bars.set_column(
                bars.schema.get_field_index("fetched_at_ns"),
                bars.schema.field("fetched_at_ns"),
                pa.array([2**62] * len(bars), pa.int64()),
            )
            started = time.perf_counter()
            tables.merge_bars(again, reached=_OFFSETS.advanced({0: len(records) + batches}), batch_id=99)
            report.add(
                f"PyIceberg merge, {rows:,} bars again, newer",
                commit_ms=round((time.perf_counter() - started) * 1e3, 1),
            )


def _spark_writer(report: Report, name: str, options: str, records: list[bytes]) -> None:
    """In a process of its own: a session's Java options are fixed at its start."""
    import json
    import subprocess
    import sys

    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number in range(4):
            path = Path(folder) / f"records-{number}.parquet"
            half = len(records) // 2
            pq.write_table(
                _table(records[half * (number % 2) : half * (number % 2 + 1)], first_offset=number * half), path
            )
            paths.append(str(path))
        answer = subprocess.run(
            [sys.executable, "-m", "benchmarks.decode_merge", folder, options, *paths],
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode:
            raise RuntimeError(f"the Spark process failed: {answer.stderr[-2000:]}")
        found = json.loads(answer.stdout.splitlines()[-1])
    rows = 500 * len(records)
    report.add(f"Spark session, {name}", start_s=found["session_s"])
    for number, merge in enumerate(found["merges"]):
        kind = "new" if number < 2 else "again"
        report.add(
            f"Spark decode + MERGE, {name}, {rows:,} bars {kind}, no. {number + 1}",
            rows_per_second=int(rows / merge["total_s"]),
            decode_s=merge["decode_s"],
            merge_s=merge["merge_s"],
        )


def _spark_process(folder: str, options: str, *paths: str) -> dict[str, Any]:
    from relay.observability import Counters
    from relay.tables.writer import open_writable_tables
    from spark_jobs.jobs.history.batch import MicroBatch
    from spark_jobs.jobs.history.contradictions import ContradictionLog
    from spark_jobs.jobs.history.writers import SparkBarsWriter
    from spark_jobs.jobs.session import open_session
    from tests.support.spark import job_settings

    started = time.perf_counter()
    settings = job_settings(Path(folder), spark_properties={"spark.driver.extraJavaOptions": options})
    open_writable_tables(settings.tables())
    session = open_session(settings, name="bench")
    found: dict[str, Any] = {"session_s": round(time.perf_counter() - started, 1), "merges": []}
    writer, kept = SparkBarsWriter(settings.catalog_name, ContradictionLog(Counters())), _OFFSETS
    for number, path in enumerate(paths):
        batch = MicroBatch(session.read.parquet(path), batch_id=number, in_driver=False)
        begun = time.perf_counter()
        batch.decoded()
        decoded = time.perf_counter()
        reached = kept.advanced(batch.end_offsets(_TOPIC))
        writer.merge(batch, _TOPIC, kept, reached)
        ended, kept = time.perf_counter(), reached
        found["merges"].append(
            {
                "decode_s": round(decoded - begun, 2),
                "merge_s": round(ended - decoded, 2),
                "total_s": round(ended - begun, 3),
            }
        )
    session.stop()
    return found


def _best(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def _profile(work: Callable[[], object]) -> str:
    profile = cProfile.Profile()
    profile.runcall(work)
    stats = pstats.Stats(profile)
    total = stats.total_tt  # type: ignore[attr-defined]
    own = sorted(((v[2], k[2]) for k, v in stats.stats.items()), reverse=True)[:7]  # type: ignore[attr-defined]
    return ", ".join(f"{name.strip('<>')} {share / total:.0%}" for share, name in own)


if __name__ == "__main__":
    import json
    import sys

    print(json.dumps(_spark_process(*sys.argv[1:])))
