"""The metrics endpoint: whatever a counter is called, the text stays one that Prometheus reads."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from relay.observability.counters import Counters
from relay.observability.status_server import StatusServer

NAMES = {
    "relay.requests-open": "market_relay_requests_open",
    "a\nmarket_forged 7": "market_a_market_forged_7",
    'b"} 1': "market_b___1",
    'c\\{x="y"}': "market_c__x__y__",
    "d\0\x1b\u2028": "market_d___",
    "é\ud800": "market___",
    "": "market_",
}


@pytest.fixture
def counters() -> Counters:
    return Counters()


@pytest.fixture
def server(counters: Counters) -> Iterator[StatusServer]:
    server = StatusServer(address="127.0.0.1", port=0, counters=counters, status=lambda: {"ready": True})
    yield server
    server.close()


def asked(server: StatusServer, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=60) as answer:
        return answer.read().decode()


def test_a_name_with_a_newline_or_a_quote_makes_no_line_of_its_own(counters, server):
    for value, name in enumerate(NAMES):
        counters.set(name, value)
    text = asked(server, "/metrics")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert {one.name: (one.labels, one.value) for one in samples} == {
        metric: ({}, value) for value, metric in enumerate(NAMES.values())
    }
    assert len(text.splitlines()) == 3 * len(NAMES)
    assert json.loads(asked(server, "/status"))["counters"] == {name: value for value, name in enumerate(NAMES)}


def test_names_that_become_one_metric_are_added_up(counters, server):
    counters.set("a.b", 2)
    counters.set("a-b", 3)
    text = asked(server, "/metrics")
    assert text.splitlines().count("market_a_b 5.0") == 1
    assert text.count("# TYPE market_a_b ") == 1
