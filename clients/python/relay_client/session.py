"""The client's one thread: it owns the sockets, always polls them, and drives the engine."""

from __future__ import annotations

import itertools
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from relay.errors import RelayError, RetryableError
from relay.observability import new_counters
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import encode
from relay.protocol.v1 import market_pb2, request_pb2
from relay.transport import (
    SendOutcome,
    Socket,
    SocketKind,
    SocketLimits,
    Waker,
    new_context,
    open_socket,
    pin_loop,
    receive,
    send,
    subscribe,
    unsubscribe,
)
from relay_client.engine.commands import (
    CloseBroadcast,
    Command,
    EndFeeds,
    Fail,
    InForce,
    OpenBroadcast,
    ReadBroadcast,
    Reconnect,
    RelayAway,
    Resolve,
    Send,
    SessionTimes,
    Subscribe,
    Unsubscribe,
)
from relay_client.engine.session import CORRELATION_BYTES, SessionEngine
from relay_client.hearing import Heard, Hearing
from relay_client.live import LiveFeed, LiveFeeds, Topic
from relay_client.settings import ClientSettings

__all__ = ["Pending", "Session"]

T = TypeVar("T")
_BURST = 256
_IDLE_NS = 1_000_000_000
_HEARTBEAT_MS = 1_000
_JOIN_S = 10.0
_MS = 1_000_000
_REPLAY_NS = 5_000 * _MS
Wish = Callable[[int], Iterable[Command]]


@dataclass(frozen=True, slots=True)
class Pending(Generic[T]):
    """What a caller waits for; ``future`` may be waited for in any way, in any thread or loop."""

    key: int
    future: Future[T]


