"""The triggers job as a real driver on a real Kafka: a kill loses no firing and doubles none in the log."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

import pytest
import zmq

from relay.eventlog import CONTROL_TOPIC, TICK_TOPIC, TRIGGER_TOPIC
from relay.protocol.envelope import decode, decode_record, encode_record
from relay.protocol.registry import Channel
from relay.protocol.v1 import market_pb2, trigger_pb2
from relay_client.pattern_builder import CLOSE, when
from tests.support.processes import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]

TICKER = "BTC/USDT.BINANCE"
CROSSING, CLOSING = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
CLIENT = "99999999-9999-4999-8999-999999999999"
PATTERNS = {CROSSING: when(TICKER).crosses_above("50"), CLOSING: when(TICKER).bar("1s", CLOSE.above("50"))}
COMMAND = [sys.executable, "-c", "from relay.cli import main; main()", "job", "triggers"]
S = 10**9


@pytest.mark.parametrize("state", ["kept", pytest.param("lost", marks=pytest.mark.soak)])
def test_every_firing_is_in_the_log_once_and_announced_over_a_kill(history_job, state: str):
    job = history_job()
    base_ns = (time.time_ns() // S + 60) * S

    def put(topic: str, key: str, message: object) -> None:
        job.log.append(job.prefix + topic, key=key.encode(), value=encode_record(message))

    def trade(second: int) -> None:
        """Even seconds close below the level, odd ones above."""
        price = 49 + 2 * (second % 2)
        time_ns = base_ns + second * S
        put(
            TICK_TOPIC,
            TICKER,
            market_pb2.Tick(ticker=TICKER, trade_id=str(second + 1), timestamp=time_ns, price=price, amount=1),
        )
        put(
            TICK_TOPIC,
            TICKER,
            market_pb2.Heartbeat(
                source=market_pb2.Heartbeat.INGESTOR, ticker=TICKER, exchange_time_reached=time_ns + 1, attempt=1
            ),
        )

    def fired(trigger_id: str) -> list[int]:
        records = job.log.read(job.prefix + TRIGGER_TOPIC, key=trigger_id.encode(), limit=10_000)
        return [(decode_record(record.value)[1].fired_at - base_ns) // S for record in records]

    for trigger_id, pattern in PATTERNS.items():
        registration = trigger_pb2.CEPTriggerRequest(trigger_id=trigger_id, client_id=CLIENT, pattern=pattern.build())
        put(CONTROL_TOPIC, trigger_id, registration)
    assert job.log.flush(60) == 0
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    pull.linger, pull.rcvtimeo = 0, 30_000
    pull.bind(f"tcp://127.0.0.1:{job.pull_port}")
    try:
        for second in range(100):
            trade(second)
        job.start(COMMAND, RELAY_JOB_TRIGGERS_STATE_SECONDS="1")
        wait_until(lambda: len(fired(CROSSING)) == 50, what="the first firings", deadline_s=120)
        for second in range(100, 160):
            trade(second)
        os.killpg(job.process.pid, signal.SIGKILL)
        if state == "lost":
            shutil.rmtree(job.folder / "checkpoints")
        for second in range(160, 200):
            trade(second)
        job.start(COMMAND, RELAY_JOB_TRIGGERS_STATE_SECONDS="1")
        wait_until(lambda: len(fired(CROSSING)) >= 100, what="the other firings", deadline_s=120)
        expected = {CROSSING: list(range(1, 200, 2)), CLOSING: list(range(2, 200, 2))}
        wait_until(lambda: len(fired(CLOSING)) >= len(expected[CLOSING]), what="the bars", deadline_s=60)
        assert {trigger_id: fired(trigger_id) for trigger_id in PATTERNS} == expected
        told: dict[str, set[int]] = {}
        wanted = {f"CEP:{trigger_id}": set(seconds) for trigger_id, seconds in expected.items()}
        wanted[f"RESPONSE:{CLIENT}"] = set().union(*expected.values())
        while told != wanted:
            topic, *frames = pull.recv_multipart()
            event = decode(frames, Channel.NOTIFICATION).message
            assert isinstance(event, trigger_pb2.CEPTriggerEvent)
            told.setdefault(topic.decode(), set()).add((event.fired_at - base_ns) // S)
    finally:
        context.destroy(0)
    assert job.process.terminate() == 0
