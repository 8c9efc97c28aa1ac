"""``relay doctor``: what this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console

from relay.config import load_settings
from relay.config.known import APPLICATIONS, CONFIG_FILE_VARIABLE, read_tables
from relay.errors import RelayError

__all__ = ["command"]


class _Finding(NamedTuple):
    name: str
    state: str  # ok, missing, wrong
    text: str


@click.command("doctor")
@click.option("--fetch", is_flag=True, help="Fetch the jars that are missing.")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML); else RELAY_CONFIG.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(fetch: bool, config: Path | None, as_json: bool) -> None:
    """Check Python, ZeroMQ, Java, jars, packages, memory, disk and settings; say what to do about what is missing.

    Exit codes: 0 everything for `relay up` is there, 1 something is missing or wrong.
    """
    checks: list[Callable[[], list[_Finding]]] = [
        _python,
        _zeromq,
        _packages,
        lambda: _java_and_jars(fetch),
        _accelerator,
        _machine,
        lambda: _settings(config),
    ]
    findings = [finding for check in checks for finding in _run(check)]
    if as_json:
        click.echo(json.dumps([finding._asdict() for finding in findings]))
    else:
        console = Console(highlight=False)
        for finding in findings:
            color = {"ok": "green", "absent": "yellow"}.get(finding.state, "red")
            console.print(f"[{color}]{finding.state:8}[/{color}] {finding.name:12} {finding.text}", soft_wrap=True)
    raise SystemExit(0 if all(finding.state in ("ok", "absent") for finding in findings) else 1)


def _run(check: Callable[[], list[_Finding]]) -> list[_Finding]:
    try:
        return check()
    except RelayError as error:
        return [_Finding(error.code.lower(), "wrong", str(error))]


def _python() -> list[_Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    state = "ok" if sys.version_info >= (3, 11) else "wrong"
    return [_Finding("python", state, f"{found} at {sys.executable} (3.11 or later)")]


def _zeromq() -> list[_Finding]:
    from relay.transport import new_context
    from relay.transport.sockets import library_version

    new_context().term()
    return [_Finding("zeromq", "ok", library_version())]


def _packages() -> list[_Finding]:
    extras = {
        "confluent-kafka": "kafka",
        "pyiceberg": "tables",
        "pyspark": "spark",
        "httpx": "ingestors",
        "aiohttp": "simulation",
        "market-relay-client": "all",
    }
    findings = []
    for package, extra in extras.items():
        try:
            findings.append(_Finding(package, "ok", version(package)))
        except PackageNotFoundError:
            findings.append(_Finding(package, "missing", f"install market-relay[{extra}]"))
    return findings


def _java_and_jars(fetch: bool) -> list[_Finding]:
    from relay.supervisor.jars_store import ensure_jars, jars_folder
    from relay.supervisor.java import find_java

    java = find_java()
    findings = [_Finding("java", "ok", f"{java.version} at {java.home} ({java.origin})")]
    for group in ("kafka", "spark"):
        if fetch:
            ensure_jars(group, java, say=lambda text: click.echo(text, err=True))
        folder = jars_folder(group)
        if folder.is_dir():
            findings.append(_Finding(f"jars {group}", "ok", str(folder)))
        else:
            findings.append(_Finding(f"jars {group}", "missing", "relay doctor --fetch, or the next relay up"))
    return findings


def _accelerator() -> list[_Finding]:
    try:
        return [_Finding("accelerator", "ok", version("relay-accel"))]
    except PackageNotFoundError:
        return [_Finding("accelerator", "absent", "not installed; everything works over plain sockets")]


def _settings(config: Path | None) -> list[_Finding]:
    """Read what is set of every application that is installed; what only the supervisor writes may be missing."""
    config = config or (Path(os.environ[CONFIG_FILE_VARIABLE]) if os.environ.get(CONFIG_FILE_VARIABLE) else None)
    tables = read_tables(config) if config is not None else set()
    findings = []
    for name, place in APPLICATIONS.items():
        module_name, _, class_name = place.partition(":")
        try:
            model = getattr(import_module(module_name), class_name)
        except ImportError:
            continue
        prefix = str(model.model_config["env_prefix"])
        is_set = name in tables or any(variable.upper().startswith(prefix) for variable in os.environ)
        if not is_set and any(field.is_required() for field in model.model_fields.values()):
            continue
        try:
            load_settings(model, config_file=config)
        except RelayError as error:
            findings.append(_Finding(f"settings {name}", "wrong", str(error)))
    return findings or [_Finding("settings", "ok", str(config or "environment and defaults"))]


def _machine() -> list[_Finding]:
    import psutil

    free_bytes = shutil.disk_usage(Path.cwd()).free
    memory_bytes = psutil.virtual_memory().available
    return [
        _Finding("disk", "ok" if free_bytes > 2 * 2**30 else "wrong", f"{free_bytes / 2**30:.1f} GiB free (2 needed)"),
        _Finding(
            "memory", "ok" if memory_bytes > 3 * 2**30 else "wrong", f"{memory_bytes / 2**30:.1f} GiB free (3 needed)"
        ),
    ]
