"""Where the tables are, and with which rights."""

from __future__ import annotations

import pytest

from relay.config import load_settings
from relay.errors import SettingsError
from relay.protocol.v1 import request_pb2
from relay_client import ClientSettings
from relay_client.lake import table_settings

TOLD = request_pb2.ProbeReply(
    catalog_uri="postgresql+psycopg2://db/lake",
    catalog_name="lake",
    warehouse="s3://bars/wh",
    object_store_endpoint="http://store:9000",
)


def test_the_relay_says_where_and_the_settings_say_with_which_rights():
    settings = ClientSettings(
        catalog_user="reader", catalog_password="p@ss/word", catalog_properties={"s3.access-key-id": "KEY"}
    )
    where = table_settings(TOLD, settings)
    assert where.catalog_uri == "postgresql+psycopg2://reader:p%40ss%2Fword@db/lake"
    assert where.properties == {"s3.access-key-id": "KEY", "s3.endpoint": "http://store:9000"}
    assert (where.catalog_name, where.warehouse) == ("lake", "s3://bars/wh")


def test_settings_of_the_client_win():
    settings = ClientSettings(catalog_uri="sqlite:///here.db", warehouse="file:///here", catalog_name="mine")
    where = table_settings(TOLD, settings)
    assert (where.catalog_uri, where.warehouse, where.catalog_name) == ("sqlite:///here.db", "file:///here", "mine")


def test_a_relay_that_says_nothing_is_told_what_to_set():
    with pytest.raises(SettingsError, match="RELAY_CLIENT_CATALOG_URI"):
        table_settings(request_pb2.ProbeReply(), ClientSettings())


def test_secrets_are_never_printed():
    settings = ClientSettings(
        catalog_uri="postgresql://u:hunter2@db/x",
        catalog_password="hunter2",
        catalog_properties={"s3.secret-access-key": "hunter2"},
    )
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in str(settings)


def test_settings_come_from_the_environment_and_unknown_ones_are_refused(monkeypatch):
    monkeypatch.setenv("RELAY_CLIENT_HOST", "gateway")
    monkeypatch.setenv("RELAY_CLIENT_CATALOG_PROPERTIES", '{"s3.access-key-id": "KEY"}')
    settings = load_settings(ClientSettings)
    assert settings.requests_at == "tcp://gateway:5559"
    assert settings.published_at == "tcp://gateway:5558"
    assert settings.catalog_properties["s3.access-key-id"].get_secret_value() == "KEY"
    monkeypatch.setenv("RELAY_CLIENT_HOTS", "typo")
    with pytest.raises(SettingsError, match="RELAY_CLIENT_HOTS"):
        load_settings(ClientSettings)
