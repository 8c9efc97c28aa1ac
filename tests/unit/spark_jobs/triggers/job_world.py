"""The triggers job without Spark, on a log that outlives it: killed and started again at will."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from relay.eventlog import CONTROL_TOPIC, TICK_TOPIC, TRIGGER_TOPIC, platform_topics
from relay.eventlog.memory import MemoryEventLog
from relay.observability import Counters
from relay.protocol.envelope import decode_record, encode_record
from relay.protocol.v1 import market_pb2, trigger_pb2
from relay_client.pattern_builder import PatternBuilder
from spark_jobs.jobs.settings import JobSettings
from spark_jobs.jobs.triggers.service import TriggerService

BTC, ETH = "BTC/USDT.BINANCE", "ETH/USDT.BINANCE"
IDS = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
CLIENT = "99999999-9999-4999-8999-999999999999"
S = 10**9
ROWS = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "key": pa.binary(), "value": pa.binary()}


class Base:
    """A full minute after everything that is registered in a test: taken anew by each world."""

    ns = 0

    @classmethod
    def renew(cls) -> None:
        cls.ns = (time.time_ns() // (60 * S) + 10) * 60 * S


def at(seconds: float) -> int:
    return Base.ns + round(seconds * S)


def ascending_clock() -> Callable[[], int]:
    """The time, a millisecond later at each look: records of one partition after another have an order."""
    last_ns = 0

    def look() -> int:
        nonlocal last_ns
        last_ns = max(time.time_ns(), last_ns + 10**6)
        return last_ns

    return look


class JobWorld:
    """A log, a folder, and the service that is running now."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.settings = JobSettings(checkpoint_folder=str(folder), topic_partitions=2, **settings)
        Base.renew()
        self.folder, self.log, self.number = folder, MemoryEventLog(clock=ascending_clock()), 0
        self.log.ensure_topics(platform_topics(prefix="", partitions=2, retention_hours=1))
        self.announced: list[tuple[str, trigger_pb2.CEPTriggerEvent]] = []
        self.counters = Counters()

    def send(self, topic: bytes, message: trigger_pb2.CEPTriggerEvent) -> None:
        """Stands for the PUSH socket. What is announced is in the log."""
        assert message.match_id in [event.match_id for event in self.fired(message.trigger_id)]
        assert message.stamp.published_at
        assert not message.stamp.topic_sequence
        self.announced.append((topic.decode(), message))

    def start(self) -> JobWorld:
        self.service = TriggerService(self.settings, log=self.log, hints=self, counters=self.counters)  # type: ignore[arg-type]
        return self

    def lose_state(self) -> JobWorld:
        shutil.rmtree(self.folder / "triggers-state", ignore_errors=True)
        return self

    def turn(self, limit: int = 1_000) -> JobWorld:
        """Hand over one micro-batch."""
        rows = []
        for topic, offsets in self.service.offsets.items():
            for partition, offset in offsets.items():
                for record in self.log.read(topic, partition=partition, from_offset=offset, limit=limit):
                    place = record.position
                    row = (topic, partition, place.offset, record.key, record.value)
                    rows.append(dict(zip(ROWS, row, strict=True)) | {"time_ms": record.timestamp_ns // 10**6})
        schema = pa.schema([*ROWS.items(), ("time_ms", pa.int64())])
        self.service.take(pa.Table.from_pylist(rows, schema=schema))
        return self

    def define(self, pattern: PatternBuilder | None, trigger_id: str = IDS[0], **fields: object) -> JobWorld:
        """Append a registration, or without a pattern a cancellation."""
        request = trigger_pb2.CEPTriggerRequest(trigger_id=trigger_id, **fields)  # type: ignore[arg-type]
        if pattern is None:
            request.action = trigger_pb2.CEPTriggerRequest.CANCEL
        else:
            request.pattern.CopyFrom(pattern.build())
        self.log.append(CONTROL_TOPIC, key=trigger_id.encode(), value=encode_record(request))
        return self

    def tick(self, seconds: float, price: int, *, ticker: str = BTC) -> JobWorld:
        self.number += 1
        return self._say(
            market_pb2.Tick(
                ticker=ticker, trade_id=str(self.number), timestamp=at(seconds), price=price, amount=1, taker_buy=True
            )
        )

    def beat(self, seconds: float, *, ticker: str = BTC, attempt: int = 1, state: str = "UP") -> JobWorld:
        return self._say(
            market_pb2.Heartbeat(
                source=market_pb2.Heartbeat.INGESTOR,
                ticker=ticker,
                exchange_time_reached=at(seconds),
                attempt=attempt,
                state=market_pb2.Heartbeat.State.Value(state),
            )
        )

    def gap(self, state: str, first: int, last: int, seconds: float, end_seconds: float) -> JobWorld:
        return self._say(
            market_pb2.Gap(
                ticker=BTC,
                state=market_pb2.Gap.State.Value(state),
                from_trade_id=str(first),
                to_trade_id=str(last),
                from_time=at(seconds),
                to_time=at(end_seconds),
            )
        )

    def _say(self, message: market_pb2.Tick | market_pb2.Heartbeat | market_pb2.Gap) -> JobWorld:
        self.log.append(TICK_TOPIC, key=message.ticker.encode(), value=encode_record(message))
        return self

    def fired(self, trigger_id: str = IDS[0]) -> list[trigger_pb2.CEPTriggerEvent]:
        """Return what the log holds of a trigger."""
        records = self.log.read(TRIGGER_TOPIC, key=trigger_id.encode())
        events = [decode_record(record.value)[1] for record in records if record.key == trigger_id.encode()]
        return [event for event in events if isinstance(event, trigger_pb2.CEPTriggerEvent)]

    def seconds(self, trigger_id: str = IDS[0]) -> list[float]:
        return [(event.fired_at - at(0)) / S for event in self.fired(trigger_id)]
