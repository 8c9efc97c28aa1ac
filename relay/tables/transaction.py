"""A PyIceberg transaction whose cost does not grow with the number of snapshots, and that never commits blindly."""

from __future__ import annotations

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, update_table_metadata

__all__ = ["LeanTransaction"]


class LeanTransaction(Transaction):
    """Builds the table's metadata once for each staged change.

    The plain one deep-copies all snapshots about twenty times a commit, which after a few hundred small commits is
    most of a commit's time. Nobody changes the copy, so one is enough.

    The plain one also moves a change that lost a race onto the new head without reading it: an append that was
    decided on "nothing is there yet" would then double its keys. Here the race is told, and the writer decides anew.

    Args:
        table: to be changed; the change is committed at the end of the ``with`` block.
    """

    def __init__(self, table: Table) -> None:
        super().__init__(table)
        self._built: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """Metadata with what is staged so far; identity tells whether table or staged updates are others by now."""
        base, updates = self._table.metadata, self._updates
        if self._built is None or self._built[0] is not base or self._built[1] is not updates:
            self._built = (base, updates, update_table_metadata(base, updates) if updates else base)
        return self._built[2]

    def _rebuild_snapshot_updates(self) -> None:
        """Called before a lost commit is tried again on another head, which is not this transaction's to decide."""
        raise CommitFailedException("the table has another head by now; decide anew on it")
