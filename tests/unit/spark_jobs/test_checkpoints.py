"""One run of a job on one checkpoint folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relay.errors import SettingsError
from spark_jobs.jobs.checkpoints import lock_checkpoints, new_checkpoint


def test_a_second_run_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    first = lock_checkpoints(str(tmp_path), job="history")
    with pytest.raises(SettingsError, match=f"another history job .pid {os.getpid()}"):
        lock_checkpoints(str(tmp_path), job="history")
    lock_checkpoints(str(tmp_path), job="other").close()
    first.close()
    lock_checkpoints(str(tmp_path), job="history").close()


def test_a_folder_that_cannot_be_made_is_an_error_with_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot use the checkpoint folder"):
        lock_checkpoints(str(tmp_path / "file" / "below"), job="history")


def test_each_run_has_a_fresh_checkpoint_and_earlier_ones_go(tmp_path: Path) -> None:
    first = Path(new_checkpoint(str(tmp_path), job="history"))
    first.mkdir(parents=True)
    second = Path(new_checkpoint(str(tmp_path), job="history"))
    assert second != first
    assert not first.exists()
    assert new_checkpoint("s3://bucket/x/", job="history").startswith("s3://bucket/x/history/")


def test_a_checkpoint_of_an_earlier_run_whole_or_without_its_metadata_is_never_continued_case_139(
    tmp_path: Path,
) -> None:
    """Where the job has come to is in the tables' commits: a damaged checkpoint neither stops nor misleads a start."""
    damaged = Path(new_checkpoint(str(tmp_path), job="history"))
    (damaged / "offsets").mkdir(parents=True)
    (damaged / "offsets" / "7").write_text("v1")
    fresh = Path(new_checkpoint(str(tmp_path), job="history"))
    assert fresh != damaged
    assert list((tmp_path / "history").iterdir()) == []
