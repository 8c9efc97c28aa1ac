"""Fixtures that every kind of test shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
