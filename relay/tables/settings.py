"""Where the tables are; imports nothing heavy, so that every process may name it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["TableSettings"]


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
