"""Old snapshots are forgotten: each one makes every commit and every opening of a table dearer."""

from __future__ import annotations

import logging
from datetime import datetime

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import Table
from pyiceberg.table.update.snapshot import ExpireSnapshots

from relay.tables.catalog import open_table, storage_errors
from relay.tables.offsets import offsets_keepers
from relay.tables.transaction import LeanTransaction

__all__ = ["expirable_snapshots", "expire_snapshots"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())


def expirable_snapshots(table: Table, *, older_than: datetime, count_max: int) -> list[int]:
    """Return the ids of the snapshots that may go.

    The head stays, so does what a branch or tag names, and the last snapshot of each job: it keeps the offsets from
    which the job begins.

    Args:
        table: at its head.
        older_than: snapshots before this time go.
        count_max: of the others only so many stay, the newest.
    """
    newest_first = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0, reverse=True)
    kept = {ref.snapshot_id for ref in table.metadata.refs.values()} | offsets_keepers(table)
    oldest_ms = older_than.timestamp() * 1000
    return [
        snapshot.snapshot_id
        for place, snapshot in enumerate(newest_first)
        if snapshot.snapshot_id not in kept and (place >= count_max or snapshot.timestamp_ms < oldest_ms)
    ]


def expire_snapshots(catalog: Catalog, name: str, *, older_than: datetime, count_max: int, at_least: int = 1) -> int:
    """Forget old snapshots; return how many. Their files stay until :mod:`relay.tables.orphans` removes them.

    Args:
        catalog: of the tables.
        name: of the table.
        older_than, count_max: see :func:`expirable_snapshots`.
        at_least: fewer are not worth a commit.

    Raises:
        RetryableError: the table is away.
    """
    with storage_errors(f"expiring snapshots of market.{name}"):
        table = open_table(catalog, name)
        old = expirable_snapshots(table, older_than=older_than, count_max=count_max) if table is not None else []
        if table is None or not old or len(old) < at_least:
            return 0
        try:
            with LeanTransaction(table) as change:
                ExpireSnapshots(change).by_ids(old).commit()
        except (CommitFailedException, ValidationException):
            # A writer was quicker; the next time comes soon.
            _LOG.info("snapshot_expiry_lost_a_race table=%s", name)
            return 0
    return len(old)
