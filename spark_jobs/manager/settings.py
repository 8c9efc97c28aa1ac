"""Settings of the manager process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings
from relay.config.forms import BootstrapServers, Endpoint, TopicPrefix
from relay.errors import SettingsError
from relay.protocol.periods import NANOSECONDS
from relay.tables.settings import check_address
from spark_jobs.manager.engine.broker import BrokerLimits
from spark_jobs.manager.engine.jobs import JobRules
from spark_jobs.manager.engine.realtime import RealtimeRules
from spark_jobs.manager.engine.requests import REQUEST_ROWS_MAX, RequestRules
from spark_jobs.manager.engine.triggers import TRIGGERS_MAX, TriggerRules
from spark_jobs.manager.statistics import StatisticsRules

__all__ = ["ManagerSettings"]

Seconds = Annotated[int, Field(ge=1, le=86_400)]


class ManagerSettings(ApplicationSettings):
    """``RELAY_MANAGER_…`` in the environment, ``[manager]`` in the settings file."""

    application: ClassVar[str] = "manager"
    model_config = SettingsConfigDict(env_prefix="RELAY_MANAGER_")

    request_endpoint: Endpoint = "tcp://127.0.0.1:5560"
    work_endpoint: Endpoint = "tcp://127.0.0.1:5567"
    notification_endpoint: Endpoint = "tcp://127.0.0.1:5561"
    publish_endpoint: Endpoint = "tcp://127.0.0.1:5557"
    status_address: str = "127.0.0.1"
    status_port: int = Field(default=9560, ge=0, le=65_535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    store_path: Path = Path("data/manager/jobs.sqlite")
    """Job table; one manager to a file."""
    catalog_uri: str = Field(repr=False)
    """May hold a password, so it is never printed."""
    catalog_name: str = "lake"
    warehouse: str
    catalog_properties: dict[str, str] = Field(default_factory=dict, repr=False)

    log_bootstrap_servers: BootstrapServers = ""
    """Event log that replays are read from; empty for a manager that serves none."""
    topic_prefix: TopicPrefix = ""

    exchanges: frozenset[str] = frozenset({"BINANCE", "KRAKEN", "COINBASE"})
    """Known before any ingestor has offered a slot of them."""
    lease_seconds: Seconds = 15
    """Three missed heartbeats of 5 s."""
    offer_repeat_seconds: Seconds = 5
    realtime_stop_seconds: Seconds = 60
    """A ticker is stopped so long after its last subscriber left."""
    realtime_jobs_max: int = Field(default=10_000, ge=1)
    attempts_max: int = Field(default=3, ge=1, le=100)
    refusals_max: int = Field(default=5, ge=0, le=1_000)
    """So often an ingestor may give a job back before it counts as an attempt."""
    resends_max: int = Field(default=2, ge=0, le=100)
    """So often a DataRequest is sent again to a slot that goes on offering itself."""
    park_max_seconds: int = Field(default=3 * 86_400, ge=1, le=30 * 86_400)
    """An ingestor can park a slot no longer; the longest ban that exchanges impose."""
    closing_grace_seconds: Seconds = 60
    """A job whose last attempt has failed waits so long for that attempt's closing batch."""
    backoff_seconds: Seconds = 1
    deadline_seconds: Seconds = 900
    reconcile_seconds: Seconds = 3
    republish_seconds: Seconds = 60
    heartbeat_seconds: Seconds = 1
    symbols_every_seconds: int = Field(default=86_400, ge=0, le=30 * 86_400)
    """How often the symbols of every exchange that an ingestor serves are fetched; 0 for on demand only."""
    statistics_every_seconds: int = Field(default=3_600, ge=0, le=7 * 86_400)
    """How often the 24 h statistics of every exchange that an ingestor serves are fetched; 0 for on demand only."""
    statistics_fresh_seconds: int = Field(default=60, ge=0, le=86_400)
    """Statistics that are younger answer a query at once."""
    statistics_wait_seconds: Seconds = 10
    """A query waits so long for statistics that are being fetched."""
    triggers_max: int = Field(default=TRIGGERS_MAX, ge=1, le=1_000_000)
    """Registered at a time."""
    triggers_tell_seconds: Seconds = 3_600
    """All definitions are told to the triggers job again so often; well inside the log's retention."""
    trigger_expiry_grace_seconds: int = Field(default=600, ge=0, le=7 * 86_400)
    """So long after its expiry a trigger is still wanted: what happened before may come late."""
    retention_days: int = Field(default=7, ge=1, le=3650)
    request_rows_max: int = Field(default=REQUEST_ROWS_MAX, ge=1, le=10_000_000)
    unfinished_jobs_max: int = Field(default=100_000, ge=1)
    request_bytes_max: int = Field(default=64 * 1024, ge=1024, le=16 * 1024 * 1024)
    message_bytes_max: int = Field(default=1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    frames_max: int = Field(default=12, ge=3, le=64)
    """A relay's frames come before the eight that a client may send."""
    queue_max: int = Field(default=10_000, ge=1)

    @field_validator("catalog_uri")
    @classmethod
    def _check_catalog(cls, catalog_uri: str) -> str:
        try:
            check_address(catalog_uri)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        return catalog_uri

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.message_bytes_max < 2 * self.request_bytes_max:
            raise ValueError(
                f"expected message_bytes_max of at least twice request_bytes_max ({self.request_bytes_max}), "
                f"got {self.message_bytes_max}"
            )
        return self

    def broker_limits(self) -> BrokerLimits:
        """Return the broker's times; three repeats of an offer may be missed."""
        repeat_ns = self.offer_repeat_seconds * NANOSECONDS
        return BrokerLimits(
            lease_ns=self.lease_seconds * NANOSECONDS,
            repeat_ns=repeat_ns,
            offer_ttl_ns=3 * repeat_ns + NANOSECONDS,
            resends_max=self.resends_max,
            park_max_ns=self.park_max_seconds * NANOSECONDS,
        )

    def realtime_rules(self) -> RealtimeRules:
        """Return the bounds of live jobs."""
        return RealtimeRules(
            stop_ns=self.realtime_stop_seconds * NANOSECONDS,
            keep_ns=self.retention_days * 86_400 * NANOSECONDS,
            jobs_max=self.realtime_jobs_max,
        )

    def statistics_rules(self) -> StatisticsRules:
        """Return the times of 24 h statistics."""
        return StatisticsRules(
            every_ns=self.statistics_every_seconds * NANOSECONDS,
            fresh_ns=self.statistics_fresh_seconds * NANOSECONDS,
            wait_ns=self.statistics_wait_seconds * NANOSECONDS,
        )

    def trigger_rules(self) -> TriggerRules:
        """Return the bounds of triggers."""
        return TriggerRules(
            triggers_max=self.triggers_max,
            tell_ns=self.triggers_tell_seconds * NANOSECONDS,
            grace_ns=self.trigger_expiry_grace_seconds * NANOSECONDS,
            keep_ns=self.retention_days * 86_400 * NANOSECONDS,
        )

    def job_rules(self) -> JobRules:
        """Return the bounds of a job's life."""
        deadline_ns = self.deadline_seconds * NANOSECONDS
        return JobRules(
            attempts_max=self.attempts_max,
            refusals_max=self.refusals_max,
            closing_grace_ns=self.closing_grace_seconds * NANOSECONDS,
            deadline_ns=deadline_ns,
            backoff_ns=self.backoff_seconds * NANOSECONDS,
            requests=RequestRules(rows_max=self.request_rows_max, deadline_ns=deadline_ns),
        )
