"""An exchange's WebSockets at work: executes the connection plan's commands on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping

import structlog

from ingestors.clock import Clock
from ingestors.engine.budget import Jitter
from ingestors.engine.connection_commands import (
    Close,
    LineProtocol,
    Look,
    Open,
    PlanCommand,
    PlanRules,
    SendText,
    Tell,
)
from ingestors.engine.connection_plan import ConnectionPlan
from ingestors.engine.feed_values import BadTrade, Disconnected, Muted, SocketEvent
from ingestors.engine.outcomes import ExchangeError, Outcome, OutcomeKind
from ingestors.engine.values import Listing
from ingestors.live.live_socket import LiveSocket, SocketBounds, open_socket
from relay.observability import Counters

__all__ = ["LiveConnections", "LookNewest"]

LookNewest = Callable[[Listing], Awaitable[int | None]]
"""Returns the id of a market's newest trade as REST tells it; raises ``ExchangeError``."""

_LOG = structlog.get_logger(__name__)
_TURN_NS = 20_000_000


class LiveConnections:
    """Keeps markets of one exchange subscribed.

    Args:
        exchange: upper-case name.
        make_protocol: makes one connection's protocol.
        base_url: ``ws`` or ``wss``.
        clock: time.
        counters: of the process, under ``live.{exchange}``.
        jitter: returns a whole number of [0, n).
        deliver: called with every event; must return at once.
        look: asks REST for a silent market's newest trade; None to trust silence.
        rules: bounds of the plan.
        bounds: of each connection.
        headers: of each handshake.
    """

    def __init__(
        self,
        exchange: str,
        make_protocol: Callable[[], LineProtocol],
        *,
        base_url: str,
        clock: Clock,
        counters: Counters,
        jitter: Jitter,
        deliver: Callable[[SocketEvent], None],
        look: LookNewest | None = None,
        rules: PlanRules | None = None,
        bounds: SocketBounds | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._exchange, self._base_url, self._clock = exchange, base_url.rstrip("/"), clock
        self._counters, self._deliver, self._look = counters, deliver, look
        self._bounds, self._headers = bounds or SocketBounds(), headers
        self._plan = ConnectionPlan(make_protocol, rules=rules or PlanRules(), jitter=jitter)
        self._prefix = f"live.{exchange.lower()}"
        self._messages_name = f"{self._prefix}.messages"
        self._sockets: dict[int, LiveSocket] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._to_look: dict[str, Listing] = {}
        self._turning: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    def add(self, listing: Listing) -> None:
        """Subscribe a market; its events come from now on."""
        self._plan.add(listing, self._clock.monotonic_ns())
        if self._turning is None:
            self._turning = asyncio.get_running_loop().create_task(self._turn())

    def remove(self, ticker: str) -> None:
        """Unsubscribe a market."""
        self._to_look.pop(ticker, None)
        self._execute(self._plan.remove(ticker))

    def alive_ns(self, ticker: str) -> int:
        """Return the wall time of the newest frame on the ticker's connection, 0 without one."""
        return self._plan.alive_ns(ticker)

    async def close(self) -> None:
        """Close all connections."""
        sockets = list(self._sockets.values())
        tasks = [task for task in (self._turning, self._looking, *self._opening.values()) if task is not None]
        self._execute(self._plan.close())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.gather(*(socket.closed() for socket in sockets))
        self._turning = self._looking = None

    def socket_opened(self, number: int, socket: LiveSocket) -> None:
        """See :class:`~ingestors.live.live_socket.SocketOwner`."""
        self._sockets[number] = socket
        self._counters.add(f"{self._prefix}.connects")
        self._execute(self._plan.on_opened(number, self._clock.wall_ns(), self._clock.monotonic_ns()))

    def socket_message(self, number: int, data: bytes, received_ns: int) -> None:
        """See the port."""
        self._counters.add(self._messages_name)
        try:
            self._execute(self._plan.on_message(number, data, received_ns, self._clock.monotonic_ns()))
        except Exception:  # noqa: BLE001 - one event that breaks its consumer must not end the others' connection
            self._counters.add(f"{self._prefix}.messages.failed")
            _LOG.exception("live_message_failed", exchange=self._exchange)

    def socket_alive(self, number: int, received_ns: int) -> None:
        """See the port."""
        self._plan.on_alive(number, received_ns, self._clock.monotonic_ns())

    def socket_ended(self, number: int, text: str) -> None:
        """See the port."""
        if self._sockets.pop(number, None) is None:
            return
        self._counters.add(f"{self._prefix}.disconnects")
        _LOG.info("socket_lost", exchange=self._exchange, connection=number, reason=text)
        self._execute(self._plan.on_closed(number, self._clock.monotonic_ns()))

    async def _turn(self) -> None:
        while True:
            try:
                self._execute(self._plan.on_tick(self._clock.monotonic_ns()))
                self._counters.set(f"{self._prefix}.connections", self._plan.open_lines)
            except Exception:  # noqa: BLE001 - the next turn may do better; ending here would silence the exchange
                self._counters.add(f"{self._prefix}.turns.failed")
                _LOG.exception("live_turn_failed", exchange=self._exchange)
            await self._clock.sleep_ns(_TURN_NS)

    def _execute(self, commands: Iterable[PlanCommand]) -> None:
        for command in commands:
            if isinstance(command, Tell):
                self._tell(command.event)
            elif isinstance(command, Open):
                task = asyncio.get_running_loop().create_task(self._open(command))
                self._opening[command.line] = task
            elif isinstance(command, Close):
                self._close(command)
            elif isinstance(command, Look):
                self._ask(command.listing)
            elif (socket := self._sockets.get(command.line)) is not None:
                if isinstance(command, SendText):
                    socket.send_text(command.data)
                else:
                    socket.send_ping()

    def _tell(self, event: SocketEvent) -> None:
        if type(event) is BadTrade:
            self._counters.add(f"{self._prefix}.{'trades.bad' if event.ticker else 'messages.unreadable'}")
            if not event.ticker:
                return
        elif type(event) is Muted or type(event) is Disconnected:
            self._counters.add(f"{self._prefix}.{type(event).__name__.lower()}")
        self._deliver(event)

    async def _open(self, command: Open) -> None:
        number = command.line
        socket = LiveSocket(number, self, wall_ns=self._clock.wall_ns, bounds=self._bounds)
        try:
            outcome = await open_socket(
                socket,
                self._base_url + command.path,
                wall_ns=self._clock.wall_ns(),
                bounds=self._bounds,
                headers=self._headers,
            )
        except asyncio.CancelledError:
            socket.close()
            raise
        except Exception as error:  # noqa: BLE001 - whatever the library raises, the plan must hear of it
            outcome = Outcome(OutcomeKind.UNKNOWN, f"{type(error).__name__} {error}")
        finally:
            self._opening.pop(number, None)
        if outcome is None:
            return
        self._counters.add(f"{self._prefix}.connects.failed")
        _LOG.warning("socket_refused", exchange=self._exchange, kind=str(outcome.kind), reason=outcome.message)
        self._execute(self._plan.on_open_failed(number, outcome, self._clock.monotonic_ns()))

    def _close(self, command: Close) -> None:
        socket = self._sockets.pop(command.line, None)
        opening = self._opening.pop(command.line, None)
        if socket is not None:
            _LOG.info("socket_closed", exchange=self._exchange, connection=command.line, reason=command.text)
            socket.close()
        elif opening is not None:
            opening.cancel()

    def _ask(self, listing: Listing) -> None:
        """Ask one market after another, so that many silent ones take little of the REST budget at a time."""
        if self._look is None:
            return
        self._to_look[str(listing.ticker)] = listing
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._ask_all(self._look))

    async def _ask_all(self, look: LookNewest) -> None:
        while self._to_look:
            ticker = next(iter(self._to_look))
            listing = self._to_look.pop(ticker)
            self._counters.add(f"{self._prefix}.looks")
            try:
                number = await look(listing)
            except ExchangeError:
                self._counters.add(f"{self._prefix}.looks.failed")
                number = None
            self._plan.on_look(ticker, number, self._clock.monotonic_ns())
