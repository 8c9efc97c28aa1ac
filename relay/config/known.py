"""What a settings file and the environment may speak of: a misspelt table or variable is an error, not silence."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

from relay.errors import SettingsError

__all__ = ["APPLICATIONS", "CONFIG_FILE_VARIABLE", "check_variables", "nearest", "read_tables"]

CONFIG_FILE_VARIABLE = "RELAY_CONFIG"
APPLICATIONS = {
    "gateway": "relay.gateway.settings:GatewaySettings",
    "up": "relay.supervisor.settings:UpSettings",
    "manager": "spark_jobs.manager.settings:ManagerSettings",
    "ingestor": "ingestors.settings:IngestorSettings",
    "job": "spark_jobs.jobs.settings:JobSettings",
    "client": "relay_client.settings:ClientSettings",
}
"""By name, so that an install without an application still knows the others (and no layer is crossed)."""
_PREFIX = "RELAY_"
_OTHER_VARIABLES = frozenset({CONFIG_FILE_VARIABLE, "RELAY_CACHE", "RELAY_RECORDED_DATA", "RELAY_VERSION"})
_OF_A_CLUSTER = re.compile(r"RELAY_(SERVICE_(HOST|PORT)|PORT)(_.*)?")
"""Put into every container by cluster software when a service is called relay."""


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return ``; did you mean X?`` for a misspelt name, or nothing when no known one is like it."""
    found = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {found[0]}?" if found else ""


def read_tables(config_file: Path) -> set[str]:
    """Return the names of the applications that a settings file speaks of; each has its own table.

    Raises:
        SettingsError: there is no such file, it cannot be read, is no TOML in UTF-8, or names what no application has.
    """
    try:
        tables = tomllib.loads(config_file.read_bytes().decode())
    except FileNotFoundError as error:
        raise SettingsError(f"expected a settings file at {config_file}, but there is none") from error
    except OSError as error:
        raise SettingsError(f"the settings file {config_file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"expected a TOML file in UTF-8 at {config_file}, but byte {error.start} is none; save it as UTF-8"
        ) from error
    except ValueError as error:
        raise SettingsError(f"expected a TOML file at {config_file}: {error}") from error
    for name, table in tables.items():
        if name not in APPLICATIONS:
            raise SettingsError(
                f"unknown name {name!r} in {config_file}{nearest(name, APPLICATIONS)}; "
                f"expected the tables {', '.join(f'[{known}]' for known in APPLICATIONS)}"
            )
        if not isinstance(table, dict):
            raise SettingsError(f"expected a table [{name}] in {config_file}, got {name} = {table!r}")
    return set(tables)


def check_variables(prefix: str, fields: Iterable[str]) -> None:
    """Refuse variables that no application knows, and of the application with ``prefix`` those that are no field.

    Raises:
        SettingsError: names the variable, and the known one that is most like it.
    """
    prefixes = {f"{_PREFIX}{name.upper()}_" for name in APPLICATIONS} | ({prefix} if prefix else set())
    known = {f"{prefix}{name}".upper() for name in fields}
    for variable in os.environ:
        name = variable.upper()
        if prefix and name.startswith(prefix):
            head = name.split("__")[0]
            if head not in known:
                raise SettingsError(
                    f"unknown environment variable {variable}{nearest(head, known)}; "
                    f"expected one of {', '.join(sorted(known))}"
                )
        elif name.startswith(_PREFIX) and not _is_known(name, prefixes):
            head = "_".join(name.split("_")[:2]) + "_"
            likely = nearest(name, [*_OTHER_VARIABLES, *known], cutoff=0.9) or nearest(head, prefixes)
            raise SettingsError(
                f"unknown environment variable {variable}{likely}; expected {CONFIG_FILE_VARIABLE} or one that begins "
                f"with {', '.join(sorted(prefixes))}; unset it"
            )


def _is_known(name: str, prefixes: Iterable[str]) -> bool:
    return name in _OTHER_VARIABLES or name.startswith(tuple(prefixes)) or _OF_A_CLUSTER.fullmatch(name) is not None
