"""The history job: event log → ``market.ohlc``, ``market.coverage``, ``market.symbol_metadata``; its one writer."""
