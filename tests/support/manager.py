"""A manager on a thread, and scripted peers around it: relays, ingestors, Spark's pusher."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import zmq
from google.protobuf.message import Message

from relay.eventlog import EventLog
from relay.observability import Counters
from relay.protocol.envelope import decode, encode
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.v1 import request_pb2, work_pb2
from relay.tables.port import TableReader
from relay.transport import Context, SocketKind, SocketLimits, Waker, new_context, open_socket, subscribe
from spark_jobs.manager.control_teller import ControlTeller
from spark_jobs.manager.firings_reader import FiringsReader
from spark_jobs.manager.lookups import TableLookups
from spark_jobs.manager.loop import close_sockets, open_sockets, run_loop
from spark_jobs.manager.ports import JobStore
from spark_jobs.manager.replays import ReplayDesk
from spark_jobs.manager.service import ManagerService
from spark_jobs.manager.settings import ManagerSettings
from spark_jobs.manager.statistics_reader import StatisticsReader

__all__ = ["BTC", "MINUTE_NS", "START_NS", "Endpoints", "Ingestor", "ManagerThread", "Pusher", "Relay", "history"]

M = TypeVar("M", bound=Message)
MINUTE_NS = 60 * 10**9
START_NS = 1_700_000_040 * 10**9
BTC = "BTC/USDT.BINANCE"
DEADLINE_S = 30.0
WILDCARD = "tcp://127.0.0.1:*"


@dataclass(frozen=True)
class Endpoints:
    """Where a manager is reached."""

    requests: str = WILDCARD
    work: str = WILDCARD
    notifications: str = WILDCARD
    publish: str = WILDCARD


def settings_for(endpoints: Endpoints, store_path: Path, **changes: object) -> ManagerSettings:
    """Return settings with what a test changes."""
    quiet: dict[str, object] = {"statistics_every_seconds": 0, "symbols_every_seconds": 0}
    return ManagerSettings(
        request_endpoint=endpoints.requests,
        work_endpoint=endpoints.work,
        notification_endpoint=endpoints.notifications,
        publish_endpoint=endpoints.publish,
        store_path=store_path,
        catalog_uri="sqlite:///unused",
        warehouse="file:///unused",
        status_port=0,
        **{**quiet, **changes},  # type: ignore[arg-type]
    )


class ManagerThread:
    """A manager in this process; stops without a goodbye, as a crash would, and can start again.

    Args:
        open_store: opens the job table on the manager's thread.
        tables: what the tables show.
        open_log: opens the event log for replays.
        changes: of settings.
    """

    def __init__(
        self,
        open_store: Callable[[], JobStore],
        tables: TableReader,
        path: Path,
        *,
        open_log: Callable[[], EventLog] | None = None,
        **changes: object,
    ) -> None:
        self._open_log = open_log
        self._open_store = open_store
        self._tables = tables
        self._path = path
        self._changes = changes
        self.counters = Counters()
        self.endpoints = Endpoints()
        self.start()

    def start(self) -> None:
        """Start, on the same endpoints as before."""
        self._is_stopping = False
        self._is_bound = threading.Event()
        self._failure: BaseException | None = None
        self._waker = Waker()
        self._thread = threading.Thread(target=self._run, name="manager")
        self._thread.start()
        assert self._is_bound.wait(DEADLINE_S)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Stop and wait."""
        self._is_stopping = True
        self._waker.wake()
        self._thread.join()
        self._waker.close()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # noqa: BLE001 - told by stop()
            self._failure = error
        finally:
            self._is_bound.set()

    def _serve(self) -> None:
        settings = settings_for(self.endpoints, self._path, **self._changes)
        context, store = new_context(), self._open_store()
        sockets = open_sockets(context, settings)
        lookups = TableLookups(lambda: self._tables, self._waker)
        replays = ReplayDesk(self._open_log, topic_prefix="", waker=self._waker)
        statistics = StatisticsReader(self._open_log, topic_prefix="", waker=self._waker)
        control = ControlTeller(self._open_log, topic_prefix="")
        firings = FiringsReader(self._open_log, topic_prefix="", waker=self._waker)
        try:
            self.endpoints = Endpoints(
                *(
                    socket.getsockopt_string(zmq.LAST_ENDPOINT)
                    for socket in (sockets.requests, sockets.work, sockets.notifications, sockets.publish)
                )
            )
            service = ManagerService(
                settings,
                store=store,
                lookups=lookups,
                replays=replays,
                statistics=statistics,
                sockets=sockets,
                counters=self.counters,
                now_ns=time.time_ns(),
                control=control,
                firings=firings,
            )
            self._is_bound.set()
            run_loop(service, sockets, self._waker, lambda: self._is_stopping)
        finally:
            close_sockets(sockets)
            lookups.close()
            replays.close()
            statistics.close()
            control.close()
            firings.close()
            store.close()
            context.term()


