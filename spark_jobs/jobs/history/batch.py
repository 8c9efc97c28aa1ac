"""One micro-batch of log records: small ones are decoded in the driver, big ones by the executors."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_jobs.jobs.history.decode import Decoded, decode_records
from spark_jobs.jobs.records import RECORD_COLUMNS

__all__ = ["MicroBatch"]

_PARTS = ("tick_bars", "coverage", "markets", "quarantine")


class MicroBatch:
    """The records of one micro-batch, read once.

    Args:
        frame: Kafka's columns (topic, partition, offset, key, value).
        batch_id: Spark's number; information only.
        in_driver: whether the records are few enough to be decoded in the driver.
    """

    def __init__(self, frame: DataFrame, *, batch_id: int, in_driver: bool) -> None:
        self.frame = frame.select(*RECORD_COLUMNS)
        self.batch_id = batch_id
        self.in_driver = in_driver
        self._decoded: Decoded | None = None
        self._bounds: dict[str, dict[int, tuple[int, int]]] = {}

    def decoded(self) -> Decoded:
        """Return the rows of every table; of a big batch all but ``bars``, which stay with the executors."""
        if self._decoded is None:
            self._decoded = self._decode_here() if self.in_driver else self._decode_there()
        return self._decoded

    def after(self, *earlier: MicroBatch) -> MicroBatch:
        """Return one micro-batch with the rows of earlier ones and of this one, all decoded in the driver.

        Its frame is this one's alone: only the executors read that.
        """
        batches = (*earlier, self)
        joined = MicroBatch(self.frame, batch_id=self.batch_id, in_driver=True)
        parts = [batch.decoded() for batch in batches]
        names = (*_PARTS, "bars")
        joined._decoded = Decoded(**{name: pa.concat_tables([getattr(p, name) for p in parts]) for name in names})
        for batch in batches:
            for topic, of_topic in batch._bounds.items():
                for partition, (first, end) in of_topic.items():
                    joined._note_bound(topic, partition, first, end)
        return joined

    def end_offsets(self, topic: str) -> Mapping[int, int]:
        """Return the offset after the last record of each partition of a topic in this batch."""
        self.decoded()
        return {partition: end for partition, (_, end) in self._bounds.get(topic, {}).items()}

    def first_offsets(self, topic: str) -> Mapping[int, int]:
        """Return the offset of the first record of each partition of a topic in this batch."""
        self.decoded()
        return {partition: first for partition, (first, _) in self._bounds.get(topic, {}).items()}

    def _decode_here(self) -> Decoded:
        records = self.frame.toArrow()
        self._note_bounds(_bounds(records))
        return decode_records(records, seen_at_us=time.time_ns() // 1000)

    def _decode_there(self) -> Decoded:
        parts = self.frame.mapInArrow(_decode_parts, "part string, rows binary").toArrow()
        tables: dict[str, list[pa.Table]] = {name: [] for name in (*_PARTS, "bounds", "bars")}
        for name, rows in zip(parts["part"].to_pylist(), parts["rows"].to_pylist(), strict=True):
            tables[name].append(pa.ipc.open_stream(rows).read_all())
        for bounds in tables["bounds"]:
            self._note_bounds(bounds)
        empty = decode_records(_no_records(), seen_at_us=0)
        joined = {name: pa.concat_tables([getattr(empty, name), *tables[name]]) for name in (*_PARTS, "bars")}
        return Decoded(**joined)

    def _note_bounds(self, bounds: pa.Table) -> None:
        for row in bounds.to_pylist():
            self._note_bound(row["topic"], row["partition"], row["offset_min"], row["offset_max"] + 1)

    def _note_bound(self, topic: str, partition: int, first: int, end: int) -> None:
        of_topic = self._bounds.setdefault(topic, {})
        known_first, known_end = of_topic.get(partition, (first, end))
        of_topic[partition] = (min(known_first, first), max(known_end, end))


def _bounds(records: pa.Table) -> pa.Table:
    return records.group_by(["topic", "partition"]).aggregate([("offset", "min"), ("offset", "max")])


def _decode_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs in executors: the small tables travel to the driver as Arrow streams, bars don't."""
    for batch in batches:
        records = pa.Table.from_batches([batch])
        decoded = decode_records(records, seen_at_us=time.time_ns() // 1000)
        parts = {name: getattr(decoded, name) for name in _PARTS}
        parts["bounds"] = _bounds(records)
        yield pa.RecordBatch.from_pydict(
            {"part": list(parts), "rows": [_stream(table) for table in parts.values()]},
            schema=pa.schema([("part", pa.string()), ("rows", pa.binary())]),
        )


def _stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _no_records() -> pa.Table:
    kinds = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary())
    return pa.schema(list(zip(RECORD_COLUMNS, kinds, strict=True))).empty_table()
