"""The supervisor: starts the parts, waits until they are ready, restarts what dies, stops all."""

from __future__ import annotations

import errno
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import tomlkit

from relay.errors import RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.supervisor.children import Child, is_ready, stop_all
from relay.supervisor.data_folder import DataFolder
from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from relay.supervisor.kafka_server import KafkaServer
from relay.supervisor.plan import archive_part, class_archive, part_settings, platform_parts
from relay.supervisor.settings import UpSettings
from relay.transport.ports import port_holder

__all__ = ["Supervisor"]

Say = Callable[[str], None]
_LEFTOVERS_S = 15.0
"""Parts notice that their supervisor was killed, and end within this time."""


class Supervisor:
    """Runs the platform's processes under one data folder.

    Args:
        settings: what to run and where.
        say: told what happens, in sentences.

    Raises:
        SettingsError: another supervisor holds the folder, a port is taken, or Java is missing.
    """

    def __init__(self, settings: UpSettings, say: Say) -> None:
        self._settings, self._tell = settings, say
        self._stopping = threading.Event()
        self._data = DataFolder(settings.data_folder)
        self._folder = self._data.path
        self._is_state_due, self._disk_trouble = False, ""
        self._children: list[Child] = []
        self._archiving: Child | None = None
        self._archive, self._can_archive = Path(), False
        self.config_file = self._folder / "run" / "relay.toml"

    def prepare(self) -> None:
        """Check ports, find Java, fetch jars, write settings, format Kafka's storage."""
        settings, ports = self._settings, self._settings.ports
        deadline_s = time.monotonic() + (0.0 if self._data.was_stopped_cleanly else _LEFTOVERS_S)
        for name, port in ports.model_dump().items():
            holder = self._port_holder(port, until_s=deadline_s)
            if holder:
                raise SettingsError(
                    f"port {port} ({name}) is taken{holder}; stop it, or set RELAY_UP_PORTS__{name.upper()}"
                )
        java = find_java()
        jars = {group: ensure_jars(group, java, say=self._say) for group in ("kafka", "spark")}
        self._archive, self._can_archive = class_archive(jars["spark"], java), java.can_archive
        self.config_file.write_text(tomlkit.dumps(part_settings(settings, jars=jars["spark"], archive=self._archive)))
        kafka = KafkaServer(
            java, jars["kafka"], self._folder / "kafka", ports.kafka, ports.kafka_controller, settings.host
        )
        kafka.prepare()
        parts = platform_parts(settings, java=java, kafka=kafka, config_file=self.config_file)
        self._children = [Child(part, self._folder / "logs" / f"{part.name}.log") for part in parts]

    def start(self) -> None:
        """Start every part and wait until all are ready.

        Raises:
            RetryableError: names the parts that are not ready in time, with their logs.
        """
        self._is_state_due = True
        self.look_after()
        deadline_s = time.monotonic() + self._settings.ready_seconds
        while not self._stopping.is_set():
            self.look_after()
            waiting = [child for child in self._children if not child.ready]
            if not waiting:
                return
            if time.monotonic() > deadline_s:
                logs = ", ".join(f"{child.part.name} (log: {child.log})" for child in waiting)
                raise RetryableError(
                    f"not ready after {self._settings.ready_seconds} s: {logs}", code=ErrorCode.TIMEOUT
                )
            self._stopping.wait(0.1)

    def look_after(self) -> None:
        """Start what is due, notice what died, ask what is not ready yet; a full disk is said and waited for."""
        now_s = time.monotonic()
        for child in self._children:
            try:
                self._look_after(child, now_s)
            except OSError as error:
                child.start_at_s = child.policy.died(now_s)
                self._say_trouble(error, f"{child.part.name} cannot be started")
        if self._is_state_due:
            try:
                self._data.write_state([_described(child) for child in self._children])
            except OSError as error:
                self._say_trouble(error, "what relay status shows is out of date")
            else:
                self._is_state_due, self._disk_trouble = False, ""

    def _look_after(self, child: Child, now_s: float) -> None:
        if child.start_at_s is not None:
            if now_s >= child.start_at_s:
                child.start(now_s)
                self._is_state_due = True
        elif (code := child.exit_code()) is not None:
            # What it had started itself would hold the data against its successor.
            child.signal(signal.SIGKILL, group=True)
            child.start_at_s = child.policy.died(now_s)
            child.ready = False
            pause_s = child.start_at_s - now_s
            self._say(f"{child.part.name} died ({_ended(code)}); starting it again in {pause_s:.1f} s")
            self._is_state_due = True
        elif not child.ready and is_ready(child.part, child.pid):
            child.ready = True
            self._say(f"{child.part.name} is ready")
            self._is_state_due = True

    def archive_classes(self) -> None:
        """Once for each machine: let a low-priority process write the archive that makes the next starts faster."""
        if not self._can_archive or self._archive.exists():
            return
        part = archive_part(self.config_file)
        self._archiving = Child(part, self._folder / "logs" / f"{part.name}.log")
        self._archiving.start(time.monotonic())

    def stay(self) -> None:
        """Look after the parts until :meth:`request_stop`."""
        while not self._stopping.wait(0.25):
            self.look_after()

    def request_stop(self) -> None:
        """End :meth:`start` and :meth:`stay`; safe from a signal handler."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Stop all parts and give the folder free."""
        if self._archiving is not None:
            self._archiving.signal(signal.SIGKILL, group=True)
        killed = stop_all(self._children, within_s=self._settings.stop_seconds)
        if killed:
            self._say(f"had to kill {', '.join(killed)}")
        self._data.release()

    def _port_holder(self, port: int, *, until_s: float) -> str:
        """Return who holds a port; parts that a killed supervisor has left behind get the time to end."""
        is_said = False
        while holder := port_holder(f"tcp://{self._settings.host}:{port}"):
            if self._stopping.is_set() or time.monotonic() > until_s:
                break
            if not is_said:
                self._say(f"an earlier relay up was killed; waiting for what holds port {port}{holder}")
                is_said = True
            self._stopping.wait(0.1)
        return holder

    def _say(self, text: str) -> None:
        # The output may be a file on the disk that is full: nothing ends because it cannot be said.
        with suppress(OSError):
            self._tell(text)

    def _say_trouble(self, error: OSError, consequence: str) -> None:
        """Say once what is wrong with the disk, not at every look."""
        what = "disk full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"disk trouble ({error.strerror})"
        text = f"{what} at {self._folder}: {consequence}; free some space, the parts then go on by themselves"
        if text != self._disk_trouble:
            self._say(text)
        self._disk_trouble = text


def _described(child: Child) -> dict[str, object]:
    return {
        "name": child.part.name,
        "pid": child.pid,
        "ready_url": child.part.ready_url,
        "ready_port": child.part.ready_port,
        "deaths": child.policy.deaths,
        "log": str(child.log),
    }


def _ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
