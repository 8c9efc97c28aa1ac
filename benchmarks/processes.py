"""Real processes of a measurement, each ended with it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil

__all__ = ["cpu_seconds", "endpoint", "gateway", "manager", "peer", "running", "wait_for"]

ROOT = Path(__file__).resolve().parent.parent
RELAY = [sys.executable, "-c", "from relay.cli import main; main()"]


def endpoint() -> str:
    """Return an address on loopback whose port is free now."""
    from tests.support.processes import free_port

    return f"tcp://127.0.0.1:{free_port()}"


def wait_for(condition: Callable[[], object], *, what: str, within_s: float = 60.0) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: it did not within the time.
    """
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {within_s:.0f} s in vain for {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def running(command: list[str], *, log: Path, environment: Mapping[str, str] | None = None) -> Iterator[psutil.Process]:
    """Run a process for the length of a block; yields it to be asked for processor time."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield psutil.Process(child.pid)
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def peer(name: str, *arguments: str, folder: Path) -> contextlib.AbstractContextManager[psutil.Process]:
    """Run one of ``benchmarks.peers``."""
    return running([sys.executable, "-m", "benchmarks.peers", name, *arguments], log=folder / f"{name}.log")


@contextlib.contextmanager
def gateway(
    addresses: Mapping[str, str], *, folder: Path, with_accelerator: bool = True, **settings: object
) -> Iterator[psutil.Process]:
    """Run a gateway process; ``addresses`` by the setting's name without ``_endpoint``."""
    status_port = endpoint().rpartition(":")[2]
    environment = {f"RELAY_GATEWAY_{name.upper()}_ENDPOINT": address for name, address in addresses.items()}
    environment |= {f"RELAY_GATEWAY_{name.upper()}": str(value) for name, value in settings.items()}
    environment["RELAY_GATEWAY_STATUS_PORT"] = status_port
    if not with_accelerator:
        (folder / "relay_accel.py").write_text('raise ImportError("left out to be measured without it")\n')
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    with running([*RELAY, "gateway"], log=folder / "gateway.log", environment=environment) as process:
        wait_for(lambda: _healthy(status_port), what="the gateway")
        yield process


@contextlib.contextmanager
def manager(addresses: Mapping[str, str], *, folder: Path) -> Iterator[psutil.Process]:
    """Run a manager process on tables of its own."""
    from relay.tables import TableSettings
    from relay.tables.writer import open_writable_tables

    lake = TableSettings(f"sqlite:///{folder}/catalog.db", f"file://{folder}/warehouse")
    open_writable_tables(lake)
    status_port = endpoint().rpartition(":")[2]
    environment = {f"RELAY_MANAGER_{name.upper()}_ENDPOINT": address for name, address in addresses.items()}
    environment |= {
        "RELAY_MANAGER_STATUS_PORT": status_port,
        "RELAY_MANAGER_STORE_PATH": str(folder / "jobs.sqlite"),
        "RELAY_MANAGER_CATALOG_URI": lake.catalog_uri,
        "RELAY_MANAGER_WAREHOUSE": lake.warehouse,
    }
    with running([*RELAY, "manager"], log=folder / "manager.log", environment=environment) as process:
        wait_for(lambda: _healthy(status_port), what="the manager")
        yield process


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time a process has used, user and system."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _healthy(port: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
