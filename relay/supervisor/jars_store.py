"""The jars of Kafka and Spark: pinned versions, checked against our own list of SHA-256 sums, fetched once.

PySpark carries the Ivy resolver among its own jars; run with the Java at hand it needs no Maven on the machine, keeps
what it has, and goes on after an interruption.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from relay.errors import RetryableError, SettingsError
from relay.protocol.codes import ErrorCode
from relay.supervisor.java import Java, cache_folder

__all__ = ["JAR_GROUPS", "ensure_jars", "jars_folder", "pinned_sums"]

JAR_GROUPS = ("kafka", "spark", "s3")
_DEFINITIONS = Path(__file__).with_name("jars")


def pinned_sums(group: str) -> dict[str, str]:
    """Return file name → SHA-256 of a group."""
    lines = (_DEFINITIONS / f"{group}.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def ensure_jars(group: str, java: Java, *, say: Callable[[str], None]) -> Path:
    """Return the folder that holds all jars of a group, fetching them first when they are missing.

    Args:
        group: one of :data:`JAR_GROUPS`.
        java: runs the resolver.
        say: told in a sentence when something is fetched.

    Raises:
        RetryableError: not everything could be fetched (offline?); what has come stays for the next try.
        SettingsError: a fetched file is not the pinned one.
    """
    folder = jars_folder(group)
    if folder.is_dir():
        return folder
    with _locked(cache_folder() / f"{group}.lock"):
        if not folder.is_dir():
            say(f"fetching {len(pinned_sums(group))} jars for {group} (once; they stay in {folder.parent})")
            _fetch(group, java, folder)
    return folder


def jars_folder(group: str) -> Path:
    """Return where a group's jars are; the name changes with the pins, so a folder that exists is whole."""
    pins = hashlib.sha256((_DEFINITIONS / f"{group}.sha256").read_bytes()).hexdigest()
    return cache_folder() / "jars" / f"{group}-{pins[:12]}"


def _fetch(group: str, java: Java, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        command = [
            java.executable,
            *("-cp", _ivy_jar()),
            "org.apache.ivy.Main",
            *("-ivy", _DEFINITIONS / f"{group}.xml"),
            *("-cache", cache_folder() / "ivy"),
            *("-types", "jar", "bundle"),
            *("-retrieve", f"{draft}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        answer = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        fetched = Path(draft)
        missing = sorted(name for name in pinned_sums(group) if not (fetched / name).is_file())
        if answer.returncode != 0 or missing:
            raise RetryableError(
                f"could not fetch {len(missing)} of {len(pinned_sums(group))} jars for {group} "
                f"({', '.join(missing[:3])} …). Is this machine offline, or is the Maven repository not reachable? "
                f"Try again: what has come stays. Resolver's last words: {_last_words(answer.stdout)}",
                code=ErrorCode.UNAVAILABLE,
            )
        for name, digest in pinned_sums(group).items():
            found = hashlib.sha256((fetched / name).read_bytes()).hexdigest()
            if found != digest:
                raise SettingsError(f"{name} has SHA-256 {found}, expected {digest}; the file is not the pinned one")
        for extra in {p.name for p in fetched.iterdir()} - set(pinned_sums(group)):
            (fetched / extra).unlink()
        complete = folder.parent / f"{folder.name}.{os.getpid()}"
        fetched.rename(complete)
        fetched.mkdir()
        complete.rename(folder)


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    found = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec is not None and spec.origin else []
    if not found:
        raise SettingsError(
            "expected PySpark with its jars to fetch the others; install market-relay[spark]",
            code=ErrorCode.MISSING_EXTRA,
        )
    return found[0]


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in lines if "not found" in line or "ERROR" in line or "Exception" in line]
    return " | ".join((wrong or lines)[-3:])


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process fetch at a time; the lock ends with its holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
