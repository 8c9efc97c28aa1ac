"""The client's commands of ``relay``: history, symbols, submit, request-status, watch, report."""

from relay_client.cli.history import command as history
from relay_client.cli.report import command as report
from relay_client.cli.requests import request_status, submit
from relay_client.cli.symbols import command as symbols
from relay_client.cli.watch import command as watch

__all__ = ["history", "report", "request_status", "submit", "symbols", "watch"]
