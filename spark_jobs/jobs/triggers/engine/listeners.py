"""What a source knows of the triggers that listen to it."""

from __future__ import annotations

from typing import Protocol

from spark_jobs.jobs.triggers.engine.values import Item, Outcome

__all__ = ["Hits", "Listener", "Listeners"]


class Listener(Protocol):
    """A trigger as its sources see it.

    Attributes:
        start_ns: events before it do not exist for the trigger.
        fresh: signals that a source has to judge alone for now, and whether they held at the tick before.
        is_watching: whether an event on which no signal holds matters now.
    """

    start_ns: int
    fresh: dict[int, bool]
    is_watching: bool

    @property
    def trigger_id(self) -> str:
        """Id of the trigger."""

    def take(self, item: Item, mask: int, out: list[Outcome]) -> None:
        """Something happened; the mask says which signals hold."""

    def settle(self, out: list[Outcome]) -> None:
        """A source has gone on in time."""


Hits = dict[Listener, int]
"""Which signals hold on an event, by trigger."""


class Listeners:
    """Triggers of one source beyond those that wait for a condition."""

    def __init__(self) -> None:
        self._strict: dict[str, Listener] = {}
        self._timed: dict[str, Listener] = {}

    def add(self, listener: Listener, *, is_strict: bool, is_timed: bool) -> None:
        """Add one that has to see every event, or to be told of time."""
        if is_strict:
            self._strict[listener.trigger_id] = listener
        if is_timed:
            self._timed[listener.trigger_id] = listener

    def remove(self, listener: Listener) -> None:
        """Take one out."""
        self._strict.pop(listener.trigger_id, None)
        self._timed.pop(listener.trigger_id, None)

    def is_watched(self) -> bool:
        """Return whether an event matters to anybody although no signal holds on it."""
        return any(listener.is_watching for listener in self._strict.values())

    @staticmethod
    def hand(item: Item, hits: Hits, out: list[Outcome]) -> None:
        """Hand an event to those on whose signals it is a hit."""
        for listener in sorted(hits, key=_id_of) if len(hits) > 1 else hits:
            listener.take(item, hits[listener], out)

    def show(self, item: Item, hits: Hits, out: list[Outcome]) -> None:
        """Show an event to those that have to see every one and had no hit on it."""
        for listener in self._strict.values():
            if listener.is_watching and listener not in hits:
                listener.take(item, 0, out)

    def settle(self, out: list[Outcome]) -> None:
        """Tell of time."""
        for listener in list(self._timed.values()):
            listener.settle(out)


def _id_of(listener: Listener) -> str:
    return listener.trigger_id
