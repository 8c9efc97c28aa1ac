"""Real processes for tests: started in their own group, ended by pid, waited for by condition."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

__all__ = ["Process", "eventually", "free_port", "wait_until"]


T = TypeVar("T")


def free_port() -> int:
    """Return a TCP port that is free now on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], *, what: str, deadline_s: float = 60.0) -> object:
    """Return the first truthy value of a condition, or fail with what was waited for."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s:.0f} s in vain for {what}")
        time.sleep(0.02)


async def eventually(condition: Callable[[], T], *, what: str, deadline_s: float = 60.0) -> T:
    """Like :func:`wait_until`, inside a running asyncio loop."""
    end = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s:.0f} s in vain for {what}")
        await asyncio.sleep(0.005)


class Process:
    """A child process with its output in a file."""

    def __init__(self, command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._child = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        return self._child.poll()

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self._child.poll() is None:
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()

    def terminate(self, deadline_s: float = 60.0) -> int:
        """SIGTERM, wait for the end, return the exit code."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def tail(self) -> str:
        """Last lines of the output, for failure messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
