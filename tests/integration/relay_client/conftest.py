"""One gateway with its manager for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_world import GatewayWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GatewayWorld]:
    running = GatewayWorld(tmp_path)
    try:
        running.until_ready()
        yield running
    finally:
        running.close()
