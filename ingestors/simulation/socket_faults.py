"""Faults of the sockets, on demand: in the same style as those of REST, by exchange and market."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import blake2b

import msgspec

from ingestors.simulation.socket_values import ABRUPT
from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = ["OF_TRADES", "SocketFault", "SocketFaultBook", "SocketFaultKind", "SocketFaultState", "parse_socket_fault"]


class SocketFaultKind(StrEnum):
    """What goes wrong."""

    DISCONNECT = "disconnect"
    """Open connections end with ``close_code`` (1006: no close frame), whatever the symbol; with ``every_trades`` or
    ids, those subscribed end just before such a trade."""
    MUTE = "mute"
    """Nothing is sent on ``channel`` (``*``, ``trades`` or ``heartbeats``); connections stay open."""
    DROP = "drop"
    """The message of a trade is lost; REST has the trade."""
    DOUBLE = "double"
    """The trade comes twice."""
    REORDER = "reorder"
    """The trade comes after the next ``window`` ones, or after ``delay_ms`` when there are none."""
    ZERO_PRICE = "zero_price"
    """The trade comes with price 0."""
    BAD_JSON = "bad_json"
    """The trade's message is text that is no JSON; a binary one names another schema."""
    TRUNCATED = "truncated"
    """Half of the trade's message."""
    SNAPSHOT = "snapshot"
    """The newest trades are sent again to everybody subscribed, as after subscribing."""
    NO_PING = "no_ping"
    """The server sends no pings."""
    NO_PONG = "no_pong"
    """The client's pings stay unanswered."""
    SLOW_PONG = "slow_pong"
    """The client's pings are answered after ``delay_ms``."""
    REFUSE = "refuse"
    """Handshakes are answered with ``status``, HTML unless ``is_json``."""
    MAINTENANCE = "maintenance"
    """Kraken's status message says maintenance, to open and new connections; clearing it says online."""
    SHUTDOWN = "shutdown"
    """Binance's ``serverShutdown``, then close code 1001 after ``delay_ms``."""


_KIND = SocketFaultKind
OF_TRADES = frozenset(
    {_KIND.DROP, _KIND.DOUBLE, _KIND.REORDER, _KIND.ZERO_PRICE, _KIND.BAD_JSON, _KIND.TRUNCATED, _KIND.DISCONNECT}
)
"""Kinds that are drawn for every trade."""
_ONCE = frozenset({_KIND.SNAPSHOT, _KIND.SHUTDOWN})
"""Kinds that happen once when no count is given."""


@dataclass(frozen=True, slots=True)
class SocketFault:
    """One fault to happen.

    Attributes:
        kind: what goes wrong.
        exchange: its name (``binance``), or ``*``.
        symbol: pattern of the unified symbol, ``BTC/USDT`` or ``*``.
        count: happens so often (trades, connections, handshakes), then never again; None means until cleared.
        percent: chance for each trade, ping or handshake, drawn from the book's seed.
        first_id, last_id: only trades of these ids, both included.
        every_trades: only each so-manieth trade of the matching ones; 0 for all.
        channel: of a mute.
        close_code: of a disconnect.
        window: trades that overtake a reordered one.
        delay_ms: of a late pong, a held trade, the end after a shutdown event.
        status, is_json, retry_after_seconds: of a refused handshake; 0 seconds for no Retry-After.
    """

    kind: SocketFaultKind
    exchange: str = "*"
    symbol: str = "*"
    count: int | None = None
    percent: int = 100
    first_id: int | None = None
    last_id: int | None = None
    every_trades: int = 0
    channel: str = "*"
    close_code: int = ABRUPT
    window: int = 1
    delay_ms: int = 1_000
    status: int = 503
    is_json: bool = False
    retry_after_seconds: int = 0

    @property
    def waits_for_trade(self) -> bool:
        """Whether it happens at trades, not at once."""
        is_bound = self.first_id is not None or self.last_id is not None or self.every_trades > 0
        return self.kind in OF_TRADES and (self.kind != SocketFaultKind.DISCONNECT or is_bound)


@dataclass(frozen=True, slots=True)
class SocketFaultState:
    """A fault in the book: how often it may still happen (None: no limit) and how often it did."""

    number: int
    fault: SocketFault
    remaining: int | None
    happened: int


@dataclass(slots=True)
class _Entry:
    number: int
    fault: SocketFault
    remaining: int | None
    asked: int = 0
    happened: int = 0


