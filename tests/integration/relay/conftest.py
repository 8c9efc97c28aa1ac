"""A gateway process for each test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay.protocol.v1 import request_pb2
from tests.support.gateway import Gateway


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    running = Gateway(tmp_path)
    try:
        assert running.ask(request_pb2.Probe(nonce=str(uuid.uuid4()))).relay_epoch
        yield running
    finally:
        running.close()
