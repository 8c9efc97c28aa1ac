"""A connection plan without sockets: a scripted exchange that confirms, and time that is moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ingestors.engine.connection_commands import Close, Look, Open, PlanCommand, PlanRules, SendPing, SendText, Tell
from ingestors.engine.connection_plan import ConnectionPlan
from ingestors.engine.feed_values import FeedEvent, LiveLimits, LiveTrade, SocketEvent, Trades
from ingestors.engine.values import Listing
from tests.support.ingestors import no_jitter
from tests.support.live import SECOND_NS, listing

__all__ = ["LIMITS", "PlannedExchange", "ScriptedProtocol", "market", "trades"]

LIMITS = LiveLimits(
    tickers_max=50,
    messages_per_second_max=4,
    connects_max=20,
    connects_window_ns=60 * SECOND_NS,
    silence_ns=10 * SECOND_NS,
)


def market(number: int = 0) -> Listing:
    return listing(f"A{number}/USD.TEST")


def trades(ticker: str, *numbers: int, is_snapshot: bool = False) -> Trades:
    made = [LiveTrade(number, number * SECOND_NS, 1, 1, 0, 0, True, 0) for number in numbers]
    return Trades(ticker, made, is_snapshot)


class ScriptedProtocol:
    """Says what it is told to: a message is the position of its events in the script."""

    def __init__(self, script: list[Sequence[FeedEvent]], limits: LiveLimits) -> None:
        self._script, self._limits = script, limits

    @property
    def limits(self) -> LiveLimits:
        return self._limits

    def endpoint(self, listings: Sequence[Listing]) -> str:
        return f"/{len(listings)}"

    def subscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        return [b"+" + " ".join(str(x.ticker) for x in listings).encode()]

    def unsubscribe(self, listings: Sequence[Listing]) -> list[bytes]:
        return [b"-" + " ".join(str(x.ticker) for x in listings).encode()]

    def on_message(self, data: bytes, received_ns: int) -> Sequence[FeedEvent]:
        return self._script[int(data)]

    def on_tick(self, now_ns: int) -> list[bytes]:
        return []


@dataclass
class PlannedExchange:
    """Drives a plan and notes what it asked for.

    Attributes:
        step_ns: how far time moves between ticks.
        sent: texts by connection.
        told: events, in order.
    """

    limits: LiveLimits = LIMITS
    rules: PlanRules = field(default_factory=PlanRules)
    jitter: object = no_jitter
    step_ns: int = SECOND_NS // 10
    now_ns: int = 1_000 * SECOND_NS
    opening: dict[int, int] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    sent: dict[int, list[tuple[int, bytes]]] = field(default_factory=dict)
    pings: list[int] = field(default_factory=list)
    told: list[SocketEvent] = field(default_factory=list)
    looks: list[tuple[int, str]] = field(default_factory=list)
    script: list[Sequence[FeedEvent]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.plan = ConnectionPlan(
            lambda: ScriptedProtocol(self.script, self.limits),
            rules=self.rules,
            jitter=self.jitter,  # type: ignore[arg-type]
        )

    def do(self, commands: Sequence[PlanCommand]) -> None:
        for command in commands:
            match command:
                case Open(line):
                    self.opening[line] = self.now_ns
                case Close(line):
                    self.closed.append(line)
                    self.opening.pop(line, None)
                case SendText(line, data):
                    self.sent.setdefault(line, []).append((self.now_ns, data))
                case SendPing(line):
                    self.pings.append(line)
                case Tell(event):
                    self.told.append(event)
                case Look(found):
                    self.looks.append((self.now_ns, str(found.ticker)))

    def add(self, *numbers: int) -> None:
        for number in numbers:
            self.plan.add(market(number), self.now_ns)

    def tick(self, seconds: float = 0.1, *, alive: bool = True) -> None:
        """Move time in small steps; by default every open connection has frames."""
        for _ in range(max(1, round(seconds * SECOND_NS / self.step_ns))):
            self.now_ns += self.step_ns
            if alive:
                for line in self.live():
                    self.plan.on_alive(line, self.now_ns, self.now_ns)
            self.do(self.plan.on_tick(self.now_ns))

    def live(self) -> list[int]:
        return [line for line in self.opened if line not in self.closed]

    def open(self, line: int | None = None) -> int:
        """Let a connection that is being opened come up."""
        line = min(self.opening) if line is None else line
        del self.opening[line]
        self.opened.append(line)
        self.do(self.plan.on_opened(line, self.now_ns, self.now_ns))
        return line

    def say(self, line: int, *events: FeedEvent) -> None:
        self.script.append(events)
        self.do(self.plan.on_message(line, str(len(self.script) - 1).encode(), self.now_ns, self.now_ns))

    def lose(self, line: int) -> None:
        self.closed.append(line)
        self.do(self.plan.on_closed(line, self.now_ns))

    def texts(self, line: int) -> list[bytes]:
        return [data for _, data in self.sent.get(line, [])]
