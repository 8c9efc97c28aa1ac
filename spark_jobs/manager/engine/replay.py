"""What a ReplayRequest means, and which log records answer it; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.envelope import VERSION
from relay.protocol.registry import MessageType
from relay.protocol.topics import MarketTopic, TriggerTopic, is_uuid_text, parse_market_topic
from relay.protocol.v1 import market_pb2, request_pb2, trigger_pb2

__all__ = ["REPLAY_BYTES_MAX", "ReplayCollector", "ReplayWanted", "read_replay"]

REPLAY_BYTES_MAX = 800_000
"""Of the records in one answer: a frame of the request path holds a megabyte."""
_LIMIT_DEFAULT, _LIMIT_MAX = 1_000, 5_000
_ID_OF = {
    "tick": MessageType.TICK,
    "gap": MessageType.GAP,
    "ohlc": MessageType.OHLC,
    "trigger": MessageType.CEP_TRIGGER_EVENT,
}
_DIGITS_MAX = 18
_STATUS = request_pb2.ReplayResponse
Live = market_pb2.Tick | market_pb2.Gap | market_pb2.OHLC | trigger_pb2.CEPTriggerEvent
_READ: dict[str, Callable[[bytes], Live]] = {
    "tick": market_pb2.Tick.FromString,
    "gap": market_pb2.Gap.FromString,
    "ohlc": market_pb2.OHLC.FromString,
    "trigger": trigger_pb2.CEPTriggerEvent.FromString,
}
_TRIGGER_PREFIX = "CEP:"


@dataclass(frozen=True, slots=True)
class ReplayWanted:
    """One replay, by exactly one of: sequences of an epoch, trade ids, exchange times.

    Attributes:
        first, last: sequences or trade ids, inclusive; times in nanoseconds, the end exclusive: of ticks and gaps the
            exchange's, of firings ``fired_at``, of bars when they were made (a revision is long after its bucket).
        cursor: of a replay by time, the log offset where the last answer ended; 0 for the beginning.
    """

    topic: MarketTopic | TriggerTopic
    by: str
    first: int
    last: int
    epoch: int = 0
    cursor: int = 0
    limit: int = _LIMIT_DEFAULT

    @property
    def key(self) -> bytes:
        """Key of the records in the log."""
        topic = self.topic
        return (topic.trigger_id if isinstance(topic, TriggerTopic) else str(topic.ticker)).encode()


def read_replay(message: request_pb2.ReplayRequest) -> ReplayWanted:
    """Read a request.

    Raises:
        PeerError: INVALID_TOPIC or INVALID_RANGE, with what was expected.
    """
    topic = _topic(message.topic)
    limit = min(message.limit or _LIMIT_DEFAULT, _LIMIT_MAX)
    if message.publisher_epoch:
        return _checked(
            ReplayWanted(
                topic, "sequence", message.from_sequence, message.to_sequence, message.publisher_epoch, 0, limit
            )
        )
    if message.from_trade_id or message.to_trade_id:
        first, last = _trade_id(message.from_trade_id), _trade_id(message.to_trade_id)
        return _checked(ReplayWanted(topic, "trade_id", first, last, limit=limit))
    if message.start:
        last = message.end or 2**63 - 1
        return _checked(ReplayWanted(topic, "time", message.start, last, 0, message.from_sequence, limit))
    raise PeerError(
        "expected publisher_epoch with sequences, or trade ids, or start, got none of them; say what to replay",
        code=ErrorCode.INVALID_RANGE,
    )


def _topic(text: str) -> MarketTopic | TriggerTopic:
    trigger_id = text.removeprefix(_TRIGGER_PREFIX)
    if trigger_id != text and is_uuid_text(trigger_id):
        return TriggerTopic(trigger_id)
    topic = parse_market_topic(text)
    if topic.kind not in _ID_OF:
        raise PeerError(
            "expected a topic TICKER|tick, TICKER|gap, TICKER|ohlc:SECONDS or CEP:TRIGGER_ID to replay, "
            f"got {text[:200]!r}",
            code=ErrorCode.INVALID_TOPIC,
        )
    return topic


def _checked(wanted: ReplayWanted) -> ReplayWanted:
    if wanted.topic.kind in ("trigger", "ohlc") and wanted.by != "time":
        what = "bars" if wanted.topic.kind == "ohlc" else "firings"
        raise PeerError(f"expected a start: {what} are replayed by time", code=ErrorCode.INVALID_RANGE)
    if wanted.last < wanted.first or wanted.first < 0:
        raise PeerError(
            f"expected a {wanted.by} range that ends after it begins, got {wanted.first} to {wanted.last}",
            code=ErrorCode.INVALID_RANGE,
        )
    return wanted


def _trade_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise PeerError(f"expected a numeric trade id, got {text[:40]!r}", code=ErrorCode.INVALID_RANGE)
    return int(text)


class ReplayCollector:
    """Picks the records that answer a replay out of the ticker's log, in any number of steps.

    Args:
        wanted: what is asked.
    """

    def __init__(self, wanted: ReplayWanted) -> None:
        self._wanted = wanted
        self._type_id = _ID_OF[wanted.topic.kind]
        self._read = _READ[wanted.topic.kind]
        self._found: dict[int, bytes] = {}
        self._bytes = 0
        self.lowest: int | None = None
        self.is_full = False
        self._next_from = 0

    @property
    def is_complete(self) -> bool:
        """Whether every number of the range was found; a replay by time never knows, nor one of gaps by trade ids."""
        wanted = self._wanted
        is_numbered = wanted.by == "sequence" or (wanted.by == "trade_id" and wanted.topic.kind == "tick")
        return is_numbered and len(self._found) == wanted.last - wanted.first + 1

    def take(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Take (offset, value) of the ticker's records in log order; stop when :attr:`is_full`."""
        for offset, value in records:
            number = self._number(offset, value)
            if number is None or number in self._found:
                continue
            is_over = len(self._found) >= self._wanted.limit or self._bytes + len(value) > REPLAY_BYTES_MAX
            # A page holds one record at least, however long, or the next question would be the same.
            if is_over and self._found and self._wanted.by == "time":
                self.pause(offset)
                return
            self._found[number] = value
            self._bytes += len(value)

    def pause(self, offset: int) -> None:
        """Say that the log was not read to its end; the answer to a replay by time tells where to go on."""
        if self._wanted.by == "time" and not self.is_full:
            self.is_full, self._next_from = True, offset

    def answer(self) -> request_pb2.ReplayResponse:
        """Return what was found: by number ascending, by time in the order of the log."""
        wanted = self._wanted
        if wanted.by == "time":
            status = _STATUS.PARTIAL if self.is_full else _STATUS.OK
            return request_pb2.ReplayResponse(
                status=status, records=list(self._found.values()), next_from=self._next_from
            )
        records: list[bytes] = []
        next_from = size = 0
        for number in sorted(self._found):
            size += len(self._found[number])
            if records and (len(records) >= wanted.limit or size > REPLAY_BYTES_MAX):
                next_from = number
                break
            records.append(self._found[number])
        if not records:
            return request_pb2.ReplayResponse(
                status=_STATUS.GONE,
                error_code=ErrorCode.NO_DATA,
                error_message=f"the log holds none of {wanted.by} {wanted.first} to {wanted.last} (any more)",
            )
        status = _STATUS.OK if self.is_complete and not next_from else _STATUS.PARTIAL
        return request_pb2.ReplayResponse(status=status, records=records, next_from=next_from)

    def _number(self, offset: int, value: bytes) -> int | None:
        """Return what identifies a wanted record, None for any other."""
        if len(value) < 3 or value[0] != VERSION or value[1] != self._type_id:
            return None
        try:
            message = self._read(value[2:])
        except DecodeError:
            return None
        wanted = self._wanted
        number: int | None = offset
        if isinstance(message, trigger_pb2.CEPTriggerEvent):
            is_asked = wanted.first <= message.fired_at < wanted.last
        elif isinstance(message, market_pb2.OHLC):
            is_asked = self._is_bar_asked(message)
        elif wanted.by == "sequence":
            is_asked = message.stamp.publisher_epoch == wanted.epoch
            number = self._in_range(message.stamp.topic_sequence) if is_asked else None
        elif isinstance(message, market_pb2.Gap):
            is_asked = _touches(message, wanted)
        elif wanted.by == "trade_id":
            number = self._in_range(_or_zero(message.trade_id))
            is_asked = number is not None
        else:
            # Ticks whose ids are no numbers differ by their places alone.
            number = _or_zero(message.trade_id) or -1 - offset
            is_asked = wanted.first <= message.timestamp < wanted.last
        return number if is_asked else None

    def _is_bar_asked(self, bar: market_pb2.OHLC) -> bool:
        """Return whether a bar is of the topic's period, final, and was made in the time that is asked for."""
        wanted = self._wanted
        is_of_topic = isinstance(wanted.topic, MarketTopic) and bar.period_seconds == wanted.topic.period_seconds
        return is_of_topic and bar.is_final and wanted.first <= bar.stamp.published_at < wanted.last

    def _in_range(self, number: int) -> int | None:
        """Note how far down the scan has come; return the number when it is asked for."""
        self.lowest = number if self.lowest is None else min(self.lowest, number)
        return number if self._wanted.first <= number <= self._wanted.last else None


def _touches(gap: market_pb2.Gap, wanted: ReplayWanted) -> bool:
    """Return whether a gap lies in the range in part; an open end reaches to the present."""
    low, high = (
        (gap.from_time, gap.to_time)
        if wanted.by == "time"
        else (_or_zero(gap.from_trade_id), _or_zero(gap.to_trade_id))
    )
    return low <= wanted.last and (high == 0 or high >= wanted.first)


def _or_zero(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0
