"""``relay stat`` of parts that there are, and of those that there are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from relay.cli.stat import command
from relay.observability.counters import Counters
from relay.observability.status_server import StatusServer
from relay.supervisor import data_folder


@pytest.fixture
def url() -> Iterator[str]:
    """Where a part answers that has counted one thing."""
    counters = Counters()
    counters.add("things")
    server = StatusServer(address="127.0.0.1", port=0, counters=counters, status=lambda: {"ready": True})
    yield f"http://127.0.0.1:{server.port}"
    server.close()


def stat(monkeypatch: pytest.MonkeyPatch, parts: list[dict[str, Any]], *arguments: str) -> Result:
    monkeypatch.setenv("RELAY_UP_SHARED_MEMORY", "off")
    monkeypatch.setattr(data_folder, "read_state", lambda _: {"parts": parts} if parts else None)
    return CliRunner().invoke(command, arguments)


def test_an_unknown_part_is_told_which_there_are(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    parts = [{"name": "gateway", "pid": 1, "ready_url": f"{url}/health"}]
    shown = stat(monkeypatch, parts, "--part", "gateway")
    assert (shown.exit_code, "things" in shown.output) == (0, True)
    unknown = stat(monkeypatch, parts, "--part", "bars")
    assert unknown.exit_code == 1
    assert "expected a part of gateway; got bars" in unknown.output
    assert "relay stat --url" in unknown.output
    assert "relay up" not in unknown.output.replace("`relay up`", "")


def test_without_a_platform_nothing_answers_whatever_part_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = stat(monkeypatch, [], "--part", "bars")
    assert (shown.exit_code, "start it with: " in shown.output) == (1, True)


def test_a_job_that_was_started_alone_is_shown_by_its_url(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    shown = stat(monkeypatch, [], "--url", f"{url}/status", "--json", "--part", f"{url}/status")
    assert shown.exit_code == 0
    beside = stat(monkeypatch, [], "--url", f"{url}/status", "--json", "--part", "gateway")
    assert "things" in beside.output
