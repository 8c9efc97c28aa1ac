"""Which jobs the platform's driver is given."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from relay.supervisor.plan import platform_parts
from relay.supervisor.settings import UpSettings


def driver(settings: UpSettings) -> str:
    java, kafka = SimpleNamespace(home="/java"), SimpleNamespace(command=lambda: ["kafka"])
    parts = platform_parts(settings, java=cast("Any", java), kafka=cast("Any", kafka), config_file=Path("relay.toml"))
    return " ".join(next(part.command for part in parts if part.name == "history"))


def test_the_driver_runs_every_job() -> None:
    assert " job history ticks bars triggers maintenance " in driver(UpSettings())


def test_a_job_that_is_left_out_is_free_for_a_driver_of_its_own() -> None:
    told = driver(UpSettings(jobs=("history", "ticks", "triggers"), maintenance=False))
    assert " job history ticks triggers --parent-pid" in told
