"""Forms of settings that several applications have: refused with what was expected before anything starts."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

__all__ = ["BootstrapServers", "Endpoint", "TopicPrefix"]

_ENDPOINT = re.compile(r"tcp://(?P<host>[^\s/:]+|\[[0-9A-Fa-f:.%\w]+\]):(?P<port>[0-9]{1,5}|\*)|(ipc|inproc)://\S+")
_SERVER = re.compile(r"(?P<host>[^\s/:,]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
_PORT_MAX = 65_535


def _is_port(text: str) -> bool:
    return text == "*" or int(text) <= _PORT_MAX


def _check_endpoint(value: str) -> str:
    found = _ENDPOINT.fullmatch(value)
    if found is None or not _is_port(found["port"] or "*"):
        raise ValueError(f"expected tcp://HOST:PORT (or ipc://PATH), got {value!r}")
    return value


def _check_servers(value: str) -> str:
    for server in value.split(",") if value else ():
        found = _SERVER.fullmatch(server.strip())
        if found is None or not _is_port(found["port"]):
            raise ValueError(f"expected host:port[,host:port], got {value!r}")
    return value


Endpoint = Annotated[str, AfterValidator(_check_endpoint)]
"""Address of a socket."""
BootstrapServers = Annotated[str, AfterValidator(_check_servers)]
"""Kafka's brokers; may be empty where the application says so."""
TopicPrefix = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9._-]*$")]
"""What stands before every topic's name; Kafka's own characters."""
