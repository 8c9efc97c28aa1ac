"""Bars made from ticks are committed together, whatever else comes at once, and nothing overtakes what waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from relay.eventlog import LogIdentity
from relay.observability import Counters
from relay.protocol.ranges import Range
from relay.tables.catalog import open_catalog, open_table
from relay.tables.reader import open_tables
from relay.tables.settings import TableSettings
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.history.batch import MicroBatch
from spark_jobs.jobs.history.committer import HistoryCommitter
from spark_jobs.jobs.history.contradictions import ContradictionLog
from spark_jobs.jobs.history.held_bars import HeldBars
from spark_jobs.jobs.history.writers import DriverBarsWriter
from spark_jobs.jobs.records import RECORD_COLUMNS
from tests.support.batches import BTC, batch, record, tick_bar
from tests.support.lake import lake_in

TOPICS = {"bars": LogIdentity("c", "bars", 1), "symbols": LogIdentity("c", "symbols", 1)}


class Frame:
    """Records in the place of Spark's frame: the driver's way asks it for nothing but its rows."""

    def __init__(self, values: list[bytes], first_offset: int) -> None:
        kinds = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary())
        rows = [("bars", 0, first_offset + place, BTC.encode(), value) for place, value in enumerate(values)]
        self._rows = pa.table(
            {n: pa.array(c, k) for n, k, c in zip(RECORD_COLUMNS, kinds, zip(*rows, strict=True), strict=True)}
        )

    def select(self, *names: str) -> Frame:
        return self

    def toArrow(self) -> pa.Table:
        return self._rows


def micro(number: int, *messages: Any, first_offset: int) -> MicroBatch:
    frame: Any = Frame([m if isinstance(m, bytes) else record(m) for m in messages], first_offset)
    return MicroBatch(frame, batch_id=number, in_driver=True)


def test_only_bars_made_from_ticks_wait_and_never_longer_or_more_than_said():
    held = HeldBars(wait_s=10, rows_max=4)
    assert held.offer(micro(0, tick_bar(0), first_offset=0), now=100.0)
    assert held.offer(micro(1, tick_bar(1), tick_bar(2), first_offset=1), now=105.0)
    assert not held.offer(micro(2, batch(range(3)), first_offset=3), now=106.0)
    assert not held.offer(micro(3, tick_bar(3), b"\x02poison", first_offset=4), now=106.0)
    assert not held.offer(micro(4, tick_bar(4), tick_bar(5), first_offset=6), now=106.0), "four are too many"
    assert (held.is_due(now=109.9), held.is_due(now=110.0), len(held)) == (False, True, 3)
    together = held.take()
    assert together is not None
    assert (together.batch_id, together.first_offsets("bars"), together.end_offsets("bars")) == (1, {0: 0}, {0: 3})
    assert len(together.decoded().tick_bars) == len(together.decoded().bars) == 3
    assert (held.take(), held.is_due(now=999.0), len(held)) == (None, False, 0)
    assert not HeldBars(wait_s=0, rows_max=9).offer(micro(0, tick_bar(0), first_offset=0), now=0.0)


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return lake_in(tmp_path)


def snapshots(settings: TableSettings, name: str) -> int:
    return len(open_table(open_catalog(settings), name).metadata.snapshots)


def test_what_waited_and_what_takes_it_along_are_one_commit_of_each_table_case_119_140(settings):
    tables = open_writable_tables(settings)
    committer = HistoryCommitter(tables, TOPICS, Counters())
    bars = DriverBarsWriter(tables, ContradictionLog(Counters()))
    held = HeldBars(wait_s=10, rows_max=100)
    for number in range(3):
        assert held.offer(micro(number, tick_bar(number), first_offset=number), now=0.0)
    # A start at this moment begins before what waits: it is in memory only.
    assert HistoryCommitter(open_writable_tables(settings), TOPICS, Counters()).start_offsets()["bars"] == {0: 0}
    waited, fetched = held.take(), micro(3, batch(range(1, 2), price=999), first_offset=3)
    committer.commit(fetched.after(waited), bars)
    assert [snapshots(settings, name) for name in ("tick_bars", "ohlc", "coverage")] == [1, 1, 1]
    rows = open_tables(settings).read_bars(BTC, 60, within=Range(0, 4 * 10**18))
    assert [int(close * 100) for close in rows["close"].to_pylist()] == [4_213, 999, 4_213]
    again = HistoryCommitter(open_writable_tables(settings), TOPICS, Counters())
    assert again.start_offsets()["bars"] == {0: 4}
    # A replay of everything from the log, under another number of a batch, adds nothing: offsets are compared.
    again.commit(micro(77, tick_bar(0), tick_bar(1), tick_bar(2), batch(range(1, 2), price=999), first_offset=0), bars)
    assert len(open_table(open_catalog(settings), "tick_bars").scan().to_arrow()) == 3
    assert snapshots(settings, "ohlc") == 1
