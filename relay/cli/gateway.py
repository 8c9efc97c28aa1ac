"""``relay gateway``: the gateway process by itself."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["command"]


@click.command("gateway")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (TOML, table [gateway]).")
@click.option("--log-level", default="INFO", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]))
@click.option("--parent-pid", type=int, help="End when this parent process has died.")
def command(config: Path | None, log_level: str, parent_pid: int | None) -> None:
    """Run the gateway: the one address that clients know.

    \b
    ROUTER 5559   client requests          XPUB 5558   market data and notifications
    XSUB   5556   ingestors' fast path     it owns no state: kill it any time
    Ends with 0 on SIGTERM or Ctrl-C (after replies in flight), 2 for wrong settings or a taken port.
    """
    from relay.config import load_settings
    from relay.gateway.process import run_gateway
    from relay.gateway.settings import GatewaySettings
    from relay.observability import configure_logging

    configure_logging(process="gateway", level=log_level)
    raise SystemExit(run_gateway(load_settings(GatewaySettings, config_file=config), parent_pid=parent_pid))
