"""`relay` commands inside the test's own process: what they print, and their exit codes, without a start each."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from relay.cli import main

__all__ = ["run_command"]


def run_command(arguments: Sequence[str], *, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; its outputs are no terminals."""
    out, err = io.StringIO(), io.StringIO()
    with _environment(environment), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        before, sys.argv = sys.argv, ["relay", *arguments]
        try:
            main()
            code = 0
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        finally:
            sys.argv = before
    return subprocess.CompletedProcess(["relay", *arguments], code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
