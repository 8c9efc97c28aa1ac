"""When maintenance does what, and how it is asked for."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from relay.errors import SettingsError
from relay.tables.upkeep import KEPT_TABLES, checked_names
from spark_jobs.cli import command
from spark_jobs.jobs.maintenance.service import WorkSchedule
from spark_jobs.jobs.maintenance.turns import Work
from spark_jobs.jobs.settings import JobSettings


def test_the_first_turn_does_everything_and_later_ones_what_is_due() -> None:
    schedule = WorkSchedule(JobSettings(maintenance_compaction_seconds=100, maintenance_orphans_seconds=1_000))
    found = [schedule.due(now) for now in (0.0, 50.0, 100.0, 150.0, 1_000.0)]
    assert found == [Work(True, True), Work(False, False), Work(True, False), Work(False, False), Work(True, True)]


def test_what_is_switched_off_is_never_due() -> None:
    schedule = WorkSchedule(JobSettings(maintenance_compaction_seconds=0, maintenance_orphans_seconds=0))
    assert {schedule.due(now) for now in (0.0, 1e9)} == {Work(False, False)}


def test_tables_are_looked_after_in_one_order_and_unknown_ones_are_told() -> None:
    assert checked_names(()) == KEPT_TABLES
    assert checked_names(("ticks", "ohlc")) == ("ohlc", "ticks")
    with pytest.raises(SettingsError, match=r"out of ohlc, .*, got tick"):
        checked_names(("tick",))


def test_ages_that_could_hit_a_commit_under_way_are_refused() -> None:
    with pytest.raises(ValidationError, match="maintenance_orphan_hours"):
        JobSettings(maintenance_orphan_hours=0)


@pytest.mark.parametrize("arguments", [["history", "--once"], ["history", "maintenance", "--dry-run"]])
def test_what_ends_by_itself_is_asked_for_by_itself(arguments: list[str]) -> None:
    answer = CliRunner().invoke(command, arguments)
    assert answer.exit_code == 2
    assert "with maintenance by itself" in answer.output
