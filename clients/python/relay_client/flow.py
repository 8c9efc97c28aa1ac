"""Flows: what a call does, written once as a generator of steps; a runner waits for them, blocking or in a loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = ["Call", "Flow", "Until", "call", "result_of", "run", "run_async", "wait", "wait_for_one"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Until:
    """Wait until all futures are done, or one of them; at most ``timeout_s``. Their errors stay in them."""

    futures: Sequence[Future[Any]]
    timeout_s: float | None = None
    is_one_enough: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """Run something that blocks (reads of the tables)."""

    function: Callable[[], Any]


Flow = Generator[Until | Call, Any, T]


def wait(*futures: Future[Any], timeout_s: float | None = None) -> Flow[None]:
    """Step: wait until all are done, or the time is over."""
    yield Until(futures, timeout_s)


def wait_for_one(futures: Sequence[Future[Any]], *, timeout_s: float | None = None) -> Flow[None]:
    """Step: wait until one is done, or the time is over."""
    yield Until(futures, timeout_s, is_one_enough=True)


def result_of(future: Future[T]) -> Flow[T]:
    """Step: wait for one result; its error is raised."""
    yield Until([future])
    return future.result()


def call(function: Callable[[], T]) -> Flow[T]:
    """Step: run something that blocks."""
    result: T = yield Call(function)
    return result


def run(flow: Flow[T]) -> T:
    """Run a flow in the calling thread; Ctrl-C ends it at its step."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        answer = error = None
        try:
            if isinstance(step, Call):
                answer = step.function()
            else:
                mode = concurrent.futures.FIRST_COMPLETED if step.is_one_enough else concurrent.futures.ALL_COMPLETED
                concurrent.futures.wait(step.futures, step.timeout_s, mode)
        except BaseException as raised:  # noqa: BLE001 - the flow cleans up and raises it again
            error = raised


async def run_async(flow: Flow[T]) -> T:
    """Run a flow in the running loop, whichever it is; what blocks runs in a thread. Cancelling ends it at its step."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        answer = error = None
        try:
            if isinstance(step, Call):
                answer = await asyncio.to_thread(step.function)
            else:
                await _done(step)
        except BaseException as raised:  # noqa: BLE001 - the flow cleans up and raises it again
            error = raised


async def _done(step: Until) -> None:
    """Wait without wrapping: a wrapper that is dropped would complain of an error that nobody has read."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(changed.set)

    is_enough = any if step.is_one_enough else all
    for future in step.futures:
        future.add_done_callback(wake)
    with suppress(TimeoutError):
        async with asyncio.timeout(step.timeout_s):
            while not is_enough(future.done() for future in step.futures):
                await changed.wait()
                changed.clear()
