"""A catalog whose file is deleted or replaced under an open reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay.errors import RetryableError, SettingsError
from relay.protocol.ranges import Range
from relay.protocol.v1 import request_pb2
from relay.tables.catalog import TableSettings
from relay.tables.reader import open_tables
from relay.tables.writer import open_writable_tables
from relay_client.lake import Lake
from relay_client.settings import ClientSettings
from tests.integration.tables.test_iceberg_tables import BTC, MINUTE_NS, REACHED, bars

EVERYTHING = Range(0, 10**18)


@pytest.fixture
def settings(tmp_path: Path) -> TableSettings:
    return TableSettings(f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse")


def write(settings: TableSettings, *minutes: int) -> None:
    tables = open_writable_tables(settings)
    tables.merge_bars(bars([m * MINUTE_NS for m in minutes]), reached=REACHED, batch_id=1)


def forget(folder: Path) -> None:
    for path in folder.glob("catalog.db*"):
        path.unlink()


def test_a_reader_sees_what_is_written_into_a_new_catalog_after_the_old_one_was_deleted(settings, tmp_path):
    write(settings, 0, 1)
    reader = open_tables(settings)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 2
    forget(tmp_path)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 0
    assert not (tmp_path / "catalog.db").exists()
    write(settings, 0, 1, 2)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 3
    assert reader.catalog_changes == 1


def test_a_reader_sees_a_catalog_that_was_put_in_the_place_of_another(settings, tmp_path):
    write(settings, 0)
    reader = open_tables(settings)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 1
    other = TableSettings(f"sqlite:///{tmp_path}/other.db", settings.warehouse + "-2")
    write(other, 0, 1, 2, 3)
    (tmp_path / "other.db").replace(tmp_path / "catalog.db")
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 4
    assert reader.catalog_changes == 1


def test_a_reader_waits_for_a_catalog_that_nobody_has_made_yet(settings, tmp_path):
    reader = open_tables(settings)
    assert reader.bars_snapshot_id() == 0
    assert not (tmp_path / "catalog.db").exists()
    write(settings, 0)
    assert reader.count_bars(BTC, 60, within=EVERYTHING) == 1
    assert reader.catalog_changes == 0


def test_the_clients_idle_reader_sees_the_new_catalog(settings, tmp_path):
    write(settings, 0)
    lake = Lake(ClientSettings())
    reply = request_pb2.ProbeReply(catalog_uri=settings.catalog_uri, warehouse=settings.warehouse)
    with lake.reader(reply) as tables:
        assert tables.count_bars(BTC, 60, within=EVERYTHING) == 1
    forget(tmp_path)
    write(settings, 0, 1)
    with lake.reader(reply) as tables:
        assert tables.count_bars(BTC, 60, within=EVERYTHING) == 2
    lake.close()


def test_a_catalog_in_a_folder_that_is_not_there_is_told_with_its_path(tmp_path):
    with pytest.raises(RetryableError, match="folder is not there"):
        open_tables(TableSettings(f"sqlite:///{tmp_path}/none/catalog.db", "file:///w"))


@pytest.mark.parametrize("uri", ["nosuch://", "sqlitex:///a", "postgresqlx", ""])
def test_an_address_of_no_known_kind_is_refused(uri):
    with pytest.raises(SettingsError, match="expected a catalog address"):
        open_tables(TableSettings(uri, "file:///w"))
