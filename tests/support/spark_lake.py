"""Tables of a test's own, seen by PyIceberg and by the one Spark session."""

from __future__ import annotations

import threading
from pathlib import Path

from relay.tables.catalog import open_catalog
from relay.tables.compaction import Compacted, CompactionRules, compact
from relay.tables.writer import open_writable_tables
from spark_jobs.jobs.session import spark_catalog_properties
from tests.support.lake import DAY_NS, FIRST_DAY_NS

__all__ = ["SparkLake"]


class SparkLake:
    """A catalog under a name of its own.

    Args:
        spark: session and settings, as the fixture gives them.
        folder: of the tables.
    """

    def __init__(self, spark: tuple, folder: Path) -> None:
        self.session, base = spark
        folder.mkdir(parents=True, exist_ok=True)
        self.name = f"lake_{abs(hash(folder))}"
        settings = base.model_copy(
            update={
                "catalog_uri": f"sqlite:///{folder}/catalog.db",
                "warehouse": f"file://{folder}/warehouse",
                "catalog_name": self.name,
            }
        )
        self.properties = {
            key: value
            for key, value in spark_catalog_properties(settings).items()
            if key.startswith("spark.sql.catalog")
        }
        for key, value in self.properties.items():
            self.session.conf.set(key, value)
        self.settings = settings.tables()
        self.tables = open_writable_tables(self.settings)

    def checksum(self, table: str) -> tuple[int, int]:
        """Count of rows and sum of the hashes of all columns, by Spark."""
        [row] = self.session.sql(f"SELECT count(*), sum(hash(*)) FROM {self.name}.market.{table}").collect()
        return tuple(row)

    def call(self, procedure: str, arguments: str) -> list:
        """Call a procedure of Iceberg's in Spark."""
        return self.session.sql(f"CALL {self.name}.system.{procedure}({arguments})").collect()

    def compact(self, table: str) -> Compacted:
        """Put together whatever small files there are."""
        rules, closed = CompactionRules(small_files_min=2), FIRST_DAY_NS + 2 * DAY_NS
        return compact(open_catalog(self.settings), table, rules, closed_before_ns=closed, stopping=threading.Event())
