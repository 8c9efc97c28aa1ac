"""Bars of the last hours as a DataFrame, exact, with what is missing said.

python examples/history_to_pandas.py BTC/USDT.BINANCE 2h
"""

from __future__ import annotations

import sys

from relay_client import Client


def main(ticker: str = "BTC/USDT.BINANCE", last: str = "2h") -> None:
    with Client() as client:  # RELAY_CLIENT_HOST, or this machine
        bars = client.history(ticker, last=last, period="1m")

    print(f"{len(bars)} bars, {bars.status}")
    for span in bars.missing:
        print(f"missing: {span}")

    frame = bars.to_pandas()
    print(frame[["open", "high", "low", "close", "volume"]].tail())

    # Decimals stay decimals: this is the exact sum.
    print("volume", frame["volume"].sum())


if __name__ == "__main__":
    main(*sys.argv[1:])
