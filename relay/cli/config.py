"""``relay config``: what an application's settings are, and where each value comes from."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import click
from rich.table import Table

from relay.config.known import APPLICATIONS
from relay.errors import SettingsError
from relay.observability.console import table_console

__all__ = ["command"]


@click.command("config")
@click.argument("application", type=click.Choice(sorted(APPLICATIONS)))
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML).")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(application: str, config: Path | None, as_json: bool) -> None:
    """Show an application's settings as they are in force, with the variable that sets each.

    Order: command line, environment, settings file (--config or RELAY_CONFIG), defaults.
    Secrets are masked. Exit code 2 when a setting does not fit.
    """
    from relay.config import ApplicationSettings, load_settings

    module_name, _, class_name = APPLICATIONS[application].partition(":")
    try:
        model = getattr(import_module(module_name), class_name)
    except ImportError as error:
        raise SettingsError(f"{application} is not installed here: {error}", code="MISSING_EXTRA") from error
    values: ApplicationSettings = load_settings(model, config_file=config)
    prefix = str(model.model_config.get("env_prefix", ""))
    rows = []
    for name, field in model.model_fields.items():
        value = getattr(values, name)
        shown = "***" if not field.repr and value else str(value)
        given = "given" if name in values.model_fields_set else "default"
        rows.append((name, shown, given, f"{prefix}{name}".upper(), field.description or ""))
    if as_json:
        click.echo(json.dumps({name: {"value": v, "from": g, "variable": e} for name, v, g, e, _ in rows}))
        return
    table = Table("key", "value", "from", "variable", "what it is")
    for row in rows:
        table.add_row(*row)
    table_console().print(table)
