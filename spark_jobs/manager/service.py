"""The manager: its sockets' messages and its ticks, handed to the engines; their commands, executed."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from relay.errors import StorageError
from relay.observability import Counters
from relay.protocol.codes import RejectReason
from relay.protocol.envelope import EnvelopeError, EnvelopeLimits, decode
from relay.protocol.periods import NANOSECONDS, WANTED_PERIODS_MAX
from relay.protocol.registry import Channel
from relay.transport import Socket
from spark_jobs.manager.control_teller import ControlTeller
from spark_jobs.manager.engine.broker import Broker
from spark_jobs.manager.engine.commands import Command, EndJob, Publish
from spark_jobs.manager.engine.exchange_schedule import ExchangeSchedule, served_exchanges
from spark_jobs.manager.engine.jobs import JobBook
from spark_jobs.manager.engine.model import Job
from spark_jobs.manager.engine.realtime import RealtimeBook
from spark_jobs.manager.engine.triggers import TriggerBook
from spark_jobs.manager.engine.work import WorkEngine, is_sound
from spark_jobs.manager.executor import CommandExecutor
from spark_jobs.manager.firings_reader import FiringsReader
from spark_jobs.manager.forwarder import NotificationForwarder
from spark_jobs.manager.intake import RequestIntake
from spark_jobs.manager.log_watch import LogWatch
from spark_jobs.manager.lookups import Answered, Failed, JobsQuestion, TableLookups
from spark_jobs.manager.ports import JobStore
from spark_jobs.manager.publisher import Publisher
from spark_jobs.manager.replays import ReplayDesk
from spark_jobs.manager.settings import ManagerSettings
from spark_jobs.manager.statistics import StatisticsDesk
from spark_jobs.manager.statistics_reader import StatisticsReader
from spark_jobs.manager.symbols import SymbolDesk

__all__ = ["ManagerService", "ManagerSockets"]

_log = structlog.get_logger(__name__)
_SLOW_COVERAGE_NS = 5 * NANOSECONDS
"""After so long it is asked whether what an attempt delivered is still in the log."""


@dataclass(frozen=True, slots=True)
class ManagerSockets:
    """The four bound sockets."""

    requests: Socket
    work: Socket
    notifications: Socket
    publish: Socket


class ManagerService:
    """One manager process without its loop: every method takes the present time and returns soon.

    Args:
        settings: bounds and times.
        store: job table; owned by the loop's thread.
        lookups: reads of the tables.
        replays: reads of the event log.
        statistics: reads of the newest statistics in the event log.
        sockets: bound ones.
        counters: of the process.
        now_ns: present time.
        log_watch: tells where the event log ends, so that lost records are fetched again; None to trust the log.
        control: tells the jobs which bars are subscribed and which triggers are registered; None to tell nobody.
        firings: reads which triggers fired while the manager was away; None to read nothing.
    """

    def __init__(
        self,
        settings: ManagerSettings,
        *,
        store: JobStore,
        lookups: TableLookups,
        replays: ReplayDesk,
        statistics: StatisticsReader,
        sockets: ManagerSockets,
        counters: Counters,
        now_ns: int,
        log_watch: LogWatch | None = None,
        control: ControlTeller | None = None,
        firings: FiringsReader | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._lookups = lookups
        self._log_watch = log_watch
        self._control = control if control is not None else ControlTeller(None, topic_prefix="")
        self._firings = firings
        self._replays = replays
        self._statistics_log = statistics
        self._counters = counters
        self._limits = EnvelopeLimits(settings.message_bytes_max, settings.frames_max)
        self._publisher = Publisher(sockets.publish, epoch=_new_epoch(), counters=counters)
        self._executor = CommandExecutor(
            store,
            requests=sockets.requests,
            work=sockets.work,
            publisher=self._publisher,
            tell_trigger=self._control.tell_trigger,
            counters=counters,
        )
        self._is_looking = False
        self._next_reconcile_ns = self._next_beat_ns = self._next_prune_ns = 0
        self._exchanges = set(settings.exchanges)
        self._symbol_schedule = ExchangeSchedule(settings.symbols_every_seconds * NANOSECONDS, now_ns=now_ns)
        self._statistics = StatisticsDesk(
            settings.statistics_rules(),
            exchanges=self._exchanges,
            new_id=_new_job_id,
            read=statistics.ask if statistics.has_log else None,
            now_ns=now_ns,
        )
        self._start_engines(now_ns=now_ns)

    def _start_engines(self, *, now_ns: int) -> None:
        """Begin a broker epoch from what is stored."""
        state = self._store.load()
        self._exchanges |= state.exchanges
        self._broker = Broker(self._settings.broker_limits())
        self._book = JobBook(self._broker, self._settings.job_rules())
        self._book.restore(state.jobs, state.requests, now_ns=now_ns)
        self._realtime = RealtimeBook(
            self._broker, self._settings.realtime_rules(), exchanges=self._exchanges, new_id=_new_job_id
        )
        self._realtime.restore(state.realtime, now_ns=now_ns)
        self._triggers = TriggerBook(self._settings.trigger_rules(), exchanges=self._exchanges)
        self._triggers.restore(state.triggers)
        since_ns = self._triggers.one_shot_since_ns
        if self._firings is not None and since_ns is not None:
            self._firings.ask(since_ns)
        self._work = WorkEngine(
            self._broker,
            self._book,
            self._realtime,
            epoch=_new_epoch(),
            lease_ms=self._settings.lease_seconds * 1000,
            exchanges=self._exchanges,
        )
        self._statistics.begin(self._book, self._broker)
        self._symbols = SymbolDesk(self._book, self._exchanges, _new_job_id, self._symbol_schedule)
        self._intake = RequestIntake(
            store=self._store,
            book=self._book,
            symbols=self._symbols,
            statistics=self._statistics,
            triggers=self._triggers,
            ask=self._lookups.ask,
            replay=self._replays.ask,
            exchanges=self._exchanges,
            rules=self._settings.job_rules().requests,
            jobs_max=self._settings.unfinished_jobs_max,
            limits=EnvelopeLimits(self._settings.request_bytes_max, self._settings.frames_max),
            new_id=_new_job_id,
            counters=self._counters,
        )
        self._forwarder = NotificationForwarder(
            publisher=self._publisher,
            mark=self._book.mark,
            fired=self._triggers.mark_fired,
            limits=self._limits,
            counters=self._counters,
        )
        _log.info("engines_started", unfinished_jobs=len(state.jobs), requests=len(state.requests))

    def on_requests(self, messages: Sequence[Sequence[bytes]], *, now_ns: int) -> None:
        """Handle messages of relays; all of them are stored by one commit."""
        self._execute([c for frames in messages for c in self._intake.handle(frames, now_ns=now_ns)], now_ns=now_ns)

    def on_work(self, messages: Sequence[Sequence[bytes]], *, now_ns: int) -> None:
        """Handle messages of ingestors."""
        commands: list[Command] = []
        for frames in messages:
            try:
                envelope = decode(frames, Channel.WORK_TO_BROKER, limits=self._limits)
                if not is_sound(envelope.message):
                    raise EnvelopeError(RejectReason.INVALID_FIELD, "expected ids and an upper-case exchange")
            except EnvelopeError as error:
                self._counters.add(f"manager.work.rejected.{error.reason}")
                continue
            self._counters.add(f"manager.work.received.{type(envelope.message).__name__}")
            commands += self._work.handle(envelope.message, envelope.routing, now_ns=now_ns)
        self._execute(commands, now_ns=now_ns)

    def on_notifications(self, messages: Sequence[Sequence[bytes]], *, now_ns: int) -> None:
        """Handle hints, and messages to forward."""
        for frames in messages:
            self._forwarder.handle(frames, now_ns=now_ns)

    def on_subscriptions(self, *, now_ns: int) -> None:
        """Publish to new listeners what is unpublished or may have been missed lately; take over live demand."""
        topics = self._publisher.read_subscriptions()
        if topics:
            self._control.tell(self._publisher.periods)
        if self._publisher.take_demand_change() | self._triggers.take_demand_change():
            self._execute(self._realtime.demand(self._demand(), now_ns=now_ns), now_ns=now_ns)
        if not any(topic.startswith((b"RESPONSE:", b"HISTORY_READY:")) for topic in topics):
            return
        since_ns = now_ns - self._settings.republish_seconds * NANOSECONDS
        outbox = self._store.outbox(published_since_ns=since_ns)
        due = [outcome for outcome in outbox if outcome.topic.encode().startswith(tuple(topics))]
        self._execute([Publish(outcome) for outcome in due], now_ns=now_ns)

    def _demand(self) -> frozenset[str]:
        """Return the tickers that are wanted live: by subscribers, or by triggers though nobody listens."""
        return self._publisher.demand | self._triggers.tickers

    def on_lookups(self, *, now_ns: int) -> None:
        """Take what the threads that read tables and log have found."""
        commands: list[Command] = [*self._replays.answers()]
        for fired in self._firings.results() if self._firings is not None else ():
            for trigger_id, at_ns in fired.items():
                self._triggers.mark_fired(trigger_id, at_ns)
        for found in self._statistics_log.results():
            commands += self._statistics.found(found, now_ns=now_ns)
        for result in self._lookups.results():
            if isinstance(result, Answered):
                self._is_looking = False
                for evidence in result.evidence:
                    self._counters.add("manager.jobs.miscounted", int(evidence.is_miscounted))
                    commands += self._book.weigh(evidence, now_ns=now_ns)
            elif isinstance(result, Failed):
                self._counters.add("manager.lookups.failed")
                _log.warning("tables_not_read", error_code=result.code, error=result.text)
                self._is_looking = self._is_looking and not isinstance(result.question, JobsQuestion)
                commands += self._symbols.fail(result)
            else:
                commands += self._symbols.answer(result, now_ns=now_ns)
        self._execute(commands, now_ns=now_ns)

    def tick(self, *, now_ns: int) -> None:
        """Do what is due: leases, deadlines, dispatch, look-ups, beats, upkeep."""
        due = [*self._work.expire(now_ns), *self._book.check_deadlines(now_ns), *self._realtime.on_tick(now_ns)]
        due += [*self._statistics.tick(now_ns), *self._triggers.on_tick(now_ns)]
        self._execute(due, now_ns=now_ns)
        while commands := self._work.assign(now_ns):
            self._execute(commands, now_ns=now_ns)
        self._execute(self._executor.take_published(now_ns=now_ns), now_ns=now_ns)
        if now_ns >= self._next_reconcile_ns:
            self._next_reconcile_ns = now_ns + self._settings.reconcile_seconds * NANOSECONDS
            self._book.mark_all()
            if self._log_watch and self._book.waits_for_coverage(delivered_before_ns=now_ns - _SLOW_COVERAGE_NS):
                self._log_watch.ask()
        if not self._is_looking and (jobs := self._book.take_marked(now_ns=now_ns)):
            self._is_looking = True
            self._lookups.ask(JobsQuestion(tuple(jobs), self._log_watch.latest if self._log_watch else None))
        self._keep_up(now_ns=now_ns)

    def status(self) -> dict[str, object]:
        """Return what ``/status`` shows; called from another thread."""
        return {"ready": True, "part": "manager", "unfinished_jobs": len(self._book.jobs)}

    def _keep_up(self, *, now_ns: int) -> None:
        if now_ns >= self._next_beat_ns:
            self._next_beat_ns = now_ns + self._settings.heartbeat_seconds * NANOSECONDS
            served = served_exchanges(self._broker.slots, now_ns=now_ns)
            self._execute(self._symbols.tick(served, now_ns=now_ns), now_ns=now_ns)
            self._publisher.beat(now_ns=now_ns)
            self._publisher.tell_demand_again()
            self._control.tell(self._publisher.periods)
            self._tell_of_refused(self._publisher.periods_refused)
            for ticker in self._realtime.unserved():
                self._publisher.beat_down(ticker, now_ns=now_ns)
            for name, count in (
                ("manager.jobs.unfinished", len(self._book.jobs)),
                ("manager.jobs.queued", self._broker.queued_count),
                ("manager.jobs.running", self._broker.running_count),
                ("manager.slots.known", len(self._broker.slots)),
                ("manager.realtime.wanted", len(self._demand())),
                ("manager.realtime.unserved", len(self._realtime.unserved())),
                ("manager.realtime.refused", self._realtime.refused_count),
                ("manager.triggers.active", len(self._triggers)),
                ("manager.triggers.untold", self._control.untold_count),
                ("manager.periods.untold", self._control.refused_count),
                ("manager.offers.superseded", self._broker.offers_superseded),
                ("manager.offers.over_bound", self._broker.offers_over_bound),
                ("manager.catalog.changed", self._lookups.catalog_changes),
            ):
                self._counters.set(name, count)
        if now_ns >= self._next_prune_ns:
            self._next_prune_ns = now_ns + 3_600 * NANOSECONDS
            self._prune(now_ns=now_ns)
            self._execute(self._realtime.prune(now_ns), now_ns=now_ns)

    def _tell_of_refused(self, periods: Mapping[str, int]) -> None:
        """Count periods over the bound; said once while there are any: a flood must not fill the log file too."""
        count = sum(periods.values())
        if count and not self._counters.get("manager.periods.refused"):
            _log.warning("periods_refused", count=count, tickers=sorted(periods)[:8], wanted_max=WANTED_PERIODS_MAX)
        self._counters.set("manager.periods.refused", count)

    def _prune(self, *, now_ns: int) -> None:
        try:
            pruned = self._store.prune(ended_before_ns=now_ns - self._settings.retention_days * 86_400 * NANOSECONDS)
        except StorageError as error:
            _log.warning("prune_failed", error=str(error))
        else:
            self._counters.add("manager.jobs.pruned", pruned)

    def _execute(self, commands: Sequence[Command], *, now_ns: int) -> None:
        if not commands:
            return
        try:
            unreachable = self._executor.execute(commands, now_ns=now_ns)
        except StorageError as error:
            # The engines are ahead of the disk now: refuse, and begin again from what is stored.
            self._counters.add("manager.store.failed")
            _log.error("commit_failed", error=str(error))
            self._executor.refuse(commands)
            self._start_engines(now_ns=now_ns)
            return
        for job in (c.job for c in commands if isinstance(c, EndJob)):
            self._log_end(job)
            self._symbols.ended(job, now_ns=now_ns)
            self._execute(self._statistics.ended(job, now_ns=now_ns), now_ns=now_ns)
        for request in unreachable:
            self._counters.add("manager.slots.unreachable")
            self._execute(self._work.unreachable(request.job_id, request.attempt, now_ns=now_ns), now_ns=now_ns)

    def _log_end(self, job: Job) -> None:
        self._counters.add("manager.jobs.ended")
        _log.info(
            "job_ended", job_id=job.job_id, ticker=job.ticker, attempts=job.attempts_counted, error_code=job.error_code
        )


def _new_job_id() -> str:
    return str(uuid.uuid4())


def _new_epoch() -> int:
    return secrets.randbits(63) | 1
