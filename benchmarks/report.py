"""What a measurement says: numbers with units, ratios to a baseline of the same run, and where it ran."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from hdrh.histogram import HdrHistogram

__all__ = ["RESULTS", "Latency", "Report", "machine"]

RESULTS = Path(__file__).resolve().parent / "results"
_HOUR_US = 3_600_000_000


class Latency:
    """Latencies in a histogram of three significant digits, from 1 µs to an hour."""

    def __init__(self) -> None:
        self._histogram = HdrHistogram(1, _HOUR_US, 3)
        self.count = 0

    def record_ns(self, latency_ns: int) -> None:
        """Add one value."""
        self._histogram.record_value(max(1, latency_ns // 1000))
        self.count += 1

    def p_us(self, percentile: float) -> int:
        """Return a percentile in microseconds."""
        return int(self._histogram.get_value_at_percentile(percentile))

    def row(self) -> dict[str, int]:
        """Return the percentiles that reports show."""
        shown = {f"p{p:g}_us": self.p_us(p) for p in (50, 90, 99, 99.9)}
        return {"count": self.count, **shown, "max_us": int(self._histogram.get_max_value())}


@dataclass(slots=True)
class Report:
    """One benchmark's results.

    Attributes:
        name: of the benchmark.
        question: what it answers.
        layout: which processes took part.
        durability: what was on disk before an answer.
        rows: measured cases, in order.
        ratios: ours to the baseline of the same run; the goal where there is one.
        notes: where the time went, and other findings.
    """

    name: str
    question: str
    layout: str
    durability: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def add(self, case: str, **values: Any) -> None:
        """Add a measured case."""
        self.rows.append({"case": case, **values})

    def ratio(self, name: str, value: float, *, goal_max: float | None = None) -> None:
        """Add a ratio, at two decimals; met when it is at most the goal."""
        goal = {} if goal_max is None else {"goal_max": goal_max, "is_met": value <= goal_max}
        self.ratios[name] = {"value": round(value, 2), **goal}

    def save(self, *, quick: bool, folder: Path = RESULTS) -> Path:
        """Write the JSON; a later run of the same kind replaces it."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}{'-quick' if quick else ''}.json"
        body = {
            "benchmark": self.name,
            "question": self.question,
            "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "is_quick": quick,
            "layout": self.layout,
            "durability": self.durability,
            "machine": machine(),
            "rows": self.rows,
            "ratios": self.ratios,
            "notes": self.notes,
        }
        path.write_text(json.dumps(body, indent=1, default=str) + "\n")
        return path

    def lines(self) -> Iterable[str]:
        """Return the report for a terminal."""
        yield f"\n{self.name}: {self.question}"
        for row in self.rows:
            yield f"  {row['case']:<44}" + "  ".join(f"{k}={_shown(v)}" for k, v in row.items() if k != "case")
        for name, ratio in self.ratios.items():
            goal = (
                f" (goal {ratio['goal_max']}: {'met' if ratio['is_met'] else 'missed'})" if "goal_max" in ratio else ""
            )
            yield f"  ratio {name:<38} {ratio['value']}{goal}"
        for name, note in self.notes.items():
            yield f"  {name}: {note}"


def machine() -> Mapping[str, Any]:
    """Return what the numbers depend on: processor, system, versions, and what a flush to disk costs."""
    models = [
        line.split(":")[1].strip() for line in _text("/proc/cpuinfo").splitlines() if line.startswith("model name")
    ]
    return {
        "processor": models[0] if models else platform.processor(),
        "processors": os.cpu_count(),
        "load_at_end": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libzmq": zmq.zmq_version(),
        "flush_us": _flush_us(),
        "commit": _commit(),
    }


def _flush_us() -> dict[str, int]:
    latency = Latency()
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(100):
            file.write(b"x" * 4096)
            file.flush()
            started = time.perf_counter_ns()
            os.fdatasync(file.fileno())
            latency.record_ns(time.perf_counter_ns() - started)
    return {"p50": latency.p_us(50), "p99": latency.p_us(99)}


def _commit() -> str:
    here = Path(__file__).resolve().parent
    try:
        answer = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return answer.stdout.strip()


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
