"""Prints the next ticks of a market, and what was lost or missed: ``python examples/live_ticks.py TICKER COUNT``."""

from __future__ import annotations

import sys

from relay_client import Client


def main(ticker: str = "BTC/USDT.BINANCE", count: str = "10") -> None:
    """Subscribe, print so many ticks, and say what happened beside them."""
    with Client() as client, client.subscribe(ticker) as ticks:
        for _, tick in zip(range(int(count)), ticks, strict=False):
            side = "bought" if tick.taker_buy else "sold"
            print(f"{tick.time:%H:%M:%S.%f} {side} {tick.amount_text} at {tick.price_text} (trade {tick.trade_id})")
        for event in ticks.events():
            print(event)
        print(dict(ticks.counters()))


if __name__ == "__main__":
    main(*sys.argv[1:])
