"""The root command: finds subcommands by entry point, so that an install without Spark still has its own."""

from __future__ import annotations

import os
import sys
from importlib.metadata import EntryPoint, entry_points

import click

from relay import __version__
from relay.errors import PeerError, RelayError, RetryableError, SettingsError
from relay.protocol.codes import ErrorCode

__all__ = ["main", "root"]

_GROUP = "relay.commands"
EXIT_FAILED, EXIT_SETTINGS, EXIT_REQUEST, EXIT_RETRY = 1, 2, 3, 4


class _EntryPointGroup(click.Group):
    """Loads a subcommand only when it is asked for: ``relay history`` must not import Spark."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(_points())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        point = _points().get(cmd_name)
        if point is None:
            return None
        try:
            loaded = point.load()
        except ImportError as error:
            return _broken(cmd_name, error)
        if not isinstance(loaded, click.Command):
            raise SettingsError(f"entry point {point.value} is no click command")
        return loaded


@click.group(cls=_EntryPointGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="market-relay")
def root() -> None:
    """Market Relay: one address for exact, durable market data.

    \b
    Start here:
      relay up                                  the whole platform on this machine
      relay history BTC/USDT.BINANCE --last 1h  bars of the last hour
      relay status                              every part, its health, its log

    \b
    Exit codes: 0 done, 1 failed, 2 wrong arguments or settings, 3 the request was refused,
    4 try again (something is away), 130 Ctrl-C.
    Completion: eval "$(_RELAY_COMPLETE=bash_source relay)"   (or zsh_source, fish_source)
    """


def main() -> None:
    """Run the command; errors of the library become one line and an exit code."""
    try:
        # Not standalone, click returns what a command hands to ctx.exit().
        code = root(standalone_mode=False, prog_name="relay")
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Abort:
        sys.exit(130)
    except KeyboardInterrupt:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_SETTINGS)
    except RelayError as error:
        click.echo(f"relay: {error} [{error.code}]", err=True)
        sys.exit(_exit_code(error))
    except BrokenPipeError:
        # Who read the output has seen enough; what is still buffered must not fail at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except (OSError, UnicodeError) as error:
        click.echo(f"relay: {_of_the_machine(error)} [{ErrorCode.STORAGE}]", err=True)
        sys.exit(EXIT_FAILED)


def _of_the_machine(error: OSError | UnicodeError) -> str:
    """Say in one line what a file, a disk or a socket refused; every cause that is known better is told elsewhere."""
    if isinstance(error, UnicodeError):
        return f"expected text in UTF-8, got something else ({error}); save the file, or set the variable, as UTF-8"
    names = " and ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    what = error.strerror or str(error) or type(error).__name__
    return f"{names or 'the machine'} does not allow it: {what}; check the path, its rights and the space on its disk"


def _exit_code(error: RelayError) -> int:
    if isinstance(error, SettingsError):
        return EXIT_SETTINGS
    if isinstance(error, PeerError):
        return EXIT_REQUEST
    return EXIT_RETRY if isinstance(error, RetryableError) else EXIT_FAILED


def _points() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=_GROUP)}


def _broken(name: str, error: ImportError) -> click.Command:
    text = f"{name} needs a part that is not installed ({error}); install market-relay[all] or the part's extra"

    @click.command(name, help=text, context_settings={"ignore_unknown_options": True})
    @click.argument("arguments", nargs=-1)
    def command(arguments: tuple[str, ...]) -> None:
        del arguments
        raise SettingsError(text, code="MISSING_EXTRA")

    return command
