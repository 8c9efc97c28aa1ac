"""Market Relay: a self-hosted relay gateway for market data."""

__all__ = ["__version__"]

__version__ = "0.1.0"