def parse_socket_fault(value: object) -> SocketFault:
    """Return the fault that a JSON object describes.

    Raises:
        PeerError: INVALID_REQUEST, with what was expected.
    """
    names = {field.name for field in fields(SocketFault)}
    unknown = set(value) - names if isinstance(value, Mapping) else set()
    if unknown:
        raise _invalid(f"expected a fault of {', '.join(sorted(names))}; got {', '.join(sorted(map(str, unknown)))}")
    try:
        fault = msgspec.convert(value, SocketFault)
    except msgspec.ValidationError as error:
        raise _invalid(f"expected a fault as a JSON object: {error}") from error
    if not 1 <= fault.percent <= 100 or (fault.count is not None and fault.count < 1):
        raise _invalid(f"expected percent 1..100 and count from 1; got {fault}")
    if min(fault.delay_ms, fault.every_trades, fault.retry_after_seconds) < 0 or fault.window < 1:
        raise _invalid(f"expected delay_ms, every_trades, retry_after_seconds from 0 and window from 1; got {fault}")
    if fault.channel not in ("*", "trades", "heartbeats") or not 400 <= fault.status <= 599:
        raise _invalid(f"expected channel *, trades or heartbeats and status 400..599; got {fault}")
    return fault


class SocketFaultBook:
    """The faults in force, in the order in which they were added.

    Args:
        faults: in force from the start.
        seed: of the chances.
    """

    def __init__(self, faults: Iterable[SocketFault] = (), *, seed: int = 1) -> None:
        self._seed = seed
        self._entries: list[_Entry] = []
        self._added = 0
        self.has_trade_faults = False
        for fault in faults:
            self.add(fault)

    def add(self, fault: SocketFault) -> int:
        """Put a fault into force and return its number."""
        self._added += 1
        remaining = 1 if fault.count is None and fault.kind in _ONCE else fault.count
        self._entries.append(_Entry(self._added, fault, remaining))
        self.has_trade_faults |= fault.waits_for_trade
        return self._added

    def clear(self) -> None:
        """Take every fault out of force."""
        self._entries.clear()
        self.has_trade_faults = False

    def states(self) -> Sequence[SocketFaultState]:
        """Return every fault added since the last clearing."""
        return [SocketFaultState(e.number, e.fault, e.remaining, e.happened) for e in self._entries]

    def take(self, kind: SocketFaultKind, exchange: str) -> SocketFault | None:
        """Return the first fault of a kind that happens now, counting it; not those that wait for a trade."""
        for entry in self._entries:
            fault = entry.fault
            if fault.kind == kind and not fault.waits_for_trade and self._happens(entry, exchange, fault.symbol):
                return fault
        return None

    def holds(self, kind: SocketFaultKind, exchange: str, *, symbol: str = "*", channel: str = "*") -> bool:
        """Return whether a lasting fault is in force, without counting it.

        A fault of channel ``*`` holds for every channel; one of a single market holds only when that is asked for.
        """
        for entry in self._entries:
            fault = entry.fault
            is_so = entry.remaining != 0 and fault.kind == kind and fault.channel in ("*", channel)
            if is_so and _matches(fault, exchange, symbol):
                return True
        return False

    def take_for_trade(self, exchange: str, symbol: str, trade_id: int) -> list[SocketFault]:
        """Return the faults that happen to one trade, at most one of each kind, counting them."""
        taken: list[SocketFault] = []
        for entry in self._entries:
            fault = entry.fault
            if not fault.waits_for_trade or any(fault.kind == other.kind for other in taken):
                continue
            if fault.first_id is not None and trade_id < fault.first_id:
                continue
            if fault.last_id is not None and trade_id > fault.last_id:
                continue
            if self._happens(entry, exchange, symbol):
                taken.append(fault)
        return taken

    def _happens(self, entry: _Entry, exchange: str, symbol: str) -> bool:
        fault = entry.fault
        if entry.remaining == 0 or not _matches(fault, exchange, symbol):
            return False
        entry.asked += 1
        if fault.every_trades and entry.asked % fault.every_trades:
            return False
        text = f"{self._seed}/{entry.number}/{entry.asked}"
        if int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % 100 >= fault.percent:
            return False
        entry.happened += 1
        entry.remaining = None if entry.remaining is None else entry.remaining - 1
        return True


def _matches(fault: SocketFault, exchange: str, symbol: str) -> bool:
    return fault.exchange in ("*", exchange) and (symbol == fault.symbol or fnmatchcase(symbol, fault.symbol))


def _invalid(text: str) -> PeerError:
    return PeerError(text, code=ErrorCode.INVALID_REQUEST)
