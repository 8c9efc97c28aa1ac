"""What ``relay status`` shows of a running platform: its parts, and how far the streaming queries are."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterable, Mapping
from typing import Any

import psutil
from rich.table import Table

from relay.supervisor.children import get_json

__all__ = ["describe_part", "parts_table", "queries_table"]


def describe_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part's health, memory, restarts and log; of Spark's driver its queries, too.

    Args:
        part: as the supervisor notes it in the data folder.
    """
    described = {name: part[name] for name in ("name", "pid", "deaths", "log")}
    described["health"] = _health(part)
    described["memory_bytes"] = _memory_bytes(part["pid"])
    if described["health"] == "ready" and (queries := _queries(part)):
        described["queries"] = queries
    return described


def parts_table(parts: Iterable[Mapping[str, Any]]) -> Table:
    """Return one row a part, and the sum of their memory."""
    parts = list(parts)
    table = Table()
    for title in ("part", "health", "pid", "memory", "restarts", "log"):
        table.add_column(title, justify="right" if title in ("pid", "memory", "restarts") else "left")
    for part in parts:
        color = "green" if part["health"] == "ready" else "red"
        memory = f"{part['memory_bytes'] / 2**20:.0f} MiB"
        table.add_row(
            part["name"],
            f"[{color}]{part['health']}[/{color}]",
            str(part["pid"]),
            memory,
            str(part["deaths"]),
            part["log"],
        )
    table.add_row("total", "", "", f"{sum(p['memory_bytes'] for p in parts) / 2**20:.0f} MiB", "", "")
    return table


def queries_table(parts: Iterable[Mapping[str, Any]]) -> Table | None:
    """Return one row a streaming query, or None when no part runs any."""
    table = Table()
    for title in ("query", "state", "failures", "rows/s", "batch ms", "lag (records behind the log)"):
        table.add_column(title, justify="right" if title in ("failures", "rows/s", "batch ms") else "left")
    for part in parts:
        for name, query in part.get("queries", {}).items():
            lag = ", ".join(f"{topic} {records:,}" for topic, records in query.get("lag", {}).items())
            table.add_row(
                name,
                "[green]running[/green]" if query["running"] else "[red]stopped[/red]",
                str(query["failures"]),
                f"{query['rows_per_second']:,}" if "rows_per_second" in query else "",
                f"{query['batch_ms']:,}" if "batch_ms" in query else "",
                lag,
            )
    return table if table.row_count else None


def _health(part: Mapping[str, Any]) -> str:
    if part["pid"] is None or not psutil.pid_exists(part["pid"]):
        return "dead"
    if not part["ready_url"]:
        return "ready"
    try:
        get_json(part["ready_url"])
    except urllib.error.HTTPError:
        return "not ready"
    except OSError:
        return "no answer"
    return "ready"


def _memory_bytes(pid: int | None) -> int:
    """Proportional memory of a process and its children, so that shared pages count once."""
    if pid is None:
        return 0
    try:
        root = psutil.Process(pid)
        return sum(process.memory_full_info().pss for process in (root, *root.children(recursive=True)))
    except psutil.Error:
        return 0


def _queries(part: Mapping[str, Any]) -> dict[str, Any]:
    if not part["ready_url"]:
        return {}
    try:
        return dict(get_json(part["ready_url"].rpartition("/")[0] + "/status").get("queries", {}))
    except OSError:
        return {}
