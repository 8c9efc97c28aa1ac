"""Checkpoints of a streaming job: one folder a run, one run at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from pathlib import Path
from typing import Protocol

from relay.errors import SettingsError

__all__ = ["CheckpointLock", "lock_checkpoints", "new_checkpoint"]


class CheckpointLock(Protocol):
    """Held for the life of a job."""

    def close(self) -> None:
        """Let it go."""


def lock_checkpoints(root: str, *, job: str) -> CheckpointLock:
    """Make this process the one that runs a job on a checkpoint folder; a URL cannot be locked and is not.

    Two runs of a job on different folders still cannot double a row: every commit checks the tables' own offsets.

    Raises:
        SettingsError: another process runs the job, or the folder cannot be used.
    """
    if "://" in root:
        return contextlib.ExitStack()
    path = Path(root).resolve() / f"{job}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.open("a+")
    except OSError as error:
        raise SettingsError(f"cannot use the checkpoint folder {path.parent}: {error}; choose another one") from error
    try:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise SettingsError(
            f"another {job} job (pid {holder}) runs on {path.parent}; stop it, or give this one other tables and "
            "another checkpoint_folder"
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def new_checkpoint(root: str, *, job: str) -> str:
    """Return a fresh checkpoint location for this run; those of earlier runs are removed where that can be done."""
    run = uuid.uuid4().hex
    if "://" in root:
        return f"{root.rstrip('/')}/{job}/{run}"
    folder = Path(root).resolve() / job
    if folder.is_dir():
        for old in folder.iterdir():
            shutil.rmtree(old, ignore_errors=True)
    return str(folder / run)
