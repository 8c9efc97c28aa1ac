"""Topics of the publish side, and which of them are private.

ZeroMQ matches prefixes, so private topics end in a 36-character UUID: none is a prefix of another, and
every proper prefix of one is refused as a subscription.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.periods import check_period
from relay.protocol.tickers import Ticker, parse_ticker

__all__ = [
    "DEMAND_PREFIX",
    "HEARTBEAT",
    "MANAGER_HEARTBEAT",
    "METADATA_UPDATE",
    "NOTIFICATION_PREFIXES",
    "RING_TOPIC",
    "SBE_DEMAND_PREFIX",
    "TOPIC_BYTES_MAX",
    "MarketTopic",
    "StatisticsTopic",
    "TriggerTopic",
    "has_sbe_form",
    "is_broadcast_topic",
    "is_refused_subscription",
    "is_unstamped",
    "is_uuid_text",
    "market_topic",
    "outcome_topic",
    "parse_market_topic",
    "probe_topic",
    "request_topic",
    "response_topic",
    "statistics_topic",
    "trigger_topic",
    "wanted_topic",
]

TOPIC_BYTES_MAX = 200
HEARTBEAT = b"HEARTBEAT"
MANAGER_HEARTBEAT = b"HEARTBEAT:MANAGER"
METADATA_UPDATE = b"METADATA_UPDATE"
DEMAND_PREFIX = b"@"
SBE_DEMAND_PREFIX = b"@@"
"""Demand of a topic whose messages shall be written in SBE (0018)."""

_RESPONSE = b"RESPONSE:"
_HISTORY_READY = b"HISTORY_READY:"
_CEP = b"CEP:"
_PROBE = b"PROBE:"
_OUTCOME = b"OUTCOME:"
RING_TOPIC = b"RING:"
"""What a relay subscribes at publishers to be written into its memory (0013); no client may."""
_INTERNAL = (_OUTCOME, RING_TOPIC)
_NO_FIRST_BYTES = b"\xff@"
_PRIVATE = (_RESPONSE, _HISTORY_READY, _CEP, _PROBE)
NOTIFICATION_PREFIXES = (_RESPONSE, _HISTORY_READY, _CEP, METADATA_UPDATE, MANAGER_HEARTBEAT)
"""What the relay always subscribes upstream, so that the subscription barrier needs one hop only."""

_NEVER_BROADCAST = (*NOTIFICATION_PREFIXES, _PROBE, _OUTCOME, HEARTBEAT, DEMAND_PREFIX)

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_UUID_BYTES = re.compile(_UUID.pattern.encode())
_KINDS = ("tick", "ohlc", "gap", "market", "heartbeat")
_SBE_KINDS = (b"tick", b"ohlc", b"gap", b"heartbeat")


@dataclass(frozen=True, slots=True)
class MarketTopic:
    """``{ticker}|{kind}``, with the period for bars (``{ticker}|ohlc:60``)."""

    ticker: Ticker
    kind: str
    period_seconds: int | None = None

    def __str__(self) -> str:
        return f"{self.ticker}|{self.kind}" + (f":{self.period_seconds}" if self.period_seconds else "")


@dataclass(frozen=True, slots=True)
class TriggerTopic:
    """``CEP:{trigger_id}``."""

    trigger_id: str
    kind: ClassVar[str] = "trigger"

    def __str__(self) -> str:
        return trigger_topic(self.trigger_id)


@dataclass(frozen=True, slots=True)
class StatisticsTopic:
    """``{exchange}|ticker24h``."""

    exchange: str

    @property
    def kind(self) -> str:
        """What it carries."""
        return "ticker24h"

    def __str__(self) -> str:
        return statistics_topic(self.exchange)


def is_uuid_text(text: str) -> bool:
    """Return whether the text is a UUID in its 36-character lower-case form."""
    return _UUID.fullmatch(text) is not None


def response_topic(client_id: str) -> str:
    """Topic of a client's notifications."""
    return f"RESPONSE:{client_id}"


