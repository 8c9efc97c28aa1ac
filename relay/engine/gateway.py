"""Routing of the gateway: validates and forwards requests, fans out market data, answers probes.

It keeps no table of requests: a request carries its way back in its own routing frames, so a relay can be killed at
any time. What it knows is soft: when the manager was last heard, and which market topics it has subscribed upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relay.engine.answers import refusal, reply_routing, unavailable
from relay.engine.commands import Command, Publish, SendToClient, SendToManager, Upstream
from relay.engine.subscriptions import UpstreamTopics
from relay.errors import PeerError
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import SBE_VERSION, VERSION, VERSION_FRAME, EnvelopeError, EnvelopeLimits, decode, encode
from relay.protocol.registry import Channel, MessageType, channel_types
from relay.protocol.stamps import Stamper
from relay.protocol.topics import (
    DEMAND_PREFIX,
    HEARTBEAT,
    MANAGER_HEARTBEAT,
    NOTIFICATION_PREFIXES,
    TOPIC_BYTES_MAX,
    is_refused_subscription,
    probe_topic,
    wanted_topic,
)
from relay.protocol.v1 import common_pb2, market_pb2, request_pb2
from relay.protocol.validation import check_request

__all__ = ["GatewayEngine", "GatewayFacts"]

BEAT_NS = 1_000_000_000
MANAGER_BEATS_MISSED_MAX = 3
_NEVER_FORWARDED = (*NOTIFICATION_PREFIXES, b"PROBE:", HEARTBEAT)
_NEVER_PUBLISHED = (DEMAND_PREFIX, b"OUTCOME:", b"PROBE:")
_NEVER_OF_INGESTORS = (*_NEVER_FORWARDED, *_NEVER_PUBLISHED)
_PASSED_MAX = 100_000
_FAST_PATH_IDS = frozenset(channel_types(Channel.FAST_PATH))
_FAST_KIND_OF = {MessageType.TICK: b"tick", MessageType.GAP: b"gap", MessageType.HEARTBEAT: b"heartbeat"}
_MARKET_IDS = frozenset(channel_types(Channel.MARKET_DATA))
_MARKET_ID_BYTES = bytes(sorted(_MARKET_IDS))
_REPLY_IDS = frozenset(channel_types(Channel.CLIENT_REPLY))


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """What the gateway tells about itself and its surroundings.

    Attributes:
        relay_epoch: random for each start.
        source_id: name in its beats.
        catalog_uri, catalog_name, warehouse, object_store_endpoint: where clients find the tables; never secrets.
        address: of the TCP transport, as a client reaches it.
        broadcast_name, host_id: of the transport by shared memory; empty where there is none.
    """

    relay_epoch: int
    source_id: str
    catalog_uri: str = ""
    catalog_name: str = ""
    warehouse: str = ""
    object_store_endpoint: str = ""
    address: str = ""
    broadcast_name: str = ""
    host_id: str = ""

    def transports(self) -> list[common_pb2.Transport]:
        """Return the ways to market data, the one that is always there first."""
        ways = [common_pb2.Transport(kind=common_pb2.Transport.TCP, address=self.address)]
        if self.broadcast_name:
            shared = common_pb2.Transport(kind=common_pb2.Transport.SHM, host_id=self.host_id)
            shared.address, shared.record_versions[:] = self.broadcast_name, [VERSION, SBE_VERSION]
            ways.append(shared)
        return ways


class GatewayEngine:
    """The gateway's state machine; one call for each message or tick, with the time.

    Args:
        facts: what probes are answered with.
        limits: bounds on a client's request.
        count: called with a counter's name for each event.
    """

    def __init__(self, facts: GatewayFacts, limits: EnvelopeLimits, count: Callable[[str], None]) -> None:
        self._facts, self._limits, self._count = facts, limits, count
        self._stamper = Stamper(facts.relay_epoch)
        self._manager_heard_ns: int | None = None
        self._beat_due_ns = 0
        self._upstream = UpstreamTopics()
        self._passed: dict[bytes, int] = {}
        self._fast_passed: dict[bytes, int] = {}
        self.in_flight = 0

    @property
    def relay_epoch(self) -> int:
        """Of this start."""
        return self._facts.relay_epoch

    def start(self, *, is_socket_asked: bool = False) -> list[Command]:
        """Return what to do before the first message: notification topics are always subscribed upstream.

        Args:
            is_socket_asked: whether the loop can tell if anybody holds a topic, and answers ``Recheck``.
        """
        self._upstream.is_socket_asked = is_socket_asked
        return [Upstream(prefix, on=True) for prefix in NOTIFICATION_PREFIXES]

    def manager_available(self, now_ns: int) -> bool:
        """Return whether the manager has beaten within three intervals."""
        heard_ns = self._manager_heard_ns
        return heard_ns is not None and now_ns - heard_ns <= MANAGER_BEATS_MISSED_MAX * BEAT_NS

    def on_request(self, frames: list[bytes], now_ns: int) -> list[Command]:
        """Handle one message of a client: routing frames, version, body."""
        message = None
        try:
            envelope = decode(frames, Channel.CLIENT_REQUEST, limits=self._limits)
            message = envelope.message
            changed = check_request(message)
        except EnvelopeError as error:
            self._count(f"rejected.{error.reason}")
            return [SendToClient((*reply_routing(frames), *refusal(error, None)))]
        except PeerError as error:
            self._count(f"rejected.{RejectReason.INVALID_FIELD}")
            return [SendToClient((*envelope.routing, *refusal(error, message)))]
        if isinstance(message, request_pb2.Probe):
            self._count("probes.answered")
            return self._probe(envelope.routing, message, now_ns)
        otherwise = SendToClient((*envelope.routing, *unavailable(message)))
        if not self.manager_available(now_ns):
            self._count("requests.unavailable")
            return [otherwise]
        self._count("requests.forwarded")
        self.in_flight += 1
        body = encode(message)[1] if changed else envelope.body
        return [SendToManager((*envelope.routing, VERSION_FRAME, body), otherwise)]

    def on_reply(self, frames: list[bytes]) -> list[Command]:
        """Handle one reply of the manager; its routing frames lead to the client."""
        if len(frames) < 3 or frames[-2] != VERSION_FRAME or frames[-1][:1] == b"" or frames[-1][0] not in _REPLY_IDS:
            self._count(f"rejected.{RejectReason.FORGED_REPLY}")
            return []
        self.in_flight = max(0, self.in_flight - 1)
        self._count("replies.forwarded")
        return [SendToClient(tuple(frames))]

    def passes_published(self, topic: bytes, version: bytes, type_id: int, *, now_ns: int) -> bool:
        """Judge one message of the manager's publisher, and hear its beats; return whether it goes to subscribers."""
        if topic in self._passed and version == VERSION_FRAME and type_id in _MARKET_IDS:
            return True
        reason = _published_fault(version, type_id, _MARKET_IDS)
        if reason is None and topic == MANAGER_HEARTBEAT:
            self._manager_heard_ns = now_ns
            return False
        is_forbidden = topic.startswith(_NEVER_PUBLISHED) or topic == HEARTBEAT or len(topic) > TOPIC_BYTES_MAX
        if reason is None and is_forbidden:
            reason = RejectReason.WRONG_TOPIC
        if reason is not None:
            self._count(f"rejected.{reason}")
            return False
        if b"|" in topic:
            _remember(self._passed, topic, type_id)
        return True

    def passes_fast_path(self, topic: bytes, version: bytes, type_id: int) -> bool:
        """Judge one message of an ingestor's publisher: only ticks, gaps and beats of a ticker go to subscribers."""
        if self._fast_passed.get(topic) == type_id and version == VERSION_FRAME:
            return True
        reason = _published_fault(version, type_id, _FAST_PATH_IDS)
        if reason is None:
            ticker, bar, kind = topic.rpartition(b"|")
            is_of_ticker = bar and b"." in ticker and kind == _FAST_KIND_OF[MessageType(type_id)]
            # What begins like a private topic would reach its subscribers, for a subscription is a prefix.
            if not is_of_ticker or topic.startswith(_NEVER_OF_INGESTORS) or len(topic) > TOPIC_BYTES_MAX:
                reason = RejectReason.WRONG_TOPIC
        if reason is not None:
            self._count(f"rejected.{reason}")
            return False
        _remember(self._fast_passed, topic, type_id)
        return True

    def published_types(self, topic: bytes) -> bytes:
        """Return the type ids that pass on a topic of the manager's publisher without being asked about again."""
        return _MARKET_ID_BYTES if topic in self._passed else b""

    def fast_path_types(self, topic: bytes) -> bytes:
        """Return the same for a topic of the fast path: ticks, gaps or beats."""
        type_id = self._fast_passed.get(topic)
        return b"" if type_id is None else bytes((type_id,))

    def on_misshaped(self, frames: list[bytes]) -> None:
        """Count a published message that is not topic, version and a body."""
        if len(frames) != 3:
            reason = RejectReason.TOO_FEW_FRAMES if len(frames) < 3 else RejectReason.TOO_MANY_FRAMES
        else:
            reason = RejectReason.WRONG_VERSION if frames[1] != VERSION_FRAME else RejectReason.EMPTY_FRAME
        self._count(f"rejected.{reason}")

    def on_subscription(self, frames: list[bytes]) -> tuple[bool | None, bytes, list[Command]]:
        """Judge one message of a subscriber before the next one is received.

        Returns:
            (True to subscribe, False to unsubscribe, None to do nothing; the topic; what to do upstream).
        """
        head = frames[0][:1]
        if len(frames) != 1 or head not in (b"\x00", b"\x01"):
            self._count(f"rejected.{RejectReason.PUSHED_INTO_XPUB}")
            return None, b"", []
        topic = frames[0][1:]
        if is_refused_subscription(topic):
            if head == b"\x01":
                self._count(f"rejected.{RejectReason.REFUSED_SUBSCRIPTION}")
            return None, topic, []
        self._count("subscriptions.added" if head == b"\x01" else "subscriptions.removed")
        is_market = not wanted_topic(topic).startswith(_NEVER_FORWARDED)
        if head == b"\x01":
            return True, topic, self._upstream.subscribed(topic) if is_market else []
        return False, topic, self._upstream.unsubscribed(topic) if is_market else []

    def on_held(self, topic: bytes, *, is_held: bool, is_demanded: bool = False, is_sbe: bool = False) -> list[Command]:
        """Take the answer to :class:`Recheck`: whether anybody holds a topic, and whether by ``@`` and by ``@@``."""
        return self._upstream.answered(topic, is_held=is_held, is_demanded=is_demanded, is_sbe=is_sbe)

    @property
    def topics_upstream(self) -> int:
        """How many market topics are subscribed upstream."""
        return len(self._upstream)

    def on_tick(self, now_ns: int) -> list[Command]:
        """Return the relay's beat when it is due."""
        if now_ns < self._beat_due_ns:
            return []
        self._beat_due_ns = now_ns + BEAT_NS
        beat = market_pb2.Heartbeat(
            source=market_pb2.Heartbeat.RELAY,
            source_id=self._facts.source_id,
            epoch=self._facts.relay_epoch,
            sent_at=now_ns,
            state=market_pb2.Heartbeat.UP,
        )
        version, body = encode(beat)
        return [Publish((HEARTBEAT, version, self._stamper.stamp(HEARTBEAT, body, now_ns=now_ns)))]

    def _probe(self, routing: Sequence[bytes], probe: request_pb2.Probe, now_ns: int) -> list[Command]:
        facts = self._facts
        reply = request_pb2.ProbeReply(
            nonce=probe.nonce,
            relay_epoch=facts.relay_epoch,
            protocol_versions=[VERSION],
            manager_available=self.manager_available(now_ns),
            catalog_uri=facts.catalog_uri,
            catalog_name=facts.catalog_name,
            warehouse=facts.warehouse,
            object_store_endpoint=facts.object_store_endpoint,
            transports=facts.transports(),
            server_time=now_ns,
        )
        return [
            Publish((probe_topic(probe.nonce).encode(), *encode(probe))),
            SendToClient((*routing, *encode(reply))),
        ]


def _published_fault(version: bytes, type_id: int, allowed_ids: frozenset[int]) -> RejectReason | None:
    if version != VERSION_FRAME:
        return RejectReason.WRONG_VERSION
    return None if type_id in allowed_ids else RejectReason.WRONG_CHANNEL


def _remember(passed: dict[bytes, int], topic: bytes, type_id: int) -> None:
    """Note a topic that was judged in full, so that the next message of it costs one look."""
    if len(passed) >= _PASSED_MAX:
        passed.clear()
    passed[topic] = type_id
