"""Subscriptions: live ticks and bars as iteration, callbacks or batches, and events beside them."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from relay.errors import RelayError, SettingsError
from relay_client.arguments import flag
from relay_client.buffer import ItemBuffer
from relay_client.engine.feed_group import FeedGroup
from relay_client.engine.items import Tick
from relay_client.engine.live_values import CallbackFailed, FeedEvent, Gap
from relay_client.engine.loss_book import FeedCounters
from relay_client.history import Bar
from relay_client.live import LiveFeed
from relay_client.session import Session
from relay_client.statistics import ExchangeStatistics
from relay_client.subscribing import Plan, TopicsLike, plan_of, topics_of
from relay_client.symbols import Symbol

if TYPE_CHECKING:
    import pyarrow as pa

    from relay_client.times import TimeLike

__all__ = ["FeedItem", "Subscription", "SubscriptionCore"]

FeedItem = Tick | Bar | Gap | Symbol | ExchangeStatistics
"""Data of a subscription: what its topics carry. A :class:`Gap` is data on a topic ``|gap`` and an event elsewhere."""

_LOG = logging.getLogger(__name__)
_EVENTS_MAX = 10_000
_DATA = (Tick, Bar, Symbol, ExchangeStatistics)


class SubscriptionCore:
    """What the blocking and the async subscription share.

    Args:
        session: of the client.
        plan: what was asked for.
    """

    def __init__(self, session: Session, plan: Plan) -> None:
        self._session, self.plan = session, plan
        self._topics = {str(topic): topic for topic in plan.topics}
        self.buffer = ItemBuffer(plan.buffer_max, plan.policy, is_conflating=plan.is_conflating)
        self._group = FeedGroup(plan.rules, is_scaled=plan.is_scaled, is_strict=plan.is_strict)
        self._feed = LiveFeed(self._group, self.buffer)
        self._events: deque[FeedEvent] = deque(maxlen=_EVENTS_MAX)
        self._is_open = False

    @property
    def topics(self) -> list[str]:
        """The topics, as asked for."""
        return list(self._topics)

    def open(self) -> None:
        """Begin; the tickers have been checked."""
        self._is_open = True
        self._session.follow(self._feed, self.plan.topics, start_ns=self.plan.start_ns)

    def add(self, plan: Plan) -> None:
        """Begin more topics."""
        fresh = [topic for topic in plan.topics if str(topic) not in self._topics]
        self._topics |= {str(topic): topic for topic in fresh}
        self._session.follow(self._feed, fresh, start_ns=plan.start_ns)

    def remove(self, topics: TopicsLike) -> None:
        """End topics."""
        gone = [topic for topic in topics_of(topics) if self._topics.pop(str(topic), None) is not None]
        self._session.unfollow(self._feed, gone)

    def check_start(self, topics: TopicsLike, start: TimeLike | None) -> None:
        """Raise when a start is given for a topic that has begun: it is too late for history.

        Raises:
            SettingsError: names the topic.
        """
        running = [str(topic) for topic in topics_of(topics) if str(topic) in self._topics]
        if start is not None and running:
            raise SettingsError(
                f"expected start with a topic that has not begun, got {running[0]}, which is live already; "
                "remove it first, or make another subscription"
            )

    def sort(self, items: Sequence[Any]) -> list[Any]:
        """Return the data among items; note the events."""
        if all(type(item) is Tick for item in items):
            return list(items)
        data = []
        for item in items:
            if isinstance(item, _DATA) or (isinstance(item, Gap) and f"{item.ticker}|gap" in self._topics):
                data.append(item)
            else:
                self._events.append(item)
        return data

    def note(self, event: FeedEvent) -> None:
        """Note an event."""
        self._events.append(event)

    def events(self) -> list[FeedEvent]:
        """Return the events noted since the last call."""
        found = []
        with suppress(IndexError):
            while True:
                found.append(self._events.popleft())
        return found

    def counters(self) -> Mapping[str, int]:
        """Return totals over all topics, also those removed since."""
        counted = self._group.counters().values()
        totals = {f.name: sum(getattr(c, f.name) for c in counted) for f in fields(FeedCounters)}
        buffer = self.buffer
        own = {"overrun": buffer.dropped_total, "conflated": buffer.conflated_total, "lapped": self._feed.laps}
        return {**totals, **own}

    @property
    def transport(self) -> str:
        """``tcp`` or ``shm``."""
        return self._session.transport[0]

    @property
    def transport_reason(self) -> str:
        """Why not ``shm``."""
        return self._session.transport[1]

    @property
    def encoding(self) -> str:
        """``protobuf`` or ``sbe``."""
        return self._session.encoding

    def states(self) -> Mapping[str, str]:
        """Return the state of each ticker's feed."""
        return self._group.states()

    def close(self) -> None:
        """End everything."""
        if self._is_open:
            self._is_open = False
            self._session.unfollow(self._feed, list(self._topics.values()))
            self._session.leave(self._feed)
        self.buffer.close()


