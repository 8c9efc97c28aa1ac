"""A process whose parent was killed ends, also when its clean stop hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.processes import wait_until

CHILD = """
import os, subprocess, sys, threading
from relay.observability import watch_parent
helper = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
watch_parent(int(sys.argv[1]), lambda: None, every_s=0.05, grace_s=0.2)
print(os.getpid(), helper.pid, flush=True)
threading.Event().wait()
"""
PARENT = """
import os, subprocess, sys, threading
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())], start_new_session=True)
threading.Event().wait()
"""


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_an_orphan_that_does_not_stop_is_ended_by_force_with_its_own_children(tmp_path: Path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE, text=True)
    child, helper = map(int, parent.stdout.readline().split())
    assert is_alive(child)
    assert is_alive(helper)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not is_alive(child) and not is_alive(helper), what="the orphan and its child to end")


def test_the_guard_ends_its_program_when_its_parent_is_killed(tmp_path: Path):
    program = [sys.executable, "-c", "import signal, threading; signal.signal(15, 1); threading.Event().wait()"]
    start = (
        "import os, subprocess, sys, threading; "
        "g = subprocess.Popen([sys.executable, '-m', 'relay.supervisor.guard', str(os.getpid()), *sys.argv[1:]], "
        "start_new_session=True); print(g.pid, flush=True); threading.Event().wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", start, *program], stdout=subprocess.PIPE, text=True)
    guard = int(parent.stdout.readline())
    wait_until(lambda: psutil.Process(guard).children(), what="the guarded program to run")
    guarded = psutil.Process(guard).children()[0].pid
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not is_alive(guard) and not is_alive(guarded), what="guard and program to end")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143)])
def test_the_guard_passes_a_signal_and_the_exit_on(tmp_path: Path, number: int, code: int):
    program = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    guard = subprocess.Popen([sys.executable, "-m", "relay.supervisor.guard", str(os.getpid()), *program])
    wait_until(lambda: psutil.Process(guard.pid).children(), what="the guarded program to run")
    guard.send_signal(number)
    assert guard.wait(60) == code


_TOLD_WHILE_STARTING = """
import os, signal, subprocess, sys
import relay.supervisor.guard as guard

class Slow(subprocess.Popen):
    def __init__(self, *arguments, **options):
        os.kill(os.getpid(), signal.SIGTERM)
        super().__init__(*arguments, **options)

subprocess.Popen = Slow
sys.exit(guard.main([sys.argv[1], sys.executable, "-c", "import threading; threading.Event().wait()"]))
"""


def test_a_guard_that_is_told_to_end_while_it_starts_ends_the_program_too():
    guard = subprocess.Popen([sys.executable, "-c", _TOLD_WHILE_STARTING, str(os.getpid())])
    assert guard.wait(60) == 143
