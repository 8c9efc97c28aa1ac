"""Which market topics the relay has subscribed upstream: the first holder subscribes, the last one's leave ends it.

Adding and subtracting would leak: two subscriptions of one topic on one socket surface one unsubscription only. So
whether anybody still holds a topic is asked of the socket itself where it can tell, and counted where it cannot;
a count may hold a topic too long, never lose one.
"""

from __future__ import annotations

from relay.engine.commands import Command, Recheck, Upstream
from relay.protocol.topics import DEMAND_PREFIX

__all__ = ["UpstreamTopics"]


class UpstreamTopics:
    """Topics forwarded upstream. ``@X`` holds ``X`` like ``X`` itself.

    Attributes:
        is_socket_asked: whether the loop answers :class:`Recheck`; else holders are counted. Set before the first use.
    """

    def __init__(self, *, is_socket_asked: bool = False) -> None:
        self.is_socket_asked = is_socket_asked
        self._forwarded: set[bytes] = set()
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._forwarded)

    def subscribed(self, topic: bytes) -> list[Command]:
        """A peer subscribed."""
        wanted = topic.removeprefix(DEMAND_PREFIX)
        if not self.is_socket_asked:
            self._counts[wanted] = self._counts.get(wanted, 0) + 1
        if wanted in self._forwarded:
            return []
        self._forwarded.add(wanted)
        return [Upstream(wanted, on=True)]

    def unsubscribed(self, topic: bytes) -> list[Command]:
        """A peer unsubscribed, or vanished."""
        wanted = topic.removeprefix(DEMAND_PREFIX)
        if wanted not in self._forwarded:
            return []
        if self.is_socket_asked:
            return [Recheck(wanted)]
        left = self._counts[wanted] = self._counts[wanted] - 1
        return self.answered(wanted, is_held=left > 0)

    def answered(self, topic: bytes, *, is_held: bool) -> list[Command]:
        """The socket said whether anybody holds a topic."""
        if is_held or topic not in self._forwarded:
            return []
        self._forwarded.discard(topic)
        self._counts.pop(topic, None)
        return [Upstream(topic, on=False)]
