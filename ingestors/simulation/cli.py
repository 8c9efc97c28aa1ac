"""``relay simulation``: the simulated exchange as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import click
import structlog

from ingestors.simulation.captures import is_capture, load_captures
from ingestors.simulation.replay import Recording, load_recording
from ingestors.simulation.replay_clock import LiveReplay, parse_speed
from ingestors.simulation.server import SimulatedExchange
from relay.errors import RelayError
from relay.observability import configure_logging, watch_parent
from relay.protocol.times import parse_iso_ns

__all__ = ["command"]

_PARENT_CHECK_SECONDS = 1


@click.command("simulation")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to bind.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, show_default=True, help="TCP port; 0 takes a free one."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another seed is another market."
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    help="File of trades or candles, or a capture (.gz), served instead of the model.",
)
@click.option("--ticker", help="Ticker that the file is served as: BASE/QUOTE.EXCHANGE, or BASE/QUOTE with --exchange.")
@click.option("--exchange", help="Exchange of --ticker: BINANCE, KRAKEN or COINBASE.")
@click.option(
    "--live-speed",
    help="Send the recording over the sockets: a factor of real time (0.5, 60), max, or step (by /control/clock).",
)
@click.option(
    "--live-from", help="Where a live replay begins, ISO 8601 with zone; default: where the recording goes live."
)
@click.option("--parent-pid", type=int, help="Exit when the parent process is no longer this one.")
def command(
    *,
    host: str,
    port: int,
    seed: int,
    replay: Path | None,
    ticker: str | None,
    exchange: str | None,
    live_speed: str | None,
    live_from: str | None,
    parent_pid: int | None,
) -> None:
    """Serve Binance, Kraken and Coinbase shapes from one seeded market, or from a recording.

    Prints one JSON line with the bound port when it is ready. SIGTERM and SIGINT end it with exit code 0.
    """
    configure_logging(process="simulation")
    watch_parent(parent_pid, lambda: None)
    try:
        recordings = _recordings(replay, ticker=ticker, exchange=exchange)
        server = SimulatedExchange(
            seed=seed, host=host, port=port, recordings=recordings, replay=_live_replay(live_speed, live_from)
        )
        asyncio.run(_serve(server, parent_pid=parent_pid))
    except RelayError as error:
        raise click.ClickException(str(error)) from error


def _recordings(replay: Path | None, *, ticker: str | None, exchange: str | None) -> list[Recording]:
    if replay is None:
        if ticker or exchange:
            raise click.UsageError("--ticker and --exchange say what --replay FILE is served as; there is no --replay")
        return []
    if is_capture(replay):
        if ticker or exchange:
            raise click.UsageError("a capture names its own tickers; leave --ticker and --exchange out")
        return load_captures(replay)
    if ticker is None:
        raise click.UsageError("--replay needs --ticker, such as --ticker XRP/ETH.BINANCE")
    return [load_recording(replay, f"{ticker}.{exchange}" if exchange else ticker)]


def _live_replay(speed: str | None, from_text: str | None) -> LiveReplay | None:
    if speed is None:
        if from_text is not None:
            raise click.UsageError("--live-from says where a live replay begins; there is no --live-speed")
        return None
    return LiveReplay(parse_speed(speed), from_ns=None if from_text is None else parse_iso_ns(from_text))


async def _serve(server: SimulatedExchange, *, parent_pid: int | None) -> None:
    log = structlog.get_logger()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with server:
        log.info("simulation_started", url=server.url)
        click.echo(json.dumps({"ready": True, "port": server.port}))
        while not ended.is_set():
            if parent_pid is not None and os.getppid() != parent_pid:
                log.warning("parent_vanished", parent_pid=parent_pid)
                break
            try:
                await asyncio.wait_for(ended.wait(), timeout=_PARENT_CHECK_SECONDS)
            except TimeoutError:
                continue
    log.info("simulation_stopped")
