"""By which way market data come: the socket, or the relay's broadcast in shared memory, and how one takes over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import Enum

from relay.errors import SettingsError
from relay.protocol.envelope import SBE_VERSION
from relay.protocol.topics import DEMAND_PREFIX, SBE_DEMAND_PREFIX, has_sbe_form, is_broadcast_topic
from relay.protocol.v1 import common_pb2
from relay_client.engine.commands import (
    CloseBroadcast,
    Command,
    EndFeeds,
    OpenBroadcast,
    ReadBroadcast,
    Subscribe,
    Unsubscribe,
)

__all__ = ["LAPS_MAX", "LAP_WINDOW_NS", "Route"]

LAPS_MAX, LAP_WINDOW_NS = 3, 10_000_000_000
"""A client that is overtaken so often within so long is too slow for the broadcast: the socket's queues wait longer."""


class _Phase(Enum):
    """Where market data come from.

    ::

        TCP ──(opened)──► JOINING ──(in force)──► SHM ──(overtaken too often)──► LEAVING ──(in force)──► TCP
         ▲  topics        both: topics and        @topics                        both again
         │                @topics
         └── the relay is cut off, or its broadcast is of no use (from any phase)

    While both are subscribed messages come twice. What the barrier's echo follows on the socket was published before
    it, so that is where one way ends and the other begins, and the order stays what it was: JOINING takes them from the
    socket and leaves the broadcast unread until the echo; LEAVING drops them from the socket until the echo.
    """

    TCP = "tcp"
    JOINING = "joining"
    SHM = "shm"
    LEAVING = "leaving"


