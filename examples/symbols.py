"""The markets of an exchange, by the async client.

python examples/symbols.py BINANCE BTC
"""

from __future__ import annotations

import asyncio
import sys

from relay_client import AsyncClient


async def main(exchange: str = "BINANCE", text: str = "BTC") -> None:
    async with AsyncClient() as client:
        for symbol in await client.symbols(text, exchange=exchange):
            print(symbol.ticker, symbol.native_symbol, symbol.status, symbol.price_increment)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
