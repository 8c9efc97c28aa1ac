"""The tables as a client sees them: the relay says where they are, the client's own settings say with which rights."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from relay.errors import RelayError, SettingsError
from relay.protocol.v1 import request_pb2
from relay.tables import TableSettings
from relay_client.settings import ClientSettings

if TYPE_CHECKING:
    from relay.tables.reader import LakeTables

__all__ = ["Lake", "load_readers", "table_settings"]

_IDLE_MAX = 4


def table_settings(reply: request_pb2.ProbeReply, settings: ClientSettings) -> TableSettings:
    """Return where the tables are, and how to get in.

    Raises:
        SettingsError: neither the relay nor the settings name a catalog.
    """
    uri = settings.catalog_uri or reply.catalog_uri
    warehouse = settings.warehouse or reply.warehouse
    if not uri or not warehouse:
        raise SettingsError(
            "expected the relay to say where the tables are (its settings catalog_uri and warehouse), but it says "
            "nothing; set them there, or RELAY_CLIENT_CATALOG_URI and RELAY_CLIENT_WAREHOUSE here"
        )
    properties = {name: secret.get_secret_value() for name, secret in settings.catalog_properties.items()}
    store = settings.object_store_endpoint or reply.object_store_endpoint
    if store:
        properties.setdefault("s3.endpoint", store)
    name = settings.catalog_name or reply.catalog_name or "lake"
    return TableSettings(_with_user(uri, settings), warehouse, name, properties)


def load_readers() -> None:
    """Import what reads the tables, so that no deadline pays for it later."""
    with suppress(ImportError):
        import relay.tables.reader  # noqa: F401


class Lake:
    """Keeps open readers for reuse; each is used by one thread at a time."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: list[tuple[TableSettings, LakeTables]] = []

    @contextmanager
    def reader(self, reply: request_pb2.ProbeReply) -> Iterator[LakeTables]:
        """Lend a reader of the tables that the relay's answer names.

        Raises:
            SettingsError: nobody says where the tables are, or the address is of no known kind.
            RetryableError: catalog or store are away.
        """
        where = table_settings(reply, self._settings)
        tables = self._take(where)
        try:
            yield tables
        except RelayError:
            tables.close()
            raise
        self._give_back(where, tables)

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, tables in idle:
            tables.close()

    def _take(self, where: TableSettings) -> LakeTables:
        with self._lock:
            for index, (known, tables) in enumerate(self._idle):
                if known == where:
                    del self._idle[index]
                    return tables
        from relay.tables.reader import open_tables

        return open_tables(where)

    def _give_back(self, where: TableSettings, tables: LakeTables) -> None:
        with self._lock:
            if len(self._idle) < _IDLE_MAX:
                self._idle.append((where, tables))
                return
        tables.close()


def _with_user(uri: str, settings: ClientSettings) -> str:
    """Put the user into an SQL catalog's address; the relay publishes it without one."""
    scheme, separator, rest = uri.partition("://")
    if not settings.catalog_user or not scheme.startswith("postgresql") or "@" in rest:
        return uri
    from urllib.parse import quote

    user, password = settings.catalog_user, settings.catalog_password.get_secret_value()
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return f"{scheme}{separator}{login}@{rest}"