class Subscription:
    """Live data of one or many topics; made by :meth:`relay_client.Client.subscribe`.

    Iterating yields **data only** (:class:`Tick`, :class:`Bar`), in order, and ends when the subscription or the client
    is closed. What happens beside it (:class:`Loss`, :class:`Repaired`, :class:`Gap`, :class:`StateChanged` …) is
    returned by :meth:`events`; :meth:`items` yields both in their common order. Use one of iteration, :meth:`items`,
    :meth:`batches` and :meth:`on`: they share one buffer. It may be used from any thread; close it, or use it as a
    context manager.
    """

    def __init__(self, session: Session, plan: Plan, check: Callable[[Plan, float | None], None]) -> None:
        # The check is the client's: a client that nobody else holds lives as long as its subscriptions.
        self._core, self._check = SubscriptionCore(session, plan), check
        self._chunk: Iterator[Any] = iter(())
        self._thread: threading.Thread | None = None
        self._is_direct = False
        self._finalizer = weakref.finalize(self, self._core.close)
        self._core.open()

    @property
    def topics(self) -> list[str]:
        """The topics, as asked for."""
        return self._core.topics

    @property
    def states(self) -> Mapping[str, str]:
        """State of each ticker's feed, see :class:`FeedState`."""
        return self._core.states()

    @property
    def transport(self) -> str:
        """By which way data come now: ``shm`` (the relay's shared memory, on its host) or ``tcp``.

        It begins as ``tcp``; shared memory takes over, and back, while it runs, and nothing is lost by that.
        """
        return self._core.transport

    @property
    def transport_reason(self) -> str:
        """Why data come by ``tcp``; empty for ``shm``."""
        return self._core.transport_reason

    @property
    def encoding(self) -> str:
        """In which form ticks, bars, gaps and beats come now: ``sbe`` or ``protobuf``, with the same values either way.

        ``sbe`` where the client was opened with it, data come by ``shm``, and the relay announces it.
        """
        return self._core.encoding

    @property
    def is_closed(self) -> bool:
        """Whether it has ended and everything buffered was taken."""
        return self._core.buffer.is_exhausted

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> FeedItem:
        while True:
            for item in self._chunk:
                return item  # type: ignore[no-any-return]
            taken = self._core.buffer.take()
            if taken is None:
                raise StopIteration
            self._chunk = iter(self._core.sort(taken))

    def next(self, *, timeout: float | None = None) -> FeedItem | None:
        """Return the next item of data, None when none comes within ``timeout`` seconds or the subscription is closed.

        Raises:
            RelayError: what ended the subscription.
        """
        for item in self._chunk:
            return item  # type: ignore[no-any-return]
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            if left is not None and left < 0:
                return None
            taken = self._core.buffer.take(timeout_s=left)
            if taken is None:
                return None
            self._chunk = iter(self._core.sort(taken))
            for item in self._chunk:
                return item  # type: ignore[no-any-return]

    def items(self) -> Iterator[FeedItem | FeedEvent]:
        """Yield data and events in their common order."""
        while (taken := self._core.buffer.take()) is not None:
            yield from taken

    def events(self) -> list[FeedEvent]:
        """Return the events met by iterating since the last call; the newest 10,000 are kept."""
        return self._core.events()

    def on(
        self,
        callback: Callable[[FeedItem], object],
        *,
        on_event: Callable[[FeedEvent], object] | None = None,
        direct: bool = False,
    ) -> Subscription:
        """Have each item of data passed to a callback, in a thread of the subscription's own.

        Args:
            callback: its errors are logged and become :class:`CallbackFailed` events; the subscription goes on.
            on_event: called with each event, in the same thread.
            direct: in the client's own thread instead, without a buffer: quickest, but all of the client stands still
                until the callback returns. It must neither wait nor call the client or its subscriptions. What has come
                already is passed on by this call.

        Returns:
            The subscription itself.

        Raises:
            SettingsError: there is a callback already, or ``direct`` is asked of a conflating subscription.
        """
        if self._thread is not None or self._is_direct:
            raise SettingsError("expected one callback a subscription, got a second; make another subscription")
        core = self._core
        if flag("direct", direct):
            if core.plan.is_conflating:
                raise SettingsError("expected direct without conflate: nothing waits that a newer one could replace")
            self._is_direct = True
            core.buffer.pass_to(partial(_pass_on, self, core, callback, on_event))
            return self
        self._thread = threading.Thread(
            target=_call_back, args=(self, core, callback, on_event), name="relay-subscription", daemon=True
        )
        self._thread.start()
        return self

    def batches(self, *, max_rows: int = 10_000, max_seconds: float = 1.0) -> Iterator[pa.RecordBatch]:
        """Yield ticks as Arrow record batches, each as soon as it is full or its time is over; never an empty one.

        Args:
            max_rows: at most so many ticks each.
            max_seconds: at most so long after its first tick.
        """
        from relay_client.batches import batches

        return batches(self._core, max_rows=max_rows, max_seconds=max_seconds)

    def add(self, topics: TopicsLike, *, start: TimeLike | None = None, timeout: float | None = None) -> None:
        """Subscribe more topics; those that are subscribed already stay as they are.

        Args:
            topics: one or many.
            start: history of the new topics first.
            timeout: seconds for the check of the tickers.

        Raises:
            SettingsError: ``start`` for a topic that is live already, and what
                :meth:`relay_client.Client.subscribe` raises.
        """
        self._core.check_start(topics, start)
        plan = plan_of(topics, start=start, like=self._core.plan)
        self._check(plan, timeout)
        self._core.add(plan)

    def remove(self, topics: TopicsLike) -> None:
        """End topics; what of them is buffered still comes. Harmless for topics that are not subscribed."""
        self._core.remove(topics)

    def counters(self) -> Mapping[str, int]:
        """Return what was counted over all topics.

        That is received, repeated, repaired, history, late, lost, overrun, conflated, and lapped: how often the relay
        has overtaken this client in shared memory (what was missed by it is repaired, or lost).
        """
        return self._core.counters()

    def close(self) -> None:
        """End the subscription; whoever iterates gets what is buffered, then the end. Harmless when repeated."""
        self._finalizer()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _call_back(
    owner: Subscription,
    core: SubscriptionCore,
    callback: Callable[[FeedItem], object],
    on_event: Callable[[FeedEvent], object] | None,
) -> None:
    del owner  # held by the thread's arguments, so that a subscription with a callback needs no other owner
    try:
        while (taken := core.buffer.take()) is not None:
            _pass_on(None, core, callback, on_event, taken)
    except RelayError as error:
        core.note(CallbackFailed(str(error)))
        if on_event is not None:
            _contained(core, on_event, CallbackFailed(str(error)))


def _pass_on(
    owner: Subscription | None,
    core: SubscriptionCore,
    callback: Callable[[FeedItem], object],
    on_event: Callable[[FeedEvent], object] | None,
    taken: Sequence[Any],
) -> None:
    del owner  # as above
    for item in taken:
        for data in core.sort([item]):
            _contained(core, callback, data)
        if on_event is not None:
            for event in core.events():
                _contained(core, on_event, event)


def _contained(core: SubscriptionCore, function: Callable[[Any], object], item: Any) -> None:
    try:
        function(item)
    except Exception as error:  # noqa: BLE001 - a callback's error must not end the subscription
        _LOG.exception("a subscription's callback failed")
        core.note(CallbackFailed(repr(error)))
