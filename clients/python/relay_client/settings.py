"""Settings of a client: where the relay is, how long to wait, and the credentials of the tables."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings

__all__ = ["ClientSettings", "Encoding", "Idle", "Transport"]

Transport = Literal["auto", "tcp", "shm"]
Idle = Literal["sleep", "spin"]
Encoding = Literal["protobuf", "sbe"]


class ClientSettings(ApplicationSettings):
    """What a client is told; TOML table ``[client]``, environment ``RELAY_CLIENT_…``.

    Where the tables are, the relay says; what is given here wins. Credentials never come from the relay.
    """

    application: ClassVar[str] = "client"
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="RELAY_CLIENT_", env_nested_delimiter="__"
    )

    host: str = Field("127.0.0.1", min_length=1, description="host of the relay")
    request_port: int = Field(5559, ge=1, le=65_535)
    subscribe_port: int = Field(5558, ge=1, le=65_535)
    request_endpoint: str = Field("", description="tcp://HOST:PORT; empty: made of host and request_port")
    subscribe_endpoint: str = Field("", description="tcp://HOST:PORT; empty: made of host and subscribe_port")

    transport: Transport = Field(
        "auto", description="of market data: auto (shared memory where the relay is on this host, else tcp), tcp, shm"
    )
    encoding: Encoding = Field(
        "protobuf", description="of ticks, bars, gaps and beats that come by shared memory: protobuf or sbe"
    )
    idle: Idle = Field("sleep", description="waiting for shared memory: sleep, or spin, which keeps a processor busy")

    processors: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (),
        description="numbers of the processors that the client's thread is pinned to; none leaves that to the system",
    )

    history_timeout_seconds: int = Field(900, ge=1, le=86_400, description="until a history request must have ended")
    request_timeout_seconds: int = Field(30, ge=1, le=86_400, description="until a question must be answered")
    reply_timeout_ms: int = Field(2_000, ge=50, le=600_000, description="until a message is sent again")
    beat_timeout_ms: int = Field(3_000, ge=100, le=600_000, description="silence after which the client reconnects")
    status_query_ms: int = Field(10_000, ge=100, le=600_000, description="how often a waiting client asks the status")
    receive_queue_max: int = Field(10_000, ge=1, le=10_000_000)
    published_bytes_max: int = Field(1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    repair_timeout_ms: int = Field(15_000, ge=0, le=600_000, description="after which a loss is reported; 0: at once")
    order_wait_ms: int = Field(60_000, ge=0, le=3_600_000, description="how long strict order waits for a trade")
    feed_silence_ms: int = Field(3_000, ge=500, le=600_000, description="without a beat: the feed is NO_BEATS")
    requests_max: int = Field(8, ge=1, le=1_000, description="requests for one history; closest gaps are merged")
    rows_per_request_max: int = Field(1_000_000, ge=1, le=10_000_000)

    catalog_uri: str = Field("", repr=False, description="empty: as the relay says; may hold a password")
    catalog_name: str = Field("", description="empty: as the relay says")
    warehouse: str = Field("", description="empty: as the relay says")
    object_store_endpoint: str = Field("", description="empty: as the relay says")
    catalog_user: str = Field("", description="put into an SQL catalog's address that has no user")
    catalog_password: SecretStr = SecretStr("")
    catalog_properties: dict[str, SecretStr] = Field(
        default_factory=dict, description="further catalog properties, such as s3.access-key-id, credential"
    )

    @property
    def requests_at(self) -> str:
        """Endpoint of the relay's ROUTER."""
        return self.request_endpoint or f"tcp://{self.host}:{self.request_port}"

    @property
    def published_at(self) -> str:
        """Endpoint of the relay's XPUB."""
        return self.subscribe_endpoint or f"tcp://{self.host}:{self.subscribe_port}"
