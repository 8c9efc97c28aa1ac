"""How the user calls this program: by its name where the shell finds it, else by its path."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["own_command"]


def own_command(program: Path | None = None, *, search_path: str | None = None) -> str:
    """Return what to type for ``relay`` in the shell that this process was started from, quoted for it.

    Args:
        program: the program; else the one beside this interpreter.
        search_path: folders that the shell looks in, as in ``PATH``; else those of the environment.
    """
    program = Path(sys.executable).with_name("relay") if program is None else program
    found = shutil.which("relay", path=search_path)
    if not program.is_file() or (found is not None and Path(found).resolve() == program.resolve()):
        return "relay"
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))
