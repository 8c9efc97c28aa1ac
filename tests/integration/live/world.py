"""The live path as processes of its own: ingestor, manager and gateway around a real broker; no Spark.

What is at one end is a simulated exchange, at the other the SDK in the test's process. Each part can be killed and
started again on the same ports and folders.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import urllib.request
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ingestors.simulation.server import SimulatedExchange
from relay.eventlog import TICK_TOPIC, platform_topics
from relay.eventlog.kafka import KafkaEventLog
from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.tickers import parse_ticker
from relay.protocol.v1 import market_pb2
from relay.tables import TableSettings
from relay.tables.offsets import SourceOffsets
from relay.tables.writer import open_writable_tables
from relay_client import Client, ClientSettings, Gap, Loss, Tick
from spark_jobs.jobs.history.decode import decode_records
from tests.support.forked import ForkedRelay
from tests.support.kafka import RunningKafka
from tests.support.processes import free_port, wait_until

__all__ = ["PARTS", "ExchangeThread", "LivePath", "Watcher", "control", "watching"]

PARTS = ("gateway", "manager", "ingestor")
_PARTITIONS = 2
_ENDPOINTS = ("request", "subscribe", "fast_path", "manager_publish", "manager_request", "work", "notification")


class ExchangeThread:
    """A simulated exchange with everything that its command has no option for, in a thread of the test's process."""

    def __init__(self, **arguments: Any) -> None:
        self._arguments, self._started = arguments, threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="exchange")
        self._thread.start()
        assert self._started.wait(60), "the simulated exchange did not start"

    async def _run(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        async with SimulatedExchange(**self._arguments) as server:
            self.url = server.url
            self._started.set()
            await self._ended.wait()

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


def control(url: str, path: str, value: object = None, *, method: str | None = None) -> Any:
    """Talk to a simulated exchange's control side, or to any path of it that answers JSON."""
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


class LivePath:
    """Gateway and manager processes around a broker, and an ingestor for each exchange that is served.

    Args:
        folder: for everything that is on disk.
        kafka: the broker; topics have a prefix of their own.
        tickers: what the table of markets holds, from the start.
    """

    def __init__(self, folder: Path, kafka: RunningKafka, *, tickers: Iterable[str]) -> None:
        self.folder, self.kafka = folder, kafka
        self.prefix = f"{uuid.uuid4().hex[:8]}-"
        self.log = KafkaEventLog(kafka.bootstrap_servers, client_id="test")
        self.log.ensure_topics(platform_topics(prefix=self.prefix, partitions=_PARTITIONS, retention_hours=1))
        self.tables = TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")
        _store_markets(self.tables, tickers)
        self.ports = {name: free_port() for name in (*_ENDPOINTS, *(f"{part}_status" for part in PARTS))}
        self._environments = self._settings()
        self.processes: dict[str, ForkedRelay] = {}
        for part in ("gateway", "manager"):
            self.start(part)

    def serve(self, exchange_url: str, **settings: str) -> None:
        """Let an ingestor serve a simulated exchange, in place of the one before, and wait until all is ready."""
        if "ingestor" in self.processes:
            self.processes["ingestor"].kill()
        self.exchange_url = exchange_url
        sockets = exchange_url.replace("http://", "ws://")
        urls = {f"{name}_base_url": f"{exchange_url}/{name}" for name in ("binance", "kraken", "coinbase")}
        urls |= {f"{name}_socket_url": f"{sockets}/{name}-ws" for name in ("binance", "coinbase")}
        urls["kraken_socket_url"] = f"{sockets}/kraken-ws/v2"
        environment = {f"RELAY_INGESTOR_{name.upper()}": value for name, value in (urls | settings).items()}
        self._environments["ingestor"] |= environment
        self.start("ingestor")
        self.wait_ready()

    def start(self, part: str) -> None:
        """Start a part, also again after a kill."""
        log = self.folder / f"{part}.log"
        self.processes[part] = ForkedRelay([part], log=log, environment=self._environments[part])

    def kill(self, part: str) -> None:
        """SIGKILL a part, or the broker, and start it again."""
        if part == "kafka":
            self.kafka.process.kill()
            self.kafka.restart()
            return
        self.processes[part].kill()
        self.start(part)

    def wait_ready(self) -> None:
        """Wait until every part says that it is ready."""
        for part in PARTS:
            wait_until(lambda name=part: self._is_ready(name), what=f"{part} to be ready", deadline_s=120)

    def counters(self, part: str) -> dict[str, int]:
        """What a part has counted."""
        return dict(control(f"http://127.0.0.1:{self.ports[f'{part}_status']}", "/status")["counters"])

    def client(self) -> Client:
        """A client of this path."""
        settings = ClientSettings(
            host="127.0.0.1", request_port=self.ports["request"], subscribe_port=self.ports["subscribe"]
        )
        return Client(settings=settings)

    def logged(self) -> list[object]:
        """Ticks, gaps and beats that the log holds; those of one ticker in its order."""
        found: list[object] = []
        for partition in range(_PARTITIONS):
            start = 0
            while records := self.log.read(
                self.prefix + TICK_TOPIC, partition=partition, from_offset=start, limit=50_000
            ):
                found += [decode_record(record.value)[1] for record in records]
                start = records[-1].position.offset + 1
        return found

    def close(self) -> None:
        """End all parts; the broker stays."""
        for process in self.processes.values():
            process.kill()
        self.log.close()

    def _is_ready(self, part: str) -> bool:
        process = self.processes[part]
        assert process.returncode is None, process.tail()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[f'{part}_status']}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _settings(self) -> dict[str, dict[str, str]]:
        at = {name: f"tcp://127.0.0.1:{self.ports[name]}" for name in _ENDPOINTS}
        lake = {"catalog_uri": self.tables.catalog_uri, "warehouse": self.tables.warehouse}
        broker = {"log_bootstrap_servers": self.kafka.bootstrap_servers, "topic_prefix": self.prefix}
        settings = {
            "gateway": lake | {f"{name}_endpoint": at[name] for name in _ENDPOINTS[:5]},
            "manager": {
                "request_endpoint": at["manager_request"],
                "work_endpoint": at["work"],
                "notification_endpoint": at["notification"],
                "publish_endpoint": at["manager_publish"],
                "store_path": str(self.folder / "jobs.sqlite"),
                "symbols_every_seconds": "0",
                "statistics_every_seconds": "0",
                "realtime_stop_seconds": "1",
                **broker,
                **lake,
            },
            "ingestor": {
                "broker_endpoint": at["work"],
                "relay_endpoints": json.dumps([at["fast_path"]]),
                "spill_path": str(self.folder / "spill"),
                **broker,
            },
        }
        return {
            part: {
                f"RELAY_{part.upper()}_{name.upper()}": value
                for name, value in (own | {"status_port": str(self.ports[f"{part}_status"])}).items()
            }
            for part, own in settings.items()
        }


