"""`relay` commands as processes forked from one that has imported them: a start costs no second of imports.

They are processes of their own all the same, with a pid that SIGKILL ends. What is under test where a process begins
and ends (signals while it imports, the interpreter's own end) is started by :class:`tests.support.processes.Process`.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ForkedRelay"]

_PRELOAD = [
    "relay.cli.gateway",
    "relay.config",
    "relay.gateway.process",
    "relay.gateway.settings",
    "relay.observability",
]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(_PRELOAD)


class ForkedRelay:
    """A `relay` command with its output in a file; the same methods as ``Process``."""

    def __init__(self, arguments: Sequence[str], *, log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        everything = {**os.environ, **environment}
        self._child = _CONTEXT.Process(target=_run, args=(list(arguments), str(log), everything), daemon=True)
        self._child.start()

    @property
    def pid(self) -> int:
        assert self._child.pid is not None
        return self._child.pid

    @property
    def returncode(self) -> int | None:
        return self._child.exitcode

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        if self._child.exitcode is None:
            os.kill(self.pid, signal.SIGKILL)
        self._child.join()

    def terminate(self, deadline_s: float = 60.0) -> int:
        """SIGTERM, wait for the end, return the exit code."""
        self._child.terminate()
        self._child.join(deadline_s)
        if self._child.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired("relay", deadline_s)
        return self._child.exitcode

    def tail(self) -> str:
        """Last lines of the output, for failure messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


def _run(arguments: list[str], log: str, environment: dict[str, str]) -> None:
    """In the child."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["relay", *arguments]
    from relay.cli import main

    main()
