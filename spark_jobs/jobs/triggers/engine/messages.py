"""Between the matcher's values and the messages of the wire."""

from __future__ import annotations

from relay.protocol.scaled import from_scaled, plain_text
from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.triggers.engine.values import Firing, Kind, Matched

__all__ = ["event_message"]


def event_message(firing: Firing) -> trigger_pb2.CEPTriggerEvent:
    """Return the message of a firing; it is not stamped yet."""
    return trigger_pb2.CEPTriggerEvent(
        trigger_id=firing.trigger_id,
        fired_at=firing.fired_at_ns,
        ticker=firing.matched[-1].item.ticker,
        matched=[_matched_message(matched) for matched in firing.matched],
        match_id=firing.match_id,
    )


def _matched_message(matched: Matched) -> trigger_pb2.MatchedEvent:
    step, item = matched
    message = trigger_pb2.MatchedEvent(step=step, timestamp=item.time_ns, ticker=item.ticker)
    if item.kind == Kind.TICK:
        message.trade_id = str(item.number)
    elif item.kind == Kind.BAR:
        message.period_seconds = item.number
    if item.price is not None:
        message.price = plain_text(from_scaled(item.price, item.price_decimals))
    if item.volume is not None:
        message.volume = plain_text(from_scaled(item.volume, item.volume_decimals))
    return message
