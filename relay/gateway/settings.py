"""Settings of the gateway."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings
from relay.config.forms import Endpoint

__all__ = ["GatewaySettings"]


class GatewaySettings(ApplicationSettings):
    """What the gateway is told; TOML table ``[gateway]``, environment ``RELAY_GATEWAY_…``."""

    application: ClassVar[str] = "gateway"
    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix="RELAY_GATEWAY_", env_nested_delimiter="__"
    )

    source_id: str = Field("relay", min_length=1, max_length=64, description="name in heartbeats")
    request_endpoint: Endpoint = Field("tcp://127.0.0.1:5559", description="ROUTER that clients know")
    subscribe_endpoint: Endpoint = Field("tcp://127.0.0.1:5558", description="XPUB that clients know")
    fast_path_endpoint: Endpoint = Field("tcp://127.0.0.1:5556", description="XSUB for ingestors' publishers")
    manager_publish_endpoint: Endpoint = Field("tcp://127.0.0.1:5557", description="the manager's XPUB")
    manager_request_endpoint: Endpoint = Field("tcp://127.0.0.1:5560", description="the manager's ROUTER")
    request_bytes_max: int = Field(64 * 1024, ge=1024, le=16 * 1024 * 1024)
    request_frames_max: int = Field(8, ge=2, le=64)
    published_bytes_max: int = Field(1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    client_queue_max: int = Field(10_000, ge=1, le=10_000_000, description="messages kept for one slow subscriber")
    request_queue_max: int = Field(1_000, ge=1, le=1_000_000)
    connections_max: int = Field(4_096, ge=16, le=65_535)
    heartbeat_ms: int = Field(5_000, ge=100, le=600_000)
    native_forwarding: bool = Field(True, description="pass market data on by the accelerator, where it is installed")
    tick_rings: bool = Field(
        True,
        description="take ticks of ingestors on this host through shared memory, where the accelerator is installed",
    )
    idle: Literal["sleep", "spin"] = Field(
        "sleep", description="waiting for ticks in shared memory: sleep, or spin, which keeps a processor busy"
    )
    processors: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (), description="numbers of the processors that the loop is pinned to; none leaves that to the system"
    )
    client_broadcast: bool = Field(
        True,
        description="serve clients on this host through shared memory, where the accelerator is installed",
    )
    client_broadcast_bytes: int = Field(
        16 * 1024 * 1024,
        ge=4096,
        le=1024 * 1024 * 1024,
        description="what a client may be behind there; made a power of two, and at least 8 of the longest message",
    )
    drain_ms: int = Field(2_000, ge=0, le=60_000, description="how long SIGTERM waits for replies in flight")
    catalog_uri: str = Field("", description="Iceberg catalog as a client reaches it, without secrets")
    catalog_name: str = "lake"
    warehouse: str = ""
    object_store_endpoint: str = ""
    status_address: str = "127.0.0.1"
    status_port: int = Field(9101, ge=0, le=65_535)
