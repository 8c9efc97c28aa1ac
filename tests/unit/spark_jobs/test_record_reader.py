"""What brings a micro-batch's records into the driver, and when Spark compiles its projections for that."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from relay.errors import RetryableError
from relay.eventlog import TopicSpec
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from spark_jobs.jobs import record_reader
from spark_jobs.jobs.record_reader import RecordReader
from spark_jobs.jobs.records import RECORD_COLUMNS
from spark_jobs.jobs.session import projections

MODE = "spark.sql.codegen.factoryMode"


class Session:
    """Stands for a session's settings."""

    def __init__(self, mode: str) -> None:
        self.conf = self
        self.values = {MODE: mode}

    def get(self, key: str) -> str:
        return self.values[key]

    def set(self, key: str, value: str) -> None:
        self.values[key] = value


class Frame:
    """Stands for a micro-batch; notes in which mode it was read."""

    def __init__(self, session: Session, records: int) -> None:
        self.sparkSession, self.records, self.read_in = session, records, ""

    def selectExpr(self, *columns: str) -> Frame:
        assert columns == ("a", "b AS c")
        return self

    def toArrow(self) -> pa.Table:
        self.read_in = self.sparkSession.get(MODE)
        if self.records < 0:
            raise ConnectionError("the log is away")
        return pa.table({"a": pa.nulls(self.records)})


def test_projections_are_compiled_behind_a_big_micro_batch_and_no_longer_behind_a_small_one(monkeypatch):
    monkeypatch.setattr(record_reader, "_BIG_BATCH", 10)
    session, reader = Session("NO_CODEGEN"), RecordReader(["a", "b AS c"], log=None, counters=Counters(), job="job")
    frames = [Frame(session, records) for records in (9, 10, 50, 3, 4)]
    assert [len(reader.read(frame, 0)) for frame in frames] == [9, 10, 50, 3, 4]
    interpreted, compiled = "NO_CODEGEN", "FALLBACK"
    assert [frame.read_in for frame in frames] == [interpreted, interpreted, compiled, compiled, interpreted]
    assert session.get(MODE) == interpreted


def test_a_session_gets_its_mode_back_when_reading_fails(monkeypatch):
    monkeypatch.setattr(record_reader, "_BIG_BATCH", 10)
    session, reader = Session("NO_CODEGEN"), RecordReader(["a", "b AS c"], log=None, counters=Counters(), job="job")
    reader.read(Frame(session, 10), 0)
    with pytest.raises(ConnectionError):
        reader.read(Frame(session, -1), 1)
    assert session.get(MODE) == "NO_CODEGEN"


@pytest.mark.parametrize("before", ["FALLBACK", "NO_CODEGEN"])
def test_a_block_changes_a_sessions_mode_for_its_length_alone(before):
    session = Session(before)
    with projections(session, are_compiled=False):
        assert session.get(MODE) == "NO_CODEGEN"
        with projections(session, are_compiled=True):
            assert session.get(MODE) == "FALLBACK"
    assert session.get(MODE) == before


class Tasks:
    """Stands for a micro-batch that Spark's tasks read; notes that they did."""

    def __init__(self) -> None:
        self.sparkSession, self.reads = Session("NO_CODEGEN"), 0

    def selectExpr(self, *_: str) -> Tasks:
        return self

    def toArrow(self) -> pa.Table:
        self.reads += 1
        return pa.table({"offset": pa.nulls(3, pa.int64())})


