"""Commands on a terminal say that they wait for the relay; in a pipe nothing is said but the end."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.support.client_world import BTC, GatewayWorld
from tests.support.commands import run_command

SAID = "waiting for the relay"


def addresses(world: GatewayWorld) -> dict[str, str]:
    return {
        "RELAY_CLIENT_REQUEST_PORT": str(world.ports["request"]),
        "RELAY_CLIENT_SUBSCRIBE_PORT": str(world.ports["subscribe"]),
    }


def on_a_terminal(world: GatewayWorld, *arguments: str) -> tuple[int, str]:
    """Run a command whose standard error is a terminal; return its exit code and what it said there."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from relay.cli import main; main()", *arguments]
    child = subprocess.Popen(
        command, env={**os.environ, **addresses(world)}, stdout=subprocess.DEVNULL, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 4_096):
            said += chunk
    except OSError:
        pass  # How Linux says that the other side has gone.
    os.close(ours)
    return child.wait(), said.decode(errors="replace")


def test_a_relay_that_is_away_is_waited_for_in_words(world: GatewayWorld) -> None:
    world.gateway.kill()
    code, said = on_a_terminal(world, "symbols", "--timeout", "4")
    assert code == 4
    assert said.count(SAID) == 1
    quiet = run_command(["symbols", "--timeout", "4"], environment=addresses(world))
    assert (quiet.returncode, SAID in quiet.stderr) == (4, False)


@pytest.mark.parametrize("arguments", [["watch", BTC, "--seconds", "4", "--json"]])
def test_a_relay_that_is_there_is_not_waited_for(world: GatewayWorld, live: object, arguments: list[str]) -> None:
    code, said = on_a_terminal(world, *arguments)
    assert (code, SAID in said) == (0, False)
