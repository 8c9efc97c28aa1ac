"""A client among threads, loops, forks and signals: it is usable everywhere and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relay.errors import RelayError, RetryableError
from relay_client import AsyncClient, Client
from tests.support.client_world import BTC, minutes
from tests.support.processes import Process, free_port, wait_until


def bounds(first: int = 0, count: int = 10) -> dict[str, object]:
    span = minutes(first, first + count)
    return {"start": span.start_ns, "end": span.end_ns, "unit": "ns"}


def client_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "relay-client"]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_closed_client_leaves_no_thread_and_no_file_open(world):
    def use() -> int:
        with world.client() as client:
            client.history(BTC, **bounds())
        gc.collect()
        return open_files()

    use()
    before = use()
    assert use() <= before
    assert client_threads() == []


def test_a_dropped_client_closes_itself(world):
    client = world.client()
    client.probe()
    del client
    gc.collect()
    assert client_threads() == []


def test_a_closed_client_says_so(world):
    client = world.client()
    client.close()
    client.close()
    with pytest.raises(RelayError, match="closed; make a new one"):
        client.history(BTC, **bounds())


def test_whoever_waits_when_the_client_is_closed_gets_an_error(world):
    world.manager.hold.set()
    client = world.client()
    with ThreadPoolExecutor(1) as pool:
        bars = pool.submit(client.history, BTC, **bounds())
        wait_until(lambda: world.manager.submits, what="the submission")
        client.close()
        with pytest.raises(RelayError, match="was closed"):
            bars.result()


def test_two_clients_of_one_process_do_not_mix_their_answers(world):
    with world.client() as one, world.client() as other, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda c: c[0].history(BTC, **bounds(c[1])), [(one, 0), (other, 20)]))
    assert [[bar.trades for bar in bars] for bars in results] == [list(range(10)), list(range(20, 30))]
    assert one.client_id != other.client_id


def test_one_client_serves_many_threads_at_once(world):
    with world.client() as client, ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda first: client.history(BTC, **bounds(first)), range(0, 60, 10)))
    assert [bar.trades for bars in results for bar in bars] == list(range(60))


def test_the_async_client_works_in_a_running_loop_and_gathers(world):
    async def use() -> list[int]:
        async with AsyncClient(settings=world.settings()) as client:
            assert (await client.probe()).manager_available
            results = await asyncio.gather(*(client.history(BTC, **bounds(first)) for first in (0, 10, 20)))
            return [bar.trades for bars in results for bar in bars]

    assert asyncio.run(use()) == list(range(30))
    assert client_threads() == []


def test_the_sync_client_may_be_called_inside_a_running_loop(world):
    async def cell() -> int:
        with world.client() as client:
            return len(client.history(BTC, **bounds()))

    assert asyncio.run(cell()) == 10


def test_a_cancelled_call_stops_waiting_and_the_client_goes_on(world):
    async def use() -> int:
        async with AsyncClient(settings=world.settings()) as client:
            world.manager.hold.set()
            call = asyncio.create_task(client.history(BTC, **bounds()))
            await asyncio.to_thread(wait_until, lambda: world.manager.submits, what="the submission")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            world.manager.hold.clear()
            return len(await client.history(BTC, **bounds(20)))

    assert asyncio.run(use()) == 10


def test_a_client_used_after_a_fork_says_to_make_a_new_one(world):
    with world.client() as client:
        client.probe()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                client.probe()
            except RelayError as error:
                os.write(writer, str(error).encode())
            finally:
                client.close()
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            assert "make a new client after it" in told.read()
        os.waitpid(pid, 0)
        assert client.probe().manager_available


PROGRAM = """
import sys
from relay_client import Client, ClientSettings
client = Client(settings=ClientSettings(request_port=int(sys.argv[1]), subscribe_port=int(sys.argv[2])))
client.probe()
"""


def test_a_program_that_forgets_to_close_still_ends(world, tmp_path: Path):
    ports = [str(world.ports["request"]), str(world.ports["subscribe"])]
    program = Process([sys.executable, "-c", PROGRAM, *ports], log=tmp_path / "program.log")
    wait_until(lambda: program.returncode is not None, what="the program to end")
    assert (program.returncode, program.tail()) == (0, "")


def test_ctrl_c_ends_a_waiting_command_with_130(world, tmp_path: Path):
    world.manager.hold.set()
    environment = {
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }
    relay = [sys.executable, "-c", "from relay.cli import main; main()"]
    command = Process([*relay, "history", BTC, "--last", "1h"], log=tmp_path / "out.log", environment=environment)
    wait_until(lambda: world.manager.submits, what="the submission")
    os.kill(command.pid, signal.SIGINT)
    wait_until(lambda: command.returncode is not None, what="the command to end")
    assert (command.returncode, command.tail()) == (130, "")


def test_ctrl_c_inside_a_call_leaves_the_client_usable(world):
    world.manager.hold.set()
    with world.client() as client:

        def interrupt() -> None:
            wait_until(lambda: world.manager.submits, what="the submission")
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            client.history(BTC, **bounds())
        thread.join()
        world.manager.hold.clear()
        assert len(client.history(BTC, **bounds(20))) == 10


def test_a_wrong_address_is_an_error_of_the_constructor(world):
    with pytest.raises(RelayError, match="expected tcp://HOST:PORT"):
        world.client(request_endpoint="nonsense")
    assert client_threads() == []
    assert isinstance(Client(settings=world.settings()), Client)


def test_history_without_a_relay_ends_when_a_question_would_have_and_not_after_the_whole_request(world):
    nowhere = {"request_port": free_port(), "subscribe_port": free_port()}
    message = "check its address and that it runs"
    with (
        world.client(**nowhere, request_timeout_seconds=1, history_timeout_seconds=3_600) as client,
        pytest.raises(RetryableError, match=message),
    ):
        client.history(BTC, last="1h", period="1m")
