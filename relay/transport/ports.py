"""Who holds a TCP port: for error texts that say what to stop."""

from __future__ import annotations

import psutil

__all__ = ["port_holder"]


def port_holder(endpoint: str) -> str:
    """Return ``"; held by NAME (pid N)"`` for the listener on an endpoint's port, or empty text when unseen."""
    port_text = endpoint.rpartition(":")[2]
    if not port_text.isdigit():
        return ""
    try:
        for connection in psutil.net_connections("tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == int(port_text):
                if connection.pid is None:
                    return "; held by a process of another user"
                return f"; held by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except (psutil.Error, OSError):
        return ""
    return ""
