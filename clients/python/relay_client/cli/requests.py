"""``relay submit`` and ``relay request-status``: requests without waiting, and their state."""

from __future__ import annotations

import json
from typing import Any

import click

from relay.protocol.times import format_ns
from relay_client.cli.options import connection_options, json_option, open_client, range_options
from relay_client.cli.output import ranges_json
from relay_client.outcome import Outcome

__all__ = ["request_status", "submit"]


@click.command("submit")
@range_options
@click.option("--request-id", help="UUID, to submit the same request again. [default: a new one]")
@json_option
@connection_options
def submit(ticker: str, request_id: str | None, timeout: int | None, *, as_json: bool, **options: Any) -> None:
    """Submit a history request of TICKER without waiting; prints its request_id.

    It is stored durably when this returns; submitting the same id again never fetches twice.

    \b
    relay submit BTC/USDT.BINANCE --start 2026-01-01 --end 2026-02-01
    relay request-status REQUEST_ID --wait

    \b
    Exit codes: 0 done, 2 wrong arguments, 3 refused, 4 try again.
    """
    asked = {name: options.pop(name) for name in ("start", "end", "last", "period", "limit")}
    with open_client(**options) as client:
        request = client.submit(ticker, **asked, request_id=request_id, timeout=timeout)
    if not as_json:
        click.echo(request.request_id)
        return
    told = {
        "request_id": request.request_id,
        "was_known": request.was_known,
        "ticker": request.ticker,
        "period_seconds": request.period_seconds,
        "start": format_ns(request.start_ns),
        "end": format_ns(request.end_ns),
        "limit": request.limit,
        "topic": request.topic,
    }
    click.echo(json.dumps(told))


@click.command("request-status")
@click.argument("request_id")
@click.option("--wait", is_flag=True, help="Wait until it has ended.")
@json_option
@connection_options
def request_status(request_id: str, timeout: int | None, *, wait: bool, as_json: bool, **options: Any) -> None:
    """Show how the request REQUEST_ID stands, or how it ended.

    \b
    Exit codes: 0 told (also that it failed), 2 wrong arguments, 3 unknown request, 4 try again.
    """
    with open_client(**options) as client:
        look = client.wait if wait else client.request_status
        outcome = look(request_id, timeout=timeout)
    click.echo(json.dumps(_as_json(outcome)) if as_json else _as_text(outcome))


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "request_id": outcome.request_id,
        "status": str(outcome.status),
        "error_code": outcome.error_code,
        "error_message": outcome.error_message,
        "ticker": outcome.ticker,
        "period_seconds": outcome.period_seconds,
        "start": format_ns(outcome.start_ns),
        "end": format_ns(outcome.end_ns),
        "row_count": outcome.row_count,
        "snapshot_id": outcome.snapshot_id,
        "completed_at": format_ns(outcome.completed_at_ns) if outcome.completed_at_ns else None,
        "missing": ranges_json(outcome.missing),
    }


def _as_text(outcome: Outcome) -> str:
    span = f"{format_ns(outcome.start_ns)} to {format_ns(outcome.end_ns)}"
    lines = [f"{outcome.status}  {outcome.ticker}  {outcome.period_seconds} s  {span}"]
    if outcome.has_ended:
        lines.append(f"{outcome.row_count} bars at snapshot {outcome.snapshot_id}")
    if outcome.error_code:
        lines.append(f"{outcome.error_code}: {outcome.error_message}")
    lines += [f"missing {format_ns(r.start_ns)} to {format_ns(r.end_ns)}" for r in outcome.missing]
    return "\n".join(lines)
