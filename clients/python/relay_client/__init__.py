"""Client SDK of Market Relay: exact, durable history from one address.

::

    from relay_client import Client

    with Client("127.0.0.1") as client:
        bars = client.history("BTC/USDT.BINANCE", last="1h", period="1m")
        print(bars.to_pandas().tail())
"""

from relay_client.async_client import AsyncClient
from relay_client.client import Client
from relay_client.history import Bar, History
from relay_client.outcome import Outcome, Progress, Request, RequestStatus
from relay_client.probe import RelayInfo
from relay_client.settings import ClientSettings
from relay_client.symbols import Symbol

__all__ = [
    "AsyncClient",
    "Bar",
    "Client",
    "ClientSettings",
    "History",
    "Outcome",
    "Progress",
    "RelayInfo",
    "Request",
    "RequestStatus",
    "Symbol",
]