class Route:
    """The live topics of one client, and under which names the socket subscribes them.

    Args:
        choice: ``auto``: shared memory where it can be had; ``tcp``: never; ``shm``: an error where it cannot.
        is_sbe: whether topics that have a form in SBE are demanded in it, of a relay that announces it.
    """

    def __init__(self, choice: str, *, is_sbe: bool = False) -> None:
        self._choice, self._wants_sbe, self._is_sbe = choice, is_sbe, False
        self._phase = _Phase.TCP
        self._plain: dict[bytes, None] = {}
        self._demanded: dict[bytes, None] = {}
        self._offer: OpenBroadcast | None = None
        self._is_told = False
        self._refusal = "" if choice != "tcp" else "asked for"
        self._is_refused = False
        self._laps: deque[int] = deque()

    @property
    def transport(self) -> str:
        """By which way market data come now: ``tcp`` or ``shm``."""
        return "shm" if self._phase in (_Phase.SHM, _Phase.LEAVING) else "tcp"

    @property
    def encoding(self) -> str:
        """In which form topics that have one in SBE come now: ``protobuf`` or ``sbe``."""
        return "sbe" if self.transport == "shm" and self._is_sbe else "protobuf"

    @property
    def reason(self) -> str:
        """Why they come by ``tcp``; empty for ``shm``."""
        if self.transport == "shm":
            return ""
        if self._refusal:
            return self._refusal
        if self._is_told and self._offer is None:
            return "the relay offers no shared memory"
        return "shared memory is being joined" if self._offer is not None else "the relay has not answered yet"

    def is_muted(self, topic: bytes) -> bool:
        """Return whether a message of the socket is one that comes by the broadcast."""
        return topic in self._demanded and self.transport == "shm"

    @property
    def names(self) -> list[bytes]:
        """What is subscribed."""
        return [*self._plain, *map(self._demand_of, self._demanded)]

    def hold(self, topics: Sequence[bytes]) -> list[Command]:
        """Begin topics."""
        is_joined = self._phase in (_Phase.JOINING, _Phase.SHM)
        shared = [topic for topic in topics if is_joined and is_broadcast_topic(topic)]
        plain = [topic for topic in topics if not (is_joined and is_broadcast_topic(topic))]
        return [*self._demand(shared), *self._subscribe(plain)]

    def release(self, topics: Sequence[bytes]) -> list[Command]:
        """End topics; a broadcast of which nothing is wanted any more is left."""
        commands = [*self._unsubscribe(topics), *self._give_up(topics)]
        if self._phase is not _Phase.TCP and not self._shareable():
            commands += self._close()
        return commands

    def told(self, relay_epoch: int, transports: Iterable[common_pb2.Transport]) -> None:
        """Note what the relay offers."""
        shared = next((way for way in transports if way.kind == common_pb2.Transport.SHM), None)
        self._is_told = True
        self._offer = None if shared is None else self._offer_of(shared, relay_epoch)

    def join(self) -> list[Command]:
        """All subscriptions are in force, and what the relay offers is known: try the better way."""
        if self._phase is not _Phase.TCP or not self._shareable():
            return []
        if self._refusal:
            return self._end() if self._is_refused else []
        if self._offer is not None:
            return [self._offer]
        return self.on_refused("the relay offers no shared memory") if self._choice == "shm" else []

    def on_opened(self) -> list[Command]:
        """The broadcast is open: have it filled. A barrier has to follow."""
        self._phase = _Phase.JOINING
        # From here to the end of this broadcast: a demand is taken back by the name that it was made by.
        self._is_sbe = self._offer is not None and self._offer.is_sbe
        self._laps.clear()
        return self._demand(self._shareable())

    def on_refused(self, reason: str) -> list[Command]:
        """It could not be opened; it is not tried again before the relay's next start."""
        self._refusal, self._is_refused = reason, True
        return self._end()

    def on_in_force(self) -> list[Command]:
        """All that was subscribed is in force."""
        if self._phase is _Phase.JOINING:
            self._phase = _Phase.SHM
            return [ReadBroadcast(), *self._unsubscribe(list(self._demanded))]
        if self._phase is _Phase.LEAVING:
            return [*self._give_up(list(self._demanded)), *self._close()]
        return []

    def on_lapped(self, now_ns: int) -> list[Command]:
        """The relay has overtaken the reader; where commands are returned, a barrier has to follow."""
        self._laps.append(now_ns)
        while self._laps[0] < now_ns - LAP_WINDOW_NS:
            self._laps.popleft()
        is_joined = self._phase in (_Phase.JOINING, _Phase.SHM)
        if len(self._laps) < LAPS_MAX or self._choice == "shm" or not is_joined:
            return []
        self._refusal = f"it was overtaken {len(self._laps)} times within {LAP_WINDOW_NS // 10**9} s"
        self._phase = _Phase.LEAVING
        return self._subscribe([topic for topic in self._demanded if topic not in self._plain])

    def on_lost(self, reason: str, *, is_gone: bool = False) -> list[Command]:
        """The broadcast is of no use any more; what it held is lost. A barrier has to follow.

        Args:
            reason: in words.
            is_gone: because its relay has ended, which may start anew.
        """
        self._refusal, self._is_refused = reason, not is_gone
        return [*self._fall_back(), *([] if is_gone else self._end())]

    def on_cut(self) -> list[Command]:
        """The relay has started anew, and nothing that it told holds any more."""
        self._forget_offer()
        return self._fall_back()

    def on_fresh_sockets(self) -> list[Command]:
        """The sockets are new; all topics are plain again."""
        self._forget_offer()
        self._plain |= self._demanded
        self._demanded.clear()
        return self._close() if self._phase is not _Phase.TCP else []

    def _offer_of(self, shared: common_pb2.Transport, relay_epoch: int) -> OpenBroadcast:
        is_sbe = self._wants_sbe and SBE_VERSION in shared.record_versions
        return OpenBroadcast(shared.address, shared.host_id, relay_epoch, is_sbe=is_sbe)

    def _forget_offer(self) -> None:
        self._offer, self._is_told, self._is_refused = None, False, False
        self._refusal = "" if self._choice != "tcp" else self._refusal

    def _end(self) -> list[Command]:
        """End what may come by shared memory only."""
        if self._choice != "shm":
            return []
        reason = self._refusal
        text = f"expected market data by shared memory, as asked for, but {reason}; ask for transport auto or tcp"
        return [EndFeeds(SettingsError(text))]

    def _fall_back(self) -> list[Command]:
        if self._phase is _Phase.TCP:
            return []
        demanded = list(self._demanded)
        missing = [topic for topic in demanded if topic not in self._plain]
        return [*self._subscribe(missing), *self._give_up(demanded), *self._close()]

    def _close(self) -> list[Command]:
        self._phase = _Phase.TCP
        return [CloseBroadcast()]

    def _shareable(self) -> list[bytes]:
        return [topic for topic in (self._plain | self._demanded) if is_broadcast_topic(topic)]

    def _subscribe(self, topics: Sequence[bytes]) -> list[Command]:
        self._plain |= dict.fromkeys(topics)
        return [*map(Subscribe, topics)]

    def _unsubscribe(self, topics: Sequence[bytes]) -> list[Command]:
        return [*map(Unsubscribe, _taken(topics, self._plain))]

    def _demand(self, topics: Sequence[bytes]) -> list[Command]:
        self._demanded |= dict.fromkeys(topics)
        return [Subscribe(self._demand_of(topic)) for topic in topics]

    def _give_up(self, topics: Sequence[bytes]) -> list[Command]:
        return [Unsubscribe(self._demand_of(topic)) for topic in _taken(topics, self._demanded)]

    def _demand_of(self, topic: bytes) -> bytes:
        return (SBE_DEMAND_PREFIX if self._is_sbe and has_sbe_form(topic) else DEMAND_PREFIX) + topic


def _taken(topics: Sequence[bytes], held: dict[bytes, None]) -> list[bytes]:
    """Take topics out of those that are held; return the ones that were."""
    found = [topic for topic in topics if topic in held]
    for topic in found:
        del held[topic]
    return found
