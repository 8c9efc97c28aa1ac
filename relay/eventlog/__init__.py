"""The durable event log behind a port; Kafka's client has its one home here."""

from relay.eventlog.port import (
    CONTROL_TOPIC,
    HISTORY_TOPIC,
    SYMBOL_TOPIC,
    TICK_TOPIC,
    TICKER_STATS_TOPIC,
    TRIGGER_TOPIC,
    EventLog,
    LogColumns,
    LogFollower,
    LogIdentity,
    LogPosition,
    LogRecord,
    TopicSpec,
    partition_of,
    platform_topics,
)

__all__ = [
    "CONTROL_TOPIC",
    "HISTORY_TOPIC",
    "SYMBOL_TOPIC",
    "TICKER_STATS_TOPIC",
    "TICK_TOPIC",
    "TRIGGER_TOPIC",
    "EventLog",
    "LogColumns",
    "LogFollower",
    "LogIdentity",
    "LogPosition",
    "LogRecord",
    "TopicSpec",
    "partition_of",
    "platform_topics",
]
