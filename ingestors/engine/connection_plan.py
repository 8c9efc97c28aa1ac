"""Which tickers share which connection of an exchange, and what happens to them when connections end.

::

    connection   waiting ──(due, admitted)──► opening ──► open ──(lost)──► a new one, waiting
    ticker       asked for ──(confirmed on one)──► Connected ──(confirmed on none)──► Disconnected
                 silent although newer trades exist ──► Muted, subscribed again; the second time on a new connection

A connection that is to end while it still works is replaced first: its successor confirms everything, both run for a
while, then the old one is closed; the tickers notice nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingestors.engine.budget import Jitter
from ingestors.engine.connection_commands import Close, LineProtocol, Look, Open, PlanCommand, PlanRules, Tell
from ingestors.engine.connection_line import Line, LinePhase
from ingestors.engine.feed_values import (
    Connected,
    Disconnected,
    FeedEvent,
    Leave,
    LostCause,
    Muted,
    Proof,
    Refused,
    Subscribed,
    Trades,
)
from ingestors.engine.outcomes import Outcome, OutcomeKind
from ingestors.engine.reconnect import ConnectGate, retry_wait_ns
from ingestors.engine.ticker_watch import TickerWatch
from ingestors.engine.values import Listing

__all__ = ["ConnectionPlan"]

_REFUSALS = (OutcomeKind.THROTTLED, OutcomeKind.BANNED, OutcomeKind.MAINTENANCE)
_MARGIN_MAX_NS = 600_000_000_000


class ConnectionPlan:
    """State of one exchange's connections; one call for each event or tick, with the monotonic time.

    Args:
        make_protocol: makes one connection's protocol.
        rules: bounds.
        jitter: returns a whole number of [0, n).
    """

    def __init__(self, make_protocol: Callable[[], LineProtocol], *, rules: PlanRules, jitter: Jitter) -> None:
        self._make_protocol, self._rules, self._jitter = make_protocol, rules, jitter
        self._limits = make_protocol().limits
        self._gate = ConnectGate(self._limits, rules, jitter=jitter)
        self._tickers_max = min(self._limits.tickers_max, rules.tickers_max)
        self._lines: dict[int, Line] = {}
        self._watches: dict[str, TickerWatch] = {}
        self._made = 0
        self._swept_ns = 0

    @property
    def open_lines(self) -> int:
        """How many connections are open."""
        return sum(line.phase is LinePhase.OPEN for line in self._lines.values())

    def alive_ns(self, ticker: str) -> int:
        """Return the wall time of the newest frame on a ticker's connection, 0 when it has none."""
        watch = self._watches.get(ticker)
        lines = (self._lines[number] for number in watch.serving) if watch is not None else ()
        return max((line.alive_wall_ns for line in lines), default=0)

    def add(self, listing: Listing, now_ns: int) -> None:
        """Take a market on; the next tick subscribes it."""
        ticker = str(listing.ticker)
        if ticker in self._watches:
            return
        self._watches[ticker] = TickerWatch(listing, heard_ns=now_ns)
        for line in self._lines.values():
            if line.successor is None and line.retire_ns is None and len(line.listings) < self._tickers_max:
                line.put(listing)
                return
        self._new_line({ticker: listing}, due_ns=now_ns)

    def remove(self, ticker: str) -> list[PlanCommand]:
        """Give a market up."""
        return self._drop(ticker, is_refused=False)

    def on_opened(self, number: int, received_ns: int, now_ns: int) -> list[PlanCommand]:
        """A connection is up: subscribe what belongs on it."""
        line = self._lines.get(number)
        if line is None:
            return []
        self._gate.succeeded()
        line.opened(now_ns)
        line.heard(received_ns, now_ns)
        life_ns = self._limits.lifetime_ns
        if life_ns is not None:
            margin_ns = min(life_ns // 10, _MARGIN_MAX_NS)
            line.end_ns = now_ns + life_ns - margin_ns - self._jitter(margin_ns + 1)
        return line.send_due(now_ns)

    def on_open_failed(self, number: int, outcome: Outcome, now_ns: int) -> list[PlanCommand]:
        """A connection did not come up; a refusal of this address makes all others wait as well."""
        line = self._lines.get(number)
        if line is None:
            return []
        wait_ns = outcome.wait_ns or 0
        if outcome.kind in _REFUSALS:
            wait_ns = self._gate.refused(outcome.wait_ns, now_ns) - now_ns
        else:
            self._gate.failed()
        return self._lost(line, LostCause.DISCONNECT, now_ns, wait_ns=wait_ns)

    def on_alive(self, number: int, received_ns: int, now_ns: int) -> None:
        """A frame without a message came."""
        line = self._lines.get(number)
        if line is not None:
            line.heard(received_ns, now_ns)

    def on_message(self, number: int, data: bytes, received_ns: int, now_ns: int) -> list[PlanCommand]:
        """A message came."""
        line = self._lines.get(number)
        if line is None:
            return []
        line.heard(received_ns, now_ns)
        commands: list[PlanCommand] = []
        for event in line.protocol.on_message(data, received_ns):
            if number not in self._lines:
                # An earlier event of the message ended it.
                break
            if type(event) is not Trades:
                commands += self._on_event(line, event, now_ns)
            elif event.ticker in line.listings:
                if event.ticker not in line.confirmed:
                    commands += self._confirm(line, event.ticker)
                self._watches[event.ticker].on_trades(event, now_ns)
                commands.append(Tell(event))
        return commands

    def on_closed(self, number: int, now_ns: int) -> list[PlanCommand]:
        """A connection has ended, whoever ended it and however."""
        line = self._lines.get(number)
        return [] if line is None else self._lost(line, LostCause.DISCONNECT, now_ns)

    def on_look(self, ticker: str, last_number: int | None, now_ns: int) -> None:
        """The exchange said which trade is a silent market's newest; None when it could not be asked."""
        watch = self._watches.get(ticker)
        if watch is not None and last_number is not None:
            watch.on_evidence(last_number, now_ns)

    def on_tick(self, now_ns: int) -> list[PlanCommand]:
        """Do what is due."""
        commands: list[PlanCommand] = []
        for line in tuple(self._lines.values()):
            if line.number not in self._lines:
                continue
            if line.phase is LinePhase.OPEN:
                commands += self._tend(line, now_ns)
            elif line.phase is LinePhase.WAITING and line.due_ns <= now_ns and self._gate.admits(now_ns):
                line.phase = LinePhase.OPENING
                commands.append(Open(line.number, line.protocol.endpoint(tuple(line.listings.values()))))
        if now_ns - self._swept_ns >= self._rules.sweep_ns:
            self._swept_ns = now_ns
            for ticker in tuple(self._watches):
                commands += self._sweep(ticker, now_ns)
        return commands

    def close(self) -> list[PlanCommand]:
        """End everything."""
        numbers = list(self._lines)
        self._lines.clear()
        self._watches.clear()
        return [Close(number, "closed") for number in numbers]

    def _tend(self, line: Line, now_ns: int) -> list[PlanCommand]:
        if line.is_silent(now_ns):
            return [Close(line.number, "silent"), *self._lost(line, LostCause.SILENCE, now_ns)]
        if line.retire_ns is not None and line.retire_ns <= now_ns:
            return self._retire(line)
        if line.end_ns is not None and line.end_ns <= now_ns:
            self._hand_over(line, due_ns=now_ns)
        old = self._lines.get(line.replaces) if line.replaces is not None else None
        if old is not None and old.retire_ns is None and line.is_complete:
            old.retire_ns = now_ns + self._rules.overlap_ns
        return [*line.send_due(now_ns), *line.ping_due(now_ns)]

    def _sweep(self, ticker: str, now_ns: int) -> list[PlanCommand]:
        watch, rules = self._watches[ticker], self._rules
        lines = [line for line in self._lines.values() if ticker in line.listings and line.phase is LinePhase.OPEN]
        if not lines:
            return []
        since_ns = lines[-1].awaiting.get(ticker)
        is_unconfirmed = since_ns is not None and now_ns - since_ns >= watch.patience_ns(rules.confirm_ns)
        if watch.is_mute(now_ns, rules) or (is_unconfirmed and not watch.serving):
            return self._mute(watch, lines, now_ns)
        if watch.serving and watch.is_look_due(now_ns, rules):
            watch.looked(now_ns)
            return [Look(watch.listing)]
        return []

    def _mute(self, watch: TickerWatch, lines: Sequence[Line], now_ns: int) -> list[PlanCommand]:
        """Tell it, and subscribe again; when that was in vain before, on a new connection."""
        ticker, line = str(watch.listing.ticker), lines[-1]
        watch.muted(now_ns)
        for holder in lines:
            holder.confirmed.discard(ticker)
        line.subscribe_again(ticker, now_ns)
        if watch.mutes > 1:
            self._hand_over(line, due_ns=now_ns)
        return [Tell(Muted(ticker)), *line.send_due(now_ns)]

    def _on_event(self, line: Line, event: FeedEvent, now_ns: int) -> list[PlanCommand]:
        if isinstance(event, Leave):
            return self._leave(line, event, now_ns)
        if event.ticker and event.ticker not in line.listings:
            return []
        if isinstance(event, Subscribed):
            return self._confirm(line, event.ticker)
        if isinstance(event, Refused):
            return [Tell(event), *self._drop(event.ticker, is_refused=True)]
        if isinstance(event, Proof):
            watch = self._watches[event.ticker]
            watch.heard_ns = now_ns
            watch.on_evidence(event.last_number, now_ns)
        return [Tell(event)]

    def _leave(self, line: Line, leave: Leave, now_ns: int) -> list[PlanCommand]:
        if leave.is_planned:
            self._hand_over(line, due_ns=now_ns + leave.wait_ns)
            return []
        return [Close(line.number, leave.text), *self._lost(line, leave.cause, now_ns, wait_ns=leave.wait_ns)]

    def _confirm(self, line: Line, ticker: str) -> list[PlanCommand]:
        line.awaiting.pop(ticker, None)
        line.confirmed.add(ticker)
        watch = self._watches[ticker]
        watch.serving.add(line.number)
        if watch.is_told:
            return []
        watch.is_told = True
        return [Tell(Connected(ticker))]

    def _drop(self, ticker: str, *, is_refused: bool) -> list[PlanCommand]:
        self._watches.pop(ticker, None)
        commands: list[PlanCommand] = []
        for line in tuple(self._lines.values()):
            line.drop(ticker, is_refused=is_refused)
            if not line.listings:
                commands += self._retire(line)
        return commands

    def _hand_over(self, line: Line, *, due_ns: int) -> None:
        line.end_ns = None
        # One that is itself still taking over is left to its end.
        if line.successor is None and line.retire_ns is None and line.replaces is None:
            successor = self._new_line(dict(line.listings), due_ns=due_ns)
            successor.replaces, line.successor = line.number, successor.number

    def _retire(self, line: Line) -> list[PlanCommand]:
        """Close a connection that is not needed any more."""
        del self._lines[line.number]
        self._unlink(line)
        for ticker in line.listings:
            self._watches[ticker].serving.discard(line.number)
        return [] if line.phase is LinePhase.WAITING else [Close(line.number, "not needed any more")]

    def _lost(self, line: Line, cause: LostCause, now_ns: int, *, wait_ns: int = 0) -> list[PlanCommand]:
        """Go on without a connection: its tickers have another, or get one when it is time."""
        del self._lines[line.number]
        old, successor = self._unlink(line)
        commands: list[PlanCommand] = []
        for ticker in line.listings:
            watch = self._watches[ticker]
            watch.serving.discard(line.number)
            if watch.is_told and not watch.serving:
                watch.is_told = False
                commands.append(Tell(Disconnected(ticker, cause)))
        if successor is not None:
            return commands
        has_lived = line.phase is LinePhase.OPEN and now_ns - line.opened_ns >= self._rules.settled_ns
        failures = 1 if has_lived else line.failures + 1
        due_ns = now_ns + max(retry_wait_ns(failures, self._rules, self._jitter), wait_ns)
        again = self._new_line(line.listings, due_ns=due_ns)
        again.failures = failures
        if old is not None:
            again.replaces, old.successor, old.retire_ns = old.number, again.number, None
        return commands

    def _unlink(self, line: Line) -> tuple[Line | None, Line | None]:
        """Take a connection out of its hand-over; return the one before and the one behind it."""
        old = self._lines.get(line.replaces) if line.replaces is not None else None
        successor = self._lines.get(line.successor) if line.successor is not None else None
        if old is not None:
            old.successor = None
        if successor is not None:
            successor.replaces = None
        return old, successor

    def _new_line(self, listings: dict[str, Listing], *, due_ns: int) -> Line:
        self._made += 1
        line = self._lines[self._made] = Line(self._made, self._make_protocol(), listings, due_ns=due_ns)
        return line
