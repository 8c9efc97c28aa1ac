"""``relay triggers``: what is registered, and how to end it."""

from __future__ import annotations

import json
from typing import Any

import click
from google.protobuf.json_format import MessageToDict

from relay.errors import PeerError
from relay.protocol.codes import ErrorCode
from relay.protocol.times import format_ns
from relay_client.cli.options import connection_options, json_option, open_client
from relay_client.cli.pattern_words import pattern_words
from relay_client.trigger_flows import Trigger

__all__ = ["command"]


@click.group("triggers")
def command() -> None:
    """List and cancel triggers; they are registered with the SDK.

    \b
    relay triggers list
    relay triggers cancel TRIGGER_ID
    """


@command.command("list")
@click.option("--client-id", default="", help="Only those whose owner is this client.")
@json_option
@connection_options
def list_triggers(client_id: str, timeout: int | None, *, as_json: bool, **options: Any) -> None:
    """Show the active triggers, ascending by id: what each waits for, and its rules.

    \b
    Exit codes: 0 told, 2 wrong arguments, 4 try again.
    """
    with open_client(**options) as client:
        found = client.triggers.list(client_id=client_id, timeout=timeout)
    if as_json:
        click.echo(json.dumps([_as_json(trigger) for trigger in found]))
        return
    if not found:
        click.echo("no active trigger", err=True)
    for trigger in found:
        click.echo(_as_text(trigger))


@command.command("cancel")
@click.argument("trigger_id")
@connection_options
def cancel(trigger_id: str, timeout: int | None, **options: Any) -> None:
    """End the trigger TRIGGER_ID.

    \b
    Exit codes: 0 ended, 2 wrong arguments, 3 there is no such trigger, 4 try again.
    """
    with open_client(**options) as client:
        if not client.triggers.cancel(trigger_id, timeout=timeout):
            raise PeerError(
                f"no trigger {trigger_id} is registered; see `relay triggers list`", code=ErrorCode.UNKNOWN_REQUEST
            )
    click.echo(f"cancelled {trigger_id}")


def _as_json(trigger: Trigger) -> dict[str, object]:
    return {
        "trigger_id": trigger.trigger_id,
        "client_id": trigger.client_id or None,
        "tickers": list(trigger.tickers),
        "cooldown_ms": trigger.cooldown_ms,
        "one_shot": trigger.one_shot,
        "expires_at": None if trigger.expires_at_ns is None else format_ns(trigger.expires_at_ns),
        "pattern": MessageToDict(trigger.pattern(), preserving_proto_field_name=True),
    }


def _as_text(trigger: Trigger) -> str:
    told = [trigger.trigger_id, pattern_words(trigger.pattern())]
    if trigger.cooldown_ms:
        told.append(f"cooldown {trigger.cooldown_ms} ms")
    if trigger.one_shot:
        told.append("one-shot")
    if trigger.expires_at_ns is not None:
        told.append(f"until {format_ns(trigger.expires_at_ns)}")
    return "  ".join(told)
