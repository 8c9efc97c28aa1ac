"""Logging of applications: structlog, JSON lines in production and a console on a terminal."""

from __future__ import annotations

import logging
import sys

import structlog

__all__ = ["configure_logging"]

_TALKATIVE = ("httpx", "httpcore", "py4j", "aiohttp.access", "pyiceberg")
"""Libraries that log each request; counters serve for that."""


def configure_logging(*, process: str, level: str = "INFO") -> None:
    """Configure structlog and the standard logger for one process; events go to standard error.

    Args:
        process: name of the process, bound to every event.
        level: DEBUG, INFO, WARNING or ERROR.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    terminal = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level]))
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(process=process)
