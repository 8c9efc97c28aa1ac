"""Which market topics the relay has subscribed upstream: the first holder subscribes, the last one's leave ends it.

Adding and subtracting would leak: two subscriptions of one topic on one socket surface one unsubscription only. So
whether anybody still holds a topic is asked of the socket itself where it can tell, and counted where it cannot;
a count may hold a topic too long, never lose one.
"""

from __future__ import annotations

from relay.engine.commands import Broadcast, Command, Recheck, Upstream
from relay.protocol.topics import (
    DEMAND_PREFIX,
    SBE_DEMAND_PREFIX,
    has_sbe_form,
    is_broadcast_topic,
    wanted_topic,
)

__all__ = ["UpstreamTopics"]


class UpstreamTopics:
    """Topics forwarded upstream, and those of them that some client takes by broadcast.

    ``@X`` holds ``X`` like ``X`` itself, and has its messages broadcast; so does ``@@X``, in SBE.

    Attributes:
        is_socket_asked: whether the loop answers :class:`Recheck`; else holders are counted. Set before the first use.
    """

    def __init__(self, *, is_socket_asked: bool = False) -> None:
        self.is_socket_asked = is_socket_asked
        self._forwarded: set[bytes] = set()
        self._broadcast: set[bytes] = set()
        self._broadcast_sbe: set[bytes] = set()
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._forwarded)

    def subscribed(self, topic: bytes) -> list[Command]:
        """A peer subscribed."""
        wanted = wanted_topic(topic)
        commands: list[Command] = []
        if not self.is_socket_asked:
            self._counts[topic] = self._counts.get(topic, 0) + 1
        if topic.startswith(SBE_DEMAND_PREFIX):
            if has_sbe_form(wanted):
                self._broadcast_sbe.add(wanted)
                commands.append(Broadcast(wanted, on=True, is_sbe=True))
        elif topic.startswith(DEMAND_PREFIX) and wanted not in self._broadcast and is_broadcast_topic(wanted):
            self._broadcast.add(wanted)
            commands.append(Broadcast(wanted, on=True))
        if wanted not in self._forwarded:
            self._forwarded.add(wanted)
            commands.append(Upstream(wanted, on=True))
        return commands

    def unsubscribed(self, topic: bytes) -> list[Command]:
        """A peer unsubscribed, or vanished."""
        wanted = wanted_topic(topic)
        if wanted not in self._forwarded:
            return []
        if self.is_socket_asked:
            return [Recheck(wanted)]
        self._counts[topic] = max(0, self._counts.get(topic, 0) - 1)
        plain, by_demand, by_sbe = (self._counts.get(name, 0) > 0 for name in _names(wanted))
        return self.answered(wanted, is_held=plain or by_demand or by_sbe, is_demanded=by_demand, is_sbe=by_sbe)

    def answered(
        self, topic: bytes, *, is_held: bool, is_demanded: bool = False, is_sbe: bool = False
    ) -> list[Command]:
        """The socket said whether anybody holds a topic, and whether somebody does by ``@`` and by ``@@``."""
        commands: list[Command] = []
        if not is_sbe and topic in self._broadcast_sbe:
            self._broadcast_sbe.discard(topic)
            commands.append(Broadcast(topic, on=False, is_sbe=True))
        if not is_demanded and topic in self._broadcast:
            self._broadcast.discard(topic)
            commands.append(Broadcast(topic, on=False))
        if not is_held and topic in self._forwarded:
            self._forwarded.discard(topic)
            for name in _names(topic):
                self._counts.pop(name, None)
            commands.append(Upstream(topic, on=False))
        return commands


def _names(topic: bytes) -> tuple[bytes, bytes, bytes]:
    """Under which a topic is held."""
    return topic, DEMAND_PREFIX + topic, SBE_DEMAND_PREFIX + topic
