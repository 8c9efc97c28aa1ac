"""The client's commands of ``relay``: history, symbols, submit, request-status."""

from relay_client.cli.history import command as history
from relay_client.cli.requests import request_status, submit
from relay_client.cli.symbols import command as symbols

__all__ = ["history", "request_status", "submit", "symbols"]
