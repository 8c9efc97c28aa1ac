"""Type ids by channel. Ids are read per channel: 0x20 and 0x21 differ between work and user events."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType

from google.protobuf.message import Message

from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2, user_event_pb2, work_pb2

__all__ = [
    "RETIRED_IDS",
    "SBE_IDS",
    "SYMBOL_DEFINITION_ID",
    "Channel",
    "MessageType",
    "UserEventId",
    "channel_types",
    "type_id_of",
]


class MessageType(IntEnum):
    """Type ids of every channel but the user events."""

    DATA_REQUEST = 0x01
    INGESTOR_CONTROL = 0x03
    TICK = 0x04
    OHLC = 0x05
    MARKET = 0x06
    CEP_TRIGGER_REQUEST = 0x09
    CEP_TRIGGER_ACK = 0x0A
    CEP_TRIGGER_EVENT = 0x0B
    OHLC_BATCH = 0x0C
    GAP = 0x0D
    TICKER_24H = 0x0E
    SUBMIT_HISTORICAL_REQUEST = 0x10
    SUBMIT_RESPONSE = 0x11
    HISTORY_READY = 0x12
    SYMBOL_METADATA_UPDATED = 0x13
    PROBE = 0x14
    PROBE_REPLY = 0x15
    REQUEST_STATUS_QUERY = 0x16
    REPLAY_REQUEST = 0x18
    REPLAY_RESPONSE = 0x19
    SYMBOL_QUERY = 0x1A
    SYMBOL_REPLY = 0x1B
    STATS_QUERY = 0x1C
    HEARTBEAT = 0x1E
    WORKER_READY = 0x20
    WORK_COMPLETE = 0x21
    WORK_HEARTBEAT = 0x22
    WORK_REJECT = 0x23
    BROKER_PING = 0x24
    WORK_STOP = 0x25


class UserEventId(IntEnum):
    """Type ids of the user-event channel."""

    USER_EVENT = 0x20
    EVENT_ACK = 0x21


RETIRED_IDS = frozenset({0x02, 0x07, 0x08})
"""DataResponse, OHLCRequest and Response: answered with UNSUPPORTED and counted, never reused."""

SBE_IDS = (MessageType.TICK, MessageType.OHLC, MessageType.GAP, MessageType.HEARTBEAT)
"""Messages that have a form in SBE, under their type ids as template ids (version 0x02)."""
SYMBOL_DEFINITION_ID = 0x100
"""Template id of what says a ticker's number; above every type id, which are single bytes."""


class Channel(StrEnum):
    """Where a message travels; the same id may mean another message elsewhere."""

    CLIENT_REQUEST = "client_request"
    CLIENT_REPLY = "client_reply"
    MARKET_DATA = "market_data"
    FAST_PATH = "fast_path"
    NOTIFICATION = "notification"
    WORK_TO_INGESTOR = "work_to_ingestor"
    WORK_TO_BROKER = "work_to_broker"
    EVENT_LOG = "event_log"
    USER_EVENT = "user_event"


_T = MessageType
_CLASSES: Mapping[int, type[Message]] = MappingProxyType(
    {
        _T.DATA_REQUEST: work_pb2.DataRequest,
        _T.INGESTOR_CONTROL: work_pb2.IngestorControl,
        _T.TICK: market_pb2.Tick,
        _T.OHLC: market_pb2.OHLC,
        _T.MARKET: market_pb2.Market,
        _T.CEP_TRIGGER_REQUEST: trigger_pb2.CEPTriggerRequest,
        _T.CEP_TRIGGER_ACK: trigger_pb2.CEPTriggerAck,
        _T.CEP_TRIGGER_EVENT: trigger_pb2.CEPTriggerEvent,
        _T.OHLC_BATCH: market_pb2.OHLCBatch,
        _T.GAP: market_pb2.Gap,
        _T.TICKER_24H: market_pb2.Ticker24h,
        _T.SUBMIT_HISTORICAL_REQUEST: request_pb2.SubmitHistoricalRequest,
        _T.SUBMIT_RESPONSE: request_pb2.SubmitResponse,
        _T.HISTORY_READY: request_pb2.HistoryReadyNotification,
        _T.SYMBOL_METADATA_UPDATED: market_pb2.SymbolMetadataUpdated,
        _T.PROBE: request_pb2.Probe,
        _T.PROBE_REPLY: request_pb2.ProbeReply,
        _T.REQUEST_STATUS_QUERY: request_pb2.RequestStatusQuery,
        _T.REPLAY_REQUEST: request_pb2.ReplayRequest,
        _T.REPLAY_RESPONSE: request_pb2.ReplayResponse,
        _T.SYMBOL_QUERY: request_pb2.SymbolQuery,
        _T.SYMBOL_REPLY: request_pb2.SymbolReply,
        _T.STATS_QUERY: request_pb2.StatsQuery,
        _T.HEARTBEAT: market_pb2.Heartbeat,
        _T.WORKER_READY: work_pb2.WorkerReady,
        _T.WORK_COMPLETE: work_pb2.WorkComplete,
        _T.WORK_HEARTBEAT: work_pb2.WorkHeartbeat,
        _T.WORK_REJECT: work_pb2.WorkReject,
        _T.BROKER_PING: work_pb2.BrokerPing,
        _T.WORK_STOP: work_pb2.WorkStop,
    }
)

