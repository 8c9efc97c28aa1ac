"""The command ``relay``; each part adds its subcommands through the entry-point group ``relay.commands``."""

from relay.cli.main import main

__all__ = ["main"]
