"""Fills the build context of the stand-ins: Kafka's jars, the S3 gateway, and the files beside their Dockerfile."""

from __future__ import annotations

import shutil
from pathlib import Path

from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from tests.compose.shell import Shell

__all__ = ["fill_standins"]

_GATEWAY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"


def fill_standins(shell: Shell, repository: Path, folder: Path) -> Path:
    """Return the folder for ``STANDINS``; what has been fetched or built before stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (repository / "docker" / "standins").iterdir():
        shutil.copyfile(path, folder / path.name)
    shutil.copytree(ensure_jars("kafka", find_java(), say=print), folder / "kafka-jars", dirs_exist_ok=True)
    if not (folder / "versitygw").exists():
        if not shutil.which("go"):
            raise SystemExit("expected Go, to build the stand-in of the object store; found none")
        shell.run("go", "install", _GATEWAY, GOBIN=str(folder), CGO_ENABLED="0")
    return folder
