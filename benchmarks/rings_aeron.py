"""Aeron's IPC in the benchmark ``rings``: the works of its C floor between two processes in Java."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.java_peer import AERON, OPENED, MissingPeerError, compile_java
from benchmarks.rings_work import Work, deadline

__all__ = ["LAYOUT", "NAME", "AeronPair", "Counts"]

NAME = "Aeron IPC"
LAYOUT = (
    f"{AERON.name} {AERON.version}; two JVMs, each on its processor with all its threads; the publisher's has the "
    "driver: one thread (SHARED) that sleeps 1 ms a turn; terms of 64 MiB, for round trips of 1 MiB: a whole stretch "
    "fits into its log, so that its writer never waits for a reader that does not run, as one of a small ring does; "
    "exclusive publication, offers back to back, in batches too, where only the reader asks for 64 at once; bounds "
    "checks off; warmed up before it counts"
)
SOURCE = Path(__file__).with_name("AeronIpc.java")
SHARED_MEMORY = Path("/dev/shm")
SHARED_BYTES_MIN = 1 << 30
"""Three logs of 3 x 64 MiB, which the driver keeps for seconds, and some room."""
WARM_UP_MESSAGES = 4_000_000
WARM_UP_ROUND_TRIPS = 200_000
OPTIONS = (*OPENED, "-Dagrona.disable.bounds.checks=true", "-Xms128m", "-Xmx128m")

Counts = Mapping[Work, tuple[str, int]]
"""How the floor calls a work, and the messages of a stretch."""
Figures = dict[Work, list[tuple[float, ...]]]


class AeronPair:
    """The program, compiled; each call starts both processes anew.

    Args:
        folder: for its classes.

    Raises:
        MissingPeerError: there is no jar, no Java, or too little shared memory.
    """

    def __init__(self, folder: Path) -> None:
        jar = AERON.jar()
        free = shutil.disk_usage(SHARED_MEMORY).free if SHARED_MEMORY.is_dir() else 0
        if free < SHARED_BYTES_MIN:
            raise MissingPeerError(f"{free >> 20} MiB free in {SHARED_MEMORY}: Aeron's logs take up to 1 GiB here")
        self.class_path = compile_java([SOURCE], jar, folder / "aeron")

    def figures(self, counts: Counts, stretches: int) -> Figures:
        """Return a figure for each stretch of each work, as the floor's."""
        works = list(counts)
        words = [_word(work, *counts[work], stretches) for work in works]
        with tempfile.TemporaryDirectory(prefix="rings-", dir=SHARED_MEMORY) as folder:
            # The driver removes it as well; so does its process where this one was killed.
            said = self._run(folder, words)
        found: Figures = {work: [] for work in works}
        for line in said.splitlines():
            index, *numbers = line.split()
            found[works[int(index)]].append(tuple(map(float, numbers)))
        return found

    def _run(self, folder: str, words: Sequence[str]) -> str:
        """Run both; each ends by itself, or when the pipe to it is closed, as at this process's end."""
        reader = self._started(1, "subscribe", folder, words)
        writer = self._started(0, "publish", folder, words)
        try:
            with deadline():
                said = writer.stdout.read() if writer.stdout else ""
                codes = writer.wait(), reader.wait()
        finally:
            for process in (writer, reader):
                process.kill()
                process.communicate()
        if any(codes):
            raise RuntimeError(f"Aeron's processes ended with {codes}: what they said is above")
        return said

    def _started(self, processor: int, role: str, folder: str, words: Sequence[str]) -> subprocess.Popen[str]:
        pinned = ["taskset", "-c", str(processor)] if shutil.which("taskset") else []
        command = [*pinned, "java", *OPTIONS, "-cp", self.class_path, "AeronIpc", role, folder, *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _word(work: Work, kind: str, count: int, stretches: int) -> str:
    warm_ups = (WARM_UP_ROUND_TRIPS if work.is_time else WARM_UP_MESSAGES) // count
    return f"{kind}:{work.payload_bytes}:{count}:{stretches}:{warm_ups}"
