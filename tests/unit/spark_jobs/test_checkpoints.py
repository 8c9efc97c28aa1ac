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