class _Peer:
    def __init__(self, kind: SocketKind, endpoint: str) -> None:
        self.context: Context = new_context()
        self.socket = open_socket(self.context, kind, connect=[endpoint], limits=SocketLimits(10_000, 10_000))
        self.socket.setsockopt(zmq.SNDTIMEO, int(DEADLINE_S * 1000))

    def frames(self, deadline_s: float = DEADLINE_S) -> list[bytes]:
        """Return the next message."""
        assert self.socket.poll(int(deadline_s * 1000)), "no message came"
        return self.socket.recv_multipart()

    def close(self) -> None:
        """Vanish."""
        self.socket.close(0)
        self.context.term()


class Relay(_Peer):
    """A relay: passes a client's routing frames with each request, and subscribes to notifications."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(SocketKind.DEALER, endpoints.requests)
        self._kept: dict[bytes, list[Message]] = {}
        self._publish = open_socket(self.context, SocketKind.XSUB, connect=[endpoints.publish])

    def listen(self, *topics: bytes) -> None:
        """Subscribe upstream."""
        for topic in topics or (b"RESPONSE:", b"HISTORY_READY:", b"HEARTBEAT:MANAGER", b"METADATA_UPDATE"):
            subscribe(self._publish, topic)

    def send_frames(self, *frames: bytes) -> None:
        """Send raw frames."""
        self.socket.send_multipart(frames)

    def ask(self, message: Message, answer: type[M], routing: tuple[bytes, ...] = (b"client", b"1234", b"")) -> M:
        """Send a request and return its answer, which comes behind the same routing frames."""
        self.send_frames(*routing, *encode(message))
        return self.answer(answer, routing)

    def answer(self, answer: type[M], routing: tuple[bytes, ...] = (b"client", b"1234", b"")) -> M:
        """Return the next answer."""
        envelope = decode(self.frames(), Channel.CLIENT_REPLY)
        assert envelope.routing == routing
        assert isinstance(envelope.message, answer), envelope.message
        return envelope.message

    def submit(self, message: request_pb2.SubmitHistoricalRequest) -> request_pb2.SubmitResponse:
        """Submit a history request."""
        return self.ask(message, request_pb2.SubmitResponse)

    def status(self, request_id: str) -> request_pb2.HistoryReadyNotification:
        """Ask how a request stands."""
        return self.ask(request_pb2.RequestStatusQuery(request_id=request_id), request_pb2.HistoryReadyNotification)

    def published(self, topic: bytes, *, but: tuple[bytes, ...] = ()) -> Message:
        """Return the next message of a topic; others are kept for later, except those of ``but``, which fail."""
        end = time.monotonic() + DEADLINE_S
        while not self._kept.get(topic) and time.monotonic() < end:
            if self._publish.poll(1000):
                got, *frames = self._publish.recv_multipart()
                assert got not in but
                self._kept.setdefault(got, []).append(decode(frames, Channel.MARKET_DATA).message)
        if self._kept.get(topic):
            return self._kept[topic].pop(0)
        raise AssertionError(f"nothing came on {topic!r}")

    def notification(self, request: request_pb2.SubmitHistoricalRequest) -> request_pb2.HistoryReadyNotification:
        """Return the next notification of a request."""
        topic = f"RESPONSE:{request.client_id}" if request.client_id else f"HISTORY_READY:{request.request_id}"
        message = self.published(topic.encode())
        assert isinstance(message, request_pb2.HistoryReadyNotification)
        return message

    def close(self) -> None:
        self._publish.close(0)
        super().close()


class Pusher(_Peer):
    """Spark's side of the notification socket."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(SocketKind.PUSH, endpoints.notifications)

    def push(self, topic: bytes, message: Message) -> None:
        """Push a message."""
        self.socket.send_multipart([topic, *encode(message)])

    def hint(self, job_id: str) -> None:
        """Say that rows of a job became visible."""
        self.push(f"OUTCOME:{job_id}".encode(), request_pb2.HistoryReadyNotification(job_id=job_id))


