"""A catalog that is read for long: notices when the file of a SQLite catalog was deleted or replaced meanwhile.

An open connection goes on reading a deleted file for ever and never learns that the writer has begun a new one.
"""

from __future__ import annotations

import logging
from pathlib import Path

from pyiceberg.catalog import Catalog
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from relay.errors import RetryableError
from relay.protocol.codes import ErrorCode
from relay.tables.catalog import open_catalog
from relay.tables.settings import TableSettings, check_address

__all__ = ["FollowedCatalog", "catalog_file"]

_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_Identity = tuple[int, int]


def catalog_file(catalog_uri: str) -> Path | None:
    """Return the file of a SQLite catalog; None for every other kind."""
    if not catalog_uri.startswith("sqlite:"):
        return None
    try:
        database = make_url(catalog_uri).database
    except ArgumentError:
        return None
    return None if not database or database == ":memory:" or database.startswith("file:") else Path(database)


class FollowedCatalog:
    """The catalog as it is now. One thread at a time.

    A file that is not there holds no tables; it is never created by who only reads, because the writer makes it.

    Args:
        settings: where the catalog is.

    Raises:
        SettingsError: the address is of no known kind.
        RetryableError: the catalog does not answer, or the folder of its file is not there.
    """

    def __init__(self, settings: TableSettings) -> None:
        check_address(settings.catalog_uri)
        self._settings = settings
        self._file = catalog_file(settings.catalog_uri)
        self._identity: _Identity | None = None
        self._catalog: Catalog | None = None
        self.changes = 0
        """How often the file was found deleted or replaced."""
        if self._file is not None and not self._file.parent.is_dir():
            raise RetryableError(
                f"expected the catalog's file {self._file}, but its folder is not there; check the catalog address, "
                "or start what writes the tables",
                code=ErrorCode.STORAGE,
            )
        if self._file is None or self._file_identity() is not None:
            self._open()

    def current(self) -> Catalog | None:
        """Return the open catalog, opened again when its file is another one; None while there is no file."""
        if self._file is None:
            return self._catalog
        found = self._file_identity()
        if found != self._identity:
            if self._identity is not None:
                self.changes += 1
                _LOG.warning("catalog_file_changed file=%s is_there=%s", self._file, found is not None)
            self.close()
            if found is not None:
                self._open()
        return self._catalog

    def close(self) -> None:
        """Let go of the connections; the next use opens the catalog again."""
        catalog, self._catalog, self._identity = self._catalog, None, None
        if catalog is not None:
            catalog.close()

    def _open(self) -> None:
        # The identity is taken first: a file that is replaced in between is opened once more at the next use.
        self._identity = self._file_identity()
        try:
            self._catalog = open_catalog(self._settings)
        except BaseException:
            self._identity = None
            raise

    def _file_identity(self) -> _Identity | None:
        if self._file is None:
            return None
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RetryableError(
                f"the catalog's file {self._file} cannot be looked at: {error.strerror}; check the path and its rights",
                code=ErrorCode.STORAGE,
            ) from error
        return status.st_dev, status.st_ino
