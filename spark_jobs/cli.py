"""``relay job NAME…``: runs Spark jobs."""

from __future__ import annotations

import threading
from pathlib import Path

import click

__all__ = ["command"]

_NAMES = ["history", "ticks", "bars", "triggers", "maintenance", "archive"]


@click.command("job")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, type=click.Choice(_NAMES))
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML, table [job]).")
@click.option("--master", help="Spark master, such as local[2] or spark://HOST:7077.")
@click.option("--log-level", default="INFO", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
@click.option("--once", is_flag=True, help="maintenance: do everything once and end.")
@click.option("--dry-run", is_flag=True, help="maintenance: say what there is to do, change nothing, and end.")
@click.option("--parent-pid", type=int, help="End when this parent process has died.")
def command(
    names: tuple[str, ...],
    config: Path | None,
    master: str | None,
    log_level: str,
    once: bool,
    dry_run: bool,
    parent_pid: int | None,
) -> None:
    """Run one Spark job, or several in one driver.

    \b
    history      event log -> Iceberg tables market.ohlc, market.tick_bars, market.coverage, market.symbol_metadata
    ticks        event log -> Iceberg tables market.ticks, market.gaps
    bars         ticks of the event log -> bars: running ones to subscribers, final ones also to the event log
    triggers     ticks of the event log -> events of the triggers that clients registered: to the log, then to clients
    maintenance  tables: small files become few, old snapshots and forgotten files go; by schedule, alone without Spark
    archive      write the class archive that makes the next starts faster, and end

    On a cluster: spark-submit --master ... --jars CONNECTORS spark_jobs/jobs/submit.py history
    (CONNECTORS: the files in the folder that `relay doctor` names for jars spark, separated by commas)
    Ends with 0 on SIGTERM or Ctrl-C, 1 when the query cannot be kept running, 2 for wrong settings.
    """
    from relay.config import load_settings
    from relay.observability import configure_logging, end_group, is_orphaned, watch_parent
    from spark_jobs.jobs.settings import JobSettings

    if "archive" in names and len(names) > 1:
        raise click.UsageError("expected archive by itself: it ends when the archive is written, the others do not")
    if (once or dry_run) and set(names) != {"maintenance"}:
        raise click.UsageError("expected --once and --dry-run with maintenance by itself: the others do not end")
    configure_logging(process=f"job-{'-'.join(names)}", level=log_level)
    settings = load_settings(JobSettings, overrides={"master": master}, config_file=config)
    if names == ("archive",):
        from spark_jobs.jobs.archive import write_archive

        raise SystemExit(write_archive(settings))
    stopping = threading.Event()
    watch_parent(parent_pid, stopping.set)
    if set(names) == {"maintenance"}:
        from spark_jobs.jobs.maintenance.service import keep_maintaining, maintain_once, say_outlook

        if dry_run:
            raise SystemExit(say_outlook(settings, say=click.echo))
        raise SystemExit((maintain_once if once else keep_maintaining)(settings, stopping=stopping))
    from spark_jobs.jobs.run import run_jobs

    code = run_jobs(settings, tuple(dict.fromkeys(names)), stopping=stopping)
    if is_orphaned(parent_pid):
        # The JVM may wait for a Kafka that died with the parent.
        end_group()
    raise SystemExit(code)
