"""Faults on demand: scripted for the next N requests or drawn with a seeded chance, by exchange and path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase
from hashlib import blake2b

import msgspec

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode

__all__ = ["ANSWERING", "Fault", "FaultBook", "FaultKind", "FaultState", "RetryAfter", "parse_fault"]


class FaultKind(StrEnum):
    """What goes wrong."""

    THROTTLED = "throttled"
    """429."""
    BANNED = "banned"
    """418."""
    HTML = "html"
    """An HTML page with ``status``."""
    ERROR = "error"
    """The exchange's own error shape with ``status`` (0: what the exchange uses), ``code`` and ``message``."""
    DISCONNECT = "disconnect"
    """The connection is dropped without an answer."""
    SLOW = "slow"
    """``delay_ms`` before the answer."""
    TRUNCATED = "truncated"
    """Half of the body."""
    EMPTY = "empty"
    """A page without rows."""
    DUPLICATES = "duplicates"
    """Every tenth row comes twice."""
    OFF_GRID = "off_grid"
    """Candles start 28.115 s late (whole seconds where the exchange sends such)."""
    HOLE = "hole"
    """Rows of [start_ns, end_ns) are missing; without a range, the middle third of the page."""
    IGNORE_START = "ignore_start"
    """The start is ignored: the newest page is served."""


class RetryAfter(StrEnum):
    """How a 429 or 418 says when to come back."""

    SECONDS = "seconds"
    DATE = "date"
    MISSING = "missing"


ANSWERING = frozenset({FaultKind.THROTTLED, FaultKind.BANNED, FaultKind.HTML, FaultKind.ERROR, FaultKind.DISCONNECT})
"""Kinds that replace the answer; the others bend it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault to happen.

    Attributes:
        kind: what goes wrong.
        exchange: its name (``binance``), or ``*``.
        path: pattern of the path below the exchange's base, ``/api/v3/klines`` or ``*``.
        count: happens so often, then never again; None means until cleared.
        percent: chance for each matching request, drawn from the book's seed.
        retry_after, retry_after_seconds: header of a 429 or 418.
        status: of an HTML page or an error; 0 takes the usual one.
        code, message: of an error.
        delay_ms: of a slow answer.
        start_ns, end_ns: range of a hole.
    """

    kind: FaultKind
    exchange: str = "*"
    path: str = "*"
    count: int | None = None
    percent: int = 100
    retry_after: RetryAfter = RetryAfter.SECONDS
    retry_after_seconds: int = 1
    status: int = 0
    code: int | str | None = None
    message: str | None = None
    delay_ms: int = 1_000
    start_ns: int | None = None
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault in the book: how often it may still happen (None: no limit) and how often it did."""

    number: int
    fault: Fault
    remaining: int | None
    happened: int


@dataclass(slots=True)
class _Entry:
    number: int
    fault: Fault
    remaining: int | None
    asked: int = 0
    happened: int = 0


def parse_fault(value: object) -> Fault:
    """Return the fault that a JSON object describes.

    Raises:
        PeerError: INVALID_REQUEST, with what was expected.
    """
    names = {field.name for field in fields(Fault)}
    unknown = set(value) - names if isinstance(value, Mapping) else set()
    if unknown:
        raise PeerError(
            f"expected a fault of {', '.join(sorted(names))}; got {', '.join(sorted(map(str, unknown)))}",
            code=ErrorCode.INVALID_REQUEST,
        )
    try:
        fault = msgspec.convert(value, Fault)
    except msgspec.ValidationError as error:
        raise PeerError(f"expected a fault as a JSON object: {error}", code=ErrorCode.INVALID_REQUEST) from error
    if not 1 <= fault.percent <= 100 or (fault.count is not None and fault.count < 1) or fault.delay_ms < 0:
        raise PeerError(
            f"expected percent 1..100, count from 1, delay_ms from 0; got {fault}", code=ErrorCode.INVALID_REQUEST
        )
    return fault


class FaultBook:
    """The faults in force, in the order in which they were added.

    A request takes at most one answering fault (then nothing else), and otherwise at most one of each bending kind:
    so scripts such as "429, then 503, then an empty page" are three faults with count 1.

    Args:
        faults: in force from the start.
        seed: of the chances.
    """

    def __init__(self, faults: Iterable[Fault] = (), *, seed: int = 1) -> None:
        self._seed = seed
        self._entries: list[_Entry] = []
        self._added = 0
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> int:
        """Put a fault into force and return its number."""
        self._added += 1
        self._entries.append(_Entry(self._added, fault, fault.count))
        return self._added

    def clear(self) -> None:
        """Take every fault out of force."""
        self._entries.clear()

    def states(self) -> Sequence[FaultState]:
        """Return every fault added since the last clearing."""
        return [FaultState(e.number, e.fault, e.remaining, e.happened) for e in self._entries]

    def take(self, exchange: str, path: str) -> tuple[Fault, ...]:
        """Return the faults that happen to one request, counting them."""
        taken: list[Fault] = []
        for entry in self._entries:
            fault = entry.fault
            if entry.remaining == 0 or not _matches(fault, exchange, path):
                continue
            if any(fault.kind == other.kind for other in taken) or (taken and fault.kind in ANSWERING):
                continue
            if self._drawn(entry):
                entry.happened += 1
                entry.remaining = None if entry.remaining is None else entry.remaining - 1
                taken.append(fault)
                if fault.kind in ANSWERING:
                    break
        return tuple(taken)

    def _drawn(self, entry: _Entry) -> bool:
        entry.asked += 1
        text = f"{self._seed}/{entry.number}/{entry.asked}"
        number = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
        return number % 100 < entry.fault.percent


def _matches(fault: Fault, exchange: str, path: str) -> bool:
    return fault.exchange in ("*", exchange) and fnmatchcase(path, fault.path)
