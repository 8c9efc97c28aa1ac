"""Runs a program that does not watch its parent (Java) and ends it when the parent is gone.

``python -m relay.supervisor.guard PARENT_PID COMMAND …``; SIGTERM is passed on, the exit code too.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import subprocess
import sys
import threading

from relay.observability.orphan import watch_parent

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    """Run the command until it ends, a signal comes, or the parent dies."""
    parent_pid, command = int(arguments[0]), arguments[1:]
    started: list[subprocess.Popen[bytes]] = []
    stopping = threading.Event()

    def stop(*_: object) -> None:
        stopping.set()
        for child in started:
            child.terminate()

    # Before the program is there: a signal in between would end the guard alone, by a code that says nothing.
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # No other thread runs yet, so the function between fork and exec is safe.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent)  # noqa: PLW1509
    started.append(child)
    if stopping.is_set():
        child.terminate()
    watch_parent(parent_pid, child.terminate)
    code = child.wait()
    return 128 - code if code < 0 else code


def _die_with_parent() -> None:
    """Let the kernel end the program when the guard is killed, which then can end nothing itself; Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)  # noqa: T201
        sys.exit(2)
    sys.exit(main(sys.argv[1:]))
