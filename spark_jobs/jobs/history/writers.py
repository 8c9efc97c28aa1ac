"""Two writers of bars behind one port: PyIceberg from the driver for small batches, Spark's MERGE for big ones.

Both leave the same table, by the order that :mod:`relay.tables.merge` states, and note the same contradictions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from relay.tables.merge import BAR_NUMBERS
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import NAMESPACE, OHLC_COLUMNS, OHLC_KEY, OHLC_TABLE
from relay.tables.writer import IcebergTables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.contradictions import EXAMPLES_MAX, ContradictionLog
from spark_jobs.jobs.history.decode import decode_records
from spark_jobs.jobs.session import projections

__all__ = ["BarsWriter", "DriverBarsWriter", "SparkBarsWriter"]

_LOG = logging.getLogger(__name__)
_VIEW = "incoming_bars"
_MERGE_TRIES_MAX = 5
_LOST_RACES = ("iceberg.exceptions.ValidationException", "iceberg.exceptions.CommitFailedException")


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

    def __init__(self, tables: IcebergTables, said: ContradictionLog) -> None:
        self._tables, self._said = tables, said

    def merge(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        """See the port."""
        del topic  # the driver's decoder puts nothing but this topic's batches into bars
        bars = known.fresh(batch.decoded().bars)
        if len(bars) == 0:
            return False
        committed = self._tables.merge_bars(
            bars, reached=reached, batch_id=batch.batch_id, known=known, on_contradicted=self._said.note_all
        )
        return committed is not None


class SparkBarsWriter:
    """Decodes on the executors and commits by ``MERGE INTO``: for backfills of millions of rows."""

    def __init__(self, catalog_name: str, said: ContradictionLog) -> None:
        self._table, self._said = f"{catalog_name}.{NAMESPACE}.{OHLC_TABLE}", said

    def merge(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        """See the port."""
        if not pc.sum(batch.decoded().coverage["rows"]).as_py() and not len(batch.decoded().tick_bars):
            return False
        with projections(batch.frame.sparkSession, are_compiled=True):
            return self._merge_big(batch, topic, known, reached)

    def _merge_big(self, batch: MicroBatch, topic: str, known: SourceOffsets, reached: SourceOffsets) -> bool:
        session = batch.frame.sparkSession
        records = batch.frame.where(f.col("topic") == topic)
        for partition, end in known.end_offsets.items():
            records = records.where(~((f.col("partition") == partition) & (f.col("offset") < end)))
        by_key = _by_key(records.mapInArrow(_decode_bars, from_arrow_schema(OHLC_COLUMNS))).persist()
        try:
            bounds = by_key.agg(f.min("start"), f.max("start"), f.count("fetched"), f.count("made")).collect()[0]
            first, last, fetched_count, made_count = bounds
            if first is None:
                return False
            # What a merge replaces can be seen only before it, what it refuses only after it.
            if fetched_count:
                self._note(self._stored(session, first, last, kind="made"), by_key, is_replaced=True)
            self._merge(by_key, reached.summary(batch_id=batch.batch_id), first=first, last=last)
            if made_count:
                self._note(by_key, self._stored(session, first, last, kind="fetched"), is_replaced=False)
        finally:
            by_key.unpersist()
        return True

    def _merge(self, by_key: DataFrame, summary: Mapping[str, str], *, first: datetime, last: datetime) -> None:
        session = by_key.sparkSession
        kept = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in summary.items()}
        by_key.select(*OHLC_KEY, f.coalesce("fetched", "made").alias("bar")).select(
            *[name if name in OHLC_KEY else f"bar.{name}" for name in OHLC_COLUMNS.names]
        ).createOrReplaceTempView(_VIEW)
        try:
            for key, value in kept.items():
                session.conf.set(key, value)
            self._commit(session, first=first, last=last)
        finally:
            for key in kept:
                session.conf.unset(key)
            session.catalog.dropTempView(_VIEW)

    def _commit(self, session: SparkSession, *, first: datetime, last: datetime) -> None:
        """Merge; again on the new head where maintenance has put files together that this one had read."""
        for tries in range(_MERGE_TRIES_MAX):
            try:
                session.sql(self._statement(), args={"first": first, "last": last})
            except (PySparkException, Py4JJavaError) as error:
                if tries == _MERGE_TRIES_MAX - 1 or not any(name in str(error) for name in _LOST_RACES):
                    raise
                _LOG.info("merge_lost_a_race table=%s error=%s", self._table, str(error)[:500])
            else:
                return

    def _statement(self) -> str:
        keys = " AND ".join(f"t.{name} = s.{name}" for name in OHLC_KEY)
        return f"""
            MERGE INTO {self._table} t USING {_VIEW} s
            ON {keys} AND t.start >= :first AND t.start <= :last
            WHEN MATCHED AND {_order("s")} > {_order("t")} THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *
        """

    def _stored(self, session: SparkSession, first: datetime, last: datetime, *, kind: str) -> DataFrame:
        """Bars of the table between two starts, of one of the two kinds and named as :func:`_by_key` names it."""
        is_of_kind = "is_fetched = false" if kind == "made" else "coalesce(is_fetched, true)"
        bars = session.table(self._table).where(f.col("start").between(f.lit(first), f.lit(last))).where(is_of_kind)
        return bars.select(*OHLC_KEY, f.struct(*BAR_NUMBERS).alias(kind))

    def _note(self, made: DataFrame, fetched: DataFrame, *, is_replaced: bool) -> None:
        """Note the bars made from ticks that yield to a fetched one with other numbers."""
        sides = [
            side.where(f.col(kind).isNotNull()).select(
                *OHLC_KEY, *[f.col(f"{kind}.{name}").alias(f"{kind}_{name}") for name in BAR_NUMBERS]
            )
            for side, kind in ((made, "made"), (fetched, "fetched"))
        ]
        differs = " OR ".join(f"coalesce(made_{name} <> fetched_{name}, false)" for name in BAR_NUMBERS)
        pairs = sides[0].join(sides[1], list(OHLC_KEY)).where(differs).withColumn("is_replaced", f.lit(is_replaced))
        count = pairs.count()
        if count:
            examples = pairs.limit(EXAMPLES_MAX).toArrow()
            self._said.note(
                replaced=count if is_replaced else 0, refused=0 if is_replaced else count, examples=examples
            )


def _order(alias: str) -> str:
    """The order of :mod:`relay.tables.merge` as a tuple in SQL."""
    is_fetched = f"coalesce({alias}.is_fetched, true)"
    return (
        f"({is_fetched}, if({is_fetched}, 0, {alias}.revision), {is_fetched} OR NOT {alias}.incomplete, "
        f"{alias}.fetched_at_ns, {alias}.log_partition, {alias}.log_offset)"
    )


def _decode_bars(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        decoded = decode_records(pa.Table.from_batches([batch]), seen_at_us=time.time_ns() // 1000)
        yield from decoded.bars.to_batches()


def _by_key(bars: DataFrame) -> DataFrame:
    """One row for each key: the last ``fetched`` and the last ``made`` bar, each null when there is none."""
    bar = f.struct(*[name for name in bars.columns if name not in OHLC_KEY])
    place = [f.col(name).alias(f"order_{name}") for name in ("fetched_at_ns", "log_partition", "log_offset")]
    revision = f.struct(
        f.col("revision").alias("order_revision"), (~f.col("incomplete")).alias("order_complete"), *place
    )
    is_made = ~f.col("is_fetched")
    return bars.groupBy(*OHLC_KEY).agg(
        f.max_by(f.when(~is_made, bar), f.when(~is_made, f.struct(*place))).alias("fetched"),
        f.max_by(f.when(is_made, bar), f.when(is_made, revision)).alias("made"),
    )
