"""Settings of the supervisor: ``relay up``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings
from relay.config.known import nearest

__all__ = ["Ports", "UpSettings"]

SIMULATED_EXCHANGES = ("BINANCE", "KRAKEN", "COINBASE")
ExchangeName = Annotated[str, Field(pattern=r"^[A-Z0-9_]{1,32}$")]
JobName = Literal["history", "ticks", "bars", "triggers"]


class Ports(BaseModel):
    """Every TCP port of the platform on one machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fast_path: int = Field(default=5556, ge=1, le=65_535)
    manager_publish: int = Field(default=5557, ge=1, le=65_535)
    subscribe: int = Field(default=5558, ge=1, le=65_535)
    request: int = Field(default=5559, ge=1, le=65_535)
    manager_request: int = Field(default=5560, ge=1, le=65_535)
    notification: int = Field(default=5561, ge=1, le=65_535)
    work: int = Field(default=5567, ge=1, le=65_535)
    kafka: int = Field(default=9092, ge=1, le=65_535)
    kafka_controller: int = Field(default=9093, ge=1, le=65_535)
    simulation: int = Field(default=5580, ge=1, le=65_535)
    gateway_status: int = Field(default=5590, ge=1, le=65_535)
    manager_status: int = Field(default=5591, ge=1, le=65_535)
    ingestor_status: int = Field(default=5592, ge=1, le=65_535)
    history_status: int = Field(default=5593, ge=1, le=65_535)


class UpSettings(ApplicationSettings):
    """What the supervisor is told; TOML table ``[up]``, environment ``RELAY_UP_…``."""

    application: ClassVar[str] = "up"
    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_prefix="RELAY_UP_", env_nested_delimiter="__")

    data_folder: Path = Field(Path(".data"), description="everything that stays lies below it")
    host: str = Field("127.0.0.1", description="address that every part binds")
    ports: Ports = Ports()
    live: bool = Field(False, description="fetch from the real exchanges instead of the simulated one")
    exchanges: tuple[ExchangeName, ...] = Field(SIMULATED_EXCHANGES, min_length=1)
    seed: int = Field(default=1, ge=0, description="of the simulated market")
    replay_file: Path | None = Field(None, description="recording that the simulated exchange serves")
    replay_ticker: str = Field("", description="ticker of the recording")
    ready_seconds: int = Field(default=180, ge=5, le=3_600, description="how long the start may take")
    stop_seconds: int = Field(default=12, ge=2, le=300, description="how long the parts may take to stop")
    jobs: tuple[JobName, ...] = Field(
        ("history", "ticks", "bars", "triggers"), min_length=1, description="of its driver; others run by `relay job`"
    )
    spark_master: str = "local[2]"
    maintenance: bool = Field(default=True, description="look after the tables: compaction, snapshots, orphans")
    log_level: str = Field("INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")

    @model_validator(mode="after")
    def _check_exchanges(self) -> Self:
        unknown = [] if self.live else [name for name in self.exchanges if name not in SIMULATED_EXCHANGES]
        if unknown:
            raise ValueError(
                f"expected exchanges out of {', '.join(SIMULATED_EXCHANGES)}, which the simulated exchange serves, got "
                f"{', '.join(unknown)}{nearest(unknown[0], SIMULATED_EXCHANGES)}; others need --live"
            )
        return self
