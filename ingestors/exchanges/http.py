"""One host's HTTP client: admitted by the shared budget, answers classified before anybody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from ingestors.clock import Clock
from ingestors.engine.budget import HostBudget
from ingestors.engine.outcomes import BodyKind, ExchangeError, HttpAnswer, Outcome, OutcomeKind, classify
from ingestors.exchanges.numbers import decode_json
from relay.observability import Counters

__all__ = ["Answer", "Dialect", "HostClient"]

_BODY_BYTES_MAX = 128 * 1024 * 1024
_TEXT_CHARACTERS_MAX = 400


@dataclass(frozen=True, slots=True)
class Dialect:
    """What is an exchange's own in HTTP answers.

    Attributes:
        body_kind: classifies its error bodies.
        ban_until_ns: reads the end of a ban out of a body; None when there is none.
        used_weight_header: header with the weight used in this minute.
    """

    body_kind: BodyKind
    ban_until_ns: Callable[[HttpAnswer], int | None] = lambda _: None
    used_weight_header: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer: decoded body and headers."""

    json: object
    headers: Mapping[str, str]


class HostClient:
    """GETs of one host.

    Args:
        base_url: of the host, with or without a path.
        name: prefix of its counters.
        dialect: how the exchange says what went wrong.
        budget: shared by all slots.
        clock: time.
        counters: counted per outcome.
        timeout_seconds: of one request.
        transport: replaces the network in tests.
    """

    def __init__(
        self,
        *,
        base_url: str,
        name: str,
        dialect: Dialect,
        budget: HostBudget,
        clock: Clock,
        counters: Counters,
        timeout_seconds: int = 15,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url.rstrip("/"),
            timeout=timeout_seconds,
            transport=transport,
            headers={"Accept": "application/json", "User-Agent": "market-relay"},
        )
        self._name = name.lower()
        self._dialect = dialect
        self._clock = clock
        self._counters = counters
        self._turn = asyncio.Lock()
        self.budget = budget

    @property
    def host(self) -> str:
        """Host name of the base URL."""
        return self._http.base_url.host

    async def get(
        self,
        path: str,
        params: Mapping[str, str | int] | None = None,
        *,
        weight: int = 1,
        endpoint: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """GET and decode JSON, after waiting for the budget.

        Args:
            path: below the base URL.
            params: query.
            weight: of the endpoint as documented; the learned one wins.
            endpoint: name under which its weight is learned, else the path.
            headers: beside the usual ones.

        Raises:
            ExchangeError: anything but a good answer, classified.
        """
        endpoint = endpoint or path
        await self._admitted(self.budget.weight_of(endpoint, weight))
        try:
            answer, answered = await self._fetch(path, params, endpoint, headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._count(OutcomeKind.TRANSIENT)
            raise ExchangeError(
                Outcome(OutcomeKind.TRANSIENT, f"no answer from {self.host}: {type(error).__name__} {error}".strip())
            ) from error
        outcome = classify(
            answer,
            wall_ns=self._clock.wall_ns(),
            body_kind=self._dialect.body_kind,
            ban_until_ns=self._dialect.ban_until_ns(answer) if answer.status != 200 else None,
        )
        self._count(outcome.kind)
        if outcome.kind is OutcomeKind.OK and answer.json is None:
            raise ExchangeError(Outcome(OutcomeKind.TRANSIENT, f"expected JSON, got {answer.text[:120]!r}"))
        self._apply(outcome)
        return Answer(answer.json, answered)

    async def close(self) -> None:
        """Close connections."""
        await self._http.aclose()

    async def _admitted(self, weight: int) -> None:
        """Wait in line for the budget; callers go in the order they came."""
        async with self._turn:
            while True:
                now_ns = self._clock.monotonic_ns()
                banned_ns = self.budget.banned_ns(now_ns)
                if banned_ns:
                    raise ExchangeError(Outcome(OutcomeKind.BANNED, f"{self.host} has banned this address", banned_ns))
                wait_ns = self.budget.wait_ns(weight, now_ns)
                if wait_ns == 0:
                    self.budget.take(weight, now_ns)
                    return
                self._counters.add(f"{self._name}.waits")
                await self._clock.sleep_ns(wait_ns)

    async def _fetch(
        self, path: str, params: Mapping[str, str | int] | None, endpoint: str, sent: Mapping[str, str] | None
    ) -> tuple[HttpAnswer, Mapping[str, str]]:
        used_weight: int | None = None
        try:
            async with self._http.stream("GET", path, params=params, headers=sent) as response:
                used_weight = self._used_weight(response.headers)
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _BODY_BYTES_MAX:
                        raise httpx.DecodingError(f"more than {_BODY_BYTES_MAX} bytes")
        finally:
            self.budget.answered(endpoint, used_weight=used_weight, now_ns=self._clock.monotonic_ns())
        headers = response.headers
        answer = HttpAnswer(
            status=response.status_code,
            retry_after=headers.get("retry-after"),
            date=headers.get("date"),
            json=_json_or_none(body),
            text=bytes(body[:_TEXT_CHARACTERS_MAX]).decode("utf-8", "replace"),
        )
        return answer, headers

    def _apply(self, outcome: Outcome) -> None:
        """Let the whole host's budget feel the outcome; raise unless it is good."""
        now_ns = self._clock.monotonic_ns()
        if outcome.kind is OutcomeKind.OK:
            self.budget.succeeded()
            return
        if outcome.kind is OutcomeKind.THROTTLED:
            self.budget.refused(outcome.wait_ns, now_ns)
        if outcome.kind is OutcomeKind.BANNED:
            self.budget.ban(outcome.wait_ns or 0, now_ns)
        raise ExchangeError(outcome)

    def _used_weight(self, headers: Mapping[str, str]) -> int | None:
        text = headers.get(self._dialect.used_weight_header or "", "")
        return int(text) if text.isascii() and text.isdigit() else None

    def _count(self, kind: OutcomeKind) -> None:
        self._counters.add(f"{self._name}.answers.{kind}")


def _json_or_none(body: bytes | bytearray) -> object:
    try:
        return decode_json(bytes(body))
    except ValueError:
        return None
