"""``relay manager``: the manager process by itself."""

from __future__ import annotations

from pathlib import Path

import click

from relay.config import load_settings
from relay.errors import RelayError, SettingsError
from relay.eventlog import EventLog
from relay.observability import configure_logging, watch_parent
from relay.protocol.codes import ErrorCode
from relay.tables import TableSettings
from relay.tables.port import TableReader
from spark_jobs.manager.process import run_manager
from spark_jobs.manager.settings import ManagerSettings

__all__ = ["command"]


@click.command("manager")
@click.option("--config", type=click.Path(path_type=Path), help="TOML file whose table [manager] is read.")
@click.option("--store", "store_path", type=click.Path(path_type=Path), help="File of the job table.")
@click.option("--catalog-uri", help="Iceberg catalog: sqlite:///PATH, postgresql+psycopg2://… or http(s)://…")
@click.option("--warehouse", help="Where the tables' files are: file://PATH or s3://BUCKET/PREFIX.")
@click.option("--parent-pid", type=int, help="Exit when this process is no longer the parent.")
def command(
    config: Path | None,
    store_path: Path | None,
    catalog_uri: str | None,
    warehouse: str | None,
    parent_pid: int | None,
) -> None:
    """Run the manager: takes requests, gives jobs to ingestors, tells clients when history is ready.

    Settings come from options, then RELAY_MANAGER_… variables, then [manager] in the settings file.
    Stops on SIGTERM with exit code 0; exit code 2 means that settings or arguments must be fixed.
    """
    try:
        overrides = {"store_path": store_path, "catalog_uri": catalog_uri, "warehouse": warehouse}
        settings = load_settings(ManagerSettings, overrides=overrides, config_file=config)
        configure_logging(process="manager", level=settings.log_level)
        watch_parent(parent_pid, lambda: None)
        run_manager(
            settings,
            open_tables=lambda: _open_tables(settings),
            open_log=(lambda: _open_log(settings)) if settings.log_bootstrap_servers else None,
            parent_pid=parent_pid,
        )
    except RelayError as error:
        click.echo(f"relay manager: {error}", err=True)
        raise SystemExit(2 if error.code == "INVALID_SETTINGS" else 1) from error


def _open_tables(settings: ManagerSettings) -> TableReader:
    # PyIceberg takes most of a second to import: only the thread that reads the tables waits for it.
    from relay.tables.reader import open_tables

    return open_tables(
        TableSettings(
            catalog_uri=settings.catalog_uri,
            warehouse=settings.warehouse,
            catalog_name=settings.catalog_name,
            properties=settings.catalog_properties,
        )
    )


def _open_log(settings: ManagerSettings) -> EventLog:
    try:
        from relay.eventlog.kafka import KafkaEventLog
    except ImportError as error:
        raise SettingsError(
            "the event log's client is not installed; install the extra market-relay[kafka], or serve no replays",
            code=ErrorCode.MISSING_EXTRA,
        ) from error
    return KafkaEventLog(settings.log_bootstrap_servers, client_id="manager")