class Session:
    """Sockets, thread and engine of one client; every method may be called from any thread.

    Args:
        settings: addresses and times.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.client_id = str(uuid.uuid4())
        self.counters, self._shared = new_counters("client", shared_memory=settings.shared_memory)
        self._settings = settings
        self._pid = os.getpid()
        times = SessionTimes(
            reply_ns=settings.reply_timeout_ms * _MS,
            beat_ns=settings.beat_timeout_ms * _MS,
            status_ns=settings.status_query_ms * _MS,
        )
        self._engine = SessionEngine(
            self.client_id,
            times=times,
            new_nonce=lambda: str(uuid.uuid4()),
            count=self.counters.add,
            transport=settings.transport,
            is_sbe=settings.encoding == "sbe",
        )
        self._live = LiveFeeds(self._ask_live, self.counters.add)
        self._hearing = Hearing(settings, self._live, self.counters.add)
        self._keys = itertools.count(1)
        self._futures: dict[int, Future[Any]] = {}
        self._followed: set[LiveFeed] = set()
        self._wishes: deque[Wish] = deque()
        self._lock = threading.Lock()
        self._closed = False
        self._waker = Waker()
        self._context = new_context(sockets_max=16)
        # Opened here, so that a wrong address is an error of the constructor.
        try:
            self._dealer, self._sub = self._open()
        except BaseException:
            self._context.term()
            self._waker.close()
            raise
        self._thread = threading.Thread(target=self._run, name="relay-client", daemon=True)
        self._thread.start()

    @property
    def transport(self) -> tuple[str, str]:
        """By which way market data come now, ``tcp`` or ``shm``, and why not by ``shm``."""
        route = self._engine.route
        return route.transport, route.reason

    @property
    def encoding(self) -> str:
        """In which form ticks, bars, gaps and beats come now: ``protobuf`` or ``sbe``."""
        return self._engine.route.encoding

    def ask(self, message: Message, *, timeout_s: float) -> Pending[Message]:
        """Put a question to the relay or the manager."""
        return self._post(lambda key, now, end: self._engine.ask(key, message, deadline_ns=end, now_ns=now), timeout_s)

    def watch(
        self, request_id: str, *, submitted: request_pb2.SubmitHistoricalRequest | None = None, timeout_s: float
    ) -> Pending[request_pb2.HistoryReadyNotification]:
        """Await the end of a request; call it before the submission of ``submitted``."""
        return self._post(
            lambda key, now, end: self._engine.watch(key, request_id, submitted=submitted, deadline_ns=end, now_ns=now),
            timeout_s,
        )

    def locate(self, *, timeout_s: float) -> Pending[request_pb2.ProbeReply]:
        """Await what the relay tells about itself."""
        return self._post(lambda key, now, end: self._engine.locate(key, deadline_ns=end, now_ns=now), timeout_s)

    def next_update(self, *, timeout_s: float) -> Pending[market_pb2.SymbolMetadataUpdated]:
        """Await the next update of the symbols."""
        return self._post(lambda key, now, end: self._engine.next_update(key, deadline_ns=end, now_ns=now), timeout_s)

    def follow(self, feed: LiveFeed, topics: Iterable[Topic], *, start_ns: int | None = None) -> None:
        """Begin topics of a subscription; what comes goes into its buffer."""

        def wish(now_ns: int) -> Iterable[Command]:
            names = [name for topic in topics for name in self._live.add(feed, topic, start_ns, now_ns)]
            return self._engine.hold(names, now_ns)

        self.check_usable()
        with self._lock:
            self.check_usable()
            self._followed.add(feed)
            self._wishes.append(wish)
        self._waker.wake()

    def unfollow(self, feed: LiveFeed, topics: Iterable[Topic]) -> None:
        """End topics of a subscription; harmless when repeated and on a closed client."""
        gone = list(topics)
        if not self._closed and self._pid == os.getpid():
            self._wishes.append(lambda _: self._engine.release(self._live.remove(feed, gone)))
            self._waker.wake()

    def leave(self, feed: LiveFeed) -> None:
        """Forget a subscription that has ended."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._followed.discard(feed)

    def forget(self, *waited: Pending[Any]) -> None:
        """Stop waiting; harmless for what has come already."""
        keys = [pending.key for pending in waited if self._futures.pop(pending.key, None) is not None]
        if keys and not self._closed and self._pid == os.getpid():
            self._wishes.append(lambda now: [c for key in keys for c in self._engine.forget(key, now)])
            self._waker.wake()

    def check_usable(self) -> None:
        """Raise when the client is closed, or was made before a fork.

        Raises:
            RelayError: with what to do.
        """
        if self._pid != os.getpid():
            raise RelayError(
                f"this client was made in process {self._pid} and is used in {os.getpid()}: sockets and threads do not "
                "survive a fork; make a new client after it"
            )
        if self._closed:
            raise RelayError("this client is closed; make a new one")

    def close(self) -> None:
        """Close the sockets and end the thread; whoever waits gets an error. Harmless when repeated."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
        self._waker.wake()
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)
        if self._shared is not None:
            self._shared.close()

    def _post(self, wish: Callable[[int, int, int], Iterable[Command]], timeout_s: float) -> Pending[Any]:
        self.check_usable()
        pending: Pending[Any] = Pending(next(self._keys), Future())
        deadline_ns = time.monotonic_ns() + int(timeout_s * 1_000) * _MS
        with self._lock:
            self.check_usable()
            self._futures[pending.key] = pending.future
            self._wishes.append(lambda now: wish(pending.key, now, deadline_ns))
        self._waker.wake()
        return pending

    def _ask_live(self, message: Message) -> Future[Message]:
        """Put a question of the live side, in the client's thread."""
        key, future, now_ns = next(self._keys), Future[Message](), time.monotonic_ns()
        self._futures[key] = future
        self._execute(self._engine.ask(key, message, deadline_ns=now_ns + _REPLAY_NS, now_ns=now_ns))
        return future

    def _run(self) -> None:
        ended: RelayError = RetryableError("the client was closed", code=ErrorCode.CANCELLED)
        try:
            self._loop()
        except Exception as error:  # noqa: BLE001 - whoever waits must learn of it, whatever it was
            ended = RelayError(f"the client's thread failed, make a new client: {error!r}")
            ended.__cause__ = error
        finally:
            with self._lock:
                self._closed = True
            for socket in (self._dealer, self._sub):
                socket.close(0)
            self._hearing.close(is_draining=False)
            self._context.term()
            self._waker.close()
            for key in list(self._futures):
                self._settle(key, ended)
            for feed in self._followed:
                feed.end(None if ended.code == ErrorCode.CANCELLED else ended)

    def _loop(self) -> None:
        if pin_loop(self._settings.processors):
            self.counters.add("thread.not_pinned")
        poller = self._hearing.poller
        for source in (self._dealer, self._sub, self._waker.fileno()):
            poller.add(source)
        self._execute(self._engine.start(time.monotonic_ns()))
        while not self._closed:
            due_ns = min(self._engine.due_ns(), self._live.due_ns())
            is_due = self._hearing.wait(min(due_ns - time.monotonic_ns(), _IDLE_NS))
            if self._hearing.is_reading:
                self._hear_broadcast()
            if not is_due:
                continue
            self._waker.drain()
            while self._wishes:
                self._execute(self._wishes.popleft()(time.monotonic_ns()))
            self._hear()
            for _ in range(_BURST):
                frames = receive(self._dealer)
                if frames is None:
                    break
                self._execute(self._engine.on_reply(frames, time.monotonic_ns()))
            self._execute(self._engine.on_tick(time.monotonic_ns()))
            self._live.on_tick(time.monotonic_ns())

    def _hear_broadcast(self) -> None:
        heard = self._hearing.hear()
        if heard is Heard.FINE:
            return
        now_ns = time.monotonic_ns()
        if heard is Heard.LAPPED:
            self._live.on_lapped()
            self._execute(self._engine.on_broadcast_lapped(now_ns))
        else:
            self._execute(self._engine.on_broadcast_lost(heard.value, now_ns, is_gone=heard is Heard.GONE))

    def _hear(self) -> None:
        """Take a burst of published messages; those of live feeds, which may be many, by the shortest way."""
        live, sub, now_ns, is_muted = self._live, self._sub, time.monotonic_ns(), self._engine.route.is_muted
        is_live = False
        for _ in range(_BURST):
            frames = receive(sub)
            if frames is None:
                break
            if is_muted(frames[0]) or live.take(frames, now_ns):
                is_live = True
            else:
                self._execute(self._engine.on_published(frames, time.monotonic_ns()))
        if is_live:
            self._engine.on_heard(now_ns)
            live.flush()

    def _execute(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Send(correlation, message):
                    frames = [correlation.to_bytes(CORRELATION_BYTES, "big"), b"", *encode(message)]
                    if send(self._dealer, frames) is not SendOutcome.SENT:
                        self._engine.on_unsent(correlation, time.monotonic_ns())
                case Subscribe(topic):
                    subscribe(self._sub, topic)
                case Unsubscribe(topic):
                    unsubscribe(self._sub, topic)
                case Resolve(key, message):
                    self._settle(key, message)
                case Fail(key, error):
                    self._settle(key, error)
                case Reconnect():
                    self._reopen()
                case _:
                    self._execute_live(command)

    def _execute_live(self, command: Command) -> None:
        match command:
            case InForce(was_cut):
                self._live.on_in_force(time.monotonic_ns(), was_cut=was_cut)
            case RelayAway():
                self._live.on_relay_away()
            case OpenBroadcast():
                self._open_broadcast(command)
            case ReadBroadcast():
                self._hearing.read()
            case CloseBroadcast():
                self._hearing.close()
            case EndFeeds(error):
                self._live.end(error)

    def _open_broadcast(self, offered: OpenBroadcast) -> None:
        try:
            self._hearing.open(offered)
        except LookupError as error:
            self._execute(self._engine.on_broadcast_refused(str(error)))
        else:
            self._execute(self._engine.on_broadcast_opened(time.monotonic_ns()))

    def _settle(self, key: int, result: Message | RelayError) -> None:
        future = self._futures.pop(key, None)
        if future is None:
            return
        with suppress(InvalidStateError):  # cancelled meanwhile: nobody waits
            if isinstance(result, RelayError):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _reopen(self) -> None:
        for socket in (self._dealer, self._sub):
            self._hearing.poller.remove(socket)
            socket.close(0)
        self._dealer, self._sub = self._open()
        for socket in (self._dealer, self._sub):
            self._hearing.poller.add(socket)

    def _open(self) -> tuple[Socket, Socket]:
        settings = self._settings
        # IMMEDIATE: nothing is queued for a relay that is away, to arrive when nobody waits for it any more.
        asking = SocketLimits(frame_bytes_max=settings.published_bytes_max, heartbeat_ms=_HEARTBEAT_MS, immediate=True)
        hearing = SocketLimits(
            receive_queue_max=settings.receive_queue_max,
            frame_bytes_max=settings.published_bytes_max,
            heartbeat_ms=_HEARTBEAT_MS,
        )
        dealer = open_socket(self._context, SocketKind.DEALER, connect=[settings.requests_at], limits=asking)
        try:
            sub = open_socket(self._context, SocketKind.SUB, connect=[settings.published_at], limits=hearing)
        except BaseException:
            dealer.close(0)
            raise
        return dealer, sub
