"""A real gateway process and real Iceberg tables, with a scripted manager between them that can lose things."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import zmq

from relay.errors import RetryableError
from relay.protocol.envelope import decode, encode
from relay.protocol.periods import NANOSECONDS, align_down_ns
from relay.protocol.ranges import Range, to_wire
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2
from relay.tables.catalog import TableSettings
from relay.tables.offsets import SourceOffsets
from relay.tables.schema import COVERAGE_COLUMNS, COVERAGE_TABLE, OHLC_COLUMNS
from relay.tables.writer import open_writable_tables
from relay_client import Client, ClientSettings
from tests.support.forked import ForkedRelay
from tests.support.processes import free_port, wait_until

__all__ = ["BASE_NS", "BTC", "MINUTE_NS", "GatewayWorld", "ScriptedManager", "minutes", "ready_world"]

BTC = "BTC/USDT.BINANCE"
MINUTE_NS = 60 * NANOSECONDS
BASE_NS = 1_700_000_040 * NANOSECONDS
_REACHED = SourceOffsets("history", "cluster", "topic", {0: 10})
_Submit, _Response = request_pb2.SubmitHistoricalRequest, request_pb2.SubmitResponse
_Ready = request_pb2.HistoryReadyNotification


def minutes(first: int, end: int) -> Range:
    """Minutes after BASE_NS."""
    return Range(BASE_NS + first * MINUTE_NS, BASE_NS + end * MINUTE_NS)


def bar_rows(span: Range, *, price: str = "42.13") -> pa.Table:
    """One bar a minute, whose trade count is its minute."""
    number = Decimal(price)
    rows = [
        {
            "ticker": BTC,
            "period_seconds": 60,
            "start": start_ns // 1000,
            "open": number,
            "high": number + 1,
            "low": number - 1,
            "close": number,
            "volume": Decimal("0.0000001"),
            "trades": (start_ns - BASE_NS) // MINUTE_NS,
            "source": "EXCHANGE",
            "is_final": True,
            "incomplete": False,
            "revision": 0,
            "fetched_at_ns": 1,
            "log_partition": 0,
            "log_offset": 0,
        }
        for start_ns in range(span.start_ns, span.end_ns, MINUTE_NS)
    ]
    return pa.Table.from_pylist(rows, schema=OHLC_COLUMNS)


def coverage_rows(spans: Iterable[Range]) -> pa.Table:
    """One coverage row over some ranges."""
    ranges = list(spans)
    row = {
        "job_id": "job",
        "attempt": 1,
        "batch_index": 0,
        "is_last": True,
        "status": "OK",
        "ticker": BTC,
        "period_seconds": 60,
        "covered": [{"start_ns": r.start_ns, "end_ns": r.end_ns} for r in ranges],
        "covered_from": ranges[0].start_ns // 1000,
        "covered_to": ranges[-1].end_ns // 1000,
        "rows": 1,
        "total_rows": 1,
        "source": "BINANCE",
        "fetched_at_ns": 1,
        "log_partition": 0,
        "log_offset": 0,
    }
    return pa.Table.from_pylist([row], schema=COVERAGE_COLUMNS)


@dataclass
class Faults:
    """What the scripted manager does wrong, how often."""

    lose_submit_replies: int = 0
    lose_submits: int = 0
    unavailable: int = 0
    lose_notifications: int = 0
    repeat_notifications: int = 1


@dataclass
class ScriptedManager:
    """A manager that fetches at once: it writes bars and coverage, then publishes the end.

    Attributes:
        submits: every submission that arrived, repeated ones too.
        fetched: request ids in the order of their fetch; an id twice would be a double fetch.
        hold: while set, requests stay unfinished.
        script: replaces the fetch; returns status, code, what it covers.
    """

    request_port: int
    publish_port: int
    tables: TableSettings
    faults: Faults = field(default_factory=Faults)
    submits: list[request_pb2.SubmitHistoricalRequest] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    script: Callable[[request_pb2.SubmitHistoricalRequest], tuple[int, str, list[Range]]] | None = None
    symbols: Callable[[request_pb2.SymbolQuery], request_pb2.SymbolReply] | None = None
    statistics: Callable[[request_pb2.StatsQuery], object] | None = None
    replays: Callable[[request_pb2.ReplayRequest], request_pb2.ReplayResponse] | None = None
    triggers: Callable[[trigger_pb2.CEPTriggerRequest], object] | None = None

    def __post_init__(self) -> None:
        self.hold = threading.Event()
        self._ends: dict[str, request_pb2.HistoryReadyNotification] = {}
        self._open: list[request_pb2.SubmitHistoricalRequest] = []
        self._stopping = threading.Event()
        self._outbox: list[list[bytes]] = []
        self._subscribed: set[bytes] = set()
        self._writer = open_writable_tables(self.tables)
        self._thread = threading.Thread(target=self._run, name="scripted-manager")
        self._thread.start()

    def store(self, span: Range, *, with_bars: bool = True) -> int:
        """Put bars and their coverage into the tables; returns the snapshot id of the bars."""
        snapshot_id = 0
        if with_bars:
            snapshot_id = self._writer.merge_bars(bar_rows(span), reached=_REACHED, batch_id=1) or 0
        self._writer.append(COVERAGE_TABLE, coverage_rows([span]), reached=_REACHED, batch_id=1)
        return snapshot_id

    def publish(self, topic: str, message: object) -> None:
        """Publish in the manager's own thread."""
        self._outbox.append([topic.encode(), *encode(message)])

    def has_subscriber(self, topic: str) -> bool:
        """Return whether the relay has subscribed a topic."""
        return topic.encode() in self._subscribed

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        context = zmq.Context()
        router, publisher = context.socket(zmq.ROUTER), context.socket(zmq.XPUB)
        router.bind(f"tcp://127.0.0.1:{self.request_port}")
        publisher.bind(f"tcp://127.0.0.1:{self.publish_port}")
        self._publisher, beat_due = publisher, 0.0
        try:
            while not self._stopping.is_set():
                if time.monotonic() >= beat_due:
                    publisher.send_multipart([b"HEARTBEAT:MANAGER", *encode(market_pb2.Heartbeat())])
                    beat_due = time.monotonic() + 0.3
                while publisher.poll(0):
                    said = publisher.recv()
                    (self._subscribed.add if said[:1] == b"\x01" else self._subscribed.discard)(said[1:])
                if router.poll(20):
                    frames = router.recv_multipart()
                    answer = self._answer(decode(frames, Channel.CLIENT_REQUEST).message)
                    if answer is not None:
                        router.send_multipart([*frames[:-2], *encode(answer)])
                while self._outbox:
                    publisher.send_multipart(self._outbox.pop(0))
                if not self.hold.is_set():
                    while self._open:
                        self._end(self._open.pop(0))
        finally:
            context.destroy(0)

    def _answer(self, message: object) -> object | None:
        match message:
            case request_pb2.SubmitHistoricalRequest():
                return self._submitted(message)
            case request_pb2.RequestStatusQuery():
                self.queries.append(message.request_id)
                return self._status(message.request_id)
            case request_pb2.SymbolQuery() if self.symbols is not None:
                return self.symbols(message)
            case request_pb2.StatsQuery() if self.statistics is not None:
                return self.statistics(message)
            case trigger_pb2.CEPTriggerRequest() if self.triggers is not None:
                return self.triggers(message)
            case request_pb2.ReplayRequest() if self.replays is not None:
                return self.replays(message)
        raise AssertionError(f"unexpected {message}")

    def _submitted(self, message: request_pb2.SubmitHistoricalRequest) -> object | None:
        self.submits.append(message)
        faults = self.faults
        if faults.lose_submits:
            faults.lose_submits -= 1
            return None
        if faults.unavailable:
            faults.unavailable -= 1
            return _Response(
                request_id=message.request_id,
                status=_Response.UNAVAILABLE,
                error_code="UNAVAILABLE",
                error_message="later",
            )
        known = message.request_id in self._ends or message in self._open
        if not known:
            self._open.append(message)
        elif message.request_id in self._ends:
            self._tell(self._ends[message.request_id])
        if faults.lose_submit_replies:
            faults.lose_submit_replies -= 1
            return None
        return _Response(
            request_id=message.request_id,
            status=_Response.DUPLICATE if known else _Response.QUEUED,
            notification_topic=f"RESPONSE:{message.client_id}",
        )

    def _status(self, request_id: str) -> object:
        if request_id in self._ends:
            return self._ends[request_id]
        if any(m.request_id == request_id for m in self._open):
            return _Ready(request_id=request_id, status=_Ready.PENDING)
        return _Ready(request_id=request_id, status=_Ready.ERROR, error_code="UNKNOWN_REQUEST")

    def _end(self, message: request_pb2.SubmitHistoricalRequest) -> None:
        self.fetched.append(message.request_id)
        asked = Range(message.start_time, message.end_time)
        fetched = Range(asked.start_ns, min(asked.end_ns, align_down_ns(time.time_ns(), 60)))
        if message.HasField("limit"):
            fetched = Range(fetched.start_ns, min(fetched.end_ns, fetched.start_ns + message.limit * MINUTE_NS))
        status, code, covered = (_Ready.OK, "", [fetched]) if self.script is None else self.script(message)
        snapshot_id = 0
        for span in covered:
            snapshot_id = self.store(span)
        self._ends[message.request_id] = _Ready(
            request_id=message.request_id,
            client_id=message.client_id,
            ticker=message.ticker,
            period_seconds=message.period_seconds,
            start_time=message.start_time,
            end_time=message.end_time,
            status=status,
            error_code=code,
            error_message=f"because of {code}" if code else "",
            completed_at=time.time_ns(),
            snapshot_id=snapshot_id,
            missing=to_wire([]),
        )
        if self.faults.lose_notifications:
            self.faults.lose_notifications -= 1
            return
        for _ in range(self.faults.repeat_notifications):
            self._tell(self._ends[message.request_id])

    def _tell(self, notification: request_pb2.HistoryReadyNotification) -> None:
        self._publisher.send_multipart([f"RESPONSE:{notification.client_id}".encode(), *encode(notification)])


