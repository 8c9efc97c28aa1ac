"""A reference implementation in Java that tests compare with: one process that answers lines of commands."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

import pytest

from benchmarks.java_peer import OPENED, JavaArtifact, MissingPeerError, compile_java

__all__ = ["JavaReference"]


class JavaReference:
    """The process; one for a test run. Words are parted by tabs. Skips where it cannot be made.

    Args:
        artifact: on its class path.
        source: of the class Reference, which is compiled here.
        folder: for classes and what it says on standard error.
        fetch: whether the jar may be fetched.
    """

    def __init__(self, artifact: JavaArtifact, source: Path, folder: Path, *, fetch: bool) -> None:
        try:
            class_path = compile_java([source], artifact.jar(fetch=fetch), folder / "reference")
        except MissingPeerError as missing:
            pytest.skip(str(missing))
        self._log = (folder / "reference.log").open("w")
        self._process = subprocess.Popen(
            ["java", "-XX:TieredStopAtLevel=1", *OPENED, "-cp", class_path, "Reference"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._log.close()

    def tell(self, *words: object) -> None:
        """Send a command that has no answer."""
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")

    def ask(self, *words: object) -> list[str]:
        """Send a command and return the words of its answer; an error is a failure of the test."""
        self.tell(*words)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip("\n").split("\t")
        assert answer[0].partition(" ")[0] not in ("error", ""), (words, answer)
        return answer
