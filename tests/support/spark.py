"""One Spark session for the whole test run, on tables of the run's own."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from relay.supervisor.jars_store import ensure_jars
from relay.supervisor.java import find_java
from relay.supervisor.plan import class_archive
from spark_jobs.jobs.session import open_session
from spark_jobs.jobs.settings import JobSettings

__all__ = ["job_settings", "start_session"]


def job_settings(folder: Path, **fields: object) -> JobSettings:
    """Settings of a job whose tables and checkpoints lie in a folder."""
    java, jars = find_java(), ensure_jars("spark", find_java(), say=print)
    return JobSettings(
        **{
            "catalog_uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/warehouse",
            "checkpoint_folder": str(folder / "checkpoints"),
            "master": "local[2]",
            "jars_folder": jars,
            # Of an earlier `relay up`, where there was one: quicker starts.
            "class_archive": class_archive(jars, java),
            "status_port": 0,
            **fields,
        }
    )


def start_session(folder: Path) -> tuple[SparkSession, JobSettings]:
    """Open the session."""
    settings = job_settings(folder)
    return open_session(settings, name="tests"), settings
