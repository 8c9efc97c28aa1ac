"""The client's commands of ``relay``: history, symbols, submit, request-status, watch, report, statistics, triggers."""

from relay_client.cli.history import command as history
from relay_client.cli.report import command as report
from relay_client.cli.requests import request_status, submit
from relay_client.cli.statistics import command as statistics
from relay_client.cli.symbols import command as symbols
from relay_client.cli.triggers import command as triggers
from relay_client.cli.watch import command as watch

__all__ = ["history", "report", "request_status", "statistics", "submit", "symbols", "triggers", "watch"]
