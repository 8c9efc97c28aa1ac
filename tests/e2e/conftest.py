"""One platform for all end-to-end tests, gone before the others begin; each uses ranges of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.platform import Platform


@pytest.fixture(scope="package")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    running = Platform(tmp_path_factory.mktemp("platform") / "data")
    yield running
    running.close()
