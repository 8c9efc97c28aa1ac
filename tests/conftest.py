"""Fixtures that every kind of test shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.kafka import RunningKafka

# The same examples each time; MARKET_RELAY_RANDOM_EXAMPLES=1 looks for new ones.
# No example is too slow: a busy machine is no fault of the code.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile("random" if os.environ.get("MARKET_RELAY_RANDOM_EXAMPLES") else "repeatable")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def recorded_data() -> Path:
    """Folder of recorded market data, or a skip with the reason.

    Looked for at ``MARKET_RELAY_RECORDED_DATA`` and in ``../shared/data`` beside the checkout.
    """
    folder = Path(os.environ.get("MARKET_RELAY_RECORDED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no recorded market data at {folder}; set MARKET_RELAY_RECORDED_DATA to its folder")
    return folder


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKafka]:
    """One real Kafka broker for the whole test run; each test makes topics of its own."""
    broker = RunningKafka(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[object, object]]:
    """One Spark session and its settings for the whole test run."""
    from tests.support.spark import start_session

    session, settings = start_session(tmp_path_factory.mktemp("lake"))
    yield session, settings
    session.stop()
