"""Many small data files become few: the same rows, sorted, in files of a size that readers like.

::

    files of the head ─► groups (pure) ─► each group read, sorted, written ─► one commit that swaps old for new
                                                                              │ another head   → the swap again on it
                                                                              └ a file is gone → its group is given up

Only the swap races with writers, and a writer that loses such a race does its commit again on the new head. Whatever
is not committed is in no snapshot, so a kill leaves files that :mod:`relay.tables.orphans` removes.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import ArrowScan, _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.types import PrimitiveType

from relay.protocol.periods import NANOSECONDS
from relay.tables.catalog import open_table, storage_errors
from relay.tables.offsets import carried_offsets
from relay.tables.schema import (
    COVERAGE_TABLE,
    GAPS_TABLE,
    OHLC_TABLE,
    QUARANTINE_TABLE,
    SYMBOL_CHANGES_TABLE,
    TICK_BARS_TABLE,
    TICKS_TABLE,
)
from relay.tables.transaction import LeanTransaction

__all__ = ["COMPACTED_TABLES", "Compacted", "CompactionRules", "SmallFile", "compact", "groups_of", "small_files"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_TRIES_MAX = 10
_PAUSE_S = 0.2
_DAY_NS = 86_400 * NANOSECONDS


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a table's files are put together.

    Attributes:
        grouped_by: files whose lowest values of this column are neighbours come together, so that each new file spans
            little of it and readers can leave it out.
        sorted_by: order of the rows of a new file.
        is_by_day: whether the first partition value is the day, and days that may still grow are left alone.
    """

    grouped_by: str
    sorted_by: tuple[str, ...]
    is_by_day: bool = False


_LAYOUTS = {
    OHLC_TABLE: _Layout("start", ("ticker", "start")),
    TICKS_TABLE: _Layout("time", ("ticker", "trade_number"), is_by_day=True),
    TICK_BARS_TABLE: _Layout("start", ("ticker", "start", "revision", "log_partition", "log_offset")),
    COVERAGE_TABLE: _Layout("log_offset", ("ticker", "log_partition", "log_offset")),
    GAPS_TABLE: _Layout("log_offset", ("ticker", "log_partition", "log_offset")),
    SYMBOL_CHANGES_TABLE: _Layout("log_offset", ("ticker", "log_partition", "log_offset")),
    QUARANTINE_TABLE: _Layout("offset", ("topic", "partition", "offset")),
}
COMPACTED_TABLES = tuple(_LAYOUTS)
"""``symbol_metadata`` is left out: each commit of it writes one file anew."""


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What is compacted.

    Attributes:
        target_file_bytes: of the old files that one new file is made of, together.
        small_file_bytes: files below this are small.
        small_files_min: fewer small files of a partition are left as they are.
        rows_max: of one new file; what is held in memory. A file of half as many rows is not small.
        files_per_commit_max: old files that one commit replaces.
    """

    target_file_bytes: int = 32 * 2**20
    small_file_bytes: int = 8 * 2**20
    small_files_min: int = 20
    rows_max: int = 1_000_000
    files_per_commit_max: int = 1_000


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A data file as far as grouping is concerned; ``place`` orders the files of a partition."""

    path: str
    partition: str
    place: int
    rows: int
    size_bytes: int


@dataclass(slots=True)
class Compacted:
    """What a compaction did."""

    files_before: int = 0
    files_after: int = 0
    rows: int = 0
    commits: int = 0
    conflicts: int = 0
    files_given_up: int = 0


