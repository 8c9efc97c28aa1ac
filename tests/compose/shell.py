"""Running commands with their output in one log, and words that name the command that failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Shell"]


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs commands.

    Attributes:
        log: everything that they print.
        environment: added to this process's own.
    """

    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *command: str | Path, cwd: Path | None = None, **more: str) -> None:
        """Run a command to its end, output into the log.

        Raises:
            SystemExit: it failed; carries the log's last lines.
        """
        with self.log.open("ab") as output:
            output.write(f"\n$ {' '.join(map(str, command))}\n".encode())
            output.flush()
            done = subprocess.run(
                [str(part) for part in command],
                cwd=cwd,
                env=self._environment(more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])
            raise SystemExit(f"expected `{_short(command)}` to succeed, it ended with {done.returncode}:\n{tail}")

    def read(self, *command: str | Path) -> str:
        """Run a command and return what it prints.

        Raises:
            SystemExit: it failed.
        """
        done = subprocess.run(
            [str(part) for part in command], env=self._environment({}), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"expected `{_short(command)}` to succeed, it ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def succeeds(self, *command: str | Path) -> bool:
        """Tell whether a command ends with 0."""
        try:
            done = subprocess.run(
                [str(part) for part in command], env=self._environment({}), capture_output=True, check=False
            )
        except OSError:
            return False
        return done.returncode == 0

    def with_environment(self, more: Mapping[str, str]) -> Shell:
        """Return a shell whose commands see further variables."""
        return Shell(self.log, {**self.environment, **more})

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, **self.environment, **more}


def _short(command: Sequence[str | Path]) -> str:
    return " ".join(map(str, command[:6]))
