"""``relay report``: how complete the stored ticks of a day are, as text, JSON, or an HTML page."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import click

from relay.errors import SettingsError
from relay.protocol.ranges import Range
from relay.protocol.times import format_ns, parse_iso_ns
from relay_client.cli.options import connection_options, json_option, open_client
from relay_client.engine.completeness import Completeness

__all__ = ["command"]

EXIT_LOST = 5
_DAY_NS = 86_400_000_000_000
_SHOWN_MAX = 20


@click.command("report")
@click.argument("tickers", metavar="TICKER...", nargs=-1, required=True)
@click.option("--day", metavar="DATE", help="UTC day, such as 2026-01-31. [default: today]")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page to FILE.")
@json_option
@click.option("--strict", is_flag=True, help=f"End with {EXIT_LOST} when anything was lost.")
@connection_options
def command(
    tickers: tuple[str, ...],
    day: str | None,
    html_file: Path | None,
    timeout: int | None,
    *,
    as_json: bool,
    strict: bool,
    **options: Any,
) -> None:
    """Say how complete the stored ticks of TICKER are on a day: ids expected and stored, gaps and causes, time covered.

    \b
    relay report BTC/USDT.BINANCE --day 2026-01-31
    relay report BTC/USDT.BINANCE ETH/USDT.BINANCE --html report.html

    \b
    Exit codes: 0 told; 2 wrong arguments; 3 refused (unknown ticker); 4 try again;
    5 with --strict when ids are missing, a gap is open or will not be filled, or nothing is stored.

    Today is measured until now. The time before a ticker's first recording is not covered, but no loss.
    """
    span = _day(day, now_ns=time.time_ns())
    with open_client(**options) as client:
        found = [
            client.completeness(ticker, start=span.start_ns, end=span.end_ns, unit="ns", timeout=timeout)
            for ticker in tickers
        ]
    if html_file is not None:
        _write(html_file, _page(found, span))
    if as_json:
        click.echo(json.dumps([_as_json(report) for report in found]))
    elif html_file is None:
        for report in found:
            click.echo(_text(report, span))
    if strict and not all(report.is_lossless for report in found):
        raise SystemExit(EXIT_LOST)


def _day(day: str | None, *, now_ns: int) -> Range:
    start_ns = now_ns // _DAY_NS * _DAY_NS
    if day is not None:
        if len(day) != len("2026-01-31"):
            raise SettingsError(f"expected a day such as 2026-01-31, got {day!r}")
        start_ns = parse_iso_ns(day)
        if start_ns > now_ns:
            raise SettingsError(f"expected a day that has begun, at most {format_ns(now_ns)[:10]}, got {day}")
    return Range(start_ns, start_ns + _DAY_NS)


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error}; choose another file") from error


def _percent(parts_per_million: int) -> str:
    return f"{parts_per_million // 10_000}.{parts_per_million % 10_000:04} %"


def _rows(report: Completeness) -> list[tuple[str, str]]:
    return [
        ("ids", f"{report.first} to {report.last}" if report.stored else "nothing stored"),
        ("expected", str(report.expected)),
        ("stored", str(report.stored)),
        ("missing", str(report.missing_count)),
        ("time covered", _percent(report.covered_parts_per_million)),
    ]


def _details(report: Completeness) -> list[str]:
    lines = [f"missing ids {m.first} to {m.last} ({m.count}): {m.cause}" for m in report.missing]
    for gap in report.gaps:
        if gap.is_before_all:
            lines.append(f"not recorded before {format_ns(gap.to_ns)}: nothing was lost")
            continue
        end = format_ns(gap.to_ns) if gap.to_ns else "now"
        ids = f"ids {gap.first if gap.first is not None else '?'} to {gap.last if gap.last is not None else '?'}"
        lines.append(f"gap {gap.state} {gap.cause}: {format_ns(gap.from_ns)} to {end}, {ids}")
    return lines


def _measured(report: Completeness, day: Range) -> str:
    """Return the span in words; of a day that is not over it ends now."""
    now = " (now)" if report.span.end_ns < day.end_ns else ""
    return f"{format_ns(report.span.start_ns)} to {format_ns(report.span.end_ns)}{now}"


def _text(report: Completeness, day: Range) -> str:
    lines = [f"{report.ticker}  {_measured(report, day)}"]
    lines += [f"  {name:<14}{value}" for name, value in _rows(report)]
    details = _details(report)
    lines += [f"  {line}" for line in details[:_SHOWN_MAX]]
    if len(details) > _SHOWN_MAX:
        lines.append(f"  … and {len(details) - _SHOWN_MAX} more (--json tells all)")
    return "\n".join(lines)


def _as_json(report: Completeness) -> dict[str, object]:
    return {
        "ticker": report.ticker,
        "start_ns": report.span.start_ns,
        "end_ns": report.span.end_ns,
        "first_id": report.first,
        "last_id": report.last,
        "expected": report.expected,
        "stored": report.stored,
        "missing": [{"first": m.first, "last": m.last, "cause": m.cause} for m in report.missing],
        "gaps": [
            {
                "state": g.state,
                "cause": g.cause,
                "first": g.first,
                "last": g.last,
                "from_ns": g.from_ns,
                "to_ns": g.to_ns or None,
            }
            for g in report.gaps
        ],
        "covered_ns": report.covered_ns,
        "is_complete": report.is_complete,
        "is_lossless": report.is_lossless,
    }


def _page(reports: Sequence[Completeness], span: Range) -> str:
    """Return a page that stands by itself: no script, no other file."""
    sections = "".join(_section(report, span) for report in reports)
    title = f"Stored ticks, {format_ns(span.start_ns)[:10]}"
    style = (
        "body{font:15px/1.5 system-ui,sans-serif;margin:2rem;max-width:60rem}table{border-collapse:collapse}"
        "th{text-align:left;padding-right:1.5rem;font-weight:normal;color:#666}.bar{height:10px;background:#e66;"
        "width:100%}.bar div{height:10px;background:#393}li{font-family:monospace}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style><h1>{escape(title)}</h1>{sections}</html>\n"
    )


def _section(report: Completeness, day: Range) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in _rows(report))
    details = "".join(f"<li>{escape(line)}</li>" for line in _details(report))
    share = _percent(report.covered_parts_per_million).replace(" ", "")
    return (
        f"<h2>{escape(report.ticker)}</h2><p>{escape(_measured(report, day))}</p><table>{rows}</table>"
        f'<div class="bar"><div style="width:{share}"></div></div><ul>{details}</ul>'
    )
