"""The tick archive: event log -> market.ticks and market.gaps."""
