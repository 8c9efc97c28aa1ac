"""Two writers of bars behind one port: PyIceberg from the driver for small batches, Spark's MERGE for big ones.

Both leave the same table: of one key the row latest by (fetched_at, log position) stays.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from relay.tables.offsets import SourceOffsets
from relay.tables.schema import NAMESPACE, OHLC_COLUMNS, OHLC_KEY, OHLC_TABLE
from relay.tables.writer import IcebergTables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.decode import decode_records

__all__ = ["BarsWriter", "DriverBarsWriter", "SparkBarsWriter"]

_ORDER = ("fetched_at_ns", "log_partition", "log_offset")
_VIEW = "incoming_bars"


class BarsWriter(Protocol):
    """Puts a micro-batch's bars into ``market.ohlc``."""

    def merge(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        """Merge the bars of a topic's records at or after the ``known`` end offsets.

        Args:
            batch: the records.
            topic: only its records count.
            known: offsets that the table has stored.
            reached: offsets to keep in the commit.

        Returns:
            Whether a commit was made.
        """


class DriverBarsWriter:
    """Commits by PyIceberg, without a Spark job (numbers: docs/performance.md)."""

    def __init__(self, tables: IcebergTables) -> None:
        self._tables = tables

    def merge(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        """See the port."""
        del topic  # the driver's decoder puts nothing but this topic's batches into bars
        bars = known.fresh(batch.decoded().bars)
        if len(bars) == 0:
            return False
        return self._tables.merge_bars(bars, reached=reached, batch_id=batch.batch_id, known=known) is not None


class SparkBarsWriter:
    """Decodes on the executors and commits by ``MERGE INTO``: for backfills of millions of rows."""

    def __init__(self, catalog_name: str) -> None:
        self._table = f"{catalog_name}.{NAMESPACE}.{OHLC_TABLE}"

    def merge(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        """See the port."""
        if not pc.sum(batch.decoded().coverage["rows"]).as_py():
            return False
        session = batch.frame.sparkSession
        records = batch.frame.where(f.col("topic") == topic)
        for partition, end in known.end_offsets.items():
            records = records.where(~((f.col("partition") == partition) & (f.col("offset") < end)))
        bars = _latest(records.mapInArrow(_decode_bars, from_arrow_schema(OHLC_COLUMNS))).persist()
        summary = {
            f"spark.sql.iceberg.snapshot-property.{key}": value
            for key, value in reached.summary(batch_id=batch.batch_id).items()
        }
        try:
            bounds = bars.agg(f.min("start"), f.max("start"), f.collect_set("period_seconds")).collect()[0]
            if bounds[0] is None:
                return False
            bars.createOrReplaceTempView(_VIEW)
            for key, value in summary.items():
                session.conf.set(key, value)
            session.sql(self._merge_statement(), args={"first": bounds[0], "last": bounds[1]})
        finally:
            for key in summary:
                session.conf.unset(key)
            session.catalog.dropTempView(_VIEW)
            bars.unpersist()
        return True

    def _merge_statement(self) -> str:
        keys = " AND ".join(f"t.{name} = s.{name}" for name in OHLC_KEY)
        newer = f"({', '.join('s.' + n for n in _ORDER)}) > ({', '.join('t.' + n for n in _ORDER)})"
        return f"""
            MERGE INTO {self._table} t USING {_VIEW} s
            ON {keys} AND t.start >= :first AND t.start <= :last
            WHEN MATCHED AND {newer} THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """


def _decode_bars(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        decoded = decode_records(pa.Table.from_batches([batch]), seen_at_us=time.time_ns() // 1000)
        yield from decoded.bars.to_batches()


def _latest(bars: DataFrame) -> DataFrame:
    """One row for each key, the last by (fetched_at, log position)."""
    others = [f.col(name) for name in bars.columns if name not in OHLC_KEY]
    order = f.struct(*[f.col(name).alias(f"order_{name}") for name in _ORDER])
    last = f.max_by(f.struct(*others), order).alias("last")
    return bars.groupBy(*OHLC_KEY).agg(last).select(*OHLC_KEY, "last.*").select(*bars.columns)
