"""A client in a process of its own, which can be stopped or killed; it tells on its output what comes, by which way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.support.processes import wait_until

__all__ = ["LocalClient"]

_CODE = """
import sys, threading
from relay_client import Client, ClientSettings
request, subscribe, topic = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with Client(settings=ClientSettings(request_port=request, subscribe_port=subscribe)) as client:
    subscription = client.subscribe(topic, timeout=60)
    told = ""
    while True:
        tick = subscription.next(timeout=0.02)
        if tick is not None:
            print("tick", tick.trade_id, flush=True)
        now = f"way {subscription.transport} {subscription.counters()['lapped']} {subscription.transport_reason}"
        if now != told:
            told = now
            print(told, flush=True)
"""


class LocalClient:
    """A process that subscribes one topic.

    Args:
        ports: of the gateway: ``request`` and ``subscribe``.
        topic: subscribed.
        log: file for its output.
    """

    def __init__(self, ports: dict[str, int], topic: str, *, log: Path) -> None:
        self._log = log
        arguments = [sys.executable, "-c", _CODE, str(ports["request"]), str(ports["subscribe"]), topic]
        with log.open("wb") as output:
            self.process = subprocess.Popen(arguments, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        return self.process.pid

    def lines(self, kind: str) -> list[str]:
        """What it has told of a kind."""
        # What is being written has no end yet.
        found = self._log.read_text().rpartition("\n")[0].splitlines()
        return [line.partition(" ")[2] for line in found if line.startswith(f"{kind} ")]

    def ticks(self) -> list[int]:
        return [int(line) for line in self.lines("tick")]

    def way(self) -> tuple[str, int, str]:
        """By which way data come now, how often it was overtaken, and the reason."""
        transport, laps, reason = (self.lines("way") or ["none 0 "])[-1].split(" ", 2)
        return transport, int(laps), reason

    def until_by(self, transport: str) -> None:
        wait_until(lambda: self.way()[0] == transport, what=f"data by {transport}: {self._log.read_text()[-500:]}")

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> LocalClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
