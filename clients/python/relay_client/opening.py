"""Opens a client's flows out of arguments, settings and file."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from relay.config import load_settings
from relay.errors import SettingsError
from relay_client.arguments import text, whole
from relay_client.flows import ClientFlows
from relay_client.settings import ClientSettings, Encoding, Idle, Transport
from relay_client.subscribing import check_choice

__all__ = ["open_flows"]


def open_flows(
    host: str | None,
    request_port: int | None,
    subscribe_port: int | None,
    *,
    transport: Transport | None,
    idle: Idle | None,
    encoding: Encoding | None,
    settings: ClientSettings | None,
    config_file: Path | None,
) -> ClientFlows:
    """Return the flows of a new client; arguments win over ``settings``, or over environment and file without them."""
    given: dict[str, object] = {} if host is None else {"host": text("host", host)}
    for name, port in (("request_port", request_port), ("subscribe_port", subscribe_port)):
        if port is not None:
            given[name] = whole(name, port, low=1, high=65_535)
    ways = ("transport", transport, Transport), ("idle", idle, Idle), ("encoding", encoding, Encoding)
    for name, value, choices in ways:
        if value is not None:
            check_choice(name, value, get_args(choices))
            given[name] = value
    if settings is not None and not isinstance(settings, ClientSettings):
        raise SettingsError(f"expected settings as ClientSettings, got {type(settings).__name__}")
    if config_file is not None:
        try:
            config_file = Path(config_file)
        except TypeError as error:
            raise SettingsError(f"expected config_file as a path, got {type(config_file).__name__}") from error
    if settings is None:
        return ClientFlows(load_settings(ClientSettings, overrides=given, config_file=config_file))
    if config_file is not None:
        raise SettingsError("expected either settings or config_file, got both; leave one out")
    return ClientFlows(settings.model_copy(update=given))