def groups_of(files: Iterable[SmallFile], rules: CompactionRules) -> list[list[SmallFile]]:
    """Return which files are put together, each group into one new file; pure.

    Args:
        files: of one table, all of them, in any order.
        rules: bounds.
    """
    partitions: defaultdict[str, list[SmallFile]] = defaultdict(list)
    for file in files:
        if file.size_bytes < rules.small_file_bytes and 2 * file.rows < rules.rows_max:
            partitions[file.partition].append(file)
    groups: list[list[SmallFile]] = []
    for name in sorted(partitions):
        group: list[SmallFile] = []
        rows = size_bytes = 0
        if len(partitions[name]) < rules.small_files_min:
            continue
        for file in sorted(partitions[name], key=lambda file: (file.place, file.path)):
            if group and (rows + file.rows > rules.rows_max or size_bytes + file.size_bytes > rules.target_file_bytes):
                groups.append(group)
                group, rows, size_bytes = [], 0, 0
            group.append(file)
            rows, size_bytes = rows + file.rows, size_bytes + file.size_bytes
        groups.append(group)
    return [group for group in groups if len(group) > 1]


def small_files(table: Table, name: str, *, closed_before_ns: int) -> tuple[list[SmallFile], dict[str, FileScanTask]]:
    """Return the files of a table's head that may be compacted, and how each is read.

    Left out are files of an older partitioning, those with delete files, and days that may still grow.

    Args:
        table: at its head.
        name: of the table.
        closed_before_ns: days that end before this time, nanoseconds since the epoch, do not grow any more.
    """
    layout = _LAYOUTS[name]
    found: list[SmallFile] = []
    tasks: dict[str, FileScanTask] = {}
    column = table.schema().find_field(layout.grouped_by)
    kind = column.field_type
    for task in table.scan().plan_files():
        file = task.file
        if task.delete_files or file.spec_id != table.metadata.default_spec_id:
            continue
        if layout.is_by_day and (file.partition[0] + 1) * _DAY_NS > closed_before_ns:
            continue
        lowest = (file.lower_bounds or {}).get(column.field_id)
        place = int(from_bytes(kind, lowest)) if lowest is not None and isinstance(kind, PrimitiveType) else 0
        partition = repr([file.partition[position] for position in range(len(file.partition))])
        tasks[file.file_path] = task
        found.append(SmallFile(file.file_path, partition, place, file.record_count, file.file_size_in_bytes))
    return found, tasks


def compact(
    catalog: Catalog, name: str, rules: CompactionRules, *, closed_before_ns: int, stopping: threading.Event
) -> Compacted:
    """Compact a table as it is now; files that come meanwhile wait for the next time.

    Args:
        catalog: of the tables.
        name: of the table.
        rules: what is compacted.
        closed_before_ns: see :func:`small_files`.
        stopping: when it is set, what is not committed is given up.

    Raises:
        RetryableError: the table is away; what has been committed stays.
    """
    done = Compacted()
    with storage_errors(f"compacting market.{name}"):
        table = open_table(catalog, name)
        if table is None or table.current_snapshot() is None:
            return done
        files, tasks = small_files(table, name, closed_before_ns=closed_before_ns)
        swaps: list[_Swap] = []
        for group in groups_of(files, rules):
            if stopping.is_set():
                break
            try:
                swaps.append(_rewritten(table, _LAYOUTS[name], [tasks[file.path] for file in group]))
            except (pa.ArrowInvalid, FileNotFoundError, _RowsDifferError) as error:
                # One damaged file must not keep all others from being looked after.
                done.files_given_up += len(group)
                _LOG.error("compaction_group_unreadable table=%s error=%s", name, str(error)[:500])
                continue
            except OSError:
                # Perhaps the store is full: then nothing may be left behind.
                _give_up(catalog, name, swaps, done)
                raise
            if sum(len(swap.old) for swap in swaps) >= rules.files_per_commit_max:
                _commit(catalog, name, swaps, done, stopping)
                swaps = []
        _commit(catalog, name, swaps, done, stopping)
    return done


@dataclass(slots=True)
class _Swap:
    """The old files of a group and what was written instead; ``rows`` are in both."""

    old: list[DataFile]
    new: list[DataFile]
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = sum(file.record_count for file in self.new)


class _RowsDifferError(Exception):
    """A group of files has not as many rows as the table says."""


