"""Child processes of the supervisor: started in groups of their own, with a log file each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil

from relay.supervisor.plan import Part
from relay.supervisor.restarts import RestartPolicy

__all__ = ["Child", "get_json", "is_ready", "stop_all"]

_LOG_BYTES_MAX = 64 * 1024 * 1024


class Child:
    """One part as it runs now."""

    def __init__(self, part: Part, log: Path) -> None:
        self.part, self.log = part, log
        self.policy = RestartPolicy()
        self.start_at_s: float | None = 0.0
        self.ready = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, now_s: float) -> None:
        """Start the process; a log that has grown too large is put aside first."""
        with contextlib.suppress(OSError):
            if self.log.stat().st_size > _LOG_BYTES_MAX:
                self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.part.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **self.part.environment},
            )
        self.policy.started(now_s)
        self.start_at_s, self.ready = None, False

    def exit_code(self) -> int | None:
        """Exit code of a process that has ended since its start, else None."""
        return self._process.poll() if self._process is not None else None

    def signal(self, number: int, *, group: bool = False) -> None:
        """Send a signal to the process, or to its whole group."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if group:
                os.killpg(self._process.pid, number)
            elif self._process.poll() is None:
                self._process.send_signal(number)

    def wait(self, until_s: float) -> bool:
        """Wait for the end; return whether it came."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, until_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True


def get_json(url: str) -> dict[str, Any]:
    """Return the answer of a part's own status endpoint.

    Raises:
        OSError: it does not answer, or answers that it is not ready (``urllib.error.HTTPError``).
    """
    with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own http address
        found = json.load(answer)
    return found if isinstance(found, dict) else {}


def is_ready(part: Part, pid: int | None) -> bool:
    """Ask a part whether it is ready; a port that somebody else than its process (or child) holds does not count."""
    if pid is None:
        return False
    if part.ready_url:
        try:
            return get_json(part.ready_url) is not None
        except (OSError, ValueError):
            return False
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", part.ready_port)) != 0:
            return False
    return _listens(pid, part.ready_port)


def _listens(pid: int, port: int) -> bool:
    try:
        root = psutil.Process(pid)
        return any(
            connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            for process in (root, *root.children(recursive=True))
            for connection in process.net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def stop_all(children: Iterable[Child], *, within_s: float) -> list[str]:
    """Stop all children, rank by rank; return the names of those that had to be killed."""
    children = list(children)
    deadline_s = time.monotonic() + within_s
    ranks = sorted({child.part.stop_rank for child in children})
    killed = []
    for position, rank in enumerate(ranks, start=1):
        of_rank = [child for child in children if child.part.stop_rank == rank]
        for child in of_rank:
            child.signal(signal.SIGTERM)
        # The later ranks keep their share of the time.
        until_s = deadline_s - within_s * 0.2 * (len(ranks) - position)
        for child in of_rank:
            if not child.wait(until_s):
                killed.append(child.part.name)
            child.signal(signal.SIGKILL, group=True)
            child.wait(time.monotonic() + 2)
    return killed
