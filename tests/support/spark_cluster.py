"""A standalone Spark cluster on loopback: a master and workers as real processes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import psutil
import pyspark

from relay.supervisor.java import find_java
from tests.support.processes import Process, free_port, wait_until

__all__ = ["HOME", "SparkCluster"]

HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"


class SparkCluster:
    """Workers of one core each, so that an application with two of them has an executor on both.

    Args:
        folder: for logs and the workers' folders.
        workers: how many.
    """

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self.folder = folder
        self.environment = {
            "SPARK_HOME": str(HOME),
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        port = free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self.master = self._start("master", "-h", "127.0.0.1", "-p", str(port))
        self.workers = [
            self._start(
                "worker",
                *("-c", "1", "-m", "1g", "-h", "127.0.0.1", "-d", str(self.work(place)), self.url),
                place=place,
            )
            for place in range(workers)
        ]
        try:
            wait_until(self._are_registered, what="the workers to register", deadline_s=180)
        except AssertionError:
            self.close()
            raise

    def work(self, place: int) -> Path:
        """Return where a worker's executors write."""
        return self.folder / f"worker-{place}"

    def tasks(self, place: int) -> int:
        """Return how many tasks the executors of a worker have begun."""
        return sum(path.read_text(errors="replace").count("Running task") for path in self.work(place).rglob("stderr"))

    def executors(self, place: int) -> list[psutil.Process]:
        """Return a worker's executors that live now."""
        found = []
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.workers[place].pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if any("CoarseGrainedExecutorBackend" in part for part in child.cmdline()):
                        found.append(child)
        return found

    def close(self) -> None:
        """End all."""
        for process in (*self.workers, self.master):
            process.kill()

    def _start(self, role: str, *arguments: str, place: int = 0) -> Process:
        command = [str(HOME / "bin" / "spark-class"), f"{_DEPLOY}.{role}.{role.capitalize()}"]
        return Process(
            [*command, "--webui-port", str(free_port()), *arguments],
            log=self._log(role, place),
            environment=self.environment,
        )

    def _log(self, role: str, place: int) -> Path:
        return self.folder / f"{role}-{place}.log"

    def _are_registered(self) -> bool:
        logs = [self._log("worker", place).read_text(errors="replace") for place in range(len(self.workers))]
        return all("Successfully registered" in said for said in logs)