class GatewayWorld:
    """The gateway process and its manager; clients are made by :meth:`client`."""

    def __init__(self, folder: Path) -> None:
        self.tables = TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")
        names = ("request", "subscribe", "fast_path", "manager_publish", "manager_request")
        self.ports = {name: free_port() for name in names}
        self._log = folder / "gateway.log"
        self.manager = ScriptedManager(self.ports["manager_request"], self.ports["manager_publish"], self.tables)
        self.gateway = self.start_gateway()

    def start_gateway(self) -> ForkedRelay:
        environment = {f"RELAY_GATEWAY_{n.upper()}_ENDPOINT": f"tcp://127.0.0.1:{p}" for n, p in self.ports.items()}
        environment |= {
            "RELAY_GATEWAY_STATUS_PORT": "0",
            "RELAY_GATEWAY_CATALOG_URI": self.tables.catalog_uri,
            "RELAY_GATEWAY_WAREHOUSE": self.tables.warehouse,
        }
        return ForkedRelay(["gateway"], log=self._log, environment=environment)

    def settings(self, **changes: object) -> ClientSettings:
        values: dict[str, object] = {
            "request_port": self.ports["request"],
            "subscribe_port": self.ports["subscribe"],
            "history_timeout_seconds": 60,
            **changes,
        }
        return ClientSettings(**values)

    def client(self, **changes: object) -> Client:
        return Client(settings=self.settings(**changes))

    def until_ready(self) -> None:
        """Wait until the gateway hears the manager."""
        with self.client() as client:
            try:
                wait_until(lambda: client.probe().manager_available, what="the manager to be heard")
            except (RetryableError, AssertionError) as error:
                said = f"(ended with {self.gateway.returncode}) {self.gateway.tail()}"
                raise AssertionError(f"{error}; the gateway said {said}") from error

    def restart_gateway(self) -> None:
        """SIGKILL, and a new process on the same ports."""
        self.gateway.kill()
        self.gateway = self.start_gateway()

    def close(self) -> None:
        self.gateway.kill()
        self.manager.close()


@contextmanager
def ready_world(folder: Path) -> Iterator[GatewayWorld]:
    """A gateway that hears its manager, for the length of a block."""
    world = GatewayWorld(folder)
    try:
        world.until_ready()
        yield world
    finally:
        world.close()
