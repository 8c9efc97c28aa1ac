"""Opening the Iceberg catalog and making its tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergTables as CatalogRow
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from relay.errors import RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.tables.schema import (
    COVERAGE_TABLE,
    NAMESPACE,
    OHLC_TABLE,
    TABLE_COLUMNS,
    TICK_BARS_TABLE,
    TICKS_TABLE,
)
from relay.tables.settings import TableSettings, check_address

__all__ = ["TableSettings", "ensure_tables", "open_catalog", "open_table", "storage_errors"]

_TABLE_PROPERTIES = {
    # Thousands of small commits: without merging every reader would open a manifest for each of them.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "20",
    "commit.retry.num-retries": "10",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "write.parquet.compression-codec": "zstd",
    "format-version": "2",
}

_TICKER_BUCKETS = 8
_SORTED_BY = {OHLC_TABLE: ("ticker", "start"), TICKS_TABLE: ("ticker", "trade_number")}


def open_catalog(settings: TableSettings) -> Catalog:
    """Open the catalog.

    Raises:
        SettingsError: the address is of no known kind.
        RetryableError: the catalog does not answer.
    """
    kind = check_address(settings.catalog_uri)
    properties = {"type": kind, "uri": settings.catalog_uri, "warehouse": settings.warehouse, **settings.properties}
    with storage_errors("opening the catalog"):
        return load_catalog(settings.catalog_name, **properties)


def ensure_tables(catalog: Catalog) -> None:
    """Create the namespace and the tables that are missing, and give older tables the columns that were added since.

    Raises:
        SettingsError: the catalog holds our tables under another catalog name.
    """
    _check_name(catalog)
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace(NAMESPACE)
    for name, columns in TABLE_COLUMNS.items():
        table = open_table(catalog, name)
        if table is not None:
            _add_missing_columns(table, columns)
            continue
        with suppress(TableAlreadyExistsError):
            _create(catalog, name, columns)


def _check_name(catalog: Catalog) -> None:
    """An SQL catalog keeps each table under the catalog's name: with another name it looks empty, for ever."""
    if not isinstance(catalog, SqlCatalog):
        return
    with Session(catalog.engine) as session:
        rows = select(CatalogRow.catalog_name).where(
            CatalogRow.table_namespace == NAMESPACE, CatalogRow.table_name == OHLC_TABLE
        )
        names = set(session.scalars(rows))
    if names and catalog.name not in names:
        raise SettingsError(
            f"expected catalog_name {' or '.join(sorted(names))}, under which the catalog holds the tables, got "
            f"{catalog.name}; give every part the same catalog_name"
        )


def _add_missing_columns(table: Table, columns: pa.Schema) -> None:
    """Added columns may be null, so that rows written before stay as they are and nothing is rewritten."""
    while missing := [c for c in columns if c.name not in table.schema().column_names]:
        try:
            with table.update_schema() as change:
                change.union_by_name(pa.schema(missing))
        except CommitFailedException:
            table.refresh()  # another process has the same start; what it has added is not missing any more


def _create(catalog: Catalog, name: str, columns: pa.Schema) -> None:
    with catalog.create_table_transaction(
        (NAMESPACE, name), schema=columns, properties=_TABLE_PROPERTIES
    ) as transaction:
        _partition(transaction, name)
        if name in _SORTED_BY:
            with transaction.update_sort_order() as order:
                for column in _SORTED_BY[name]:
                    order.asc(column, IdentityTransform())


def _partition(transaction: Transaction, name: str) -> None:
    if name not in (OHLC_TABLE, COVERAGE_TABLE, TICKS_TABLE, TICK_BARS_TABLE):
        return
    with transaction.update_spec() as spec:
        if name == TICKS_TABLE:
            spec.add_field("time", DayTransform(), "time_day")
            spec.add_field("ticker", BucketTransform(_TICKER_BUCKETS), "ticker_bucket")
            return
        spec.add_identity("period_seconds")
        if name in (OHLC_TABLE, TICK_BARS_TABLE):
            spec.add_field("start", "month", "start_month")


def open_table(catalog: Catalog | None, name: str) -> Table | None:
    """Load a table at its head, or None when it, or the whole catalog, does not exist (yet)."""
    if catalog is None:
        return None
    try:
        return catalog.load_table((NAMESPACE, name))
    except NoSuchTableError:
        return None


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Translate what PyIceberg raises while catalog or store are away.

    Raises:
        RetryableError: chained to the cause; reading again later may work.
    """
    try:
        yield
    except (RESTError, SQLAlchemyError, OSError, CommitStateUnknownException) as error:
        raise RetryableError(f"{what}: the tables cannot be reached: {error}", code=ErrorCode.STORAGE) from error