class Followed:
    """A log of one topic with two partitions, and a checkpoint that notes micro-batches of it."""

    def __init__(self, folder: Path) -> None:
        self.log, self.counters, self.frame = MemoryEventLog(), Counters(), Tasks()
        self.log.ensure_topics([TopicSpec("t", 2, -1)])
        self.folder = folder
        (folder / "offsets").mkdir()
        self.reader = RecordReader(RECORD_COLUMNS, log=self.log, counters=self.counters, job="job")
        self.reader.start_at({"t": {0: 0, 1: 0}})
        self.reader.begin(str(folder))

    def append(self, count: int) -> None:
        for number in range(count):
            self.log.append("t", key=b"%d" % number, value=b"v%d" % number)

    def note(self, batch_id: int, ends: object = None) -> None:
        ends = {"t": {str(p): end for p, end in enumerate(self.log.end_offsets("t"))}} if ends is None else ends
        (self.folder / "offsets" / str(batch_id)).write_text("v1\n{}\n" + json.dumps(ends))

    def read(self, batch_id: int) -> list[tuple[int, int]]:
        table = self.reader.read(self.frame, batch_id)
        assert table.column_names == list(RECORD_COLUMNS)
        return sorted(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))

    def ends(self) -> list[int]:
        return list(self.log.end_offsets("t"))


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_the_driver_reads_what_spark_has_noted_for_each_micro_batch_and_no_task_runs(followed: Followed):
    followed.append(10)
    followed.note(0)
    first = followed.ends()
    followed.append(5)
    followed.note(1)
    assert followed.read(0) == [(p, offset) for p in (0, 1) for offset in range(first[p])]
    assert followed.read(1) == [(p, offset) for p in (0, 1) for offset in range(first[p], followed.ends()[p])]
    assert followed.frame.reads == 0
    assert followed.counters.get("job.records.followed") == 15


def test_a_big_micro_batch_is_left_to_tasks_and_the_next_begins_behind_it(followed: Followed, monkeypatch):
    monkeypatch.setattr(record_reader, "_FOLLOWED_RECORDS_MAX", 10)
    followed.append(11)
    followed.note(0)
    big = followed.ends()
    followed.append(10)
    followed.note(1)
    assert len(followed.reader.read(followed.frame, 0)) == 3
    assert followed.frame.reads == 1
    assert followed.read(1) == [(p, offset) for p in (0, 1) for offset in range(big[p], followed.ends()[p])]


@pytest.mark.parametrize(
    "ends",
    [{"t": {"0": 1}}, {"t": {"0": 1, "1": 1, "2": 1}}, {"u": {"0": 1, "1": 1}}, {"t": {"0": -1, "1": 3}}, [], {"t": 3}],
)
def test_offsets_that_do_not_go_on_from_the_ones_before_are_left_to_tasks(followed: Followed, ends: object):
    followed.append(10)
    followed.note(0, ends)
    assert len(followed.reader.read(followed.frame, 0)) == 3


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}\nnonsense", None])
def test_a_checkpoint_that_cannot_be_read_is_left_to_tasks_and_counted(followed: Followed, text: str | None):
    if text is not None:
        (followed.folder / "offsets" / "0").write_text(text)
    assert len(followed.reader.read(followed.frame, 0)) == 3
    assert followed.counters.get("job.follower.failures") == 1


def test_a_log_that_cannot_be_followed_is_left_to_tasks_and_followed_again_behind_that(followed: Followed, monkeypatch):
    followed.append(10)
    followed.note(0)
    first = followed.ends()
    followed.append(5)
    followed.note(1)
    follow = followed.log.follow

    def refuse(_: object) -> object:
        raise RetryableError("the log is away")

    monkeypatch.setattr(followed.log, "follow", refuse)
    assert len(followed.reader.read(followed.frame, 0)) == 3
    monkeypatch.setattr(followed.log, "follow", follow)
    assert followed.read(1) == [(p, offset) for p in (0, 1) for offset in range(first[p], followed.ends()[p])]
    assert followed.counters.get("job.follower.failures") == 1


def test_what_tasks_read_of_a_micro_batch_whose_offsets_are_not_known_is_not_read_again(followed: Followed):
    followed.append(10)
    assert len(followed.reader.read(followed.frame, 0)) == 3
    followed.append(5)
    followed.note(1)
    second = followed.ends()
    # Where the second begins was in the note that is missing.
    assert len(followed.reader.read(followed.frame, 1)) == 3
    followed.append(5)
    followed.note(2)
    assert followed.read(2) == [(p, offset) for p in (0, 1) for offset in range(second[p], followed.ends()[p])]
    assert followed.frame.reads == 2


def test_a_query_that_still_runs_behind_its_jobs_end_follows_the_log_no_more(followed: Followed, monkeypatch):
    followed.append(10)
    followed.note(0)
    followed.reader.close()
    monkeypatch.setattr(followed.log, "follow", lambda _: pytest.fail("the log is followed"))
    assert len(followed.reader.read(followed.frame, 0)) == 3


def test_a_checkpoint_on_another_machine_is_left_to_tasks(followed: Followed):
    followed.note(0)
    followed.reader.begin("s3://bucket/folder")
    assert len(followed.reader.read(followed.frame, 0)) == 3
