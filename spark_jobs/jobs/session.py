"""The Spark session: catalog, connectors, and a start as short as it can be."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pyspark
from pyspark.sql import SparkSession

from relay.errors import SettingsError
from relay.supervisor.java import find_java
from spark_jobs.jobs.settings import JobSettings

__all__ = ["check_spark", "open_session", "projections", "spark_catalog_properties"]

_SPARK = "4.1"
_PROJECTIONS = "spark.sql.codegen.factoryMode"
_COMPILERS = {
    "c1": ("-XX:TieredStopAtLevel=1",),
    # Ten times Java's own thresholds. With Java's own, compiling still took a third of a processor after two minutes,
    # with these a tenth after one.
    "c2": (
        "-XX:Tier4InvocationThreshold=50000",
        "-XX:Tier4MinInvocationThreshold=6000",
        "-XX:Tier4CompileThreshold=150000",
        "-XX:Tier4BackEdgeThreshold=400000",
    ),
}


def open_session(settings: JobSettings, *, name: str, archiving: bool = False) -> SparkSession:
    """Open a session with the lake's catalog and Kafka's connector.

    Args:
        settings: of the job.
        name: application name.
        archiving: write the classes that were loaded to ``settings.class_archive`` when the JVM ends.

    Raises:
        SettingsError: no usable Java, or another Spark than the connectors are made for.
    """
    check_spark(pyspark.__version__)
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if settings.master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    if settings.master:
        builder = builder.master(settings.master)
    properties = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.streaming.metricsEnabled": "false",
        # How long a query without a trigger waits before it asks an idle log again; Spark's own is 10 ms.
        "spark.sql.streaming.pollingDelay": "50ms",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
        "spark.driver.memory": f"{settings.driver_memory_mebibytes}m",
        **(
            _local_properties(settings, archiving=archiving)
            if settings.master.startswith("local")
            else _cluster_properties(settings)
        ),
        **spark_catalog_properties(settings),
        **settings.spark_properties,
    }
    for key, value in properties.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


@contextmanager
def projections(session: SparkSession, *, are_compiled: bool) -> Iterator[None]:
    """Have Spark compile its projections, or go over their expressions, for the length of a block.

    The Kafka source makes them anew for each partition that a micro-batch reads: to write and look up their code took a
    third of a small task, while big ones, and merges, are quicker with it.

    Args:
        session: whose setting is changed; other sessions keep theirs.
        are_compiled: Spark's own default.
    """
    before = session.conf.get(_PROJECTIONS)
    session.conf.set(_PROJECTIONS, "FALLBACK" if are_compiled else "NO_CODEGEN")
    try:
        yield
    finally:
        session.conf.set(_PROJECTIONS, before or "FALLBACK")


def check_spark(version: str) -> None:
    """Refuse a Spark that the Iceberg runtime is not made for, before it fails somewhere inside the JVM.

    Args:
        version: of PySpark, such as ``4.1.3``.

    Raises:
        SettingsError: another Spark.
    """
    if version.split(".")[:2] != _SPARK.split("."):
        raise SettingsError(
            f"expected Spark {_SPARK}, for which the Iceberg runtime and the Kafka connector are made, got {version}; "
            f"install pyspark {_SPARK}.* and submit to a cluster of that version"
        )


def spark_catalog_properties(settings: JobSettings) -> dict[str, str]:
    """Return the settings by which Spark sees the same catalog, under the same name, as PyIceberg does."""
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    properties = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.warehouse": settings.warehouse,
        f"{prefix}.cache-enabled": "false",
        # Iceberg asks the file system for its scheme, which the plain one below (quicker checkpoints) does not know.
        f"{prefix}.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
        f"{prefix}.hadoop.fs.file.impl.disable.cache": "true",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }
    if settings.catalog_uri.startswith(("http://", "https://")):
        properties |= {f"{prefix}.type": "rest", f"{prefix}.uri": settings.catalog_uri}
    else:
        properties |= {
            f"{prefix}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{prefix}.jdbc.schema-version": "V1",
            **{f"{prefix}.{key}": value for key, value in _jdbc(settings).items()},
        }
    if settings.warehouse.startswith("s3://"):
        properties |= _s3_properties(settings, prefix)
    return properties


def _local_properties(settings: JobSettings, *, archiving: bool) -> dict[str, str]:
    # The driver alone: loopback addresses, a quick collector, and class data from an archive where there is one.
    options = ["-XX:+UseSerialGC", *_COMPILERS[settings.driver_compiler]]
    if settings.class_archive is not None and (archiving or settings.class_archive.exists()):
        flag = "ArchiveClassesAtExit" if archiving else "SharedArchiveFile"
        options += [f"-XX:{flag}={settings.class_archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xshare:auto"]
    properties = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": " ".join(options),
        # Correctness rests on the tables' own offsets, never on a checkpoint: a weaker rename is enough, and faster.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }
    if settings.jars_folder is not None:
        properties["spark.driver.extraClassPath"] = ":".join(_jars(settings.jars_folder))
    return properties


def _cluster_properties(settings: JobSettings) -> dict[str, str]:
    """The driver hands its jars to the executors; by spark-submit they come with ``--jars``."""
    return {} if settings.jars_folder is None else {"spark.jars": ",".join(_jars(settings.jars_folder))}


def _jars(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.glob("*.jar"))


def _jdbc(settings: JobSettings) -> dict[str, str]:
    if settings.catalog_jdbc_uri:
        return {"uri": settings.catalog_jdbc_uri}
    parts = urlsplit(settings.catalog_uri)
    if parts.scheme == "sqlite":
        return {"uri": f"jdbc:sqlite:file:{parts.path[1:]}?busy_timeout=10000&journal_mode=WAL"}
    if parts.scheme.startswith("postgresql"):
        address = f"{parts.hostname}:{parts.port or 5432}"
        query = f"?{parts.query}" if dict(parse_qsl(parts.query)) else ""
        return {
            "uri": f"jdbc:postgresql://{address}{parts.path}{query}",
            **({"jdbc.user": parts.username} if parts.username else {}),
            **({"jdbc.password": parts.password} if parts.password else {}),
        }
    raise SettingsError(f"expected a sqlite: or postgresql: catalog address, got scheme {parts.scheme!r}")


def _s3_properties(settings: JobSettings, prefix: str) -> dict[str, str]:
    renamed = {
        "s3.endpoint": "s3.endpoint",
        "s3.access-key-id": "s3.access-key-id",
        "s3.secret-access-key": "s3.secret-access-key",
        "s3.region": "client.region",
    }
    found = {
        f"{prefix}.{spark_key}": settings.catalog_properties[key]
        for key, spark_key in renamed.items()
        if key in settings.catalog_properties
    }
    return {f"{prefix}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO", f"{prefix}.s3.path-style-access": "true"} | found
