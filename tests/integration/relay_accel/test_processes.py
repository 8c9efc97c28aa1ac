"""Rings between processes that were started separately, some of which are killed."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

from tests.support.accelerator import accelerator

ra = accelerator()
KINDS = {"ring": "Ring", "channel": "Channel", "mpsc": "MpscRing"}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    tmp_path.chmod(0o700)
    return str(tmp_path)


@pytest.fixture
def run(folder: str) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts Python code in a process of its own, with ``ra`` and ``folder`` at hand."""
    children: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> subprocess.Popen[bytes]:
        head = f"import os, sys, time, relay_accel as ra; folder = {folder!r}\n"
        child = subprocess.Popen([sys.executable, "-c", head + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def said(child: subprocess.Popen[bytes]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().decode().strip()


def make(kind: str, folder: str, length: int = 1 << 16) -> object:
    return getattr(ra, KINDS[kind]).create("shared", length, directory=folder)


PRODUCE = """
p = ra.{kind}.open("shared", directory=folder).producer()
n = 0
while n < {count}:
    if p.offer(n.to_bytes(8, "little") * (1 + n % 5), 1 + n % 7) == 0:
        n += 1
    else:
        p.wait_for_room(48, timeout=1)
p.close(); print("done", flush=True)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_every_message_of_another_process_comes_once_in_order_and_whole(folder, run, kind):
    consumer = make(kind, folder, 4096).consumer()
    count = 20_000
    child = run(PRODUCE.format(kind=KINDS[kind], count=count))
    expected = 0
    while expected < count:
        batch = consumer.poll_batch()
        for type_id, payload in batch.messages():
            assert (type_id, payload) == (1 + expected % 7, expected.to_bytes(8, "little") * (1 + expected % 5))
            expected += 1
        if not len(batch):
            consumer.wait(timeout=1)
    assert said(child) == "done"
    assert consumer.take() is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_producer_that_is_killed_at_any_moment_leaves_whole_messages_and_its_end(folder, run, kind):
    ring = make(kind, folder)
    consumer, expected = ring.consumer(), 0
    for _ in range(3):
        child = run(
            f"p = ra.{KINDS[kind]}.open('shared', directory=folder).producer(); n = 0\n"
            "print('go', flush=True)\n"
            "while True:\n"
            "    claim = p.claim(16)\n"
            "    if claim is None: continue\n"
            "    claim.put(n.to_bytes(8, 'little')); claim.put(n.to_bytes(8, 'little'), 8); claim.commit(); n += 1\n"
        )
        assert said(child) == "go"
        numbers: list[int] = []
        while len(numbers) < 500:
            numbers += [int.from_bytes(p[:8], "little") for p in consumer.poll_batch() if p[:8] == p[8:]]
        child.send_signal(signal.SIGKILL)
        child.wait()
        deadline = time.monotonic() + 30
        while (batch := consumer.poll_batch()).payloads() or batch.stop == "in_progress":
            numbers += [int.from_bytes(p[:8], "little") for p in batch]
            if batch.stop == "in_progress":
                consumer.unblock()
            assert time.monotonic() < deadline
        assert numbers == list(range(len(numbers)))
        expected += len(numbers)
        assert consumer.producer_states()[0][0] in ("dead", "left", "vacant")
    assert dict(consumer.counts())["frames"] == expected


def test_a_claim_of_a_killed_producer_is_skipped_and_the_others_go_on(folder, run):
    ring = make("mpsc", folder)
    consumer, mine = ring.consumer(), ring.producer()
    child = run(
        "p = ra.MpscRing.open('shared', directory=folder).producer()\n"
        "p.offer(b'before'); claim = p.claim(64); print('claimed', flush=True); sys.stdin.read()\n"
    )
    assert said(child) == "claimed"
    mine.offer(b"behind the claim")
    assert consumer.poll_batch().payloads() == [b"before"]
    assert consumer.stop == "in_progress"
    assert not consumer.unblock(), "its owner lives: it may still write"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert consumer.unblock()
    assert consumer.poll_batch().payloads() == [b"behind the claim"]
    assert dict(consumer.counts())["unblocked"] == 1


def test_a_consumer_that_was_killed_is_taken_over_where_it_released(folder, run):
    ring = make("ring", folder)
    producer = ring.producer()
    for n in range(10):
        producer.offer(b"%d" % n)
    child = run(
        "c = ra.Ring.open('shared', directory=folder).consumer()\n"
        "print(len(c.poll_batch(4)), flush=True); sys.stdin.read()\n"
    )
    assert said(child) == "4"
    with pytest.raises(ra.BusyError):
        ring.consumer()
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert ring.consumer().poll_batch().payloads() == [b"%d" % n for n in range(4, 10)]


def test_receivers_in_other_processes_see_every_broadcast(folder, run):
    broadcast = ra.Broadcast.create("fan", 1 << 16, directory=folder)
    transmitter = broadcast.transmitter()
    code = (
        "r = ra.Broadcast.open('fan', directory=folder).receiver(); print('ready', flush=True); got = []\n"
        "while len(got) < 100:\n"
        "    r.wait(timeout=1); got += r.poll_batch().payloads()\n"
        "print(got == [b'%d' % n for n in range(100)], flush=True)\n"
    )
    children = [run(code) for _ in range(3)]
    assert [said(child) for child in children] == ["ready"] * 3
    for n in range(100):
        transmitter.offer(b"%d" % n)
    assert [said(child) for child in children] == ["True"] * 3


def test_counters_of_another_process_are_seen_while_it_counts(folder, run):
    child = run(
        "n = ra.Counters.create('part', directory=folder).allocate(1000, 'n'); n.add(41); print('go', flush=True)\n"
        "sys.stdin.readline(); n.add(1); print('counted', flush=True); sys.stdin.read()\n"
    )
    assert said(child) == "go"
    seen = ra.Counters.open("part", directory=folder)
    assert seen.snapshot() == [(1000, "n", 41)]
    child.stdin.write(b"\n")
    child.stdin.flush()
    assert said(child) == "counted"
    assert seen.snapshot() == [(1000, "n", 42)]


@pytest.mark.parametrize("kind", [*KINDS, "broadcast"])
def test_a_reader_in_a_poller_is_woken_by_another_process(folder, run, kind):
    if kind == "broadcast":
        made = ra.Broadcast.create("shared", 1 << 16, directory=folder)
        reader, end = made.receiver(), "ra.Broadcast.open('shared', directory=folder).transmitter()"
    else:
        reader, end = make(kind, folder).consumer(), f"ra.{KINDS[kind]}.open('shared', directory=folder).producer()"
    child = run(f"p = {end}\nfor line in sys.stdin.buffer: p.offer(line.strip()); print('sent', flush=True)\n")
    poller = zmq.Poller()
    poller.register(reader.fileno(), zmq.POLLIN)
    for n in range(20):
        assert reader.arm() in (1, 2)
        child.stdin.write(b"%d\n" % n)
        child.stdin.flush()
        assert poller.poll(30_000), "the bell rings"
        assert reader.poll_batch().payloads() == [b"%d" % n]
        assert said(child) == "sent"
    assert reader.arm() in (1, 2)
    assert not select.select([reader.fileno()], [], [], 0)[0], "what woke it before is gone"
    reader.close()
    assert not [path for path in Path(folder).iterdir() if "bell" in path.name]


def test_a_reader_waits_inside_asyncio(folder):
    ring = make("channel", folder)
    producer, consumer = ring.producer(), ring.consumer()

    async def read() -> list[bytes]:
        got: list[bytes] = []
        while len(got) < 100:
            assert await ra.ready(consumer, timeout=30)
            got += consumer.poll_batch().payloads()
        assert not await ra.ready(consumer, timeout=0.01)
        return got

    def write() -> None:
        for n in range(100):
            producer.offer(b"%d" % n)

    writer = threading.Thread(target=write)
    writer.start()
    assert asyncio.run(read()) == [b"%d" % n for n in range(100)]
    writer.join()


def test_bells_end_and_those_of_the_dead_are_taken_over(folder, run):
    broadcast = ra.Broadcast.create("fan", 1 << 16, directory=folder)
    receivers = [broadcast.receiver() for _ in range(16)]
    for receiver in receivers[:15]:
        receiver.fileno()
    child = run(
        "r = ra.Broadcast.open('fan', directory=folder).receiver(); print(r.fileno() > 0, flush=True); sys.stdin.read()"
    )
    assert said(child) == "True"
    with pytest.raises(ra.BusyError) as full:
        receivers[15].fileno()
    assert full.value.code == "NO_FREE_SLOT"
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert receivers[15].fileno() > 0
    broadcast.unlink()
    assert not [path for path in Path(folder).iterdir() if "bell" in path.name]
    heap = ra.Ring.heap(1024).consumer()
    with pytest.raises(ValueError, match="named"):
        heap.fileno()


def test_a_publisher_without_a_descriptor_left_rings_with_its_next_message(folder, run):
    reader = make("channel", folder).consumer()
    child = run(
        "import os, resource\n"
        "p = ra.Channel.open('shared', directory=folder).producer()\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "held = []\n"
        "while len(held) < 64:\n"
        "    try: held.append(os.dup(0))\n"
        "    except OSError: break\n"
        "for line in sys.stdin.buffer:\n"
        "    p.offer(line.strip()); print('sent', flush=True); os.close(held.pop())\n"
    )
    descriptor = reader.fileno()
    assert reader.arm() in (1, 2)
    for word in (b"unheard\n", b"heard\n"):
        child.stdin.write(word)
        child.stdin.flush()
        assert said(child) == "sent"
    assert select.select([descriptor], [], [], 30)[0], "the bell was not forgotten"
    assert reader.poll_batch().payloads() == [b"unheard", b"heard"]


@pytest.mark.parametrize("put", ["nothing", "another FIFO", "a file", "a link"])
def test_a_reader_whose_bell_was_taken_away_is_told_not_to_rely_on_it(folder, tmp_path, put):
    ring = make("channel", folder)
    producer, reader = ring.producer(), ring.consumer()
    reader.fileno()
    [bell] = [path for path in Path(folder).iterdir() if "bell" in path.name]
    bell.unlink()
    untouched = tmp_path / "untouched"
    untouched.write_bytes(b"mine")
    match put:
        case "another FIFO":
            os.mkfifo(bell)
        case "a file":
            bell.write_bytes(b"")
        case "a link":
            bell.symlink_to(untouched)
    assert reader.arm() == 2
    producer.offer(b"one")
    assert asyncio.run(ra.ready(reader, timeout=30))
    assert reader.poll_batch().payloads() == [b"one"]
    assert untouched.read_bytes() == b"mine"
    reader.close()
    assert os.path.lexists(bell) == (put != "nothing"), "what hangs there now is not this reader's"


def test_a_reader_of_a_segment_that_was_replaced_leaves_the_bells_of_the_new_one_alone(folder):
    old = make("channel", folder)
    reader_of_old = old.consumer()
    reader_of_old.fileno()
    old.unlink()
    new = make("channel", folder)
    producer, reader = new.producer(), new.consumer()
    descriptor = reader.fileno()
    reader_of_old.close()
    assert reader.arm() in (1, 2)
    producer.offer(b"one")
    assert select.select([descriptor], [], [], 30)[0], "its bell still hangs"


def test_a_coroutine_that_nobody_can_wake_looks_again_by_itself(folder):
    ring = make("channel", folder)
    producer, reader = ring.producer(), ring.consumer()
    reader.fileno()
    [bell] = [path for path in Path(folder).iterdir() if "bell" in path.name]

    async def read() -> bool:
        waiting = asyncio.create_task(ra.ready(reader))
        await asyncio.sleep(0)
        bell.unlink()
        producer.offer(b"one")
        return await asyncio.wait_for(waiting, 30)

    assert asyncio.run(read())
    assert reader.take() == b"one"
