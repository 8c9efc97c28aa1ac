"""Where tables are printed: in a terminal at its width, elsewhere at theirs, so that nothing is cut."""

from __future__ import annotations

import os
import sys

from rich.console import Console

__all__ = ["table_console"]

_WIDTH_MAX = 10_000


def table_console() -> Console:
    """Return a console for standard output; without a terminal (and without ``COLUMNS``) no cell is cut or wrapped."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return Console()
    return Console(width=_WIDTH_MAX)
