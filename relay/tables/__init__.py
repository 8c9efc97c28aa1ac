"""The Iceberg tables: columns, reads and small commits; PyIceberg has its one home here."""

from relay.tables.port import CoverageRow, TableReader
from relay.tables.settings import TableSettings

__all__ = ["CoverageRow", "LakeTables", "TableReader", "TableSettings", "open_tables"]


def __getattr__(name: str) -> object:
    # PyIceberg and Arrow take most of a second to import: only processes that open tables pay for it.
    if name in ("LakeTables", "open_tables"):
        from relay.tables import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
