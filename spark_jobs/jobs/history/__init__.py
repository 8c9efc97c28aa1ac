"""The history job: event log → ``market.ohlc``, ``market.tick_bars``, ``market.coverage``, ``market.symbol_metadata``.

It is their one writer.
"""
