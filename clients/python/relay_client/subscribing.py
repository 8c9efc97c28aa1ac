"""What a call of ``subscribe`` asks for, checked."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from relay.errors import PeerError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.tickers import check_exchange
from relay.protocol.topics import MarketTopic, StatisticsTopic, parse_market_topic
from relay_client.arguments import flag, items, whole
from relay_client.arguments import text as checked_text
from relay_client.buffer import BufferPolicy
from relay_client.engine.live_values import FeedRules
from relay_client.settings import ClientSettings
from relay_client.times import TimeLike, parse_time_ns

__all__ = [
    "BUFFER_MAX",
    "LiveTopic",
    "NumberKind",
    "Order",
    "Plan",
    "Policy",
    "TopicsLike",
    "check_choice",
    "new_plan",
    "plan_of",
    "topics_of",
]

BUFFER_MAX = 100_000
_BUFFER_LIMIT = 100_000_000
_TOPICS_MAX = 100_000
_MS = 1_000_000

TopicsLike = str | Iterable[str]
LiveTopic = MarketTopic | StatisticsTopic
Order = Literal["arrival", "strict"]
NumberKind = Literal["decimal", "scaled"]
Policy = Literal["drop_oldest", "drop_newest", "raise"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked call of ``subscribe``."""

    topics: tuple[LiveTopic, ...]
    start_ns: int | None
    is_strict: bool
    is_scaled: bool
    buffer_max: int
    policy: BufferPolicy
    is_conflating: bool
    rules: FeedRules

    @property
    def tickers(self) -> list[str]:
        """Each ticker once."""
        return list(dict.fromkeys(str(topic.ticker) for topic in self.topics if isinstance(topic, MarketTopic)))

    @property
    def exchanges(self) -> list[str]:
        """Exchanges whose statistics are asked for."""
        return [topic.exchange for topic in self.topics if isinstance(topic, StatisticsTopic)]


def new_plan(
    topics: TopicsLike,
    *,
    start: TimeLike | None,
    order: Order,
    numbers: NumberKind,
    buffer_max: int,
    policy: Policy,
    conflate: bool,
    repair: bool,
    settings: ClientSettings,
) -> Plan:
    """Return the checked call.

    Raises:
        SettingsError: with the code of the argument that is wrong.
    """
    check_choice("order", order, ("arrival", "strict"))
    check_choice("numbers", numbers, ("decimal", "scaled"))
    check_choice("policy", policy, tuple(BufferPolicy))
    buffer_max = whole("buffer_max", buffer_max, low=1, high=_BUFFER_LIMIT)
    conflate, repair = flag("conflate", conflate), flag("repair", repair)
    if conflate and (start is not None or order == "strict"):
        raise SettingsError("expected conflate without start and strict order: it keeps only the newest of each topic")
    rules = FeedRules(
        repair_ns=settings.repair_timeout_ms * _MS,
        order_wait_ns=settings.order_wait_ms * _MS,
        silence_ns=settings.feed_silence_ms * _MS,
        # Of conflated feeds nobody wants what is past.
        is_repairing=repair and not conflate and settings.repair_timeout_ms > 0,
    )
    plan = Plan(
        topics=(),
        start_ns=None,
        is_strict=order == "strict",
        is_scaled=numbers == "scaled",
        buffer_max=buffer_max,
        policy=BufferPolicy(policy),
        is_conflating=conflate,
        rules=rules,
    )
    return plan_of(topics, start=start, like=plan)


def plan_of(topics: TopicsLike, *, start: TimeLike | None, like: Plan) -> Plan:
    """Return a plan of other topics and another start.

    Raises:
        SettingsError: a topic cannot be subscribed, or not from ``start``.
    """
    parsed = topics_of(topics)
    if start is None:
        return replace(like, topics=parsed, start_ns=None)
    start_ns = parse_time_ns(start, what="start")
    if start_ns > time.time_ns():
        raise SettingsError("expected a start in the past, got one in the future", code=ErrorCode.INVALID_TIME)
    other = next((topic for topic in parsed if topic.kind != "tick"), None)
    if other is not None or like.is_conflating:
        raise SettingsError(
            f"expected start with topics TICKER|tick, got {other}; bars of the past are read by history()"
            if other is not None
            else "expected conflate without start: it keeps only the newest of each topic",
            code=ErrorCode.INVALID_TOPIC,
        )
    return replace(like, topics=parsed, start_ns=start_ns)


def topics_of(topics: TopicsLike) -> tuple[LiveTopic, ...]:
    """Return topics, each once; a bare ticker means its ticks.

    Raises:
        SettingsError: INVALID_TOPIC, or what is wrong with the ticker.
    """
    given = [topics] if isinstance(topics, str) else items("topics", topics, code=ErrorCode.INVALID_TOPIC)
    texts = [checked_text("a topic", item, code=ErrorCode.INVALID_TOPIC) for item in given]
    if not 1 <= len(texts) <= _TOPICS_MAX:
        raise SettingsError(f"expected 1 to {_TOPICS_MAX} topics, got {len(texts)}", code=ErrorCode.INVALID_TOPIC)
    parsed: dict[str, LiveTopic] = {}
    for text in texts:
        try:
            topic = _parsed(text)
        except PeerError as error:
            raise SettingsError(str(error), code=error.code) from error
        if topic.kind == "heartbeat":
            raise SettingsError(
                f"expected a topic of data, got {text!r}; beats come by themselves, as StateChanged events",
                code=ErrorCode.INVALID_TOPIC,
            )
        parsed[str(topic)] = topic
    return tuple(parsed.values())


def _parsed(text: str) -> LiveTopic:
    exchange, _, kind = text.partition("|")
    if kind == "ticker24h":
        return StatisticsTopic(check_exchange(exchange))
    return parse_market_topic(text if "|" in text else f"{text}|tick")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise when an argument is none of its choices.

    Raises:
        SettingsError: names them.
    """
    if not isinstance(value, str) or value not in choices:
        raise SettingsError(f"expected {name} to be {' or '.join(map(repr, map(str, choices)))}, got {value!r}")