class Watcher:
    """Collects what one subscription receives, and balances it against what was traded."""

    def __init__(self, client: Client, *tickers: str, **options: Any) -> None:
        self.subscription = client.subscribe(list(tickers), timeout=60, **options)
        self.ticks: list[Tick] = []
        self.events: list[object] = []
        self._thread = threading.Thread(target=self._collect, name="watcher")
        self._thread.start()

    def _collect(self) -> None:
        for item in self.subscription.items():
            (self.ticks if isinstance(item, Tick) else self.events).append(item)

    def wait_up(self, *, deadline_s: float = 120) -> None:
        """Wait until the feeds of all tickers are up."""
        wanted = len(self.subscription.topics)

        def is_up() -> bool:
            states = self.subscription.states
            return len(states) >= wanted and set(states.values()) == {"UP"}

        wait_until(is_up, what=f"{wanted} feeds to be up", deadline_s=deadline_s)

    def of(self, ticker: str) -> list[Tick]:
        """The ticks of one ticker, as they came."""
        return [tick for tick in list(self.ticks) if tick.ticker == ticker]

    def said_lost(self, ticker: str) -> set[int]:
        """Trade ids that the client reported as lost, or the ingestor as never to come."""
        lost: set[int] = set()
        for event in list(self.events):
            is_final = isinstance(event, Loss) or (isinstance(event, Gap) and event.state == "UNFILLABLE")
            of_ticker = getattr(event, "ticker", "") == ticker or getattr(event, "topic", "") == f"{ticker}|tick"
            if is_final and of_ticker and event.from_trade_id and event.to_trade_id:
                lost |= set(range(int(event.from_trade_id), int(event.to_trade_id) + 1))
        return lost

    def lost_unnamed(self) -> int:
        """How many messages were said to be lost by their stamps alone."""
        losses = [e for e in list(self.events) if isinstance(e, Loss)]
        return sum(loss.count for loss in losses if not (loss.from_trade_id and loss.to_trade_id))

    def close(self) -> None:
        """End the subscription and what collects it."""
        self.subscription.close()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the subscription did not end"


@contextlib.contextmanager
def watching(client: Client, *tickers: str, **options: Any) -> Iterator[Watcher]:
    """Watch tickers, once their feeds are up."""
    watcher = Watcher(client, *tickers, **options)
    try:
        watcher.wait_up()
        yield watcher
    finally:
        watcher.close()


def _store_markets(settings: TableSettings, tickers: Iterable[str]) -> None:
    """Put markets into the table as the history job would, had the ingestor listed them."""
    values = []
    for ticker in sorted(set(tickers)):
        parsed = parse_ticker(ticker)
        market = market_pb2.Market(market_id=ticker, exchange_id=parsed.exchange, native_symbol=parsed.symbol)
        values.append((parsed.exchange, encode_record(market)))
    records = pa.table(
        {
            "topic": ["market-symbol"] * len(values),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "key": pa.array([exchange.encode() for exchange, _ in values], pa.binary()),
            "value": pa.array([value for _, value in values], pa.binary()),
        }
    )
    decoded = decode_records(records, seen_at_us=0)
    assert len(decoded.markets) == len(values)
    reached = SourceOffsets("history", "cluster", "topic", {0: len(values)})
    open_writable_tables(settings).merge_markets(decoded.markets, reached=reached, batch_id=1)
