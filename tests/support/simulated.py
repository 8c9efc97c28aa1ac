"""The simulated exchange as adapter tests use it: every interface, and budgets that nothing exhausts."""

from __future__ import annotations

from ingestors.simulation.limits import Limits

__all__ = ["APIS", "GENEROUS"]

GENEROUS = Limits(
    binance_weight_per_minute=1_000_000,
    kraken_per_second=100_000,
    kraken_burst=100_000,
    coinbase_per_second=100_000,
    coinbase_burst=100_000,
)
APIS = [
    ("BINANCE", "exchange", "BTC/USDT", "binance"),
    ("KRAKEN", "exchange", "BTC/USDT", "kraken"),
    ("COINBASE", "exchange", "BTC/USD", "coinbase"),
    ("COINBASE", "advanced", "BTC/USD", "coinbase-advanced"),
]
