"""Flows that ask about exchanges: their 24 h statistics, and what their markets were."""

from __future__ import annotations

import time

from relay.errors import PeerError, RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.protocol.tickers import check_exchange
from relay.protocol.v1 import market_pb2, request_pb2
from relay_client.arguments import seconds
from relay_client.arguments import text as checked_text
from relay_client.flow import Flow, call, result_of
from relay_client.flows import ClientFlows, checked_ticker
from relay_client.statistics import ExchangeStatistics, statistics_of
from relay_client.symbols import SymbolState, states_of

__all__ = ["read_statistics", "read_symbol_history"]

_RESTARTS_MAX = 5
"""New statistics may be fetched while the parts of the last ones are read, but not again and again."""


def read_statistics(flows: ClientFlows, exchange: str, *, timeout_s: float | None) -> Flow[ExchangeStatistics]:
    """Ask for an exchange's statistics, part by part.

    Raises:
        SettingsError: the exchange is no name of one.
        PeerError: UNKNOWN_EXCHANGE.
        RetryableError: relay, manager, ingestor or exchange are away.
    """
    flows.session.check_usable()
    name = _checked_exchange(exchange)
    wait_s = seconds("timeout", timeout_s, flows.settings.request_timeout_seconds)
    deadline_s = time.monotonic() + wait_s
    parts: list[market_pb2.Ticker24h] = []
    for _ in range(_RESTARTS_MAX):
        parts = []
        while not parts or len(parts) < parts[0].part_count:
            query = request_pb2.StatsQuery(exchange=name, part_index=len(parts))
            pending = flows.session.ask(query, timeout_s=max(0.0, deadline_s - time.monotonic()))
            try:
                answer = yield from result_of(pending.future)
            finally:
                flows.session.forget(pending)
            if not isinstance(answer, market_pb2.Ticker24h):
                raise PeerError(f"expected 24 h statistics, got a {type(answer).__name__}; is the relay older?")
            if parts and answer.generated_at != parts[0].generated_at:
                break
            parts.append(answer)
        else:
            return statistics_of(parts)
    raise RetryableError(
        f"the statistics of {name} changed {_RESTARTS_MAX} times while they were read; ask again",
        code=ErrorCode.UNAVAILABLE,
    )


def _checked_exchange(exchange: object) -> str:
    """Return the name of an exchange, upper-case.

    Raises:
        SettingsError: INVALID_REQUEST.
    """
    try:
        return check_exchange(checked_text("exchange", exchange, code=ErrorCode.INVALID_REQUEST).upper())
    except PeerError as error:
        raise SettingsError(str(error), code=error.code) from error


def read_symbol_history(flows: ClientFlows, ticker: str, *, timeout_s: float | None) -> Flow[list[SymbolState]]:
    """Read what was known of a market and when, oldest first; empty when nothing ever was.

    Raises:
        SettingsError: the ticker is none.
        RetryableError: relay, catalog or store are away.
    """
    flows.session.check_usable()
    parsed = checked_ticker(ticker)
    reply = yield from flows.located(timeout_s=timeout_s)

    def read() -> list[SymbolState]:
        with flows.lake.reader(reply) as tables:
            return states_of(tables.market_changes(parsed))

    return (yield from call(read))
