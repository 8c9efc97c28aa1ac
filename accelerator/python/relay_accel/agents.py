"""Agents: loops that work in turns, run on a thread of Python's own, and idle by a strategy.

The Rust core has the same shapes for code in Rust; it never calls Python from threads of its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Protocol

from relay_accel.placement import Pinning, pin_thread

__all__ = [
    "Agent",
    "AgentRunner",
    "Backoff",
    "BusySpin",
    "CompositeAgent",
    "DutyCycle",
    "IdleStrategy",
    "NoOp",
    "Sleeping",
    "Yielding",
]

_LOG = logging.getLogger("relay_accel")
_LOG.addHandler(logging.NullHandler())


class Agent(Protocol):
    """Something that works in turns; ``on_start`` and ``on_close`` are optional."""

    def do_work(self) -> int:
        """Do what is there to do now, briefly; return how much that was, 0 for nothing."""


class IdleStrategy(Protocol):
    """What a loop does after a turn."""

    def idle(self, work: int) -> None:
        """Idle when ``work`` is 0, and forget earlier idling when it is not."""


class BusySpin:
    """Goes on at once: notices work soonest and costs a whole processor."""

    def idle(self, work: int) -> None:
        """Do nothing; the interpreter's lock is let go of by its own rules."""


class NoOp(BusySpin):
    """Does nothing: the agent itself waits."""


class Yielding:
    """Lets other threads run."""

    def idle(self, work: int) -> None:
        """Give up the processor for a moment after a turn without work."""
        if not work:
            time.sleep(0)


class Sleeping:
    """Sleeps for a time.

    Args:
        time_ns: how long; the system adds some 50 µs of its own.
    """

    def __init__(self, time_ns: int = 1_000) -> None:
        self._time_s = time_ns / 1e9

    def idle(self, work: int) -> None:
        """Sleep after a turn without work."""
        if not work:
            time.sleep(self._time_s)


class Backoff:
    """Spins ten times, yields five times, then sleeps 1 µs and twice as long each time, up to 1 ms; then work ends it.

    Args:
        spins_max, yields_max: turns before it yields, and before it sleeps.
        park_min_ns, park_max_ns: first and longest sleep.
    """

    def __init__(
        self, *, spins_max: int = 10, yields_max: int = 5, park_min_ns: int = 1_000, park_max_ns: int = 1_000_000
    ) -> None:
        self._spins_max, self._yields_max = spins_max, yields_max
        self._park_min_ns, self._park_max_ns = park_min_ns, park_max_ns
        self._turns, self.park_ns = 0, park_min_ns

    @property
    def is_parking(self) -> bool:
        """Whether the next turn without work sleeps, for :attr:`park_ns`."""
        return self._turns >= self._spins_max + self._yields_max

    def idle(self, work: int) -> None:
        """Idle by how long there has been no work."""
        if work:
            self._turns, self.park_ns = 0, self._park_min_ns
        elif self.is_parking:
            time.sleep(self.park_ns / 1e9)
            self.park_ns = min(self.park_ns * 2, self._park_max_ns)
        else:
            if self._turns >= self._spins_max:
                time.sleep(0)
            self._turns += 1


class DutyCycle:
    """How busy a loop is; times are arguments, in nanoseconds of a clock that does not go back."""

    def __init__(self) -> None:
        self.turns = self.cycle_ns = self.cycle_ns_max = 0
        self._busy_ns = self._idle_ns = 0
        self._began_ns: int | None = None

    def turn(self, now_ns: int, work: int) -> None:
        """Note that a turn ended; its time counts as busy unless it did no work. The first call only begins."""
        began_ns, self._began_ns = self._began_ns, now_ns
        if began_ns is None:
            return
        self.turns += 1
        self.cycle_ns = max(0, now_ns - began_ns)
        self.cycle_ns_max = max(self.cycle_ns_max, self.cycle_ns)
        if work:
            self._busy_ns += self.cycle_ns
        else:
            self._idle_ns += self.cycle_ns

    @property
    def busy_ratio(self) -> float:
        """Share of the time in turns that did work, 0 to 1; 0 before the first turn."""
        whole = self._busy_ns + self._idle_ns
        return self._busy_ns / whole if whole else 0.0


class CompositeAgent:
    """Gives each of its agents a turn and sums their work; one that fails does not keep the others from theirs.

    Args:
        agents: in the order of their turns.
    """

    def __init__(self, agents: Sequence[Agent]) -> None:
        self._agents = tuple(agents)

    def on_start(self) -> None:
        """Start all of them; raise what the first one raised, after the last."""
        self._each("on_start")

    def do_work(self) -> int:
        """Give each a turn; raise what the first one raised, after the last."""
        work, failed = 0, None
        for agent in self._agents:
            try:
                work += agent.do_work()
            except Exception as error:  # noqa: BLE001 - raised below, when the others have had their turns
                failed = failed or error
        if failed is not None:
            raise failed
        return work

    def on_close(self) -> None:
        """Close all of them."""
        self._each("on_close")

    def _each(self, name: str) -> None:
        failed = None
        for agent in self._agents:
            try:
                getattr(agent, name, _nothing)()
            except Exception as error:  # noqa: BLE001 - raised below
                failed = failed or error
        if failed is not None:
            raise failed


class AgentRunner:
    """Runs one agent on a thread of its own until it is stopped.

    Args:
        agent: whose turns it takes; what it raises is counted and logged, and the next turn follows. When its
            ``on_start`` raises, no turn is taken, and ``on_close`` is still called.
        idle: what to do after each turn.
        name: of the thread.
        processors: that the thread is pinned to; none leaves that to the system.

    Attributes:
        pinning: what became of that; None before the thread runs.
    """

    def __init__(
        self, agent: Agent, idle: IdleStrategy | None = None, *, name: str = "agent", processors: Iterable[int] = ()
    ) -> None:
        self._agent, self._idle, self._processors = agent, idle or Backoff(), tuple(processors)
        self.pinning: Pinning | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.duty = DutyCycle()
        self.error_count = self.work_count = 0

    @property
    def is_running(self) -> bool:
        """Whether turns are taken."""
        return self._thread.is_alive()

    def start(self) -> AgentRunner:
        """Start the thread; return the runner."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Let the present turn be the last one, and wait for it and for ``on_close``."""
        self._stopping.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    def __enter__(self) -> AgentRunner:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        self.pinning = pin_thread(self._processors)
        if self.pinning.reason:
            _LOG.warning("agent_not_pinned reason=%s", self.pinning.reason)
        if self._guarded(getattr(self._agent, "on_start", _nothing)):
            while not self._stopping.is_set():
                work = self._turn()
                self._idle.idle(work)
                self.duty.turn(time.monotonic_ns(), work)
                self.work_count += work
        self._guarded(getattr(self._agent, "on_close", _nothing))

    def _turn(self) -> int:
        try:
            return self._agent.do_work()
        except Exception:  # noqa: BLE001 - whatever an agent raises, the next turn follows
            self.error_count += 1
            _LOG.exception("agent_turn_failed")
            return 0

    def _guarded(self, call: object) -> bool:
        try:
            call()  # type: ignore[operator]
        except Exception:  # noqa: BLE001 - as above
            self.error_count += 1
            _LOG.exception("agent_not_started_or_closed")
            return False
        return True


def _nothing() -> None:
    """Stand in for a method that an agent does not have."""
