"""Where the tables are; imports nothing heavy, so that every process may name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relay.errors import SettingsError

__all__ = ["TableSettings", "check_address"]


@dataclass(frozen=True, slots=True)
class TableSettings:
    """Where the tables are.

    Attributes:
        catalog_uri: ``sqlite:///PATH``, ``postgresql+psycopg2://…`` or the address of a REST catalog.
        catalog_name: the same on every side; Spark's JDBC catalog stores it with each table.
        warehouse: ``file://PATH`` or ``s3://BUCKET/PREFIX``.
        properties: further catalog properties (``s3.endpoint``, ``s3.access-key-id``, …).
    """

    catalog_uri: str
    warehouse: str
    catalog_name: str = "lake"
    properties: Mapping[str, str] = field(default_factory=dict)


def check_address(catalog_uri: str) -> str:
    """Return PyIceberg's name for the kind of a catalog.

    Raises:
        SettingsError: the address is of no known kind.
    """
    if catalog_uri.startswith(("http://", "https://")):
        return "rest"
    if not catalog_uri.startswith(("sqlite:///", "postgresql://", "postgresql+")):
        kind = catalog_uri.partition(":")[0][:40]
        raise SettingsError(
            f"expected a catalog address sqlite:///…, postgresql+psycopg2://… or http(s)://…, got one of kind {kind!r}"
        )
    return "sql"
