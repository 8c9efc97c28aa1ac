"""Lists and tables out of environment variables: names apart by commas, or JSON."""

from __future__ import annotations

import json
from typing import Any, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from pydantic_settings import EnvSettingsSource

from relay.errors import SettingsError

__all__ = ["EnvironmentSource", "is_secret"]

_LISTS = (tuple, list, set, frozenset)


class EnvironmentSource(EnvSettingsSource):
    """Environment variables of one application."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Return the value that a text stands for.

        Raises:
            SettingsError: says what is expected, by an example.
        """
        text = str(value).strip()
        is_list = get_origin(field.annotation) in _LISTS
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = None
        if isinstance(decoded, list if is_list else dict):
            return decoded
        if is_list and not text.startswith(("[", "{", '"')):
            return [name.strip() for name in text.split(",") if name.strip()]
        variable = f"{self.env_prefix}{field_name}".upper()
        got = "something else" if is_secret(field) else repr(text[:80])
        raise SettingsError(f"expected JSON in {variable}, such as {_example(field, is_list=is_list)}, got {got}")


def is_secret(field: FieldInfo) -> bool:
    """Return whether a setting's value must not be shown."""
    return not field.repr or "Secret" in str(field.annotation)


def _example(field: FieldInfo, *, is_list: bool) -> str:
    default: Any = None if is_secret(field) else field.get_default(call_default_factory=True, validated_data={})
    if hasattr(default, "model_dump"):
        default = dict(list(default.model_dump().items())[:2])
    if not default:
        return '\'["A", "B"]\'' if is_list else '\'{"NAME": "VALUE"}\''
    return f"'{json.dumps(to_jsonable_python(default))}'"