@dataclass
class Ingestor:
    """A scripted ingestor with one slot."""

    endpoints: Endpoints
    ingestor_id: str = "one"
    epoch: int = 1
    exchange: str = "BINANCE"
    slot_type: work_pb2.WorkerReady.SlotType = work_pb2.WorkerReady.HISTORICAL
    sequence: int = 0
    broker_epochs: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.connect()

    def connect(self) -> None:
        """Open a new connection, under a new routing id."""
        self._peer = _Peer(SocketKind.DEALER, self.endpoints.work)

    def send(self, message: Message) -> None:
        """Send to the broker."""
        self._peer.socket.send_multipart(encode(message))

    def send_frames(self, *frames: bytes) -> None:
        """Send raw frames."""
        self._peer.socket.send_multipart(frames)

    def offer(self, *, is_new: bool = True) -> None:
        """Offer the slot, under the next sequence or again under the same."""
        self.sequence += is_new
        self.send(
            work_pb2.WorkerReady(
                exchange=self.exchange,
                slot_type=self.slot_type,
                ingestor_id=self.ingestor_id,
                ingestor_epoch=self.epoch,
                slot_id=0,
                offer_sequence=self.sequence,
            )
        )

    def receive(self, wanted: type[M]) -> M:
        """Return the next message of a type; pings are noted."""
        while True:
            message = decode(self._peer.frames(), Channel.WORK_TO_INGESTOR).message
            if isinstance(message, work_pb2.BrokerPing):
                self.broker_epochs.add(message.broker_epoch)
            if isinstance(message, wanted):
                return message

    def work(self) -> work_pb2.DataRequest:
        """Offer the slot and return what it gets; the offer is repeated as an ingestor would."""
        self.offer()
        return self.receive(work_pb2.DataRequest)

    def beat(self, data: work_pb2.DataRequest, **fields: object) -> None:
        """Send a heartbeat."""
        self.send(work_pb2.WorkHeartbeat(job_id=data.job_id, attempt=data.attempt, **fields))  # type: ignore[arg-type]

    def complete(self, data: work_pb2.DataRequest, code: str = "") -> None:
        """End the attempt."""
        self.send(work_pb2.WorkComplete(job_id=data.job_id, attempt=data.attempt, success=not code, error_code=code))

    def close(self) -> None:
        """Vanish."""
        self._peer.close()


def history(first: int = 0, last: int = 10, **fields: object) -> request_pb2.SubmitHistoricalRequest:
    """A request for one-minute bars; ``client_id=None`` leaves it out."""
    values: dict[str, object] = {
        "request_id": str(uuid.uuid4()),
        "client_id": str(uuid.uuid4()),
        "ticker": BTC,
        "start_time": START_NS + first * MINUTE_NS,
        "end_time": START_NS + last * MINUTE_NS,
        "period_seconds": 60,
        **fields,
    }
    return request_pb2.SubmitHistoricalRequest(**values)  # type: ignore[arg-type]


def asked_range(data: work_pb2.DataRequest) -> Range:
    """The range of a DataRequest."""
    return Range(data.historical.start_time, data.historical.end_time)


@contextmanager
def closing(*peers: Relay | Pusher | Ingestor) -> Iterator[None]:
    """Close peers at the end."""
    try:
        yield
    finally:
        for peer in peers:
            peer.close()
