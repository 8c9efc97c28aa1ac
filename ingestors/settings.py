"""Settings of the ingestor process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from relay.config import ApplicationSettings
from relay.config.forms import BootstrapServers, Endpoint, TopicPrefix
from relay.protocol.envelope import LOG_RECORD_BYTES_MAX, LOG_RECORD_ROWS_MAX

__all__ = ["IngestorSettings"]

ExchangeName = Annotated[str, Field(pattern=r"^[A-Z0-9_]{1,32}$")]
SlotCount = Annotated[int, Field(ge=0, le=10_000)]


class IngestorSettings(ApplicationSettings):
    """``RELAY_INGESTOR_…`` in the environment, ``[ingestor]`` in the settings file."""

    application: ClassVar[str] = "ingestor"
    model_config = SettingsConfigDict(env_prefix="RELAY_INGESTOR_")

    exchanges: tuple[ExchangeName, ...] = Field(default=("BINANCE", "KRAKEN", "COINBASE"), min_length=1)
    """BINANCE, KRAKEN and COINBASE have adapters of their own; any other name goes through the extra ``ccxt``."""
    ingestor_id: str = Field(default="", max_length=128)
    """Stable name; empty for the host's name with the exchanges."""
    historical_slots: dict[ExchangeName, SlotCount] = Field(
        default_factory=lambda: {"BINANCE": 3, "KRAKEN": 2, "COINBASE": 2}
    )
    other_historical_slots: SlotCount = 1
    """Of an exchange that ``historical_slots`` does not name."""

    realtime_slots: dict[ExchangeName, SlotCount] = Field(default_factory=dict)
    """Live tickers at once, by exchange; a slot is a ticker, connections are shared."""
    other_realtime_slots: SlotCount = 200
    """Of an exchange that ``realtime_slots`` does not name and that has a live feed."""
    relay_endpoints: tuple[str, ...] = ("tcp://127.0.0.1:5556",)
    """Fast paths of the relays; every one gets every tick."""
    fast_path_queue_max: int = Field(default=100_000, ge=1, le=10_000_000)
    spill_path: Path = Path(".data/ingestor/spill")
    """Where live records wait while the event log is away; one folder to an ingestor."""
    spill_bytes_max: int = Field(default=1024 * 1024 * 1024, ge=1024 * 1024)
    hole_hold_ms: int = Field(default=50, ge=0, le=60_000)
    """How long a hole in the trade ids may hold later trades up before it is declared."""
    fill_trades_max: int = Field(default=100_000, ge=0, le=10_000_000)
    """A larger hole is not fetched but said to be UNFILLABLE."""

    binance_base_url: str = "https://api.binance.com"
    kraken_base_url: str = "https://api.kraken.com"
    coinbase_base_url: str = "https://api.exchange.coinbase.com"
    coinbase_advanced_base_url: str = "https://api.coinbase.com"
    coinbase_api: Literal["exchange", "advanced"] = "exchange"
    """Which of Coinbase's two APIs serves COINBASE."""
    binance_socket_url: str = "wss://data-stream.binance.vision"
    kraken_socket_url: str = "wss://ws.kraken.com/v2"
    coinbase_socket_url: str = "wss://ws-feed.exchange.coinbase.com"
    coinbase_advanced_socket_url: str = "wss://advanced-trade-ws.coinbase.com"
    binance_stream: Literal["trade", "aggTrade"] = "trade"
    """Single trades, or aggregates with ids of their own where single ones are not to be had.

    All ingestors of the exchange need the same, also later ones: a ticker's log goes on by the ids that it has.
    """
    binance_transport: Literal["json", "sbe"] = "json"
    """How Binance's live trades come: JSON, or Simple Binary Encoding, which needs a key and the accelerator.

    Both have the same single trades and ids, so it may be changed at any time; aggregates come as JSON only.
    """
    binance_api_key: SecretStr = SecretStr("")
    """An Ed25519 key of any account, without permissions; sent to ``binance_sbe_socket_url`` alone."""
    binance_sbe_socket_url: str = "wss://stream-sbe.binance.com"
    socket_tickers_max: int = Field(default=200, ge=1, le=1_024)
    """Markets on one connection, when the exchange allows as many."""
    socket_message_bytes_max: int = Field(default=4 * 1024 * 1024, ge=64 * 1024, le=256 * 1024 * 1024)
    request_timeout_seconds: int = Field(default=15, ge=1, le=300)

    broker_endpoint: Endpoint = "tcp://127.0.0.1:5567"
    message_bytes_max: int = Field(default=4 * 1024 * 1024, ge=64 * 1024)
    log_bootstrap_servers: BootstrapServers = Field("127.0.0.1:9092", min_length=1)
    topic_prefix: TopicPrefix = ""
    log_buffer_bytes_max: int = Field(default=64 * 1024 * 1024, ge=1024 * 1024)
    batch_rows_max: int = Field(default=LOG_RECORD_ROWS_MAX, ge=1, le=10_000)
    batch_bytes_max: int = Field(default=LOG_RECORD_BYTES_MAX, ge=10_000, le=1_000_000)

    drain_seconds: int = Field(default=3, ge=0, le=3_600)
    """How long running jobs may go on after SIGTERM before they are given back."""
    status_address: str = "127.0.0.1"
    status_port: int = Field(default=9567, ge=0, le=65_535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    def slots_of(self, exchange: str) -> int:
        """Return how many historical jobs of an exchange may run at once."""
        return self.historical_slots.get(exchange, self.other_historical_slots)

    def realtime_slots_of(self, exchange: str) -> int:
        """Return how many tickers of an exchange may be live at once."""
        return self.realtime_slots.get(exchange, self.other_realtime_slots)
