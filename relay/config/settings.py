"""How settings are read: command line over environment over TOML over defaults; unknown keys are refused."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from relay.errors import SettingsError

__all__ = ["ApplicationSettings", "load_settings"]

CONFIG_FILE_VARIABLE = "RELAY_CONFIG"


class ApplicationSettings(BaseSettings):
    """Base of every application's settings.

    A subclass sets ``application`` ("gateway") and passes ``env_prefix="RELAY_GATEWAY_"`` in its model config;
    its TOML table is ``[gateway]`` in the file named by ``--config`` or ``RELAY_CONFIG``. Nested fields
    use ``__`` in the environment.
    """

    application: ClassVar[str] = ""
    _toml_file: ClassVar[Path | None] = None

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_nested_delimiter="__")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order of precedence; no dotenv and no secret files are read."""
        del dotenv_settings, file_secret_settings
        sources = [init_settings, env_settings]
        if cls._toml_file is not None:
            sources.append(
                TomlConfigSettingsSource(settings_cls, toml_file=cls._toml_file, toml_table_header=(cls.application,))
            )
        return tuple(sources)


SettingsT = TypeVar("SettingsT", bound=ApplicationSettings)


def load_settings(
    model: type[SettingsT], *, overrides: Mapping[str, Any] | None = None, config_file: Path | None = None
) -> SettingsT:
    """Read the settings of one application.

    Args:
        model: its settings class.
        overrides: command-line values; None values are left out.
        config_file: TOML file; else the one named by ``RELAY_CONFIG``.

    Raises:
        SettingsError: names every wrong or unknown key with what was expected.
    """
    if config_file is None and os.environ.get(CONFIG_FILE_VARIABLE):
        config_file = Path(os.environ[CONFIG_FILE_VARIABLE])
    if config_file is not None and not config_file.is_file():
        raise SettingsError(f"expected a settings file at {config_file}, but there is none")
    if config_file is not None and model.application not in _tables(config_file):
        config_file = None
    _refuse_unknown_variables(model)

    class Bound(model):  # type: ignore[misc, valid-type]
        _toml_file: ClassVar[Path | None] = config_file

    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    try:
        values = Bound(**given)
    except ValidationError as error:
        lines = [
            f"{model.application}.{'.'.join(map(str, e['loc']))}: {e['msg']} (got {e.get('input')!r})"
            for e in error.errors(include_url=False)
        ]
        raise SettingsError("settings do not fit: " + "; ".join(lines)) from error
    except ValueError as error:
        raise SettingsError(f"settings of {model.application} cannot be read: {error}") from error
    return model.model_construct(_fields_set=values.model_fields_set, **dict(values))


def _tables(config_file: Path) -> set[str]:
    """Names of the applications that a settings file speaks of; one file serves all, each with its own table."""
    try:
        with config_file.open("rb") as handle:
            return {name for name, table in tomllib.load(handle).items() if isinstance(table, dict)}
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"expected a TOML file at {config_file}: {error}") from error


def _refuse_unknown_variables(model: type[ApplicationSettings]) -> None:
    prefix = str(model.model_config.get("env_prefix", ""))
    if not prefix:
        return
    known = {f"{prefix}{name}".upper() for name in model.model_fields}
    for variable in os.environ:
        head = variable.upper().split("__")[0]
        if variable.upper().startswith(prefix) and head not in known:
            raise SettingsError(f"unknown environment variable {variable}; expected one of {', '.join(sorted(known))}")
