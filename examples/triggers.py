"""Waits until a price crosses a level, else the last close: ``python examples/triggers.py TICKER LEVEL``."""

from __future__ import annotations

import sys

from relay_client import Client, when


def main(ticker: str = "BTC/USDT.BINANCE", level: str = "") -> None:
    """Register a one-shot trigger, wait for its firing, and print what matched."""
    with Client() as client:
        level = level or str(client.history(ticker, last="10m").tail(1)[0].close)
        trigger = client.triggers.register(when(ticker).crosses(level), one_shot=True)
        print(f"waiting for {ticker} to cross {level} (trigger {trigger.trigger_id})")
        try:
            event = next(client.triggers.events(trigger))
            print(f"{event.fired_at:%H:%M:%S.%f} crossed at {event.matched[-1].price}")
        finally:
            client.triggers.cancel(trigger)


if __name__ == "__main__":
    main(*sys.argv[1:])
