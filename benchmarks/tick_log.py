"""A feed of many tickers into the log, as ingestors write it: ticks at a rate, and each ticker's beats."""

from __future__ import annotations

import threading
import time

from relay.eventlog import TICK_TOPIC, EventLog
from relay.protocol.envelope import encode_record
from relay.protocol.v1 import market_pb2

__all__ = ["TickLog"]

_SECOND_NS = 10**9
_BEAT_PHASE_NS = 100_000_000
_STEP_S = 0.005


class TickLog:
    """Writes ticks of ``tickers`` in turn; trade ``n`` of the feed belongs to ticker ``n % tickers``.

    Args:
        log: the event log.
        prefix: of its topics.
        tickers: how many.
    """

    def __init__(self, log: EventLog, *, prefix: str, tickers: int) -> None:
        self._log, self._topic = log, prefix + TICK_TOPIC
        self.tickers = [f"T{number:03}/USDT.BINANCE" for number in range(tickers)]
        self._keys = [ticker.encode() for ticker in self.tickers]
        self._sent = 0
        log.prepare(self._topic)

    def ticks(self, count: int, *, start_ns: int, step_ns: int) -> None:
        """Append so many ticks with exchange times from ``start_ns`` on, and a beat of each ticker every second."""
        beat_ns = start_ns - start_ns % _SECOND_NS + _SECOND_NS
        for number in range(count):
            time_ns = start_ns + number * step_ns
            if time_ns >= beat_ns + _BEAT_PHASE_NS:
                self.beats(time_ns)
                beat_ns += _SECOND_NS
            self._tick(time_ns)
            if number % 1_000 == 0:
                self._log.flush(30.0)
        self.beats(start_ns + count * step_ns)
        self._log.flush(60.0)

    def live(self, per_second: int, *, stopping: threading.Event) -> None:
        """Append ticks at a rate, stamped with the wall clock, and beats just after each full second, until stopped."""
        began_ns = time.time_ns()
        beat_ns = began_ns - began_ns % _SECOND_NS + _SECOND_NS + _BEAT_PHASE_NS
        sent = 0
        while not stopping.wait(_STEP_S):
            now_ns = time.time_ns()
            due = (now_ns - began_ns) * per_second // _SECOND_NS
            for number in range(sent, due):
                self._tick(began_ns + number * _SECOND_NS // per_second)
            sent = due
            if now_ns >= beat_ns:
                self.beats(now_ns)
                beat_ns += _SECOND_NS

    def beats(self, reached_ns: int) -> None:
        """Append a beat of every ticker."""
        for ticker, key in zip(self.tickers, self._keys, strict=True):
            beat = market_pb2.Heartbeat(
                source=market_pb2.Heartbeat.INGESTOR, ticker=ticker, exchange_time_reached=reached_ns, attempt=1
            )
            self._log.append_then(self._topic, key=key, value=encode_record(beat), done=_ignore)

    def _tick(self, time_ns: int) -> None:
        place = self._sent % len(self.tickers)
        number = self._sent // len(self.tickers)
        self._sent += 1
        price, amount = 4_213_000 + number * 7 % 1_000, 1_000 + number % 89
        tick = market_pb2.Tick(
            ticker=self.tickers[place],
            trade_id=str(number),
            timestamp=time_ns,
            price=price,
            price_decimals=2,
            amount=amount,
            amount_decimals=5,
            quote_amount=price * amount,
            quote_decimals=7,
            taker_buy=number % 3 == 0,
            received_at=time_ns,
        )
        self._log.append_then(self._topic, key=self._keys[place], value=encode_record(tick), done=_ignore)


def _ignore(_: BaseException | None) -> None:
    """Nobody waits for a single acknowledgement."""
