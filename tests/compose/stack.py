"""One project of ``docker compose`` on ports and volumes of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from relay_client import ClientSettings
from tests.compose.shell import Shell
from tests.support.processes import free_port

__all__ = ["Stack"]

_PORTS = ("REQUEST_PORT", "SUBSCRIBE_PORT", "CATALOG_PORT", "S3_PORT")
_SECRETS = {
    "CATALOG_PASSWORD": "writer-of-a-test",
    "CATALOG_READER_PASSWORD": "reader-of-a-test",
    "S3_ACCESS_KEY": "key-of-a-test",
    "S3_SECRET_KEY": "secret-of-a-test",
}
_SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(slots=True)
class Stack:
    """The platform in containers.

    Attributes:
        shell: talks to the engine.
        repository: folder with ``docker-compose.yml``.
        project: name of the Compose project, so that nothing else is touched.
        files: Compose files, in order.
    """

    shell: Shell
    repository: Path
    project: str
    files: tuple[str, ...]
    ports: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        while len(set(self.ports.values())) < len(_PORTS):
            self.ports = {name: free_port() for name in _PORTS}
        self.shell = self.shell.with_environment(
            _SECRETS | {name: str(port) for name, port in self.ports.items()} | {"COMPOSE_PROFILES": "simulated"}
        )

    def compose(self, *arguments: str) -> None:
        """Run one ``docker compose`` command."""
        self.shell.run(*self._command(), *arguments)

    def client_settings(self) -> ClientSettings:
        """Return what a user of the SDK sets: the relay's ports and the credentials, no address of the tables."""
        return ClientSettings(
            request_port=self.ports["REQUEST_PORT"],
            subscribe_port=self.ports["SUBSCRIBE_PORT"],
            catalog_user="reader",
            catalog_password=SecretStr(_SECRETS["CATALOG_READER_PASSWORD"]),
            catalog_properties={
                "s3.access-key-id": SecretStr(_SECRETS["S3_ACCESS_KEY"]),
                "s3.secret-access-key": SecretStr(_SECRETS["S3_SECRET_KEY"]),
                "s3.region": SecretStr("us-east-1"),
            },
        )

    def containers(self) -> list[dict[str, Any]]:
        """Return what Compose says of its containers, ended ones too."""
        lines = self.shell.read(*self._command(), "ps", "--all", "--format", "json").splitlines()
        return [json.loads(line) for line in lines if line.strip()]

    def memory_mebibytes(self) -> dict[str, int]:
        """Return the memory of every running container by service."""
        names = {c["Name"]: c["Service"] for c in self.containers() if c["State"] == "running"}
        lines = self.shell.read("docker", "stats", "--no-stream", "--format", "{{json .}}", *names).splitlines()
        return {names[row["Name"]]: _mebibytes(row["MemUsage"]) for row in map(json.loads, lines)}

    def volumes(self) -> list[str]:
        """Return the project's volumes."""
        label = f"label=com.docker.compose.project={self.project}"
        return self.shell.read("docker", "volume", "ls", "-q", "--filter", label).split()

    def pages_fetched(self) -> int:
        """Return how many pages of candles the simulated Binance has served since it was started."""
        code = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/control/requests').read().decode())"
        report = json.loads(self.run_python("simulation", code))
        return int(report["paths"].get("/binance/api/v3/klines", {"count": 0})["count"])

    def counters(self, service: str, port: int) -> dict[str, int]:
        """Return what a process of the platform counts, from its status page."""
        code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/status').read().decode())"
        return dict(json.loads(self.run_python(service, code))["counters"])

    def run_python(self, service: str, code: str) -> str:
        """Run some Python inside a container and return what it prints."""
        return self.shell.read(*self._command(), "exec", "-T", service, "python", "-c", code)

    def image_mebibytes(self) -> dict[str, int]:
        """Return the size of every image by name."""
        rows = json.loads(self.shell.read(*self._command(), "images", "--format", "json"))
        names = sorted({f"{row['Repository']}:{row['Tag']}" for row in rows})
        sizes = self.shell.read("docker", "image", "inspect", "--format", "{{.Size}}", *names).split()
        return {name: int(size) // 2**20 for name, size in zip(names, sizes, strict=True)}

    def _command(self) -> list[str]:
        files = [part for name in self.files for part in ("-f", str(self.repository / name))]
        return ["docker", "compose", "--project-directory", str(self.repository), "-p", self.project, *files]


def _mebibytes(usage: str) -> int:
    match = re.match(r"([\d.]+)\s*([KMG]?i?B)", usage)
    assert match is not None, usage
    return round(float(match[1]) * _SIZES[match[2]] / 2**20)
