"""The whole platform for tests: `relay up` on ports of its own, parts that can be killed, stopped and watched."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import zmq

from relay.protocol.envelope import decode, encode
from relay.protocol.ranges import Range
from relay.protocol.registry import Channel
from relay.protocol.v1 import request_pb2
from relay.supervisor.data_folder import read_state
from relay.supervisor.settings import Ports
from relay.tables import TableSettings
from relay.tables.reader import LakeTables, open_tables
from tests.support.processes import Process, free_port, wait_until

__all__ = ["MINUTE_NS", "RELAY", "Platform"]

RELAY = [sys.executable, "-c", "from relay.cli import main; main()"]
MINUTE_NS = 60 * 10**9
Status = request_pb2.HistoryReadyNotification


class Platform:
    """A running platform.

    Args:
        folder: its data folder; starting again on it goes on where it was.
        arguments: further arguments of ``relay up``.
    """

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.arguments = folder, arguments
        folder.mkdir(parents=True, exist_ok=True)
        taken: set[int] = set()
        self.ports: dict[str, int] = {}
        for name in Ports.model_fields:
            port = free_port()
            while port in taken:
                port = free_port()
            taken.add(port)
            self.ports[name] = port
        self.context = zmq.Context()
        self.process = self.start()

    @property
    def environment(self) -> dict[str, str]:
        ports = {f"RELAY_UP_PORTS__{name.upper()}": str(port) for name, port in self.ports.items()}
        return ports | {"RELAY_UP_DATA_FOLDER": str(self.folder)}

    def start(self, *more: str) -> Process:
        """Start (again) and wait until all parts are ready."""
        command = [*RELAY, "up", *(more or ("--no-first-request",)), *self.arguments]
        process = Process(command, log=self.folder / "up.log", environment=self.environment)
        self.process = process
        if not more:
            self.wait_ready()
        return process

    def wait_ready(self) -> None:
        """Wait until the supervisor runs and every part is ready."""

        def ready() -> bool:
            assert self.process.returncode is None, self.process.tail()
            return bool(self.parts()) and all(self.is_ready(name) for name in self.parts())

        wait_until(ready, what="every part to be ready", deadline_s=240)

    def parts(self) -> dict[str, dict[str, Any]]:
        """What the supervisor says of its parts, by name."""
        state = read_state(self.folder) or {"parts": []}
        return {part["name"]: part for part in state["parts"]}

    def is_ready(self, name: str) -> bool:
        part = self.parts().get(name)
        if part is None or part["pid"] is None:
            return False
        if not part["ready_url"]:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", part["ready_port"])) == 0
        try:
            self._get(part["ready_url"])
        except OSError:
            return False
        return True

    def kill(self, name: str) -> None:
        """SIGKILL a part with its whole group; the supervisor starts it again."""
        os.killpg(self.parts()[name]["pid"], signal.SIGKILL)

    @contextlib.contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Hold a part (SIGSTOP) for the length of a block."""
        group = self.parts()[name]["pid"]
        os.killpg(group, signal.SIGSTOP)
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGCONT)

    def counters(self, name: str) -> Mapping[str, int]:
        """Counters of a part; empty while it does not answer."""
        url = self.parts()[name]["ready_url"].rpartition("/")[0] + "/status"
        try:
            return dict(self._get(url)["counters"])
        except OSError:
            return {}

    def simulation(self, path: str, body: object = None, method: str | None = None) -> dict[str, Any]:
        """Talk to the simulated exchange: faults, requests, or an exchange's own path."""
        data = None if body is None else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.ports['simulation']}{path}"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def ask(self, message: object, *, timeout_ms: int = 2_000) -> Any:
        """One request on a socket of its own; None when no reply comes."""
        req = self.context.socket(zmq.REQ)
        req.linger, req.rcvtimeo = 0, timeout_ms
        try:
            req.connect(f"tcp://127.0.0.1:{self.ports['request']}")
            req.send_multipart(encode(message))
            return decode(req.recv_multipart(), Channel.CLIENT_REPLY).message
        except zmq.Again:
            return None
        finally:
            req.close()

    def submit(self, ticker: str, within: Range, *, period_seconds: int = 60, request_id: str = "", **more: Any) -> str:
        """Submit until it is accepted, always with the same request_id; return the id."""
        request = request_pb2.SubmitHistoricalRequest(
            request_id=request_id or str(uuid.uuid4()),
            ticker=ticker,
            start_time=within.start_ns,
            end_time=within.end_ns,
            period_seconds=period_seconds,
            **more,
        )
        accepted = (request_pb2.SubmitResponse.QUEUED, request_pb2.SubmitResponse.DUPLICATE)

        def sent() -> bool:
            reply = self.ask(request)
            assert reply is None or reply.status in (*accepted, request_pb2.SubmitResponse.UNAVAILABLE), reply
            return reply is not None and reply.status in accepted

        wait_until(sent, what="the request to be accepted", deadline_s=120)
        return request.request_id

    def outcome(self, request_id: str, *, deadline_s: float = 180) -> Status:
        """Ask for the status until the request has ended."""

        def ended() -> Status | None:
            reply = self.ask(request_pb2.RequestStatusQuery(request_id=request_id))
            if reply is None or reply.error_code == "UNAVAILABLE" or reply.status == Status.PENDING:
                return None
            return reply

        found = wait_until(ended, what=f"request {request_id} to end", deadline_s=deadline_s)
        assert isinstance(found, Status)
        return found

    def lake(self) -> LakeTables:
        """The tables, read directly."""
        uri, warehouse = f"sqlite:///{self.folder}/lake/catalog.db", f"file://{self.folder}/lake/warehouse"
        return open_tables(TableSettings(uri, warehouse))

    def command(self, *arguments: str, deadline_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Run a `relay` command against this platform."""
        environment = {**os.environ, **self.environment, "RELAY_CONFIG": str(self.folder / "run" / "relay.toml")}
        return subprocess.run(
            [*RELAY, *arguments], env=environment, capture_output=True, text=True, timeout=deadline_s, check=False
        )

    def close(self) -> int:
        """Ctrl-C; return the exit code."""
        self.context.destroy(0)
        return self.process.terminate(60)

    def _get(self, url: str) -> dict[str, Any]:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
