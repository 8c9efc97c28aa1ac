"""The publish side: stamps, beats, and who listens to what."""

from __future__ import annotations

from google.protobuf.message import Message

from relay.observability import Counters
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import VERSION_FRAME
from relay.protocol.registry import type_id_of
from relay.protocol.stamps import Stamper
from relay.protocol.topics import MANAGER_HEARTBEAT, TOPIC_BYTES_MAX, market_topic
from relay.protocol.v1 import market_pb2
from relay.transport import SendOutcome, Socket, receive, send
from spark_jobs.manager.engine.demand import DemandBook

__all__ = ["Publisher"]


class Publisher:
    """Owner of the XPUB socket.

    Args:
        socket: bound XPUB, verbose.
        epoch: random for each start of the manager.
        counters: of the process.
    """

    def __init__(self, socket: Socket, *, epoch: int, counters: Counters) -> None:
        self._socket = socket
        self._epoch = epoch
        self._stamper = Stamper(epoch)
        self._counters = counters
        self._subscriptions: set[bytes] = set()
        self._demand = DemandBook()
        self._has_demand_changed = False

    @property
    def demand(self) -> frozenset[str]:
        """Tickers that are wanted live."""
        return self._demand.tickers

    @property
    def periods(self) -> dict[str, frozenset[int]]:
        """Periods (seconds) of bars that are wanted, by ticker."""
        return self._demand.periods

    @property
    def periods_refused(self) -> dict[str, int]:
        """How many periods are subscribed over the bound, by ticker."""
        return self._demand.refused

    def take_demand_change(self) -> bool:
        """Return whether the wanted tickers have changed since the last call."""
        changed, self._has_demand_changed = self._has_demand_changed, False
        return changed

    def tell_demand_again(self) -> None:
        """Let the next turn take over all wanted tickers: engines that began anew, after a failed commit, know none."""
        self._has_demand_changed = True

    def read_subscriptions(self) -> list[bytes]:
        """Take over subscriptions that arrived; return the topics that were subscribed, also repeatedly."""
        subscribed: list[bytes] = []
        while (frames := receive(self._socket)) is not None:
            first, topic = frames[0][:1], frames[0][1:]
            if len(frames) > 1 or first not in (b"\x00", b"\x01") or len(topic) > TOPIC_BYTES_MAX:
                self._counters.add(f"manager.publish.rejected.{RejectReason.PUSHED_INTO_XPUB}")
            elif first == b"\x01":
                self._subscriptions.add(topic)
                subscribed.append(topic)
                self._has_demand_changed |= self._demand.changed(topic, on=True)
            else:
                self._subscriptions.discard(topic)
                self._has_demand_changed |= self._demand.changed(topic, on=False)
        return subscribed

    def is_heard(self, topic: str) -> bool:
        """Return whether somebody is subscribed to a topic or to a prefix of it."""
        wanted = topic.encode()
        return any(wanted[:length] in self._subscriptions for length in range(len(wanted) + 1))

    def publish(self, topic: bytes, body: bytes, *, now_ns: int) -> None:
        """Publish a message, stamped where its topic and type carry stamps.

        Args:
            topic: where.
            body: type id and serialised protobuf.
            now_ns: present time.
        """
        body = self._stamper.stamp(topic, body, now_ns=now_ns)
        outcome = send(self._socket, [topic, VERSION_FRAME, body])
        self._counters.add("manager.publish.sent" if outcome is SendOutcome.SENT else "manager.publish.dropped")

    def publish_notification(self, topic: str, notification: bytes, message: Message, *, now_ns: int) -> None:
        """Publish a stored notification."""
        self.publish(topic.encode(), bytes([type_id_of(message)]) + notification, now_ns=now_ns)

    def beat(self, *, now_ns: int) -> None:
        """Publish the manager's own beat."""
        self._beat(MANAGER_HEARTBEAT, market_pb2.Heartbeat.UP, None, now_ns=now_ns)

    def beat_down(self, ticker: str, *, now_ns: int) -> None:
        """Say that a wanted ticker has no ingestor now."""
        topic = market_topic(ticker, "heartbeat").encode()
        self._beat(topic, market_pb2.Heartbeat.DOWN, ticker, now_ns=now_ns)

    def _beat(self, topic: bytes, state: market_pb2.Heartbeat.State, ticker: str | None, *, now_ns: int) -> None:
        beat = market_pb2.Heartbeat(
            source=market_pb2.Heartbeat.MANAGER,
            source_id="manager",
            epoch=self._epoch,
            sent_at=now_ns,
            state=state,
            ticker=ticker,
        )
        self.publish(topic, bytes([type_id_of(beat)]) + beat.SerializeToString(), now_ns=now_ns)
