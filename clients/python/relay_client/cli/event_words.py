"""What ``relay watch`` says of an event."""

from __future__ import annotations

from dataclasses import fields

from relay.protocol.times import format_ns
from relay_client.engine.live_values import FeedEvent, Gap

__all__ = ["event_words", "is_before_all"]


def is_before_all(event: object) -> bool:
    """Return whether an event is a gap that is no loss: the day before the ticker's first recorded trade ever."""
    return isinstance(event, Gap) and event.cause == "DISCONNECT" and not event.from_trade_id


def event_words(event: FeedEvent) -> str:
    """Return a line; empty for what the next event says better.

    The time before the first recording is told as OPEN, then as UNFILLABLE at once: one plain line is enough.
    """
    if not isinstance(event, Gap) or not is_before_all(event):
        return _line(event)
    if event.state == "OPEN":
        return ""
    return f"{event.ticker}: not recorded before {format_ns(event.to_ns)}: nothing was lost"


def _line(event: FeedEvent) -> str:
    """Return what it is, then each of its values that says something."""
    values = [(one.name, getattr(event, one.name)) for one in fields(event)]
    told = [f"{name} {_shown(name, value)}" for name, value in values if value not in ("", None) and name != "text"]
    text = getattr(event, "text", "")
    return "  ".join([type(event).__name__, *told, *([text] if text else [])])


def _shown(name: str, value: object) -> str:
    return format_ns(value) if name.endswith("_ns") and isinstance(value, int) and value else str(value)
