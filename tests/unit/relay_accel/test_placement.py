"""Threads are pinned to processors, or the reason is told."""

from __future__ import annotations

import os
import threading

import pytest

from tests.support.accelerator import accelerator

accelerator()
import relay_accel  # noqa: E402
from relay.transport import pin_loop  # noqa: E402

ALLOWED = os.sched_getaffinity(0)


def on_a_thread(call):
    """What a call gives on a thread of its own, and where that may run afterwards."""
    found = []
    thread = threading.Thread(target=lambda: found.extend((call(), os.sched_getaffinity(0))))
    thread.start()
    thread.join()
    return found


def test_a_thread_is_pinned_and_no_other_is():
    one = min(ALLOWED)
    pinning, may_run_on = on_a_thread(lambda: relay_accel.pin_thread([one]))
    assert pinning == relay_accel.Pinning(frozenset({one}), frozenset({one}))
    assert may_run_on == {one}
    assert os.sched_getaffinity(0) == ALLOWED


def test_no_wish_changes_nothing():
    pinning, may_run_on = on_a_thread(lambda: relay_accel.pin_thread(()))
    assert (pinning.in_force, pinning.reason, may_run_on) == (ALLOWED, "", ALLOWED)


def test_processors_that_are_not_there_leave_the_thread_where_it_may_run_and_are_told():
    pinning, may_run_on = on_a_thread(lambda: relay_accel.pin_thread([4_000]))
    assert may_run_on == pinning.in_force == ALLOWED
    assert f"may run on {min(ALLOWED)}" in pinning.reason
    pinning, may_run_on = on_a_thread(lambda: relay_accel.pin_thread([2**80]))
    assert may_run_on == pinning.in_force == ALLOWED
    assert "no system has processors of such numbers" in pinning.reason
    one = min(ALLOWED)
    pinning, may_run_on = on_a_thread(lambda: relay_accel.pin_thread([one, 1_000]))
    assert (pinning.reason, may_run_on) == ("there is no processor 1000 for it", {one})


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match=r"expected numbers of processors from 0, got \[-1\]"):
        relay_accel.pin_thread([-1])


def test_an_agents_thread_is_pinned():
    class Looks:
        def __init__(self) -> None:
            self.seen: list[set[int]] = []
            self.has_looked = threading.Event()

        def do_work(self) -> int:
            self.seen.append(os.sched_getaffinity(0))
            self.has_looked.set()
            return 0

    agent, one = Looks(), min(ALLOWED)
    runner = relay_accel.AgentRunner(agent, processors=[one])
    with runner:
        assert agent.has_looked.wait(60)
    assert agent.seen[0] == {one}
    assert runner.pinning is not None
    assert runner.pinning.reason == ""


def test_the_platforms_loops_say_why_they_are_not_pinned(monkeypatch):
    assert on_a_thread(lambda: pin_loop([min(ALLOWED)])) == ["", {min(ALLOWED)}]
    assert "may run on" in on_a_thread(lambda: pin_loop([4_000]))[0]
    monkeypatch.setitem(__import__("sys").modules, "relay_accel", None)
    assert pin_loop([0]) == "the accelerator is not installed"
    assert pin_loop([]) == ""
