"""How settings are read: command line over environment over TOML over defaults; unknown keys are refused."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from pydantic import Field, ValidationError, field_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from relay.config.environment import EnvironmentSource, is_secret
from relay.config.known import CONFIG_FILE_VARIABLE, check_variables, nearest, read_tables
from relay.errors import SettingsError

__all__ = ["ApplicationSettings", "load_settings"]

_OFF = "off"
"""No shared memory at all, to every part that reads ``shared_memory``."""


class ApplicationSettings(BaseSettings):
    """Base of every application's settings.

    A subclass sets ``application`` ("gateway") and passes ``env_prefix="RELAY_GATEWAY_"`` in its model config;
    its TOML table is ``[gateway]`` in the file named by ``--config`` or ``RELAY_CONFIG``. Nested fields
    use ``__`` in the environment.
    """

    application: ClassVar[str] = ""
    _toml_file: ClassVar[Path | None] = None

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_nested_delimiter="__")

    shared_memory: str = Field(
        "", description="folder for shared memory; empty: this user's own below /dev/shm; off: none"
    )

    @field_validator("shared_memory")
    @classmethod
    def _check_shared_memory(cls, value: str) -> str:
        if value.casefold() == _OFF:
            return _OFF
        if value and not Path(value).is_absolute():
            raise ValueError(
                f"expected the absolute path of a folder, off, or nothing for the usual one, got {value!r}"
            )
        return value

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
        del env_settings, dotenv_settings, file_secret_settings
        sources: list[PydanticBaseSettingsSource] = [init_settings, EnvironmentSource(settings_cls)]
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
    if config_file is not None and model.application not in read_tables(config_file):
        config_file = None
    check_variables(str(model.model_config.get("env_prefix", "")), model.model_fields)

    class Bound(model):  # type: ignore[misc, valid-type]
        _toml_file: ClassVar[Path | None] = config_file

    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    try:
        values = Bound(**given)
    except ValidationError as error:
        lines = [_wrong(model, found) for found in error.errors(include_url=False)]
        # Not chained where a value could be shown that must not be.
        raise SettingsError("settings do not fit: " + "; ".join(lines)) from None
    except ValueError as error:
        raise SettingsError(f"settings of {model.application} cannot be read: {error}") from error
    return cast(SettingsT, model.model_construct(_fields_set=values.model_fields_set, **dict(values)))


def _wrong(model: type[ApplicationSettings], error: ErrorDetails) -> str:
    place = [str(part) for part in error["loc"]]
    name = place[0] if place else ""
    field = model.model_fields.get(name)
    if field is None and name:
        return f"{model.application}.{'.'.join(place)}: unknown key{nearest(name, model.model_fields)}"
    got = "" if field is None or is_secret(field) else f" (got {error.get('input')!r})"
    return f"{model.application}.{'.'.join(place)}: {error['msg']}{got}"
