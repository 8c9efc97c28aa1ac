"""Files that no snapshot names: of kills, of commits that lost a race, and of snapshots that were forgotten.

A file that is written becomes part of a table only by its commit, so a young file may belong to a commit under way:
only old ones are removed. The files are listed before the table is opened, so that whatever was committed meanwhile
is known. Another catalog's table may lie in the same folder, of which only its metadata files tell: what such a table
names is never judged here.
"""

from __future__ import annotations

import gzip
import json
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.catalog import Catalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from relay.tables.catalog import open_table, storage_errors

__all__ = ["Orphan", "find_orphans", "plain_path", "remove_orphans"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_FOLDERS = ("data", "metadata")
"""The writers put nothing elsewhere; what else lies in a table's folder is not ours to judge."""
_METADATA_SUFFIX = ".metadata.json"
_GZIP_MAGIC = b"\x1f\x8b"
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):/*")


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that no snapshot names; ``path`` is the file system's own."""

    path: str
    size_bytes: int
    changed_at: datetime


def plain_path(location: str) -> str:
    """Return a location as the file system names it: ``file:/a``, ``file:///a`` → ``/a``; ``s3://b/k`` → ``b/k``."""
    found = _SCHEME.match(location)
    if found is None:
        return location
    rest = location[found.end() :]
    return f"/{rest}" if found[1].lower() == "file" else rest


def find_orphans(catalog: Catalog, name: str, *, older_than: datetime) -> list[Orphan]:
    """Return the files of a table that no snapshot names and that were written before a time.

    Args:
        catalog: of the tables.
        name: of the table.
        older_than: longer ago than the longest commit takes.

    Raises:
        RetryableError: the table is away.
    """
    with storage_errors(f"looking for orphans of market.{name}"):
        table = open_table(catalog, name)
        if table is None or not _is_alone(catalog, table):
            return []
        old = [orphan for orphan in _files(table) if orphan.changed_at < older_than]
        if not old:
            return []
        table = open_table(catalog, name)
        if table is None:
            return []
        named = {plain_path(path) for path in _named(table)}
        orphans = [orphan for orphan in old if orphan.path not in named]
        return orphans if _are_of(table, orphans) else []


def remove_orphans(catalog: Catalog, name: str, orphans: Sequence[Orphan]) -> int:
    """Remove files; return how many were still there."""
    removed = 0
    with storage_errors(f"removing orphans of market.{name}"):
        table = open_table(catalog, name)
        files = _file_system(table) if table is not None else None
        if files is None:
            return 0
        for orphan in orphans:
            # Another run may have been quicker.
            with suppress(FileNotFoundError):
                files.delete_file(orphan.path)
                removed += 1
    return removed


def _files(table: Table) -> Iterator[Orphan]:
    files = _file_system(table)
    if files is None:
        return
    folder = plain_path(table.location()).rstrip("/")
    for below in _FOLDERS:
        for found in files.get_file_info(FileSelector(f"{folder}/{below}", recursive=True, allow_not_found=True)):
            if found.type is FileType.File and found.mtime is not None:
                yield Orphan(found.path, found.size or 0, found.mtime.astimezone(UTC))


def _file_system(table: Table) -> FileSystem | None:
    """The store of a table's files; None when another library serves it than the one that can list."""
    if not isinstance(table.io, PyArrowFileIO):
        _LOG.warning("orphans_not_looked_for table=%s io=%s", ".".join(table.name()), type(table.io).__name__)
        return None
    scheme, netloc, _ = PyArrowFileIO.parse_location(table.location(), table.io.properties)
    return table.io.fs_by_scheme(scheme, netloc)


def _named(table: Table) -> Iterator[str]:
    """Every file that the table's metadata and one of its snapshots name."""
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    for statistics in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield statistics.statistics_path
    seen: set[str] = set()
    for snapshot in table.metadata.snapshots:
        if snapshot.manifest_list:
            yield snapshot.manifest_list
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                yield entry.data_file.file_path


def _are_of(table: Table, orphans: Sequence[Orphan]) -> bool:
    """Whether no metadata file among the orphans is another table's: of a second catalog, or of one that was lost."""
    own, files = str(table.metadata.table_uuid), _file_system(table)
    for orphan in orphans:
        if files is None or not orphan.path.endswith(_METADATA_SUFFIX):
            continue
        with suppress(FileNotFoundError):
            found = _table_uuid(files.open_input_file(orphan.path).readall())
            if found not in ("", own):
                _LOG.error(
                    "orphans_not_removed table=%s: expected metadata of table %s alone, %s is of table %s; "
                    "give each catalog a warehouse of its own, or remove what a lost one has left by hand",
                    ".".join(table.name()),
                    own,
                    orphan.path,
                    found,
                )
                return False
    return True


def _table_uuid(metadata: bytes) -> str:
    """Whose metadata these are; empty for what a kill has left half-written."""
    try:
        text = gzip.decompress(metadata) if metadata.startswith(_GZIP_MAGIC) else metadata
        found = json.loads(text)
    except (ValueError, OSError, EOFError):
        return ""
    return str(found.get("table-uuid", "")).lower() if isinstance(found, dict) else ""


def _is_alone(catalog: Catalog, table: Table) -> bool:
    """Whether no other table lies in the folder of this one, or has the same."""
    own = plain_path(table.location()).rstrip("/") + "/"
    for namespace in catalog.list_namespaces():
        for identifier in catalog.list_tables(namespace):
            if tuple(identifier) == tuple(table.name()):
                continue
            other = plain_path(catalog.load_table(identifier).location()).rstrip("/") + "/"
            if other.startswith(own) or own.startswith(other):
                _LOG.error("orphans_not_looked_for table=%s: another one lies in its folder", ".".join(table.name()))
                return False
    return True
