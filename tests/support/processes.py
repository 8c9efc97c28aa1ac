"""Real processes for tests: started in their own group, ended by pid, waited for by condition."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

__all__ = ["Process", "eventually", "free_port", "wait_until"]


T = TypeVar("T")


_PORTS = range(10_000, 32_000)


def free_port() -> int:
    """Return a TCP port of loopback that is free now and that no other test of this user is given soon.

    A port that the system chooses can be the source port of somebody's connection (or of a client's that dials it in
    vain) before its server binds it. So these lie below the system's own range, and runs side by side count them in
    one file.
    """
    with Path(tempfile.gettempdir(), f"market-relay-test-ports-{os.getuid()}").open("a+b") as counter:
        fcntl.flock(counter, fcntl.LOCK_EX)
        counter.seek(0)
        given = int(counter.read() or b"0")
        for turn in range(given, given + len(_PORTS)):
            port = _PORTS[turn % len(_PORTS)]
            if _is_free(port):
                counter.truncate(0)
                counter.write(str(turn + 1).encode())
                return port
    raise AssertionError(f"expected a free port of {_PORTS.start} to {_PORTS.stop - 1}, found none")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True


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
