"""All triggers at work on the records of the log: the matcher, and the bars that are made for it. Pure.

::

    definition ──► matcher ──► tickers and periods that it looks at
    trade, gap ──► bars                    │
    trade ───────► matcher                 ▼
    beat ────────► bars ──► final bars ──► matcher, then the mark ──► firings
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from relay.engine.pattern_values import Source
from relay.engine.patterns import check_registration
from relay.errors import StorageError
from relay.protocol.v1 import trigger_pb2
from spark_jobs.jobs.bars.decode import BarEvent
from spark_jobs.jobs.bars.engine.bar_book import BarBook
from spark_jobs.jobs.bars.engine.values import BarRules, BarTrade, Beat, GapNotice, MadeBar
from spark_jobs.jobs.triggers.engine.matcher import Matcher
from spark_jobs.jobs.triggers.engine.values import Bar, Firing, MatcherRules, Outcome, Tick, TimeMark, Trigger

__all__ = ["Fired", "TriggerBook"]


class Fired(NamedTuple):
    """A firing, and the client that is told of it besides whoever listens; empty for none."""

    firing: Firing
    client_id: str


class TriggerBook:
    """Takes definitions and the log's records of the tickers that they name; gives firings.

    Args:
        lateness_ns: how long after a time its events are waited for, by the ticker's own time.
    """

    def __init__(self, *, lateness_ns: int) -> None:
        self._lateness_ns = lateness_ns
        self._rules = MatcherRules(lateness_ns=lateness_ns)
        self._matcher = Matcher(self._rules)
        # A bar counts once, when it is first made: none is kept for revisions, but what a hole may still bring is.
        self._bars = BarBook(BarRules(lateness_ns=lateness_ns, keep_ns=0, keeps_holes=True), self._periods_of)
        self._named: dict[str, frozenset[int]] = {}
        self._clients: dict[str, str] = {}
        self._is_renamed = False

    @property
    def tickers(self) -> frozenset[str]:
        """Tickers that a trigger names; records of others are not needed."""
        self._rename()
        return frozenset(self._named)

    @property
    def counts(self) -> Mapping[str, int]:
        """What happened since the start of the process, by name."""
        return self._matcher.counts

    @property
    def held(self) -> int:
        """How many hits triggers of several sources hold back until the slowest has come so far."""
        return self._matcher.held

    @property
    def begun(self) -> int:
        """How many matches are begun."""
        return self._matcher.begun

    @property
    def since_ns(self) -> int | None:
        """When the first of the triggers was registered; None without any."""
        return min((trigger.since_ns for trigger in self._matcher.triggers.values()), default=None)

    def __len__(self) -> int:
        """Return how many triggers are matched."""
        return len(self._matcher.triggers)

    def client_of(self, trigger_id: str) -> str:
        """Return the owner of a trigger; empty when it has named none, or is not matched."""
        return self._clients.get(trigger_id, "")

    def register(self, request: trigger_pb2.CEPTriggerRequest, *, since_ns: int) -> bool:
        """Match a trigger; what is told again changes nothing.

        Args:
            request: its definition.
            since_ns: when it was registered; events before do not exist for it.

        Returns:
            Whether it is matched; False when it is over.

        Raises:
            PatternError: with the place and the reason.
        """
        check_registration(request)
        is_matched = self._matcher.add(Trigger.of(request, since_ns=since_ns))
        if is_matched and request.client_id:
            self._clients[request.trigger_id] = request.client_id
        else:
            self._clients.pop(request.trigger_id, None)
        self._is_renamed = True
        return is_matched

    def cancel(self, trigger_id: str) -> bool:
        """Match a trigger no longer; return whether it was known."""
        self._clients.pop(trigger_id, None)
        self._is_renamed = True
        return self._matcher.remove(trigger_id)

    def let_go(self, before_ns: int) -> int:
        """Match triggers no longer that expired before a time, though their tickers have not come so far."""
        over = [t.trigger_id for t in self._matcher.triggers.values() if 0 < t.expires_ns < before_ns]
        for trigger_id in over:
            self.cancel(trigger_id)
        return len(over)

    def doubt(self, tickers: Iterable[str]) -> None:
        """Records of tickers were lost: bars that are under way are not whole."""
        for ticker in set(tickers) & set(self._bars.tickers):
            self._bars.doubt(ticker)

    def take(self, events: Iterable[BarEvent]) -> list[Fired]:
        """Take records of named tickers, each ticker's in the order of the log; return what fired."""
        self._rename()
        fired: list[Fired] = []
        for event in events:
            ticker, said = event.ticker, event.said
            if ticker not in self._named:
                continue
            if isinstance(said, BarTrade):
                self._bars.on_trade(ticker, said)
                self._note(self._matcher.on_tick(_tick(ticker, said)), fired)
            elif isinstance(said, GapNotice):
                self._bars.on_gap(ticker, said, offset=event.offset)
            elif isinstance(said, Beat):
                self._beat(ticker, said, fired)
        return fired

    def encode(self) -> tuple[bytes, bytes, dict[str, str]]:
        """Return the state: of the matcher, of the bars, and the owners."""
        self._rename()
        return self._matcher.encode(), self._bars.encode(), dict(self._clients)

    def restore(self, matcher: bytes, bars: bytes, clients: Mapping[str, str]) -> None:
        """Take over an encoded state; nothing changes when it is refused.

        Raises:
            StorageError: it is cut short, damaged, or of another version.
        """
        matched = Matcher.decode(matcher, self._rules)
        before = self._matcher, self._named
        self._matcher, self._named = matched, _named(matched.sources)
        try:
            self._bars.restore(bars)
        except StorageError:
            self._matcher, self._named = before
            raise
        self._clients = dict(clients)

    def _beat(self, ticker: str, beat: Beat, fired: list[Fired]) -> None:
        # Also of a feed that has stopped: the attempt that comes next fills the hole, or says that nobody can.
        for made in self._bars.on_beat(ticker, beat._replace(is_down=False)):
            # What was not seen whole is no event: nobody knows what it would say.
            if isinstance(made, MadeBar) and not made.incomplete and not made.revision:
                self._note(self._matcher.on_bar(_bar(made)), fired)
        if not beat.is_down and beat.attempt >= self._bars.tickers[ticker].attempt:
            for mark in self._marks(ticker):
                self._note(self._matcher.on_mark(mark), fired)

    def _marks(self, ticker: str) -> Iterator[TimeMark]:
        """Yield how far a ticker's ticks have come, and its bars: not past one that a hole may still bring."""
        state = self._bars.tickers[ticker]
        yield TimeMark(ticker, state.reached_ns, 0)
        for period_seconds, series in state.series.items():
            held = [start for start in series.open if start >= series.active_ns]
            held += [start for gap in state.gaps.open if (start := series.first_open(gap.from_ns)) <= gap.to_ns]
            ends = [start + series.period_ns + self._lateness_ns for start in held]
            yield TimeMark(ticker, min([state.reached_ns, *ends]), period_seconds)

    def _note(self, outcomes: Iterable[Outcome], fired: list[Fired]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, Firing):
                fired.append(Fired(outcome, self.client_of(outcome.trigger_id)))
            else:
                self._clients.pop(outcome.trigger_id, None)
                self._is_renamed = True

    def _periods_of(self, ticker: str) -> frozenset[int]:
        return self._named.get(ticker, frozenset())

    def _rename(self) -> None:
        """Make bars of what is named now, and of nothing else: what is not read cannot be known."""
        if not self._is_renamed:
            return
        before, self._named = self._named, _named(self._matcher.sources)
        self._is_renamed = False
        for ticker in before.keys() - self._named.keys():
            self._bars.forget(ticker)
        for ticker, periods in self._named.items():
            if periods != before.get(ticker):
                self._bars.want(ticker)


def _named(sources: Iterable[Source]) -> dict[str, frozenset[int]]:
    """Return the periods of bars that are named, by ticker."""
    found: dict[str, set[int]] = {}
    for source in sources:
        periods = found.setdefault(source.ticker, set())
        if source.period_seconds:
            periods.add(source.period_seconds)
    return {ticker: frozenset(periods) for ticker, periods in found.items()}


def _tick(ticker: str, trade: BarTrade) -> Tick:
    return Tick(
        ticker,
        trade.time_ns,
        trade.number,
        trade.price,
        trade.price_decimals,
        trade.amount,
        trade.amount_decimals,
        trade.offset,
    )


def _bar(made: MadeBar) -> Bar:
    return Bar(
        made.ticker,
        made.period_seconds,
        made.start_ns,
        made.open,
        made.high,
        made.low,
        made.close,
        made.price_decimals,
        made.buy + made.sell,
        made.amount_decimals,
        made.trades,
        made.revision,
    )