_LOG_AND_MARKET = (_T.TICK, _T.OHLC, _T.MARKET, _T.CEP_TRIGGER_EVENT, _T.GAP, _T.TICKER_24H, _T.HEARTBEAT)
_PUBLISHED = (*_LOG_AND_MARKET, _T.HISTORY_READY, _T.SYMBOL_METADATA_UPDATED, _T.PROBE)
_IDS: Mapping[Channel, tuple[int, ...]] = MappingProxyType(
    {
        Channel.CLIENT_REQUEST: (
            _T.CEP_TRIGGER_REQUEST,
            _T.SUBMIT_HISTORICAL_REQUEST,
            _T.PROBE,
            _T.REQUEST_STATUS_QUERY,
            _T.REPLAY_REQUEST,
            _T.SYMBOL_QUERY,
            _T.STATS_QUERY,
        ),
        Channel.CLIENT_REPLY: (
            _T.CEP_TRIGGER_ACK,
            _T.TICKER_24H,
            _T.SUBMIT_RESPONSE,
            _T.HISTORY_READY,
            _T.PROBE_REPLY,
            _T.REPLAY_RESPONSE,
            _T.SYMBOL_REPLY,
        ),
        Channel.MARKET_DATA: _PUBLISHED,
        Channel.FAST_PATH: (_T.TICK, _T.GAP, _T.HEARTBEAT),
        Channel.NOTIFICATION: _PUBLISHED,
        Channel.WORK_TO_INGESTOR: (_T.DATA_REQUEST, _T.INGESTOR_CONTROL, _T.BROKER_PING, _T.WORK_STOP),
        Channel.WORK_TO_BROKER: (_T.WORKER_READY, _T.WORK_COMPLETE, _T.WORK_HEARTBEAT, _T.WORK_REJECT),
        Channel.EVENT_LOG: (*_LOG_AND_MARKET, _T.OHLC_BATCH, _T.DATA_REQUEST, _T.CEP_TRIGGER_REQUEST),
    }
)
_USER_EVENTS: Mapping[int, type[Message]] = MappingProxyType(
    {UserEventId.USER_EVENT: user_event_pb2.UserEvent, UserEventId.EVENT_ACK: user_event_pb2.EventAck}
)
_BY_CHANNEL: Mapping[Channel, Mapping[int, type[Message]]] = MappingProxyType(
    {channel: MappingProxyType({int(i): _CLASSES[i] for i in ids}) for channel, ids in _IDS.items()}
    | {Channel.USER_EVENT: _USER_EVENTS}
)
_ID_OF: Mapping[type[Message], int] = MappingProxyType(
    {cls: int(i) for i, cls in _CLASSES.items()} | {cls: int(i) for i, cls in _USER_EVENTS.items()}
)
ALL_IDS = frozenset(_CLASSES) | frozenset(_USER_EVENTS)


def channel_types(channel: Channel) -> Mapping[int, type[Message]]:
    """Return the type ids that a channel carries, with their message classes."""
    return _BY_CHANNEL[channel]


def type_id_of(message: Message) -> int:
    """Return the type id of a message object.

    Raises:
        KeyError: the class has no id of its own (it only travels inside others).
    """
    return _ID_OF[type(message)]
