"""Settings of the Spark jobs."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings
from relay.config.forms import BootstrapServers, Endpoint, TopicPrefix
from relay.errors import PeerError
from relay.protocol.periods import check_period
from relay.tables import TableSettings

__all__ = ["JobSettings"]


class JobSettings(ApplicationSettings):
    """What a Spark job is told; TOML table ``[job]``, environment ``RELAY_JOB_…``."""

    application: ClassVar[str] = "job"
    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="RELAY_JOB_", env_nested_delimiter="__")

    log_bootstrap_servers: BootstrapServers = Field(
        "127.0.0.1:9092", min_length=1, description="event log (Kafka) as host:port[,host:port]"
    )
    topic_prefix: TopicPrefix = Field("", description="put before every topic name")
    topic_partitions: int = Field(6, ge=1, le=1000, description="partitions of topics that are created")
    topic_retention_hours: int = Field(168, ge=1, le=24 * 3650, description="how long the log keeps records")
    catalog_uri: str = Field(
        "sqlite:///.data/lake/catalog.db", repr=False, description="Iceberg catalog (PyIceberg's form)"
    )
    catalog_jdbc_uri: str = Field("", repr=False, description="the same for Spark's JDBC catalog; empty: derived")
    catalog_name: str = Field("lake", pattern=r"^[A-Za-z0-9_]+$")
    catalog_properties: dict[str, str] = Field(default_factory=dict, repr=False)
    warehouse: str = Field("file://.data/lake/warehouse", description="where data files lie: file://… or s3://…")
    manager_notification_endpoint: Endpoint = Field("tcp://127.0.0.1:5561", description="PULL socket of the manager")
    checkpoint_folder: str = Field(
        ".data/checkpoints", min_length=1, description="folder or URL for this run's checkpoints"
    )
    master: str = Field("", description="Spark master; empty leaves it to spark-submit, else local[2] or spark://…")
    spark_properties: dict[str, str] = Field(default_factory=dict, description="further Spark settings")
    jars_folder: Path | None = Field(None, description="folder with the connector jars; None leaves it to Spark")
    driver_memory_mebibytes: int = Field(640, ge=256, le=262_144)
    driver_compiler: Literal["c1", "c2"] = Field(
        "c1",
        description="of a local driver's JVM: c1 starts soonest; c2 compiles what runs most once more, which takes "
        "minutes, then makes each record cheaper",
    )
    class_archive: Path | None = Field(None, description="AppCDS archive for a faster start; used when it is there")
    records_per_batch_max: int = Field(2_000, ge=1, le=1_000_000)
    driver_records_max: int = Field(
        300, ge=0, le=100_000, description="micro-batches of at most so many records commit from the driver; 0 for none"
    )
    driver_batch_mebibytes: int = Field(
        16, ge=0, le=1_024, description="those of more records do, too, when they are no bigger than this"
    )
    tick_bars_wait_seconds: int = Field(
        10, ge=0, le=600, description="how long bars made from ticks are collected for one commit; 0 commits at once"
    )
    tick_bars_rows_max: int = Field(5_000, ge=1, le=1_000_000, description="with so many of them nothing waits")
    ticks_trigger_seconds: int = Field(
        5, ge=1, le=600, description="how long ticks are collected for one commit; fewer commits are fewer files"
    )
    ticks_per_batch_max: int = Field(100_000, ge=1, le=10_000_000)
    bars_periods: tuple[int, ...] = Field(
        (60,), description="seconds; bars that are made of every live ticker, besides those that clients subscribe"
    )
    bars_lateness_ms: int = Field(
        0, ge=0, le=600_000, description="how long after its end a bar waits, by the ticker's own time"
    )
    bars_trigger_ms: int = Field(250, ge=1, le=60_000, description="how often bars are brought up to date")
    bars_records_per_batch_max: int = Field(50_000, ge=1, le=10_000_000)
    bars_keep_seconds: int = Field(
        600, ge=0, le=86_400, description="final bars older than this are revised from stored ticks"
    )
    bars_state_seconds: int = Field(10, ge=1, le=3600, description="how often the state of bars is saved")
    bars_rebuild_hours: int = Field(
        6, ge=0, le=24 * 30, description="how far back the log is read again when the state of bars is lost"
    )
    triggers_lateness_ms: int = Field(
        0, ge=0, le=600_000, description="how long triggers wait for late events, by the ticker's own time"
    )
    triggers_trigger_ms: int = Field(250, ge=1, le=60_000, description="how often triggers are brought up to date")
    triggers_records_per_batch_max: int = Field(50_000, ge=1, le=10_000_000)
    triggers_state_seconds: int = Field(10, ge=1, le=3600, description="how often the state of triggers is saved")
    triggers_rebuild_hours: int = Field(
        6, ge=0, le=24 * 30, description="how far back the log is read again when the state of triggers is lost"
    )
    snapshot_retention_hours: int = Field(24, ge=1, le=24 * 365)
    snapshots_max: int = Field(
        200, ge=1, le=100_000, description="newest snapshots that stay; each one makes commits and reads dearer"
    )
    maintenance_tables: tuple[str, ...] = Field((), description="tables that are looked after; empty for all")
    maintenance_expiry_seconds: int = Field(300, ge=1, le=86_400, description="how often old snapshots are forgotten")
    maintenance_compaction_seconds: int = Field(
        3_600, ge=0, le=30 * 86_400, description="how often small data files are put together; 0 for never"
    )
    maintenance_orphans_seconds: int = Field(
        86_400, ge=0, le=365 * 86_400, description="how often files that no snapshot names are removed; 0 for never"
    )
    maintenance_target_file_mebibytes: int = Field(
        32, ge=1, le=1_024, description="size of the files that small ones become; an overwrite writes one whole"
    )
    maintenance_small_file_mebibytes: int = Field(8, ge=1, le=1_024, description="files below are small")
    maintenance_small_files_min: int = Field(
        20, ge=2, le=100_000, description="fewer small files of a partition are left as they are"
    )
    maintenance_open_day_hours: int = Field(
        2, ge=0, le=720, description="so long after its end a day of ticks may still grow and is left alone"
    )
    maintenance_orphan_hours: int = Field(
        72, ge=1, le=24 * 365, description="younger files may belong to a commit under way; longer than any takes"
    )
    status_address: str = "127.0.0.1"
    status_port: int = Field(9105, ge=0, le=65_535)

    @field_validator("bars_periods")
    @classmethod
    def _check_periods(cls, periods: tuple[int, ...]) -> tuple[int, ...]:
        """Refuse what is no period, with its words."""
        try:
            return tuple(sorted({check_period(period) for period in periods}))
        except PeerError as error:
            raise ValueError(str(error)) from error

    def tables(self) -> TableSettings:
        """Return where the tables are."""
        return TableSettings(
            catalog_uri=self.catalog_uri,
            warehouse=self.warehouse,
            catalog_name=self.catalog_name,
            properties=self.catalog_properties,
        )
