"""The lanes of the tests hear Ctrl-C once each: a second one would cut short how they end their brokers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.processes import wait_until

SCRIPT = Path(__file__).parents[2] / "run.sh"
LANE = """#!{python}
import os, signal, sys
name = "{folder}/" + str(os.getpid())
try:
    open(name + ".begun", "w").close()
    signal.pause()
except KeyboardInterrupt:
    # The front lane, of the script's own session, is quick; the others are still ending when it is over.
    if "tests/e2e" not in sys.argv:
        signal.sigtimedwait([signal.SIGUSR1], 1)
    open(name + ".ended", "w").close()
"""


def test_each_lane_ends_in_its_own_time_when_the_terminal_says_ctrl_c(tmp_path: Path):
    lane = tmp_path / "pytest"
    lane.write_text(LANE.format(python=sys.executable, folder=tmp_path))
    lane.chmod(0o700)
    run = subprocess.Popen(["sh", str(SCRIPT), str(lane)], start_new_session=True)
    lane_count = 3
    try:
        wait_until(lambda: len(list(tmp_path.glob("*.begun"))) == lane_count, what="three lanes")
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(30) == 130
        assert len(list(tmp_path.glob("*.ended"))) == lane_count
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
