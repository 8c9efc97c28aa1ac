"""``relay sbe``: layouts of Simple Binary Encoding schemas, and typed modules for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from relay.errors import SettingsError

if TYPE_CHECKING:
    from relay_accel.sbe import Schema

__all__ = ["command"]

_SCHEMA = click.argument("schema", type=click.Path(path_type=Path, dir_okay=False))


@click.group("sbe")
def command() -> None:
    """Look at Simple Binary Encoding schemas, and write typed modules for them.

    A schema that is refused: exit code 2, and a line for every fault.
    """


@command.command("show")
@_SCHEMA
@click.option("--warnings", is_flag=True, help="What is allowed but doubtful, too.")
def show(*, schema: Path, warnings: bool) -> None:
    """Show where each byte of a schema's messages is."""
    found = _loaded(schema)
    click.echo(str(found), nl=False)
    if warnings:
        for fault in found.warnings:
            click.echo(f"warning: {fault.file}:{fault.line}: {fault.element}: {fault.reason}", err=True)


@command.command("generate")
@_SCHEMA
@click.option("--language", type=click.Choice(["python", "rust"]), default="python", show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="File to write.  [default: the terminal]"
)
def generate(*, schema: Path, language: str, output: Path | None) -> None:
    """Write a module with the schema's messages, their fields typed for editors and compilers.

    A Python module loads the schema's file from where it is now, as seen from the module. A Rust module is whole:
    decoders over bytes and encoders into bytes, with every offset in it; it needs nothing but core.
    """
    from relay_accel import sbe

    found = _loaded(schema)
    if language == "rust":
        text = sbe.generate_rust(found)
    else:
        folder = (output or Path("module.py")).resolve().parent
        text = sbe.generate(found, Path(os.path.relpath(schema.resolve(), folder)).as_posix())
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")
    click.echo(f"{output}: {len(text.splitlines())} lines")


def _loaded(path: Path) -> Schema:
    try:
        from relay_accel import sbe
    except ImportError as error:
        raise SettingsError(
            f"this needs the accelerator, which is not installed ({error}); install relay-accel", code="MISSING_EXTRA"
        ) from error
    try:
        return sbe.load(path)
    except sbe.SchemaError as error:
        raise SettingsError(f"{path} is refused:\n{error}") from error
