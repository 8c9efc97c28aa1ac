"""Client SDK of Market Relay: exact, durable history and live ticks from one address.

::

    from relay_client import Client

    with Client("127.0.0.1") as client:
        bars = client.history("BTC/USDT.BINANCE", last="1h", period="1m")
        print(bars.to_pandas().tail())
        for tick in client.subscribe("BTC/USDT.BINANCE"):
            print(tick.price, tick.amount)
"""

from relay_client.async_client import AsyncClient
from relay_client.async_subscription import AsyncSubscription
from relay_client.async_tick_player import AsyncTickPlayer
from relay_client.client import Client
from relay_client.engine.completeness import Completeness, KnownGap, MissingIds
from relay_client.engine.items import Origin, Tick
from relay_client.engine.live_values import (
    CallbackFailed,
    FeedEvent,
    FeedState,
    Gap,
    HistoryJoined,
    Loss,
    Overrun,
    Repaired,
    Skipped,
    StateChanged,
)
from relay_client.engine.trigger_feed import MatchedEvent, TriggerEvent, TriggerLoss
from relay_client.history import Bar, History
from relay_client.outcome import Outcome, Progress, Request, RequestStatus
from relay_client.pattern_builder import (
    CLOSE,
    HIGH,
    LOW,
    OPEN,
    TRADES,
    VOLUME,
    PatternBuilder,
    PatternError,
    n_of,
    when,
)
from relay_client.probe import RelayInfo
from relay_client.settings import ClientSettings
from relay_client.statistics import ExchangeStatistics, TickerStatistics, UsdRate
from relay_client.stored_ticks import StoredTicks
from relay_client.subscription import FeedItem, Subscription
from relay_client.symbols import Symbol, SymbolState
from relay_client.tick_player import TickPlayer
from relay_client.trigger_flows import Trigger
from relay_client.triggers import AsyncTriggerEvents, AsyncTriggers, TriggerEvents, Triggers

__all__ = [
    "CLOSE",
    "HIGH",
    "LOW",
    "OPEN",
    "TRADES",
    "VOLUME",
    "AsyncClient",
    "AsyncSubscription",
    "AsyncTickPlayer",
    "AsyncTriggerEvents",
    "AsyncTriggers",
    "Bar",
    "CallbackFailed",
    "Client",
    "ClientSettings",
    "Completeness",
    "ExchangeStatistics",
    "FeedEvent",
    "FeedItem",
    "FeedState",
    "Gap",
    "History",
    "HistoryJoined",
    "KnownGap",
    "Loss",
    "MatchedEvent",
    "MissingIds",
    "Origin",
    "Outcome",
    "Overrun",
    "PatternBuilder",
    "PatternError",
    "Progress",
    "RelayInfo",
    "Repaired",
    "Request",
    "RequestStatus",
    "Skipped",
    "StateChanged",
    "StoredTicks",
    "Subscription",
    "Symbol",
    "SymbolState",
    "Tick",
    "TickPlayer",
    "TickerStatistics",
    "Trigger",
    "TriggerEvent",
    "TriggerEvents",
    "TriggerLoss",
    "Triggers",
    "UsdRate",
    "n_of",
    "when",
]
