"""Triggers: patterns of market events, matched by event time."""
