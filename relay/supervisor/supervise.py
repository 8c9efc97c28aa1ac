"""The supervisor: starts the parts, waits until they are ready, restarts what dies, stops all."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import tomlkit

from relay.errors import RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.supervisor.children import Child, is_ready, stop_all
from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from relay.supervisor.kafka_server import KafkaServer
from relay.supervisor.plan import archive_part, class_archive, part_settings, platform_parts
from relay.supervisor.settings import UpSettings
from relay.transport.ports import port_holder

__all__ = ["STATE_FILE", "Supervisor", "read_state"]

STATE_FILE = Path("run") / "state.json"
Say = Callable[[str], None]


class Supervisor:
    """Runs the platform's processes under one data folder.

    Args:
        settings: what to run and where.
        say: told what happens, in sentences.

    Raises:
        SettingsError: another supervisor holds the folder, a port is taken, or Java is missing.
    """

    def __init__(self, settings: UpSettings, say: Say) -> None:
        self._settings, self._say = settings, say
        self._folder = settings.data_folder.resolve()
        self._stopping = threading.Event()
        (self._folder / "logs").mkdir(parents=True, exist_ok=True)
        (self._folder / "run").mkdir(exist_ok=True)
        (self._folder / "lake").mkdir(exist_ok=True)
        (self._folder / "manager").mkdir(exist_ok=True)
        self._lock = _lock(self._folder)
        self._children: list[Child] = []
        self._archiving: Child | None = None
        self._archive, self._can_archive = Path(), False
        self.config_file = self._folder / "run" / "relay.toml"

    def prepare(self) -> None:
        """Check ports, find Java, fetch jars, write settings, format Kafka's storage."""
        settings, ports = self._settings, self._settings.ports
        for name, port in ports.model_dump().items():
            holder = port_holder(f"tcp://{settings.host}:{port}")
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
        """Start what is due, notice what died, ask what is not ready yet."""
        now_s = time.monotonic()
        changed = False
        for child in self._children:
            if child.start_at_s is not None:
                if now_s >= child.start_at_s:
                    child.start(now_s)
                    changed = True
            elif (code := child.exit_code()) is not None:
                child.start_at_s = child.policy.died(now_s)
                child.ready = False
                pause_s = child.start_at_s - now_s
                self._say(f"{child.part.name} died ({_ended(code)}); starting it again in {pause_s:.1f} s")
                changed = True
            elif not child.ready and is_ready(child.part):
                child.ready = True
                self._say(f"{child.part.name} is ready")
                changed = True
        if changed:
            self._write_state()

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
        (self._folder / STATE_FILE).unlink(missing_ok=True)
        self._lock.close()

    def _write_state(self) -> None:
        parts = [
            {
                "name": child.part.name,
                "pid": child.pid,
                "ready_url": child.part.ready_url,
                "ready_port": child.part.ready_port,
                "deaths": child.policy.deaths,
                "log": str(child.log),
            }
            for child in self._children
        ]
        path = self._folder / STATE_FILE
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({"pid": os.getpid(), "parts": parts}, indent=1))
        draft.replace(path)


def read_state(data_folder: Path) -> dict[str, object] | None:
    """Return what a running supervisor has written about its parts; None when none runs on the folder."""
    folder = data_folder.resolve()
    try:
        handle = (folder / "run" / "lock").open("r+")
    except FileNotFoundError:
        return None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            return None
    try:
        state = json.loads((folder / STATE_FILE).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {"pid": None, "parts": []}
    return state if isinstance(state, dict) else None


def _lock(folder: Path) -> IO[str]:
    handle = (folder / "run" / "lock").open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        holder = handle.read().strip() or "unknown"
        handle.close()
        raise SettingsError(
            f"another relay up (pid {holder}) runs on {folder}; stop it (relay down) or choose another --data folder"
        ) from None
    handle.truncate(0)
    handle.write(str(os.getpid()))
    handle.flush()
    return handle


def _ended(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
