"""A container engine for a machine that has none: Debian's packages, a base image made of Debian, Compose by Go."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.compose.shell import Shell
from tests.support.processes import wait_until

__all__ = ["BASE_IMAGE", "engine_answers", "make_base_image", "own_engine"]

BASE_IMAGE = "market-relay-base:bookworm-2"
_PACKAGES = ("docker.io", "debootstrap", "iptables")
_COMPOSE = "github.com/docker/compose/v2"
_COMPOSE_VERSION = "v2.40.3"
_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_JAVA_BUNDLE = Path("/etc/ssl/certs/java/cacerts")


def engine_answers(shell: Shell) -> bool:
    """Tell whether an engine answers and Compose v2 is there."""
    return shell.succeeds("docker", "info") and shell.succeeds("docker", "compose", "version")


@contextmanager
def own_engine(shell: Shell, folder: Path) -> Iterator[Shell]:
    """Start an engine of our own below a folder; yields a shell whose commands talk to it; ends it by its pid.

    Needs root and Debian's package tool. What is built stays in the folder, so the next time is quick.
    """
    _install(shell)
    data, run = folder / "engine", folder / "run"
    data.mkdir(parents=True, exist_ok=True)
    run.mkdir(parents=True, exist_ok=True)
    plugins = folder / "client" / "cli-plugins"
    address = f"unix://{run}/docker.sock"
    talking = shell.with_environment(
        {"DOCKER_HOST": address, "DOCKER_CONFIG": str(plugins.parent), "DOCKER_BUILDKIT": "0"}
    )
    if not shutil.which("docker"):
        raise SystemExit("expected the command docker after installing docker.io, found none")
    command = ["dockerd", "--storage-driver=overlay2", f"--data-root={data}", f"--exec-root={run}/exec"]
    command += ["-H", address, "-p", f"{run}/docker.pid"]
    with (folder / "dockerd.log").open("ab") as log:
        engine = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:

        def answers() -> bool:
            if engine.poll() is not None:
                raise SystemExit(f"dockerd ended with {engine.returncode}; its words are in {folder}/dockerd.log")
            return talking.succeeds("docker", "info")

        wait_until(answers, what="dockerd to answer", deadline_s=120)
        if not talking.succeeds("docker", "compose", "version"):
            _build_compose(shell, folder / "compose-source", plugins / "docker-compose")
        yield talking
    finally:
        engine.send_signal(signal.SIGTERM)
        try:
            engine.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(engine.pid, signal.SIGKILL)
            engine.wait()


def make_base_image(shell: Shell, folder: Path) -> None:
    """Make ``BASE_IMAGE`` of Debian 12 with Python 3.11 and this machine's certificates and package settings."""
    if shell.succeeds("docker", "image", "inspect", BASE_IMAGE):
        return
    root = folder / "base"
    shutil.rmtree(root, ignore_errors=True)
    include = "--include=python3,python3-venv,ca-certificates"
    shell.run("debootstrap", "--variant=minbase", include, "bookworm", root)
    for waste in ("var/cache/apt/archives", "var/lib/apt/lists"):
        shutil.rmtree(root / waste)
        (root / waste).mkdir()
    (root / "var/cache/apt/archives/partial").mkdir()
    variables = []
    # Security updates, too, as the published image has them: the compiler of the accelerator is one.
    packages = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.sources")]
    for source in (_BUNDLE, _JAVA_BUNDLE, Path("/etc/pip.conf"), *packages):
        if source.exists():
            target = root / source.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    if _BUNDLE.exists():
        variables += [f"{name}={_BUNDLE}" for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")]
    if _JAVA_BUNDLE.exists():
        variables.append(f"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore={_JAVA_BUNDLE}")
    change = ["--change", f"ENV {' '.join(variables)}"] if variables else []
    archive = folder / "base.tar"
    shell.run("tar", "-C", root, "--one-file-system", "-cf", archive, ".")
    shell.run("docker", "import", *change, archive, BASE_IMAGE)
    archive.unlink()
    shutil.rmtree(root)


def _install(shell: Shell) -> None:
    if all(shutil.which(command) for command in ("dockerd", "debootstrap", "iptables")):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SystemExit("--own-engine installs docker.io and debootstrap: it needs root and Debian's apt-get")
    shell.run("apt-get", "update", "-qq")
    shell.run(
        *("apt-get", "install", "-y", "-qq", "--no-install-recommends", *_PACKAGES), DEBIAN_FRONTEND="noninteractive"
    )


def _build_compose(shell: Shell, source: Path, target: Path) -> None:
    if not shutil.which("go"):
        raise SystemExit("expected Docker Compose v2, or Go to build it; found neither")
    source.mkdir(parents=True, exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    (source / "go.mod").write_text(f"module compose\n\ngo 1.24\n\nrequire {_COMPOSE} {_COMPOSE_VERSION}\n")
    imports = "\n".join(f'import _ "{_COMPOSE}/cmd/{package}"' for package in ("compose", "cmdtrace"))
    (source / "needed.go").write_text(f"//go:build needed\n\npackage needed\n\n{imports}\n")
    shell.run("go", "build", "-o", target, f"{_COMPOSE}/cmd", cwd=source, GOFLAGS="-mod=mod")