class _NotingIO(FileIO):
    """The table's own store; notes what is written."""

    def __init__(self, io: FileIO) -> None:
        super().__init__(io.properties)
        self._io = io
        self.written: list[str] = []

    def new_input(self, location: str) -> InputFile:
        return self._io.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        self.written.append(location)
        return self._io.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._io.delete(location)

    def remove_written(self) -> None:
        """Remove what was written; what cannot be removed now is an orphan later."""
        for location in self.written:
            with suppress(OSError):
                self._io.delete(location)


class _RewriteFiles(_OverwriteFiles):
    """Commits as REPLACE: other files, the same rows. Files to be replaced that the head lacks fail the commit."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        counted = super()._summary(snapshot_properties)
        return Summary(operation=Operation.REPLACE, **counted.additional_properties)


def _rewritten(table: Table, layout: _Layout, tasks: Sequence[FileScanTask]) -> _Swap:
    rows = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue()).to_table(tasks)
    expected = sum(task.file.record_count for task in tasks)
    if len(rows) != expected:
        first = tasks[0].file.file_path
        raise _RowsDifferError(f"{first} and {len(tasks) - 1} more: expected {expected} rows, got {len(rows)}")
    ordered = rows.sort_by([(column, "ascending") for column in layout.sorted_by])
    output = _NotingIO(table.io)
    try:
        new = list(_dataframe_to_data_files(table.metadata, ordered, output, counter=count()))
        swap = _Swap([task.file for task in tasks], new)
        if swap.rows != expected:
            raise _RowsDifferError(f"{len(tasks)} files: {expected} rows were read, {swap.rows} written")
    except BaseException:
        output.remove_written()
        raise
    return swap


def _commit(catalog: Catalog, name: str, swaps: list[_Swap], done: Compacted, stopping: threading.Event) -> None:
    """Swap what can be swapped; what cannot is given up, and its new files are removed again."""
    for tries in range(_TRIES_MAX):
        if not swaps or stopping.is_set():
            break
        table = open_table(catalog, name)
        if table is None:
            break
        try:
            with (
                LeanTransaction(table) as change,
                _RewriteFiles(
                    operation=Operation.OVERWRITE,
                    transaction=change,
                    io=table.io,
                    snapshot_properties=carried_offsets(table),
                ) as rewrite,
            ):
                for swap in swaps:
                    for old in swap.old:
                        rewrite.delete_data_file(old)
                    for new in swap.new:
                        rewrite.append_data_file(new)
        except CommitFailedException:
            done.conflicts += 1
            stopping.wait(_PAUSE_S * tries)
            continue
        except ValidationException as error:
            done.conflicts += 1
            _LOG.info("compaction_group_given_up table=%s error=%s", name, str(error)[:500])
            swaps = _still_there(catalog, name, swaps, done)
            continue
        done.commits += 1
        done.files_before += sum(len(swap.old) for swap in swaps)
        done.files_after += sum(len(swap.new) for swap in swaps)
        done.rows += sum(swap.rows for swap in swaps)
        return
    _give_up(catalog, name, swaps, done)


def _still_there(catalog: Catalog, name: str, swaps: list[_Swap], done: Compacted) -> list[_Swap]:
    """Return the swaps whose old files are all in the head; the others are given up."""
    table = open_table(catalog, name)
    live = {task.file.file_path for task in table.scan().plan_files()} if table is not None else set()
    whole = [swap for swap in swaps if all(old.file_path in live for old in swap.old)]
    _give_up(catalog, name, [swap for swap in swaps if swap not in whole], done)
    return whole


def _give_up(catalog: Catalog, name: str, swaps: Iterable[_Swap], done: Compacted) -> None:
    """Remove new files that no commit has named: every try to commit them is known to have failed."""
    table = open_table(catalog, name)
    for swap in swaps:
        done.files_given_up += len(swap.old)
        if table is None:
            continue
        for file in swap.new:
            # What cannot be removed now is an orphan later.
            with suppress(OSError):
                table.io.delete(file.file_path)
