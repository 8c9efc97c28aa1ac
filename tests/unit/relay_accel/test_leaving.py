"""An end that is given back wakes whoever sleeps on the other side: it would sleep on for a day."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.support.accelerator import accelerator
from tests.support.processes import wait_until

ra = accelerator()


def is_asleep(path: Path, waiter: int) -> bool:
    """Whether somebody has said in the page that he sleeps (0012: waiter words)."""
    with path.open("rb") as page:
        page.seek(waiter)
        return page.read(1) != b"\0"


@pytest.fixture(params=["Ring", "Channel"])
def ring(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    tmp_path.chmod(0o700)
    return getattr(ra, request.param).create("shared", 4096, directory=str(tmp_path))


@pytest.mark.parametrize("sleeps", ["consumer", "producer"])
def test_who_sleeps_without_a_time_limit_wakes_when_the_other_side_leaves(ring, tmp_path, sleeps):
    producer, consumer = ring.producer(), ring.consumer()
    found: list[object] = []

    def read() -> None:
        found.append(consumer.wait())
        found.append(consumer.poll_batch().stop)

    def write() -> None:
        found.append(producer.wait_for_room(400))
        found.append(ra.Outcome(producer.offer(bytes(400))).name)

    while sleeps == "producer" and producer.offer(bytes(400)) == ra.Outcome.ACCEPTED:
        pass
    sleeper = threading.Thread(target=read if sleeps == "consumer" else write, daemon=True)
    sleeper.start()
    waiter = 896 if sleeps == "consumer" else 1024
    wait_until(lambda: is_asleep(tmp_path / "shared", waiter), what="the sleeper")
    (producer if sleeps == "consumer" else consumer).close()
    sleeper.join(60)
    assert found == [False, "closed" if sleeps == "consumer" else "CLOSED"]


def test_a_coroutine_that_waits_for_messages_learns_that_none_will_come(ring):
    producer, consumer = ring.producer(), ring.consumer()

    async def read() -> str:
        waiting = asyncio.create_task(ra.ready(consumer))
        await asyncio.sleep(0)
        producer.close()
        assert await asyncio.wait_for(waiting, 60)
        return consumer.poll_batch().stop

    assert asyncio.run(read()) == "closed"
