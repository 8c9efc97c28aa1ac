"""Reference implementations in Java to compare with: where their jars are, and how a program around one is compiled."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relay.supervisor.java import cache_folder

__all__ = ["AERON", "OPENED", "SBE_TOOL", "JavaArtifact", "MissingPeerError", "compile_java", "require_jdk"]

OPENED = tuple(
    word
    for package in ("jdk.internal.misc", "sun.nio.ch", "java.nio")
    for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")
)
"""Options of ``java`` without which Agrona's buffers do not start."""


class MissingPeerError(RuntimeError):
    """A jar or a compiler is not here; the text says what to do. Nothing of the platform needs it."""


@dataclass(frozen=True, slots=True)
class JavaArtifact:
    """A jar.

    Attributes:
        group, name, version: as Maven has it.
        sha256: of the file.
        variable: of the environment, that may name the file.
    """

    group: str
    name: str
    version: str
    sha256: str
    variable: str

    def jar(self, *, fetch: bool = False) -> Path:
        """Return the file that is named, else the cache's; fetched by Maven where that is allowed.

        Raises:
            MissingPeerError: there is none.
            ValueError: it is another file than this version.
        """
        said = os.environ.get(self.variable)
        jar = Path(said) if said else cache_folder() / f"{self.name}-{self.version}.jar"
        if not jar.is_file() and fetch and shutil.which("mvn"):
            self._fetch(jar.parent)
        if not jar.is_file():
            raise MissingPeerError(
                f"no {self.name} {self.version} at {jar}: set {self.variable} to its jar, or run `make soak` with "
                "Maven once"
            )
        found = hashlib.sha256(jar.read_bytes()).hexdigest()
        if found != self.sha256:
            raise ValueError(f"expected {self.name} {self.version} at {jar}, it is another file: SHA-256 {found}")
        return jar

    def _fetch(self, folder: Path) -> None:
        artifact = f"-Dartifact={self.group}:{self.name}:{self.version}"
        folder.mkdir(parents=True, exist_ok=True)
        copy = ["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"]
        subprocess.run(copy, check=True, timeout=280)


SBE_TOOL = JavaArtifact(
    group="uk.co.real-logic",
    name="sbe-all",
    version="1.38.1",
    sha256="26e29e5503faa70cc56158fcdacd6369ecfc3088b9a61c90b882feb54451c9b5",
    variable="MARKET_RELAY_SBE_TOOL",
)
AERON = JavaArtifact(
    group="io.aeron",
    name="aeron-all",
    version="1.51.0",
    sha256="9686a7c6bb3c464f7ac76ceaf7a0c67249e3499aa8142872a6d1b2f398bca458",
    variable="MARKET_RELAY_AERON_JAR",
)


def require_jdk() -> None:
    """Raise MissingPeerError where ``javac`` or ``java`` is not on the path."""
    if not shutil.which("javac") or not shutil.which("java"):
        raise MissingPeerError("no javac or no java on the path: programs around jars have to be compiled")


def compile_java(sources: Sequence[Path], jar: Path, classes: Path) -> str:
    """Compile against a jar into a new folder, and return the class path of the program.

    Raises:
        MissingPeerError: there is no ``javac`` or no ``java`` on the path.
    """
    require_jdk()
    classes.mkdir()
    subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", jar, *sources], check=True, timeout=120)
    return f"{jar}{os.pathsep}{classes}"
