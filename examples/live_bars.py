"""Keeps the last bars of a market as ticks make them: ``python examples/live_bars.py TICKER PERIOD_SECONDS COUNT``.

A bar comes many times: while its time runs (``is_final`` is False), when it is over, and again when a late trade or a
filled gap changed it (``revision`` grows). So the bar that counts is the last that came with its start.
"""

from __future__ import annotations

import sys
from datetime import datetime

from relay_client import Bar, Client


def main(ticker: str = "BTC/USDT.BINANCE", period_seconds: str = "60", count: str = "3") -> None:
    """Print so many bars as they become final, each revision of them, and what was kept at the end."""
    kept: dict[datetime, Bar] = {}
    with Client() as client, client.subscribe(f"{ticker}|ohlc:{period_seconds}") as bars:
        for bar in bars:
            if not bar.is_final:
                print(f"{bar.start:%H:%M:%S} runs: {bar.trades} trades, now at {bar.close}")
                continue
            kept[bar.start] = bar
            note = " (not all of it was seen)" if bar.incomplete else ""
            print(f"{bar.start:%H:%M:%S} revision {bar.revision}: {bar.open} … {bar.close}, volume {bar.volume}{note}")
            if len(kept) == int(count):
                break
    print(f"kept {len(kept)} bars, highest {max(bar.high for bar in kept.values())}")


if __name__ == "__main__":
    main(*sys.argv[1:])
