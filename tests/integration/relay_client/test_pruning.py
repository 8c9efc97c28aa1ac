"""Reads open only the files that can hold wanted rows: the others may be gone from the disk."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from relay.errors import SettingsError
from relay.protocol.ranges import Range
from tests.support.client_world import BTC, MINUTE_NS


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def test_files_of_other_months_are_not_opened_case_134(world, tmp_path: Path):
    january, march = Range(at("2024-01-15"), at("2024-01-15T00:30")), Range(at("2024-03-15"), at("2024-03-15T00:30"))
    world.manager.store(january)
    world.manager.store(march)
    files = list(tmp_path.glob("warehouse/**/ohlc/data/**/*.parquet"))
    assert len(files) == 2
    for file in files:
        if "2024-03" in str(file):
            file.unlink()
    with world.client() as client:
        bars = client.history(BTC, start="2024-01-15T00:10:00Z", end="2024-01-15T00:20:00Z")
        assert len(bars) == 10
        # The proof that the file is needed when its month is asked for.
        with pytest.raises(Exception, match="2024-03"):
            client.history(BTC, start="2024-03-15T00:10:00Z", end="2024-03-15T00:20:00Z")


def test_the_same_instant_in_any_zone_reads_the_same_bars_and_a_naive_one_is_refused_case_135(world, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        world.manager.store(Range(at("2024-01-15"), at("2024-01-15") + 30 * MINUTE_NS))
        with world.client() as client:
            utc = client.history(BTC, start="2024-01-15T00:10:00Z", end="2024-01-15T00:12:00Z")
            tokyo = client.history(BTC, start="2024-01-15T09:10:00+09:00", end="2024-01-15T09:12:00+09:00")
            assert [bar.start.hour for bar in utc] == [0, 0]
            assert utc.to_arrow().equals(tokyo.to_arrow())
            with pytest.raises(SettingsError, match="no zone"):
                client.history(BTC, start=datetime(2024, 1, 15, 9, 10), end="2024-01-15")  # noqa: DTZ001
    finally:
        monkeypatch.undo()
        time.tzset()
