"""One gateway with its manager for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_world import GatewayWorld, ready_world
from tests.support.live_world import LiveWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GatewayWorld]:
    with ready_world(tmp_path) as running:
        yield running


@pytest.fixture
def live(world: GatewayWorld) -> Iterator[LiveWorld]:
    running = LiveWorld(world)
    yield running
    running.close()
