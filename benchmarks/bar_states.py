"""Where can the state of bars live: in our engine in the driver, in Spark's aggregate, or in Spark's Python state?"""

from __future__ import annotations

import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from benchmarks.report import Report
from benchmarks.tick_log import TickLog
from relay.eventlog import TICK_TOPIC, platform_topics
from relay.eventlog.kafka import KafkaEventLog
from spark_jobs.jobs.bars.decode import bar_events
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat
from spark_jobs.jobs.records import RECORD_COLUMNS
from tests.support.kafka import RunningKafka
from tests.support.spark import start_session

__all__ = ["run"]

_SECOND_NS = 10**9
_TICKERS = 200
_COLUMNS = "ticker string, time timestamp, number bigint, price bigint, amount bigint"


def run(*, quick: bool) -> Report:
    """Run each way over the same log, a second's ticks a micro-batch; the first third warms up."""
    report = Report(
        "bar_states",
        "What does one micro-batch of a second's ticks cost: our engine in the driver, or a state of Spark's?",
        layout="Kafka; one driver, local[2], its Python workers; 200 tickers, bars of one second",
        durability="Spark's own state on RocksDB with changelog checkpoints; ours is saved apart, every ten seconds",
    )
    per_second, seconds = (1_000, 6) if quick else (5_000, 24)
    with tempfile.TemporaryDirectory() as name:
        kafka = RunningKafka(Path(name) / "kafka")
        session, _ = start_session(Path(name) / "lake")
        try:
            session.conf.set("spark.sql.shuffle.partitions", 2)
            provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            session.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
            session.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
            topic = _filled(kafka, per_second, seconds)
            medians = {}
            for way, start in (("engine in the driver", _engine), ("SQL aggregate", _sql), ("Python state", _pandas)):
                checkpoint = str(Path(name) / way.replace(" ", "-"))
                query = start(_source(session, kafka.bootstrap_servers, topic, per_second), checkpoint)
                medians[way] = _median_ms(query, report, way, batches=seconds)
            for way in ("SQL aggregate", "Python state"):
                report.ratio(
                    f"engine_to_{way.replace(' ', '_').lower()}", medians["engine in the driver"] / medians[way]
                )
        finally:
            session.stop()
            kafka.close()
    return report


def _filled(kafka: RunningKafka, per_second: int, seconds: int) -> str:
    prefix = f"{uuid.uuid4().hex[:8]}-"
    log = KafkaEventLog(kafka.bootstrap_servers, client_id="benchmark")
    log.ensure_topics(platform_topics(prefix=prefix, partitions=2, retention_hours=1))
    start_ns = time.time_ns() // _SECOND_NS * _SECOND_NS - 3600 * _SECOND_NS
    TickLog(log, prefix=prefix, tickers=_TICKERS).ticks(
        per_second * seconds, start_ns=start_ns, step_ns=_SECOND_NS // per_second
    )
    log.close()
    return prefix + TICK_TOPIC


def _source(session: SparkSession, servers: str, topic: str, per_second: int) -> DataFrame:
    stream = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    beats_too = per_second + _TICKERS
    source = stream.option("subscribe", topic).option("startingOffsets", "earliest")
    return source.option("maxOffsetsPerTrigger", beats_too).load().select(*RECORD_COLUMNS)


def _started(
    frame: DataFrame, checkpoint: str, process: Callable[[DataFrame, int], object], mode: str
) -> StreamingQuery:
    return frame.writeStream.foreachBatch(process).outputMode(mode).option("checkpointLocation", checkpoint).start()


def _engine(source: DataFrame, checkpoint: str) -> StreamingQuery:
    book = BarBook(BarRules(), lambda _: (1,))

    def process(frame: DataFrame, _: int) -> None:
        for ticker, _, _, said in bar_events(frame.toArrow()):
            if isinstance(said, BarTrade):
                book.on_trade(ticker, said)
            elif isinstance(said, Beat):
                book.on_beat(ticker, said)
        book.running()

    return _started(source, checkpoint, process, "append")


def _sql(source: DataFrame, checkpoint: str) -> StreamingQuery:
    """A windowed aggregate behind the decoder; nothing of beats, gaps, repeats and revisions."""
    ticks = source.mapInArrow(_decode, _COLUMNS).withWatermark("time", "2 seconds")
    place = sql.struct("time", "number")
    bars = ticks.groupBy("ticker", sql.window("time", "1 second")).agg(
        sql.min_by("price", place).alias("open"),
        sql.max("price").alias("high"),
        sql.min("price").alias("low"),
        sql.max_by("price", place).alias("close"),
        sql.sum("amount").alias("amount"),
        sql.count("*").alias("trades"),
    )
    return _started(bars, checkpoint, lambda frame, _: len(frame.toArrow()), "update")


def _pandas(source: DataFrame, checkpoint: str) -> StreamingQuery:
    """The same aggregate with the state of each ticker in Python."""
    ticks = source.mapInArrow(_decode, _COLUMNS).withWatermark("time", "2 seconds")
    bars = ticks.groupBy("ticker").applyInPandasWithState(
        _fold, "ticker string, trades bigint", "trades bigint", "update", "NoTimeout"
    )
    return _started(bars, checkpoint, lambda frame, _: len(frame.toArrow()), "update")


def _fold(key: tuple[str], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    trades = state.getOption[0] if state.exists else 0
    for frame in frames:
        trades += len(frame)
        frame.groupby(frame["time"].dt.floor("s")).agg({"price": ["first", "max", "min", "last"], "amount": "sum"})
    state.update((trades,))
    yield pd.DataFrame({"ticker": [key[0]], "trades": [trades]})


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema(
        [
            ("ticker", pa.string()),
            ("time", pa.timestamp("us", tz="UTC")),
            *((name, pa.int64()) for name in ("number", "price", "amount")),
        ]
    )
    for batch in batches:
        told = ((event.ticker, event.said) for event in bar_events(pa.Table.from_batches([batch])))
        trades = [(ticker, said) for ticker, said in told if isinstance(said, BarTrade)]
        rows = [(ticker, said.time_ns // 1000, said.number, said.price, said.amount) for ticker, said in trades]
        columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
        )


def _median_ms(query: StreamingQuery, report: Report, way: str, *, batches: int) -> float:
    """Let a query read everything; return the median of its later micro-batches."""
    try:
        query.processAllAvailable()
        progress = [p for p in query.recentProgress if p["numInputRows"]]
    finally:
        query.stop()
    warm = progress[batches // 3 :]
    took = [p["durationMs"]["triggerExecution"] for p in warm]
    inside = [p["durationMs"].get("addBatch", 0) for p in warm]
    median = float(statistics.median(took))
    report.add(
        way, batch_ms=int(median), worst_ms=max(took), add_batch_ms=int(statistics.median(inside)), batches=len(warm)
    )
    return median
