"""The simulated exchange as one HTTP server.

Base URLs, each in place of the real one:

- ``http://127.0.0.1:PORT/binance`` for ``https://api.binance.com``
- ``http://127.0.0.1:PORT/kraken`` for ``https://api.kraken.com``
- ``http://127.0.0.1:PORT/coinbase`` for ``https://api.exchange.coinbase.com``
- ``http://127.0.0.1:PORT/coinbase-advanced`` for ``https://api.coinbase.com``

and ``http://127.0.0.1:PORT/control`` for faults, requests seen and health.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from aiohttp import web

from ingestors.simulation.answers import RestShape
from ingestors.simulation.binance import BinanceRest
from ingestors.simulation.coinbase import CoinbaseRest
from ingestors.simulation.coinbase_advanced import CoinbaseAdvancedRest
from ingestors.simulation.control import control_application
from ingestors.simulation.faults import Fault, FaultBook
from ingestors.simulation.http_side import Clock, ShapeApplication
from ingestors.simulation.kraken import KrakenRest
from ingestors.simulation.limits import Limits
from ingestors.simulation.listings import BINANCE, COINBASE, COINBASE_ADVANCED, EXCHANGES, KRAKEN
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.records import MarketSource
from ingestors.simulation.replay import Recording
from ingestors.simulation.request_log import RequestLog
from relay.errors import SettingsError
from relay.protocol.times import format_ns

__all__ = ["SimulatedExchange"]

_SHAPES: dict[str, Callable[..., RestShape]] = {
    BINANCE: BinanceRest,
    KRAKEN: KrakenRest,
    COINBASE: CoinbaseRest,
    COINBASE_ADVANCED: CoinbaseAdvancedRest,
}
_SERVED_AS = {"BINANCE": (BINANCE,), "KRAKEN": (KRAKEN,), "COINBASE": (COINBASE, COINBASE_ADVANCED)}


class SimulatedExchange:
    """All exchanges on one port; an async context manager that starts and stops it.

    Args:
        seed: of the market model and of drawn faults.
        host: address to bind.
        port: TCP port; 0 takes a free one (see :attr:`port`).
        clock: the exchanges' time, nanoseconds; real time by default. A recording's end is used instead when one
            is given and no clock is.
        wall_clock: real time, for limits and for dates in headers.
        recordings: served instead of the model for their tickers.
        faults: in force from the start.
        limits: rate limits.

    Raises:
        SettingsError: a recording's exchange is none of the served ones.

    Attributes:
        faults: the faults in force; may be changed while it runs.
        requests: what was asked so far.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
        wall_clock: Clock = time.time_ns,
        recordings: Iterable[Recording] = (),
        faults: Iterable[Fault] = (),
        limits: Limits | None = None,
    ) -> None:
        self._recordings = tuple(recordings)
        _check_served(self._recordings)
        self._seed = seed
        self._host, self._port = host, port
        self._wall_clock = wall_clock
        self._clock = clock or _clock_of(self._recordings, wall_clock)
        self._limits = limits or Limits()
        self._runner: web.AppRunner | None = None
        self.faults = FaultBook(faults, seed=seed)
        self.requests = RequestLog()

    @property
    def port(self) -> int:
        """The bound port."""
        return self._port

    @property
    def url(self) -> str:
        """Root of everything."""
        return f"http://{self._host}:{self._port}"

    @property
    def base_urls(self) -> Mapping[str, str]:
        """Base URL by exchange (``binance``, ``kraken``, ``coinbase``, ``coinbase-advanced``)."""
        return {name: f"{self.url}/{name}" for name in EXCHANGES}

    def markets(self, exchange: str) -> dict[str, MarketSource]:
        """Return the markets that an exchange serves, by symbol: the model's, and recordings in their place."""
        markets: dict[str, MarketSource] = dict(modelled_markets(exchange, seed=self._seed))
        for recording in self._recordings:
            if exchange in _SERVED_AS.get(recording.ticker.exchange, ()):
                markets[recording.ticker.symbol] = recording
        return markets

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            SettingsError: the port is taken.
        """
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise SettingsError(f"cannot bind the simulated exchange to {self.url}: {error}") from error
        self._runner = runner
        self._port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop serving; a second call does nothing."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _application(self) -> web.Application:
        root = web.Application()
        for name, shape in _SHAPES.items():
            side = ShapeApplication(
                shape(self.markets(name), limits=self._limits),
                clock=self._clock,
                wall_clock=self._wall_clock,
                faults=self.faults,
                requests=self.requests,
            )
            root.add_subapp(f"/{name}", side.application())
        root.add_subapp(
            "/control", control_application(faults=self.faults, requests=self.requests, health=self._health)
        )
        return root

    def _health(self) -> Mapping[str, object]:
        return {
            "ready": True,
            "seed": self._seed,
            "time_ns": self._clock(),
            "exchanges": EXCHANGES,
            "recordings": [
                {
                    "ticker": str(recording.ticker),
                    "start": format_ns(recording.start_ns),
                    "end": format_ns(recording.end_ns),
                    "period_seconds": recording.period_seconds or 60,
                }
                for recording in self._recordings
            ],
        }


def _clock_of(recordings: tuple[Recording, ...], wall_clock: Clock) -> Clock:
    """Return a clock that stands at the end of the last recording, so that its newest rows are the newest at all."""
    if not recordings:
        return wall_clock
    end_ns = max(recording.end_ns for recording in recordings)
    return lambda: end_ns


def _check_served(recordings: tuple[Recording, ...]) -> None:
    for recording in recordings:
        if recording.ticker.exchange not in _SERVED_AS:
            raise SettingsError(
                f"expected a recording's exchange to be one of {', '.join(_SERVED_AS)}, got {recording.ticker}"
            )
