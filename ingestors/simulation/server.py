"""The simulated exchange as one HTTP server.

Base URLs, each in place of the real one:

- ``http://127.0.0.1:PORT/binance`` for ``https://api.binance.com``
- ``http://127.0.0.1:PORT/kraken`` for ``https://api.kraken.com``
- ``http://127.0.0.1:PORT/coinbase`` for ``https://api.exchange.coinbase.com``
- ``http://127.0.0.1:PORT/coinbase-advanced`` for ``https://api.coinbase.com``

and ``http://127.0.0.1:PORT/control`` for faults, requests seen and health. Base URLs of the sockets:

- ``ws://127.0.0.1:PORT/binance-ws`` for ``wss://data-stream.binance.vision``
- ``ws://127.0.0.1:PORT/binance-sbe-ws`` for ``wss://stream-sbe.binance.com``, with the key ``simulated-key``
- ``ws://127.0.0.1:PORT/kraken-ws/v2`` for ``wss://ws.kraken.com/v2``
- ``ws://127.0.0.1:PORT/coinbase-ws`` for ``wss://ws-feed.exchange.coinbase.com``
- ``ws://127.0.0.1:PORT/coinbase-advanced-ws`` for ``wss://advanced-trade-ws.coinbase.com``

REST and sockets serve the same markets by the same clock: what a socket has sent, REST serves from then on.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from ingestors.simulation.driven_market import DrivenMarket
from ingestors.simulation.faults import Fault, FaultBook
from ingestors.simulation.http_side import Clock, ShapeApplication
from ingestors.simulation.kraken import KrakenRest
from ingestors.simulation.limits import Limits
from ingestors.simulation.listings import BINANCE, COINBASE, COINBASE_ADVANCED, EXCHANGES, KRAKEN
from ingestors.simulation.market import modelled_markets
from ingestors.simulation.records import MarketSource
from ingestors.simulation.replay import Recording
from ingestors.simulation.replay_clock import LiveReplay, ReplayClock
from ingestors.simulation.request_log import RequestLog
from ingestors.simulation.socket_control import add_socket_control
from ingestors.simulation.socket_faults import SocketFault, SocketFaultBook
from ingestors.simulation.socket_pump import SocketPump
from ingestors.simulation.socket_side import SocketSide
from ingestors.simulation.socket_sides import SOCKET_PATHS, socket_side
from ingestors.simulation.socket_values import SocketLimits
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
        replay: sends the recordings over the sockets; the clock then begins where they go live and moves with them.
        socket_faults: in force from the start.
        socket_limits: bounds of the sockets.

    Raises:
        SettingsError: a recording's exchange is none of the served ones, or there is none to replay.

    Attributes:
        faults: the faults in force; may be changed while it runs.
        socket_faults: those of the sockets.
        requests: what was asked so far.
        replay_clock: the clock of a live replay, else None.
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
        replay: LiveReplay | None = None,
        socket_faults: Iterable[SocketFault] = (),
        socket_limits: SocketLimits | None = None,
    ) -> None:
        self._recordings = tuple(recordings)
        _check_served(self._recordings)
        self.replay_clock = _replay_clock(self._recordings, replay)
        if self.replay_clock is not None:
            began_ns = self.replay_clock()
            self._recordings = tuple(recording.listed_by(began_ns) for recording in self._recordings)
        self._seed = seed
        self._host, self._port = host, port
        self._wall_clock = wall_clock
        self._clock = self.replay_clock or clock or _clock_of(self._recordings, wall_clock)
        self._limits = limits or Limits()
        self._socket_limits = socket_limits or SocketLimits()
        self._markets: dict[str, dict[str, MarketSource]] = {}
        self._sides: list[SocketSide] = []
        self._pumping: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None
        self.faults = FaultBook(faults, seed=seed)
        self.socket_faults = SocketFaultBook(socket_faults, seed=seed)
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

    @property
    def socket_urls(self) -> Mapping[str, str]:
        """Base URL of the sockets by exchange."""
        return {name: f"ws://{self._host}:{self._port}{path}" for name, path in SOCKET_PATHS.items()}

    def markets(self, exchange: str) -> dict[str, MarketSource]:
        """Return the markets that an exchange serves, by symbol: the model's, and recordings in their place.

        They are the same objects at every call, and at both Coinbase interfaces.
        """
        key = COINBASE if exchange == COINBASE_ADVANCED else exchange
        if key not in self._markets:
            modelled = modelled_markets(key, seed=self._seed)
            markets: dict[str, MarketSource] = {
                symbol: DrivenMarket(market, seed=self._seed) for symbol, market in modelled.items()
            }
            for recording in self._recordings:
                if key in _SERVED_AS[recording.ticker.exchange]:
                    markets[recording.ticker.symbol] = recording
            self._markets[key] = markets
        return self._markets[key]

    def drive(self, exchange: str, symbol: str, per_second: int) -> int:
        """Give a model market a rate of trades from now on and return its first driven trade id.

        Raises:
            SettingsError: there is no such market, or it is a recording or halted.
        """
        market = self.markets(exchange).get(symbol) if exchange in EXCHANGES else None
        if not isinstance(market, DrivenMarket):
            raise SettingsError(f"expected a model market of {', '.join(EXCHANGES)}, got {symbol!r} of {exchange!r}")
        from_ns = self._clock() + 1
        market.drive(per_second, from_ns=from_ns)
        return market.position_at(from_ns) + 1

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
        self._pumping = asyncio.create_task(self._pump.run())

    async def stop(self) -> None:
        """Stop serving; a second call does nothing."""
        runner, self._runner = self._runner, None
        pumping, self._pumping = self._pumping, None
        if pumping is not None:
            pumping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pumping
        for side in self._sides:
            await side.stop()
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
        self._sides = [
            socket_side(
                name,
                self.markets(name),
                root=root,
                limits=self._socket_limits,
                faults=self.socket_faults,
                clock=self._clock,
                wall_clock=self._wall_clock,
                requests=self.requests,
            )
            for name in EXCHANGES
        ]
        hubs = [side.hub for side in self._sides]
        self._pump = SocketPump(hubs, clock=self._clock, wall_clock=self._wall_clock, replay=self.replay_clock)
        control = control_application(faults=self.faults, requests=self.requests, health=self._health)
        add_socket_control(control, faults=self.socket_faults, pump=self._pump, set_rate=self.drive)
        root.add_subapp("/control", control)
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


def _replay_clock(recordings: tuple[Recording, ...], replay: LiveReplay | None) -> ReplayClock | None:
    if replay is None:
        return None
    if not recordings:
        raise SettingsError("expected a recording to replay live, got none; give one, or leave the live replay out")
    return ReplayClock(recordings, replay)


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
