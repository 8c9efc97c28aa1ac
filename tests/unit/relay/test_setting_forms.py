"""Forms that several applications' settings have: what makes no sense is refused before anything starts."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from relay.config.forms import BootstrapServers, Endpoint, TopicPrefix


@pytest.mark.parametrize(
    "good",
    [
        "tcp://127.0.0.1:5559",
        "tcp://*:5559",
        "tcp://127.0.0.1:*",
        "tcp://relay-1.example:1",
        "tcp://[::1]:65535",
        "ipc:///a/b",
    ],
)
def test_addresses_of_sockets(good: str) -> None:
    assert TypeAdapter(Endpoint).validate_python(good) == good


@pytest.mark.parametrize(
    "bad", ["", "nope", "tcp://", "tcp://host", "tcp://host:", "tcp://host:65536", "tcp://a b:1", "http://a:1"]
)
def test_what_is_no_address_says_what_was_expected(bad: str) -> None:
    with pytest.raises(ValidationError, match="expected tcp://HOST:PORT"):
        TypeAdapter(Endpoint).validate_python(bad)


@pytest.mark.parametrize("good", ["", "127.0.0.1:9092", "kafka-1:9092,kafka-2:9092", "[::1]:9092, b:1"])
def test_brokers(good: str) -> None:
    assert TypeAdapter(BootstrapServers).validate_python(good) == good


@pytest.mark.parametrize("bad", ["kafka", "kafka:", "kafka:x", "kafka:70000", "a:1,,b:2", "kafka://a:1"])
def test_what_is_no_list_of_brokers(bad: str) -> None:
    with pytest.raises(ValidationError, match="expected host:port"):
        TypeAdapter(BootstrapServers).validate_python(bad)


def test_a_prefix_has_the_characters_of_topics() -> None:
    assert TypeAdapter(TopicPrefix).validate_python("eu-1.") == "eu-1."
    for bad in ("a b", "é", "/", "x" * 65):
        with pytest.raises(ValidationError):
            TypeAdapter(TopicPrefix).validate_python(bad)
