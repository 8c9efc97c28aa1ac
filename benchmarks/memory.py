"""How much memory does each process of the platform hold, and how long does each part take to be ready?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from benchmarks.report import Report
from relay.protocol.ranges import Range
from relay.supervisor.java import cache_folder
from tests.support.platform import MINUTE_NS, Platform

__all__ = ["run"]

_GOAL_MIB = 2.5 * 1024


def run(*, quick: bool) -> Report:
    """Start with and without the class archive, rest, serve 100 requests, weigh."""
    report = Report(
        "memory",
        "How much memory does each process of the platform hold, and how long does each part take to be ready?",
        layout="the whole platform by relay up, Spark on local[2], the simulated exchange",
        durability="as in use",
    )
    with tempfile.TemporaryDirectory() as name:
        archives = [*cache_folder().glob("spark-*.jsa")]
        put_aside = [path.replace(path.with_suffix(".aside")) for path in archives]
        try:
            _start(report, Path(name) / "first", "without a class archive, empty folder", requests=0)
            _start(report, Path(name) / "first", "with the class archive, filled folder", requests=5 if quick else 100)
        finally:
            for path in put_aside:
                path.replace(path.with_suffix(".jsa"))
    return report


def _start(report: Report, folder: Path, case: str, *, requests: int) -> None:
    began = time.monotonic()
    platform = _Watched(folder)
    try:
        took_s = time.monotonic() - began
        report.add(f"start, {case}", until_all_ready_s=round(took_s, 1), **platform.ready_s)
        if requests:
            _weigh(report, platform, "at rest")
            _serve(platform, requests)
            total = _weigh(report, platform, f"after {requests} requests")
            report.ratio("memory_to_2.5_GiB", total / _GOAL_MIB, goal_max=1.0)
    finally:
        platform.close()


class _Watched(Platform):
    """Notes when each part was ready."""

    def wait_ready(self) -> None:
        """See the platform."""
        self.ready_s: dict[str, float] = {}
        began = time.monotonic()

        super_ready = self.is_ready

        def is_ready(name: str) -> bool:
            ready = super_ready(name)
            if ready and name not in self.ready_s:
                self.ready_s[name] = round(time.monotonic() - began, 1)
            return ready

        self.is_ready = is_ready  # type: ignore[method-assign]
        end = began + 240
        while not self.parts() or not all([self.is_ready(name) for name in self.parts()]):  # noqa: C419 - each is noted
            if time.monotonic() > end or self.process.returncode is not None:
                raise TimeoutError(f"the platform did not become ready: {self.process.tail()}")
            time.sleep(0.05)
        self.is_ready = super_ready  # type: ignore[method-assign]


def _serve(platform: Platform, count: int) -> None:
    day_ns = 1_440 * MINUTE_NS
    first_ns = (time.time_ns() // day_ns - 200) * day_ns
    ids = [
        platform.submit("ETH/USDT.BINANCE", Range(first_ns + n * day_ns // 4, first_ns + (n + 1) * day_ns // 4))
        for n in range(count)
    ]
    for request_id in ids:
        platform.outcome(request_id)


def _weigh(report: Report, platform: Platform, when: str) -> float:
    weights = {name: _pss_mib(part["pid"]) for name, part in platform.parts().items() if part["pid"]}
    weights["supervisor"] = _own_pss_mib(psutil.Process(platform.process.pid))
    total = sum(weights.values())
    report.add(f"PSS in MiB {when}", total=round(total), **_whole(weights))
    return total


def _pss_mib(pid: int) -> float:
    parent = psutil.Process(pid)
    return sum(_own_pss_mib(process) for process in (parent, *parent.children(recursive=True)))


def _own_pss_mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def _whole(weights: Mapping[str, float]) -> dict[str, int]:
    return {name: round(weight) for name, weight in weights.items()}