def request_topic(request_id: str) -> str:
    """Topic of one request's notifications, used when no client_id was given."""
    return f"HISTORY_READY:{request_id}"


def trigger_topic(trigger_id: str) -> str:
    """Topic of a trigger's events."""
    return f"CEP:{trigger_id}"


def probe_topic(nonce: str) -> str:
    """Topic on which the relay sends a probe back."""
    return f"PROBE:{nonce}"


def outcome_topic(job_id: str) -> str:
    """Topic of the Spark job's hint to the manager; never published."""
    return f"OUTCOME:{job_id}"


def market_topic(ticker: Ticker | str, kind: str, *, period_seconds: int | None = None) -> str:
    """Topic of market data."""
    return f"{ticker}|{kind}" + (f":{period_seconds}" if period_seconds else "")


def statistics_topic(exchange: str) -> str:
    """Topic of an exchange's 24 h statistics."""
    return f"{exchange}|ticker24h"


def parse_market_topic(text: str) -> MarketTopic:
    """Parse an exact market topic.

    Raises:
        PeerError: INVALID_TOPIC (or INVALID_TICKER, INVALID_PERIOD), with the expected form.
    """
    ticker_text, bar, kind_text = text.partition("|")
    kind, colon, period_text = kind_text.partition(":")
    if not bar or kind not in _KINDS or (kind == "ohlc") != bool(colon):
        raise PeerError(
            f"expected a topic TICKER|tick, TICKER|ohlc:SECONDS, TICKER|gap or TICKER|market, got {text[:200]!r}",
            code=ErrorCode.INVALID_TOPIC,
        )
    ticker = parse_ticker(ticker_text)
    if not colon:
        return MarketTopic(ticker, kind)
    if not period_text.isascii() or not period_text.isdigit() or period_text.startswith("0"):
        raise PeerError(f"expected whole seconds after ohlc:, got {period_text!r}", code=ErrorCode.INVALID_PERIOD)
    return MarketTopic(ticker, kind, check_period(int(period_text)))


def is_broadcast_topic(topic: bytes) -> bool:
    """Return whether a topic's messages may go into shared memory: market data only, nothing private."""
    return b"|" in topic and not topic.startswith(_NEVER_BROADCAST)


def has_sbe_form(topic: bytes) -> bool:
    """Return whether the messages of a topic can be written in SBE."""
    return is_broadcast_topic(topic) and topic.rpartition(b"|")[2].partition(b":")[0] in _SBE_KINDS


def wanted_topic(subscription: bytes) -> bytes:
    """Return the topic that a subscription demands: without ``@`` or ``@@``."""
    prefix = SBE_DEMAND_PREFIX if subscription.startswith(SBE_DEMAND_PREFIX) else DEMAND_PREFIX
    return subscription.removeprefix(prefix)


def is_refused_subscription(topic: bytes) -> bool:
    """Return whether a subscription would overhear private topics (or is not allowed at all).

    Refused: the empty one, one that begins with 0xFF, one over ``TOPIC_BYTES_MAX``, every proper prefix of a
    private topic, one that begins like a private topic but does not end in a UUID, and internal topics; the same behind
    ``@`` and ``@@``, where a private topic has no place at all.
    """
    wanted = wanted_topic(topic)
    if len(topic) > TOPIC_BYTES_MAX or not wanted or wanted[0] in _NO_FIRST_BYTES or wanted.startswith(_INTERNAL):
        return True
    for prefix in _PRIVATE:
        if prefix.startswith(wanted):
            return True
        if wanted.startswith(prefix):
            return wanted != topic or _UUID_BYTES.fullmatch(wanted[len(prefix) :]) is None
    return False


def is_unstamped(topic: bytes) -> bool:
    """Return whether messages of a topic carry no publish stamp (a counter for each request would grow for ever)."""
    return topic.startswith((_RESPONSE, _HISTORY_READY, _PROBE))
