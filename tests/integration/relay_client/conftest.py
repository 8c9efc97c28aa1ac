"""One gateway with its manager for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_world import GatewayWorld
from tests.support.live_world import LiveWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GatewayWorld]:
    running = GatewayWorld(tmp_path)
    try:
        running.until_ready()
        yield running
    finally:
        running.close()


@pytest.fixture
def live(world: GatewayWorld) -> Iterator[LiveWorld]:
    running = LiveWorld(world)
    yield running
    running.close()
