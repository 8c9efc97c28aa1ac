"""Flows run the same, blocking and in a loop; whoever leaves early cleans up."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from relay_client.flow import Flow, call, result_of, run, run_async, wait


def steps(future: Future[int], cleaned: list[str]) -> Flow[int]:
    try:
        doubled = yield from call(lambda: 2 * 21)
        return doubled + (yield from result_of(future))
    finally:
        cleaned.append("cleaned")


def both(make) -> list[object]:
    """The outcome of a flow by both runners; an error is its text."""
    seen = []
    for runner in (run, lambda flow: asyncio.run(run_async(flow))):
        try:
            seen.append(runner(make()))
        except ValueError as error:
            seen.append(str(error))
    return seen


def test_both_runners_give_the_same_result():
    def make() -> Flow[int]:
        future: Future[int] = Future()
        threading.Timer(0, lambda: future.set_result(1)).start()
        return steps(future, [])

    assert both(make) == [43, 43]


def test_both_runners_raise_the_same_error_and_clean_up():
    cleaned: list[str] = []

    def make() -> Flow[int]:
        future: Future[int] = Future()
        future.set_exception(ValueError("no"))
        return steps(future, cleaned)

    assert both(make) == ["no", "no"]
    assert cleaned == ["cleaned", "cleaned"]


def test_an_error_of_a_blocking_step_is_seen_by_the_flow():
    def make() -> Flow[str]:
        def fail() -> str:
            raise ValueError("inside")

        def flow() -> Flow[str]:
            try:
                return (yield from call(fail))
            except ValueError as error:
                return f"seen {error}"

        return flow()

    assert both(make) == ["seen inside", "seen inside"]


def test_a_wait_with_a_time_ends_without_its_futures():
    def make() -> Flow[bool]:
        def flow() -> Flow[bool]:
            never: Future[int] = Future()
            yield from wait(never, timeout_s=0.01)
            return never.done()

        return flow()

    assert both(make) == [False, False]


def test_cancelling_cleans_up_and_an_unread_error_makes_no_noise(caplog):
    cleaned: list[str] = []

    async def use() -> None:
        future: Future[int] = Future()
        task = asyncio.create_task(run_async(steps(future, cleaned)))
        while not future._done_callbacks:
            await asyncio.to_thread(lambda: None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        future.set_exception(ValueError("too late"))

    asyncio.run(use())
    assert cleaned == ["cleaned"]
    assert caplog.records == []
